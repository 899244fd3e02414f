package phase2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var hourly = Default()

// screened is the screening of an input with the header and these rows.
func screened(t *testing.T, rows string) Screening {
	t.Helper()
	res, err := Compute(t.Context(), strings.NewReader(Header+"\n"+rows), hourly, nil)
	if err != nil && !errors.Is(err, ErrUnusable) {
		t.Fatal(err)
	}
	return res.Screening
}

func TestScreens(t *testing.T) {
	t.Parallel()
	const at = "2024-05-01T10:00:00Z"
	long := strings.Repeat("n", maxStation)
	for _, test := range []struct{ name, rows, want string }{ // want: + accepted, M malformed, S saturated, O out of order; a letter a row
		{"plain", at + ",a,7.5\n", "+"},
		{"no newline at the end", at + ",a,7.5", "+"},
		{"CRLF", at + ",a,7.5\r\n" + at + ",b,7.5\r\n", "++"},
		{"CR at the very end", at + ",a,7.5\r", "+"},
		{"nothing", "", ""},
		{"blank lines", "\n\r\n" + at + ",a,7.5\n\n", "MM+M"},
		{"too few fields", at + ",a\n" + at + "\n", "MM"},
		{"too many fields", at + ",a,7.5,\n" + at + ",a,7.5,x\n" + `"` + at + `",a,7.5,` + "\n", "MMM"},
		{"a comma too early", "2024-05-01T10:00,0Z0,a,7.5\n", "M"},
		{"no time", ",a,7.5\n", "M"},
		{"nothing is trimmed", " " + at + ",a,7.5\n" + at + ",a, 7.5\n" + at + ",a,7.5 \n", "MMM"},
		{"CR inside", at + ",a,7.5\r\r\n" + at + "\r,a,7.5\n", "MM"},
		{"station of 0, 64 and 65 bytes", at + ",,7\n" + at + "," + long + ",7\n" + at + ",n" + long + ",7\n", "M+M"},
		{"station with a space, with another", at + ",a,7\n" + at + ", a,7\n" + at + ",A,7\n", "+++"},
		{"station no UTF-8", at + ",\xff,7\n" + at + ",\xc3\xa9,7\n", "M+"},
		{"ends of the scale", at + ",a,0\n" + at + ",a,14\n" + at + ",a,0.0004\n" + at + ",a,13.9995\n" + at + ",a,-3\n" + at + ",a,1e9\n", "SSSSSS"},
		{"just inside the scale", at + ",a,0.0005\n" + at + ",b,13.9994999\n", "++"},
		{"malformed before saturated", at + ",\xff,14\n" + at + ",,0\n", "MM"},
		{"saturated before out of order", at + ",a,7\n" + at + ",a,14\n", "+S"},
		{"the same second", at + ",a,7\n" + at + ",a,7\n2024-05-01T10:00:00.9Z,a,7\n2024-05-01T12:00:00+02:00,a,7\n", "+OOO"},
		{"a second earlier, a second later", at + ",a,7\n2024-05-01T09:59:59Z,a,7\n2024-05-01T10:00:01Z,a,7\n", "+O+"},
		{"a rejected reading moves no clock", at + ",a,7\n2024-05-01T12:00:00Z,a,14\n2024-05-01T11:00:00Z,a,7\n", "+S+"},
		{"stations do not hinder each other", at + ",a,7\n2024-05-01T09:00:00Z,b,7\n", "++"},

		{"quoted", `"` + at + `","a","7.5"` + "\r\n" + at + `,"b",7.5`, "++"},
		{"quoted comma, quote and line ends", at + `,"a,b",7` + "\n" + at + `,"a""b",7` + "\n" + at + ",\"a\r\nb\",7\n" + at + ",c,7\n", "++++"},
		{"a quoted name is the name", at + ",a,7\n" + at + `,"a",7` + "\n", "+O"},
		{"a name of quotes is another", at + `,"""a""",7` + "\n" + at + `,"a",7` + "\n" + at + `,"""a""",7` + "\n", "++O"},
		{"bare quote", at + `,a"b,7` + "\n" + at + ",a,7\n", "M+"},
		{"text after a quote", at + `,"a"b,7` + "\n" + at + ",a,7\n", "M+"},
		{"never closed", at + `,"a,7` + "\n" + at + ",a,7\n", "M+"},
		{"a stray quote swallows no readings", at + `,"a,7` + "\n" + at + ",b,7\n" + at + `,"c",7` + "\n", "M++"},
		{"only a quote", "\"", "M"},
		{"CR after a quoted field", at + ",a,\"7\"\r\r\n" + at + ",b,\"7\"\r", "M+"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := screened(t, test.rows)
			count := func(letter string) int64 { return int64(strings.Count(test.want, letter)) }
			got := []int64{s.Rows, s.Accepted, s.Rejected.Malformed, s.Rejected.Saturated, s.Rejected.OutOfOrder}
			want := []int64{int64(len(test.want)), count("+"), count("M"), count("S"), count("O")}
			if !slices.Equal(got, want) {
				t.Errorf("rows, accepted, malformed, saturated, out of order: %d, want %d", got, want)
			}
		})
	}
}

