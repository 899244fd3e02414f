// The three files as a whole: what they may not depend on, real readings, input of any kind, and how long they take.

package phase2

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestResultsDoNotDependOn: how readings of different stations are mixed, how the bytes arrive, how lines end, how
// times and numbers are spelled.
func TestResultsDoNotDependOn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	columns := make([][]string, 3)
	for i := range columns {
		values := ""
		for range 700 {
			values += fmt.Sprintf("%.2f ", 5.5+4*rng.Float64())
		}
		columns[i] = strings.SplitAfter(series(string(rune('a'+i)), 7, values), "\n")
	}
	var mixed strings.Builder
	for i := range columns[0] {
		mixed.WriteString(columns[2][i] + columns[0][i] + columns[1][i])
	}
	byStation := strings.Join(slices.Concat(columns...), "")
	want := allBytes(t, strings.NewReader(Header+"\n"+byStation))

	for name, in := range map[string]string{
		"order of stations": Header + "\n" + mixed.String(),
		"CRLF":              strings.ReplaceAll(Header+"\n"+byStation, "\n", "\r\n"),
		"byte order mark":   "\ufeff" + Header + "\n" + byStation,
		"quotes":            Header + "\n" + strings.NewReplacer(",", `","`, "2024", `"2024`, "\n", "\"\n").Replace(byStation),
		"spelling of times": Header + "\n" + strings.ReplaceAll(byStation, "Z,", ".75+00:00,"),
		"spelling of pH":    Header + "\n" + strings.ReplaceAll(byStation, "\n", "0004e0\n"),
	} {
		if got := allBytes(t, strings.NewReader(in)); got != want {
			t.Errorf("%s matters", name)
		}
	}
	if allBytes(t, iotest.OneByteReader(strings.NewReader(Header+"\n"+byStation))) != want {
		t.Error("the size of reads matters")
	}
}

// allBytes is all three files in one string.
func allBytes(t testing.TB, in io.Reader) string {
	t.Helper()
	res, err := Compute(t.Context(), in, hourly, nil)
	if err != nil {
		t.Fatal(err)
	}
	barrier, impact, alerts := writeAll(t, res)
	return string(barrier) + string(impact) + string(alerts)
}

