package phase2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// decodedFiles are the three result files, decoded.
type decodedFiles struct {
	Barrier struct {
		Stations []struct {
			Station string
			Points  []struct {
				Start    string
				Readings int
				Min      float64 `json:"ph_min"`
				Mean     float64 `json:"ph_mean"`
				Max      float64 `json:"ph_max"`
				Phi      *float64
				Outside  int
			}
		}
	}
	Impact struct {
		Screening Screening
		Stations  []stationImpact
	}
	Alerts struct {
		Alerts []struct {
			ID, Station, Kind, Severity, Start, End string
			Duration                                int64 `json:"duration_s"`
			Readings                                int64
			WorstPH                                 *float64 `json:"worst_ph"`
			WorstAt                                 *string  `json:"worst_at"`
			Open                                    bool
		}
	}
}

type stationImpact struct {
	Station, First, Last string
	Readings             int
	Monitored            float64                                            `json:"monitored_h"`
	PH                   struct{ Min, P05, Median, P95, Max, Mean float64 } `json:"ph"`
	PhiMean              *float64                                           `json:"phi_mean"`
	Below, Above         struct {
		Hours, Share float64
		Dose         float64 `json:"dose_ph_h"`
	}
	Level string
}

// writeAll returns the bytes of the three files.
func writeAll(t testing.TB, res *Results) (barrier, impact, alerts []byte) {
	t.Helper()
	var out [3]bytes.Buffer
	src := Source{Name: "request", SHA256: strings.Repeat("0", 64), Bytes: 1}
	for i, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return res.WriteBarrier(b, src) },
		func(b *bytes.Buffer) error { return res.WriteImpact(b, src) },
		func(b *bytes.Buffer) error { return res.WriteAlerts(b, src) },
	} {
		if err := write(&out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out[0].Bytes(), out[1].Bytes(), out[2].Bytes()
}

func computed(t testing.TB, in string, p Parameters) (got decodedFiles) {
	t.Helper()
	res, err := Compute(t.Context(), strings.NewReader(in), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	barrier, impact, alerts := writeAll(t, res)
	for _, err := range []error{json.Unmarshal(barrier, &got.Barrier), json.Unmarshal(impact, &got.Impact), json.Unmarshal(alerts, &got.Alerts)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// series is the CSV of one station: pH in the order given, from 10:00 on, a reading every so many minutes; "-" is one
// left out.
func series(station string, minutes int, values string) string {
	var b strings.Builder
	at := time.Date(2024, time.May, 1, 10, 0, 0, 0, time.UTC)
	for _, ph := range strings.Fields(values) {
		if ph != "-" {
			fmt.Fprintf(&b, "%s,%s,%s\n", at.Format(time.RFC3339), station, ph)
		}
		at = at.Add(time.Duration(minutes) * time.Minute)
	}
	return b.String()
}

func TestPoints(t *testing.T) {
	t.Parallel()
	band := func(low, high int) Parameters {
		p := hourly
		p.Low, p.High = low, high
		return p
	}
	for _, test := range []struct {
		values string // of one bucket
		p      Parameters
		want   string // min mean max phi outside
	}{
		{"7.5", hourly, "7.5 7.5 7.5 0 0"},                              // the middle: -ln 1
		{"8.4", hourly, "8.4 8.4 8.4 1.6607 0"},                         // -ln(4*1.9*0.1/4) = -ln 0.19
		{"8.5", hourly, "8.5 8.5 8.5 3.912 0"},                          // at a limit, floored: -ln(4*2*0.01/4) = -ln 0.02
		{"6.51", hourly, "6.51 6.51 6.51 3.917 0"},                      // -ln(4*0.01*1.99/4), larger than at the limit
		{"6.5 6.51 6.505", hourly, "6.5 6.505 6.51 3.917 0"},            // the largest stands at neither end
		{"7.5 8.501", hourly, "7.5 7.76 8.501 null 1"},                  // -lg((10^-7.5 + 10^-8.501)/2) = 7.75973
		{"6.499 8.501 9", hourly, "6.499 6.97 9 null 3"},                // -lg((10^-6.499 + 10^-8.501 + 10^-9)/3) = 6.97046
		{"4 10", hourly, "4 4.301 10 null 2"},                           // half the acid: 4 + lg 2
		{"7 7 7 7 7 7 7", hourly, "7 7 7 0.2877 0"},                     // -ln 0.75
		{"8.5 8.501", hourly, "8.5 8.5 8.501 null 1"},                   // 8.5004997
		{"7.002", band(7000, 7005), "7.002 7.002 7.002 -2.7726 0"},      // a band narrower than the probe resolves: -ln(4*0.01*0.01/0.005^2) = -ln 16
		{"0.001 13.999", band(1, 13999), "0.001 0.302 13.999 5.8578 0"}, // -ln(4*0.01*13.998/13.998^2)
	} {
		points := computed(t, Header+"\n"+series("a", 5, test.values), test.p).Barrier.Stations[0].Points
		if len(points) != 1 {
			t.Errorf("%s: %d points", test.values, len(points))
			continue
		}
		p, phi := points[0], "null"
		if p.Phi != nil {
			phi = fmt.Sprint(*p.Phi)
		}
		if got := fmt.Sprint(p.Min, p.Mean, p.Max, " ", phi, " ", p.Outside); got != test.want || p.Readings != len(strings.Fields(test.values)) {
			t.Errorf("%s: got %s (%d readings), want %s", test.values, got, p.Readings, test.want)
		}
	}
}

func TestBucketsAreAlignedToTheEpoch(t *testing.T) {
	t.Parallel()
	in := Header + `
1969-12-31T23:59:59Z,a,7
1970-01-01T00:00:00Z,a,7
1970-01-01T01:29:59Z,a,7
1970-01-01T01:30:00Z,a,7
1970-01-01T07:29:59Z,a,7
`
	p := hourly
	p.Interval = 90 * time.Minute
	var got []string
	for _, point := range computed(t, in, p).Barrier.Stations[0].Points {
		got = append(got, fmt.Sprint(point.Start, " ", point.Readings))
	}
	want := []string{"1969-12-31T22:30:00Z 1", "1970-01-01T00:00:00Z 2", "1970-01-01T01:30:00Z 1", "1970-01-01T06:00:00Z 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestImpact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, values string // a reading every half hour
		want         string // monitored, hours/share/dose below, the same above, level
	}{
		{"inside", "7 7 7", "1 | 0 0 0 | 0 0 0 | none"},
		{"one reading stands for no time", "9", "0 | 0 0 0 | 0 0 0 | none"},
		{"the last one stands for no time", "7 9", "0.5 | 0 0 0 | 0 0 0 | none"},
		{"half an hour 0.5 below, an hour 1 above", "6 9.5 9.5 7 7", "2 | 0.5 0.25 0.25 | 1 0.5 1 | high"},
		{"a reading stands for max_gap and not for longer", "9 - 9 - - 7 7", "1.5 | 0 0 0 | 1 0.6667 0.5 | high"},
		{"a thousandth", "8.501 7", "0.5 | 0 0 0 | 0.5 1 0.001 | high"}, // 0.0005 pH h, half up
		{"1 % is low", "9 " + strings.Repeat("7 ", 100), "50 | 0 0 0 | 0.5 0.01 0.25 | low"},
		{"more than 1 % is moderate", "9 " + strings.Repeat("7 ", 99), "49.5 | 0 0 0 | 0.5 0.0101 0.25 | moderate"},
		{"5 % is moderate", "9 " + strings.Repeat("7 ", 20), "10 | 0 0 0 | 0.5 0.05 0.25 | moderate"},
		{"more than 5 % is high", "9 " + strings.Repeat("7 ", 19), "9.5 | 0 0 0 | 0.5 0.0526 0.25 | high"},
		{"both sides count", "9 6 " + strings.Repeat("7 ", 38), "19.5 | 0.5 0.0256 0.25 | 0.5 0.0256 0.25 | high"},
	} {
		st := computed(t, Header+"\n"+series("a", 30, test.values), hourly).Impact.Stations[0]
		got := fmt.Sprint(st.Monitored, " | ", st.Below.Hours, st.Below.Share, st.Below.Dose, " | ", st.Above.Hours, st.Above.Share, st.Above.Dose, " | ", st.Level)
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, values string // of station a, a reading every half hour from 10:00; b has one reading at the time of a's last
		want         string // kind start-end readings worst@, ! critical, ... open
	}{
		{"none at the limits", "6.5 8.5 6.5", ""},
		{"low, closed 0.1 inside", "7 6.4 6.3 6.3 6.599 6.6 6.4999", "low 10:30-12:30 4 6.3@11:00"},
		{"a thousandth is outside", "7 6.499 7", "low 10:30-11:00 1 6.499@10:30"},
		{"high, closed 0.1 inside", "7 8.6 8.7 8.401 8.4 8.4", "high 10:30-12:00 3 8.7@11:00"},
		{"0.499 and 0.5 beyond", "8.999 7 9 7 6.001 7 6 7", "high 10:00-10:30 1 8.999@10:00; high 11:00-11:30 1 9@11:00!; low 12:00-12:30 1 6.001@12:00; low 13:00-13:30 1 6@13:00!"},
		{"from one side to the other", "7 9 6 7", "high 10:30-11:00 1 9@10:30!; low 11:00-11:30 1 6@11:00!"},
		{"open at the end", "7 8.6 8.45", "high 10:30-11:00 2 8.6@10:30..."},
		{"opened by the last reading", "7 8.6", "high 10:30-10:30 1 8.6@10:30..."},
		{"max_gap is no gap", "7 - 7", ""},
		{"gap", "7 - - 7", "gap 10:00-11:30 0"},
		{"a gap ends an excursion, the next reading begins one", "7 8.6 8.7 - - 8.8 7", "high 10:30-11:00 2 8.7@11:00; gap 11:00-12:30 0; high 12:30-13:00 1 8.8@12:30"},
		{"24 h", strings.Repeat("8.6 ", 48) + "7", "high 10:00-10:00 48 8.6@10:00!"},
		{"half an hour less", strings.Repeat("8.6 ", 47) + "7", "high 10:00-09:30 47 8.6@10:00"},
		{"gap of 24 h", "7" + strings.Repeat(" -", 47) + " 7", "gap 10:00-10:00 0!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rows := series("a", 30, test.values)
			if got := alertLines(computed(t, Header+"\n"+rows, hourly)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// alertLines shows alerts as TestAlerts does.
func alertLines(f decodedFiles) string {
	var lines []string
	for _, a := range f.Alerts.Alerts {
		line := fmt.Sprintf("%s %s-%s %d", a.Kind, a.Start[11:16], a.End[11:16], a.Readings)
		if a.WorstPH != nil {
			line += fmt.Sprintf(" %v@%s", *a.WorstPH, (*a.WorstAt)[11:16])
		}
		if a.Severity == "critical" {
			line += "!"
		}
		if a.Open {
			line += "..."
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestAStationThatFallsSilent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, a, b, want string }{
		{"longer than max_gap", "7 8.6", "7 7 7 7 7", "gap 10:30-12:00 0...; high 10:30-10:30 1 8.6@10:30"},
		{"not longer", "7 8.6", "7 7 7 7", "high 10:30-10:30 1 8.6@10:30..."},
		{"the newest reading is a rejected one", "7 8.6", "7 7 7 7 14", "high 10:30-10:30 1 8.6@10:30..."},
	} {
		if got := alertLines(computed(t, Header+"\n"+series("a", 30, test.a)+series("b", 30, test.b), hourly)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestBothExcursionsInANarrowBand(t *testing.T) {
	t.Parallel()
	p := hourly
	p.Low, p.High = 7000, 7050
	// 7.06 is above the band and not yet 0.1 inside the lower limit, so both are open; 7.11 closes the low one, 6.95
	// the high one.
	want := "low 10:00-11:00 2 6.99@10:00; high 10:30-11:30 2 7.11@11:00; low 11:30-11:30 1 6.95@11:30..."
	if got := alertLines(computed(t, Header+"\n"+series("a", 30, "6.99 7.06 7.11 6.95"), p)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAlertsAreSortedByStartStationAndKind(t *testing.T) {
	t.Parallel()
	in := Header + "\n" + series("é", 30, "9 - - 7") + series("b", 30, "9 - - 7") + series("B", 30, "7 9 - - 7") + series("ba", 30, "6 - - 7")
	var got []string
	for _, a := range computed(t, in, hourly).Alerts.Alerts {
		got = append(got, a.Start[11:16]+" "+a.Station+" "+a.Kind)
	}
	want := []string{"10:00 b gap", "10:00 b high", "10:00 ba gap", "10:00 ba low", "10:00 é gap", "10:00 é high", "10:30 B gap", "10:30 B high"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNearestRank(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 19, 20, 21, 100, keptValues - 1, keptValues, keptValues + 1, 5000} {
		var d distribution
		var values []int64
		for range n {
			ph := 1 + rng.IntN(scaleEnd-1)
			d.add(ph)
			values = append(values, int64(math.Floor(float64(ph)/10+0.5))*10)
		}
		slices.Sort(values)
		for _, percent := range []int64{5, 50, 95} {
			rank := int(math.Ceil(float64(percent) * float64(n) / 100))
			if got := d.nearestRank(int64(n), percent); got != values[rank-1] {
				t.Errorf("%d %% of %d values: %d, want %d", percent, n, got, values[rank-1])
			}
		}
	}
}

func TestTablesAgreeWithTheMathPackage(t *testing.T) {
	t.Parallel()
	for ph, got := range hydrogenTable() {
		if want := math.Pow(10, -float64(ph)/1000); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("10^-%d/1000: %g, want %g", ph, got, want)
		}
	}
	for _, band := range [][2]int{{6500, 8500}, {1, 13999}, {7000, 7001}} {
		low, high := float64(band[0])/1000, float64(band[1])/1000
		for ph, got := range phiTable(band[0], band[1]) {
			want := 0.0
			if x := float64(ph) / 1000; ph >= band[0] && ph <= band[1] {
				want = -math.Log(4 * max(x-low, 0.01) * max(high-x, 0.01) / ((high - low) * (high - low)))
			}
			if math.Abs(got-want) > 1e-9 {
				t.Fatalf("phi of %d in %v: %g, want %g", ph, band, got, want)
			}
		}
	}
	for x := 1e-12; x < 1e12; x *= 1.37 {
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 4e-16*max(1, math.Abs(want)) {
			t.Errorf("ln %g: %g, want %g", x, got, want)
		}
	}
}

func TestMeanPH(t *testing.T) {
	t.Parallel()
	c := computation{table: newTable(6500, 8500)}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		least, most, total := scaleEnd, 0, 0.0
		n := 1 + rng.IntN(5)
		for range n {
			ph := 1 + rng.IntN(scaleEnd-1)
			least, most, total = min(least, ph), max(most, ph), total+c.table[ph].hydrogen
		}
		want := -1000 * math.Log10(total/float64(n))
		if got := c.meanPH(total, int64(n), least, most); math.Abs(float64(got)-want) > 0.5+1e-6 {
			t.Fatalf("%d, want %g", got, want)
		}
	}
}