func TestFirstTenRejectedByLine(t *testing.T) {
	t.Parallel()
	rows := "x\n" + "2024-05-01T10:00:00Z,\"a\nb\",7\n" + "2024-05-01T10:00:00Z,\"a\nb\",14\n" + "2024-05-01T10:00:00Z,\"a\nb\",7\n" + strings.Repeat("\n", 9)
	want := []Rejection{{2, "malformed"}, {5, "saturated"}, {7, "out_of_order"}}
	for line := 9; line < 16; line++ {
		want = append(want, Rejection{line, "malformed"})
	}
	if got := screened(t, rows).FirstRejected; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestLongestRecord(t *testing.T) {
	t.Parallel()
	const good = "2024-05-01T10:00:00Z,a,7\n"
	digits := func(size int) string { // a record of that size, line end included
		const start = "2024-05-01T10:00:00Z,b,7."
		return start + strings.Repeat("0", size-len(start)-1) + "\n"
	}
	lines := func(size int) string { // a quoted record of that size that spans lines
		const start, end = "2024-05-01T10:00:00Z,b,\"", "\"\n"
		return start + strings.Repeat("\n", size-len(start)-len(end)) + end
	}
	for _, test := range []struct {
		name, rows          string
		accepted, malformed int64
	}{
		{"64 KiB", digits(maxRecord) + good, 2, 0},
		{"a byte more", digits(maxRecord+1) + good, 1, 1},
		{"a megabyte", digits(1<<20) + good, 1, 1},
		{"a megabyte without an end", good + strings.TrimSpace(digits(1<<20)), 1, 1},
		{"quoted, 64 KiB", lines(maxRecord) + good, 1, 1},
		{"quoted, a byte more", lines(maxRecord+1) + good, 1, int64(strings.Count(lines(maxRecord+1), "\n"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := screened(t, test.rows)
			if s.Accepted != test.accepted || s.Rejected.Malformed != test.malformed {
				t.Errorf("%d accepted, %d malformed; want %d, %d", s.Accepted, s.Rejected.Malformed, test.accepted, test.malformed)
			}
			if line := s.FirstRejected; len(line) > 0 && test.rows[0] != good[0] && line[0].Line != 2 {
				t.Errorf("first rejected: %v", line[0])
			}
		})
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		header string
		ok     bool
	}{
		{"time,station,ph\n", true},
		{"time,station,ph\r\n", true},
		{"\ufefftime,station,ph\n", true},
		{"\ufeff\"time\",station,\"ph\"\n", true},
		{"", false},
		{"\n", false},
		{"\ufeff", false},
		{"\ufeff\ufefftime,station,ph\n", false},
		{"Time,station,ph\n", false},
		{"time,station,pH\n", false},
		{"time, station,ph\n", false},
		{"time,station,ph,\n", false},
		{"time,station\n", false},
		{"time;station;ph\n", false},
		{"station,time,ph\n", false},
		{"\ntime,station,ph\n", false},
		{strings.Repeat("x", 1<<20) + "\n", false},
	} {
		res, err := Compute(t.Context(), strings.NewReader(test.header+"2024-05-01T10:00:00Z,a,7\n"), hourly, nil)
		if ok := err == nil; ok != test.ok {
			t.Errorf("%.40q: %v", test.header, err)
		}
		if err != nil && (!errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), Header) || res != nil) {
			t.Errorf("%.40q: %v, results %v", test.header, err, res)
		}
	}
}

func TestNoAcceptableReadingTellsTheScreening(t *testing.T) {
	t.Parallel()
	res, err := Compute(t.Context(), strings.NewReader(Header+"\n2024-05-01T10:00:00Z,a,14\n"), hourly, nil)
	if !errors.Is(err, ErrUnusable) || res == nil || res.Screening.Rejected.Saturated != 1 {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestTooManyStations(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	fmt.Fprintln(&in, Header)
	for i := range maxStations {
		fmt.Fprintf(&in, "2024-05-01T10:00:00Z,%d,7\n", i)
	}
	if _, err := Compute(t.Context(), bytes.NewReader(in.Bytes()), hourly, nil); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&in, "2024-05-01T10:00:00Z,one more,7\n")
	if _, err := Compute(t.Context(), &in, hourly, nil); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "line 100002") {
		t.Error(err)
	}
}