// The whole story that internal/readings tells is in the files.
func TestEmbeddedReadings(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("../../data/readings.csv")
	if err != nil {
		t.Fatal(err)
	}
	got := computed(t, string(in), hourly)

	s := got.Impact.Screening
	if s.Rows != 11300 || s.Rejected.Malformed != 3 || s.Rejected.Saturated != 133 || s.Rejected.OutOfOrder != 8 {
		t.Errorf("screening %+v", s)
	}
	levels := map[string]string{}
	for _, st := range got.Impact.Stations {
		levels[st.Station] = st.Level
	}
	if want := map[string]string{"intake": "moderate", "softening": "moderate", "filtration": "high", "outlet": "none"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
	alerts := map[string]int{}
	for _, a := range got.Alerts.Alerts {
		alerts[fmt.Sprint(a.Station, " ", a.Kind, " ", a.Severity, " ", a.Open)]++
	}
	want := map[string]int{
		"intake low critical false": 1, "intake low warning false": 1, "intake gap warning false": 1,
		"softening high critical false": 1, "softening high warning false": 2, "softening gap warning false": 1,
		"filtration high critical false": 1, "filtration gap critical false": 1, "outlet gap critical true": 1,
	}
	if !reflect.DeepEqual(alerts, want) {
		t.Errorf("alerts %v, want %v", alerts, want)
	}
}

// Five months of real readings (U.S. National Estuarine Research Reserve System), which are not ours to commit.
func TestEstuaryReadings(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("../../../shared/data/nerrs_2013.csv")
	if err != nil {
		t.Skip("this machine does not have the readings of shared/data")
	}
	got := computed(t, string(in), hourly)
	s := got.Impact.Screening
	if s.Rows != 43414 || s.Accepted != 42353 || s.Rejected.Saturated != 1061 || len(got.Alerts.Alerts) != 54 {
		t.Errorf("%+v, %d alerts", s, len(got.Alerts.Alerts))
	}
	// From an independent implementation in exact arithmetic.
	var lines []string
	for _, st := range got.Impact.Stations {
		lines = append(lines, fmt.Sprint(st.Station, " ", st.Readings, st.Monitored, st.PH, *st.PhiMean, st.Above, " ", st.Level))
	}
	want := []string{
		"apacp 13399 3351.5 {6.9 7.4 7.9 8.2 10.5 7.759} 0.2138 {0 0 0} none",
		"apadb 14458 3613.5 {7.1 7.5 8.1 8.9 9.3 7.931} 0.6095 {530.5 0.1468 153.95} high",
		"elksm 14496 3623.75 {7.5 7.8 7.9 8.1 8.3 7.932} 0.2463 {0 0 0} none",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got  %q\nwant %q", lines, want)
	}
}

// FuzzReadings: no input makes compute panic or lose a row, and what it writes is JSON and the same twice.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{
		"", "\ufeff" + Header, Header + "\n2024-05-01T10:00:00Z,a,7.5\n", Header + "\r\n\"2024-05-01T10:00:00Z\",\"a\"\"\nb\",7.5\r\n",
		Header + "\n" + series("a", 30, "7 9 - - - 6 14 7.01") + series("b", 30, "7 6.6"), Header + "\n2024-05-01T10:00:00Z,\"a,7\n2024-05-01T10:00:00Z,a,7e0", Header + "\n,,\n\"\"\"",
	} {
		f.Add([]byte(s), 6500, 8500, int64(60), int64(time.Hour))
	}
	f.Fuzz(func(t *testing.T, in []byte, low, high int, seconds, gap int64) {
		if low <= 0 || low >= high || high >= scaleEnd || seconds < 60 || seconds > 86400 || gap <= 0 {
			return
		}
		p := Parameters{low, high, time.Duration(seconds) * time.Second, time.Duration(gap)}
		res, err := Compute(context.Background(), bytes.NewReader(in), p, nil)
		if res != nil {
			s := res.Screening
			if s.Rows != s.Accepted+s.Rejected.Malformed+s.Rejected.Saturated+s.Rejected.OutOfOrder || s.Rows > int64(len(in)) {
				t.Errorf("%+v", s)
			}
		}
		if err != nil {
			return
		}
		barrier, impact, alerts := writeAll(t, res)
		again, err := Compute(context.Background(), iotest.HalfReader(bytes.NewReader(in)), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		barrier2, impact2, alerts2 := writeAll(t, again)
		for i, file := range [][2][]byte{{barrier, barrier2}, {impact, impact2}, {alerts, alerts2}} {
			if !json.Valid(file[0]) || !bytes.Equal(file[0], file[1]) {
				t.Errorf("file %d: %.1000s\nagain: %.1000s", i, file[0], file[1])
			}
		}
	})
}

// BenchmarkCompute has 20 stations and a reading a minute from each, a million in all.
func BenchmarkCompute(b *testing.B) {
	in := benchmarkInput(50_000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compute(b.Context(), bytes.NewReader(in), hourly, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodingCSV only cuts the same input, with the package that csv.go does without.
func BenchmarkEncodingCSV(b *testing.B) {
	in := benchmarkInput(50_000)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		records := csv.NewReader(bytes.NewReader(in))
		records.ReuseRecord = true
		for _, err := records.Read(); err != io.EOF; _, err = records.Read() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func benchmarkInput(minutes int) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, Header)
	rng := rand.New(rand.NewPCG(7, 8))
	var ph [20]float64
	for i := range ph {
		ph[i] = 7.5
	}
	at := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	for range minutes {
		stamp := at.Format(time.RFC3339)
		for i := range ph {
			ph[i] += 0.06*(rng.Float64()-0.5) + 0.001*(7.5-ph[i])
			fmt.Fprintf(&b, "%s,st%02d,%.2f\n", stamp, i, ph[i])
		}
		at = at.Add(time.Minute)
	}
	return b.Bytes()
}
