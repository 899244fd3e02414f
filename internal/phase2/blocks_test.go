package phase2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestSameBytesOnAnyNumberOfCores: of readings as they come, of readings with quotes behind a few blocks without, and
// of readings with many alerts.
func TestSameBytesOnAnyNumberOfCores(t *testing.T) {
	t.Parallel()
	embedded, err := os.ReadFile("../../data/readings.csv")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][]byte{"embedded": embedded, "odd": oddInput(40_000, 30_000), "many alerts": oddInput(40_000, 40_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := bytesOn(t, 1, in)
			for cores := 2; cores <= 8; cores++ {
				if bytesOn(t, cores, in) != want {
					t.Errorf("other bytes on %d cores", cores)
				}
			}
		})
	}
}

// bytesOn is all three files, computed on so many cores, and the screening.
func bytesOn(t *testing.T, cores int, in []byte) string {
	t.Helper()
	res, err := newComputation(hourly, cores).compute(t.Context(), bytes.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	barrier, impact, alerts := writeAll(t, res)
	return fmt.Sprint(res.Screening) + string(barrier) + string(impact) + string(alerts)
}

// oddInput has n records of all kinds; quotes begin at one of them.
func oddInput(n, quotesFrom int) []byte {
	rng := rand.New(rand.NewPCG(3, 4))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var b bytes.Buffer
	b.WriteString("\ufeff" + Header + "\r\n")
	at := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(120)-10) * time.Second)
		station, ph := one("a", "b", "é", "a long name of a station"), fmt.Sprintf("%.*f", 1+rng.IntN(4), 5+5*rng.Float64())
		switch {
		case i > quotesFrom && rng.IntN(50) == 0:
			station = one(`"a"`, `"a,b"`, "\"two\nlines\"", `"a""b"`, `"never closed`, `a"b`)
		case rng.IntN(100) == 0:
			station = one("", strings.Repeat("n", 64), strings.Repeat("n", 65), "\xff", "a,b")
		case rng.IntN(100) == 0:
			ph = one("14", "0", "x", "", "7e0", "7.1234", "12.5", "7", "7.", "7.12 ", "7.12\r")
		case rng.IntN(20_000) == 0:
			ph = "7." + strings.Repeat("0", maxRecord)
		}
		layout := one("2006-01-02T15:04:05Z", "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.25Z", "2006-01-02t15:04:05+00:00", "2006-01-02 15:04")
		b.WriteString(at.Format(layout) + "," + station + "," + ph + one("\n", "\n", "\r\n"))
	}
	return b.Bytes()
}

// rowsOf returns the rows of an input, each with its line and its station, read in blocks or record by record.
func rowsOf(t testing.TB, in []byte, blocks bool) (rows []string) {
	t.Helper()
	records := newRecordReader(t.Context(), bytes.NewReader(in), nil)
	if err := records.readHeader(); err != nil {
		return nil
	}
	line := records.line
	use := func(b *block) error {
		for _, r := range b.rows {
			rows = append(rows, fmt.Sprint(line+int(r.line), r.at, r.ph, r.parsed, string(b.data[r.name:][:r.size])))
		}
		line += b.lines
		return nil
	}
	if blocks {
		if err := readRows(t.Context(), 2, records, use); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for b := new(block); b.err == nil; {
		b.rows = b.rows[:0]
		b.readRecords(records)
		use(b)
	}
	return rows
}

func TestBlocksAndRecordsGiveTheSameRows(t *testing.T) {
	t.Parallel()
	for _, quotesFrom := range []int{0, 20_000, 20_000_000} {
		in := oddInput(20_000, quotesFrom)
		blocks, records := rowsOf(t, in, true), rowsOf(t, in, false)
		if len(blocks) < 20_000 || !slices.Equal(blocks, records) {
			t.Errorf("quotes from %d: %d rows from blocks, %d from records", quotesFrom, len(blocks), len(records))
		}
	}
}

// FuzzBlocks: blocks and records give the same rows. The input follows a header and a good line.
func FuzzBlocks(f *testing.F) {
	for _, s := range []string{
		"", "2024-05-01T10:00:00Z,a,7.5", "2024-05-01T10:00:00Z,a,7.5\r\n\n", "2024-05-01T10:00:00Z,,7.5\n2024-05-01T10:00:01Z,a,7.123\n",
		"2024-05-01T10:00:00Z,a,7.1234\n", "2024-05-01T10:00:00Z,a\n", "2024-02-30T10:00:00Z,a,7.12\nx,\"a\",7\n", "2024-05-01T10:00:00Z,\"a\nb\",7.5\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		in = slices.Concat([]byte(Header+"\n2024-05-01T10:00:00Z,a,7.5\n"), in)
		if blocks, records := rowsOf(t, in, true), rowsOf(t, in, false); !slices.Equal(blocks, records) {
			t.Errorf("%q:\nblocks  %q\nrecords %q", in, blocks, records)
		}
	})
}

// TestAnErrorEndsTheWorkOnAllCores, the reader's as well as that of whoever uses the rows.
func TestAnErrorEndsTheWorkOnAllCores(t *testing.T) {
	t.Parallel()
	in := oddInput(20_000, 20_000)
	broken := errors.New("the disk is gone")
	half := io.MultiReader(bytes.NewReader(in[:len(in)/2]), iotest.ErrReader(broken))
	if _, err := newComputation(hourly, 4).compute(t.Context(), half, nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	records := newRecordReader(t.Context(), bytes.NewReader(in), nil)
	used := 0
	err := readRows(t.Context(), 4, records, func(*block) error { used++; return broken })
	if err != broken || used != 1 {
		t.Errorf("%v after %d blocks", err, used)
	}
}

// TestAPanicIsTheCallers: a defect ends one run, not the process.
func TestAPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"make", "work", "use"} {
		func() {
			defer func() {
				if cause := fmt.Sprint(recover()); !strings.Contains(cause, "a defect of "+at) {
					t.Errorf("%s: %.100s", at, cause)
				}
			}()
			fail := func(where string) {
				if where == at {
					panic("a defect of " + at)
				}
			}
			n := 0
			inOrder(t.Context(), 2, func(*int) bool {
				if n++; n == 20 {
					fail("make")
				}
				return n < 40
			}, func() func(*int) { return func(*int) { fail("work") } }, func(*int) error { fail("use"); return nil })
		}()
	}
}