// TestTooManyAlerts: with a largest gap of a second, readings every two seconds have a gap between each two.
func TestTooManyAlerts(t *testing.T) {
	t.Parallel()
	p := hourly
	p.MaxGap = time.Second
	var in bytes.Buffer
	fmt.Fprintln(&in, Header)
	at := time.Date(2024, time.May, 1, 0, 0, 0, 0, time.UTC)
	row := func() {
		in.Write(at.AppendFormat(in.AvailableBuffer(), "2006-01-02T15:04:05Z,a,7\n"))
		at = at.Add(2 * time.Second)
	}
	for range maxAlerts + 1 {
		row()
	}
	if res, err := Compute(t.Context(), bytes.NewReader(in.Bytes()), p, nil); err != nil || len(res.alerts) != maxAlerts {
		t.Fatal(err)
	}

	silent := append(bytes.Clone(in.Bytes()), "2024-05-01T00:00:00Z,b,7\n"...) // which is silent to the end: one gap more
	if _, err := Compute(t.Context(), bytes.NewReader(silent), p, nil); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "500000 alerts") {
		t.Error(err)
	}
	row()
	if _, err := Compute(t.Context(), &in, p, nil); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "line 500003") {
		t.Error(err)
	}
}

func TestErrorsOfTheReaderAndTheContext(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	half := io.MultiReader(strings.NewReader(Header+"\n2024-05-01T10:00:00Z,a,7\n"), iotest.ErrReader(broken))
	if res, err := Compute(t.Context(), half, hourly, nil); !errors.Is(err, broken) || errors.Is(err, ErrUnusable) || res != nil {
		t.Errorf("reader: %v, %v", err, res)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, err := Compute(ctx, iotest.OneByteReader(strings.NewReader(Header+"\n2024-05-01T10:00:00Z,a,7\n")), hourly, func(int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}

	if _, err := Compute(t.Context(), idleReader{}, hourly, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("idle: %v", err)
	}
}

type idleReader struct{}

func (idleReader) Read([]byte) (int, error) { return 0, nil }

func TestProgressReachesTheSize(t *testing.T) {
	t.Parallel()
	in := Header + "\n" + strings.Repeat("2024-05-01T10:00:00Z,a,7\n", 100_000)
	var last int64
	_, err := Compute(t.Context(), strings.NewReader(in), hourly, func(n int64) {
		if n < last {
			t.Errorf("%d after %d", n, last)
		}
		last = n
	})
	if err != nil || last != int64(len(in)) {
		t.Errorf("%d of %d bytes, %v", last, len(in), err)
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{ // want "": refused
		{"2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"},
		{"2024-02-29t23:59:59z", "2024-02-29T23:59:59Z"},
		{"2024-02-29T23:59:59.999999999999999Z", "2024-02-29T23:59:59Z"},
		{"1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59Z"}, // cut off, not rounded towards zero
		{"2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z"},
		{"2024-02-29T20:00:00.5-04:30", "2024-03-01T00:30:00Z"},
		{"2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00Z"},
		{"2024-01-02T00:00:00+23:59", "2024-01-01T00:01:00Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"},
		{"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
		{"2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"},
		{"0000-01-01T00:00:00+00:01", ""},
		{"9999-12-31T23:59:59-00:01", ""},
		{"2023-02-29T00:00:00Z", ""},
		{"1900-02-29T00:00:00Z", ""},
		{"2024-04-31T00:00:00Z", ""},
		{"2024-00-01T00:00:00Z", ""},
		{"2024-13-01T00:00:00Z", ""},
		{"2024-01-00T00:00:00Z", ""},
		{"2024-01-32T00:00:00Z", ""},
		{"2024-01-01T24:00:00Z", ""},
		{"2024-01-01T00:60:00Z", ""},
		{"2016-12-31T23:59:60Z", ""},
		{"2024-01-01T00:00:00", ""},
		{"2024-01-01 00:00:00Z", ""},
		{"2024-01-01T00:00:00.Z", ""},
		{"2024-01-01T00:00:00,5Z", ""},
		{"2024-01-01T00:00:00.5", ""},
		{"2024-01-01T00:00Z", ""},
		{"2024-01-01T00:00:00+01", ""},
		{"2024-01-01T00:00:00+0100", ""},
		{"2024-01-01T00:00:00+24:00", ""},
		{"2024-01-01T00:00:00+00:60", ""},
		{"2024-01-01T00:00:00Z ", ""},
		{"2024-01-01T00:00:00ZZ", ""},
		{"2024-1-01T00:00:00.0Z", ""},
		{"+2024-01-01T00:00:00Z", ""},
		{"2024/01/01T00:00:00Z", ""},
		{"2024-01-01T0x:00:00Z", ""},
		{"2024-01-01\x5400:00:00\x1a", ""},
		{"", ""},
	} {
		var c clock
		sec, ok := c.parse([]byte(test.in))
		got := ""
		if ok {
			got = strings.Trim(string(new(formatter).appendTime(nil, sec)), `"`)
		}
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
		if again, okAgain := c.parse([]byte(test.in)); again != sec || okAgain != ok {
			t.Errorf("%q: %d, %v from the remembered date", test.in, again, okAgain)
		}
	}
}

func TestParsePH(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want int
	}{
		{"7", 7000}, {"7.", 7000}, {".5", 500}, {"+7.25", 7250}, {"-7.25", -7250}, {"007.100", 7100}, {"10.5", 10500}, {"13.999", 13999},
		{"7.0004", 7000}, {"7.0005", 7001}, {"7.00049999999999999999999", 7000}, {"1.0005", 1001}, {"8.4995", 8500}, {"6.4994999", 6499},
		{"-0.0005", 0}, {"-0.00050001", -1}, {"-0.0015", -1}, {"-7.0005", -7000}, {"-0", 0}, {"0.0005", 1}, {"0.00049", 0}, {"9.9995", 10000}, {"99.9995", 100000},
		{"75e-1", 7500}, {"0.0075E+3", 7500}, {".75e1", 7500}, {"7.e0", 7000}, {"5e-4", 1}, {"49e-5", 0}, {"5e-5", 0}, {"7000.5e-3", 7001}, {"7000.5e-00000000000000000003", 7001},
		{"1e400", hugePH}, {"-1e400", -hugePH}, {"100000.0007", hugePH}, {"-99999.9999", -hugePH}, {"99999.9989", hugePH - 1}, {"1e-400", 0}, {"-1e-400", 0}, {"1e99999999999999999999999", hugePH}, {"1e-99999999999999999999999", 0}, {"0e99999999999999999999999", 0},
		{"123456789012345678901234567890", hugePH}, {"0." + strings.Repeat("0", 400) + "7e401", 7000}, {strings.Repeat("0", 400) + "7", 7000}, {"7" + strings.Repeat("0", 400) + "e-400", 7000},
	} {
		if got, ok := ParsePH([]byte(test.in)); !ok || got != test.want {
			t.Errorf("%q: %d, %v; want %d", test.in, got, ok, test.want)
		}
	}
	for _, in := range strings.Split(`|.|+|-|e1|.e1|7e|7e+|7e-|7e1.5|7..1|7.1.|7,1| 7|7 |--7|+-7|NaN|nan|Inf|-Inf|infinity|0x7|0x1p3|7_0|7.0_1|1e1e1|7f|٧|7.12a|a.12|7.1\x00`, "|") {
		if got, ok := ParsePH([]byte(in)); ok {
			t.Errorf("%q: %d, want it refused", in, got)
		}
	}
}

var decimalLiteral = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// FuzzParsePH holds ParsePH against exact rational arithmetic.
func FuzzParsePH(f *testing.F) {
	for _, s := range []string{"7.5", "7.0005", "-0.0005", ".5", "7.", "75e-1", "1e400", "+7e+", "0x7", ""} {
		f.Add(s)
	}
	exponentOf := regexp.MustCompile(`[eE][+-]?0*([0-9]{4,})$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := ParsePH([]byte(s))
		if ok != decimalLiteral.MatchString(s) {
			t.Fatalf("%q: ok %v", s, ok)
		}
		if !ok || exponentOf.MatchString(s) { // big.Rat would write such a number out
			return
		}
		exact, _ := new(big.Rat).SetString(s)
		exact.Add(exact.Mul(exact, big.NewRat(1000, 1)), big.NewRat(1, 2))
		want := new(big.Int).Div(exact.Num(), exact.Denom()) // the floor, since a denominator is positive
		if want.CmpAbs(big.NewInt(hugePH)) >= 0 {
			want.SetInt64(int64(want.Sign()) * hugePH)
		}
		if want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%q: %d, want %s", s, got, want)
		}
	})
}

// FuzzParseTime holds the clock against time.Parse wherever that accepts too (it refuses a lower-case "t" and takes a
// comma for a point, among others).
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2024-02-29T23:59:59Z", "1969-12-31T23:59:59.5+01:30", "0000-01-01t00:00:00z", "9999-12-31T23:59:59-00:01", "2023-02-29T00:00:00Z", ""} {
		f.Add(s)
	}
	strict := regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)
	f.Fuzz(func(t *testing.T, s string) {
		var c clock
		sec, ok := c.parse([]byte(s))
		want, err := time.Parse(time.RFC3339, strings.ToUpper(s))
		wantOK := err == nil && strict.MatchString(s) && want.Unix() >= year0 && want.Unix() < year10000
		if ok != wantOK {
			t.Fatalf("%q: ok %v, want %v (%v)", s, ok, wantOK, err)
		}
		if ok && sec != want.Unix() {
			t.Fatalf("%q: %d, want %d", s, sec, want.Unix())
		}
	})
}
