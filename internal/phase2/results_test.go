package phase2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// The numbers are worked out by hand: station a stands for 60 + 30 + 20 minutes (the 90 between are a gap), 20 of them
// below, 10 at 0.5 and 10 at 0.25.
func TestTheThreeFiles(t *testing.T) {
	t.Parallel()
	const in = Header + `
2024-02-29T23:00:00Z,a,7.5
2024-02-29T23:20:00Z,a,8.4
2024-02-29T23:40:00Z,a,6.505
2024-03-01T00:00:00Z,a,8.5
2024-03-01T00:30:00Z,a,8.501
2024-03-01T02:00:00Z,a,6
2024-03-01T02:10:00Z,a,6.25
2024-03-01T02:20:00Z,a,7.125
2024-03-01T02:00:00Z,"""<b>""",9.1
2024-03-01T02:00:00Z,a,7
2024-03-01T03:00:00Z,a,14
2024-03-01T03:00:00Z,a
`
	const begin = `{"parameters":{"low":6.5,"high":8.5,"interval":"1h","max_gap":"1h"},
"source":{"name":"request","sha256":"0000000000000000000000000000000000000000000000000000000000000000","bytes":1},
`
	const wantBarrier = begin + `"stations":[
{"station":"\"<b>\"","points":[
{"start":"2024-03-01T02:00:00Z","readings":1,"ph_min":9.1,"ph_mean":9.1,"ph_max":9.1,"phi":null,"outside":1}
]},
{"station":"a","points":[
{"start":"2024-02-29T23:00:00Z","readings":3,"ph_min":6.505,"ph_mean":6.935,"ph_max":8.4,"phi":3.9145,"outside":0},
{"start":"2024-03-01T00:00:00Z","readings":2,"ph_min":8.5,"ph_mean":8.5,"ph_max":8.501,"phi":null,"outside":1},
{"start":"2024-03-01T02:00:00Z","readings":3,"ph_min":6,"ph_mean":6.263,"ph_max":7.125,"phi":null,"outside":2}
]}
]}
`
	const wantImpact = begin + `"screening":{"rows":12,"accepted":9,"rejected":{"malformed":1,"saturated":1,"out_of_order":1}},
"stations":[
{"station":"\"<b>\"","first":"2024-03-01T02:00:00Z","last":"2024-03-01T02:00:00Z","readings":1,"monitored_h":0,"ph":{"min":9.1,"p05":9.1,"median":9.1,"p95":9.1,"max":9.1,"mean":9.1},"phi_mean":null,"below":{"hours":0,"share":0,"dose_ph_h":0},"above":{"hours":0,"share":0,"dose_ph_h":0},"level":"none"},
{"station":"a","first":"2024-02-29T23:00:00Z","last":"2024-03-01T02:20:00Z","readings":8,"monitored_h":1.833,"ph":{"min":6,"p05":6,"median":7.13,"p95":8.5,"max":8.501,"mean":6.604},"phi_mean":1.9278,"below":{"hours":0.333,"share":0.1818,"dose_ph_h":0.125},"above":{"hours":0,"share":0,"dose_ph_h":0},"level":"high"}
]}
`
	const wantAlerts = begin + `"alerts":[
{"id":"48b9aabb9bea899f","station":"a","kind":"gap","severity":"warning","start":"2024-03-01T00:30:00Z","end":"2024-03-01T02:00:00Z","duration_s":5400,"readings":0,"worst_ph":null,"worst_at":null,"open":false},
{"id":"7cb9b49462a482ea","station":"a","kind":"high","severity":"warning","start":"2024-03-01T00:30:00Z","end":"2024-03-01T00:30:00Z","duration_s":0,"readings":1,"worst_ph":8.501,"worst_at":"2024-03-01T00:30:00Z","open":false},
{"id":"97e97a31f448d971","station":"\"<b>\"","kind":"high","severity":"critical","start":"2024-03-01T02:00:00Z","end":"2024-03-01T02:00:00Z","duration_s":0,"readings":1,"worst_ph":9.1,"worst_at":"2024-03-01T02:00:00Z","open":true},
{"id":"b40c3686bfdc1950","station":"a","kind":"low","severity":"critical","start":"2024-03-01T02:00:00Z","end":"2024-03-01T02:20:00Z","duration_s":1200,"readings":2,"worst_ph":6,"worst_at":"2024-03-01T02:00:00Z","open":false}
]}
`
	res, err := Compute(t.Context(), strings.NewReader(in), hourly, nil)
	if err != nil {
		t.Fatal(err)
	}
	barrier, impact, alerts := writeAll(t, res)
	for _, file := range []struct{ got, want string }{{string(barrier), wantBarrier}, {string(impact), wantImpact}, {string(alerts), wantAlerts}} {
		if file.got != file.want {
			t.Errorf("got\n%s\nwant\n%s", file.got, file.want)
		}
	}
}

// The same bytes on every platform: on another one, this test fails if an operation there gives another last bit.
func TestTheSameBytesEverywhere(t *testing.T) {
	t.Parallel()
	in, err := os.Open("../../data/readings.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const want = "7776c2023e0cc285d6c201f9afea26f7f10abcc5ca1439e08ec7d93b1ea044bf"
	hash := sha256.Sum256([]byte(allBytes(t, in)))
	if got := hex.EncodeToString(hash[:]); got != want {
		t.Errorf("the three files of the embedded readings hash to %s, want %s", got, want)
	}
}

func TestNoAlertsIsAnEmptyList(t *testing.T) {
	t.Parallel()
	if got := computed(t, Header+"\n2024-05-01T10:00:00Z,a,7\n", hourly).Alerts.Alerts; got == nil || len(got) != 0 {
		t.Errorf("alerts %v", got)
	}
	res, err := Compute(t.Context(), strings.NewReader(Header+"\n2024-05-01T10:00:00Z,a,7\n"), hourly, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(res.Screening); !strings.HasSuffix(string(got), `"first_rejected":[]}`) {
		t.Errorf("%s", got)
	}
}

func TestParametersAsJSON(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		p    Parameters
		want string
	}{
		{hourly, `{"low":6.5,"high":8.5,"interval":"1h","max_gap":"1h"}`},
		{Parameters{1, 13999, time.Minute, time.Nanosecond}, `{"low":0.001,"high":13.999,"interval":"1m","max_gap":"1ns"}`},
		{Parameters{7000, 7050, 90 * time.Minute, 500 * time.Millisecond}, `{"low":7,"high":7.05,"interval":"1h30m","max_gap":"500ms"}`},
		{Parameters{6500, 8500, 24 * time.Hour, 15 * time.Minute}, `{"low":6.5,"high":8.5,"interval":"24h","max_gap":"15m"}`},
		{Parameters{6500, 8500, 90 * time.Second, time.Hour + 5*time.Second}, `{"low":6.5,"high":8.5,"interval":"1m30s","max_gap":"1h5s"}`},
		{Parameters{6500, 8500, 10 * time.Hour, 10*time.Hour + 10*time.Minute + 10500*time.Millisecond}, `{"low":6.5,"high":8.5,"interval":"10h","max_gap":"10h10m10.5s"}`},
	} {
		got, err := json.Marshal(test.p)
		if err != nil || string(got) != test.want {
			t.Errorf("got %s (%v), want %s", got, err, test.want)
		}
	}
}

func TestDurationsReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for d := time.Duration(1); d < 300*time.Hour; d = d*7/3 + 1 {
		for _, d := range []time.Duration{d, d.Truncate(time.Second), d.Truncate(time.Minute), d.Truncate(time.Hour)} {
			if d == 0 {
				continue
			}
			got := string(AppendDuration(nil, d))
			if back, err := time.ParseDuration(got); err != nil || back != d {
				t.Errorf("%v became %s, which is %v (%v)", d, got, back, err)
			}
		}
	}
}

func TestNumbersInTheirShortestForm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n        int64
		decimals int
		want     string
	}{
		{7900, 3, "7.9"}, {7000, 3, "7"}, {7001, 3, "7.001"}, {50, 3, "0.05"}, {1, 4, "0.0001"}, {0, 4, "0"}, {-1, 4, "-0.0001"}, {-27726, 4, "-2.7726"}, {-10000, 4, "-1"}, {12, 0, "12"},
	} {
		if got := string(appendNumber(nil, "", test.n, test.decimals)); got != test.want {
			t.Errorf("%d/10^%d: got %s, want %s", test.n, test.decimals, got, test.want)
		}
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	res, err := Compute(t.Context(), strings.NewReader(Header+"\n2024-05-01T10:00:00Z,a,7\n"), hourly, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{res.WriteBarrier(refusingWriter{}, Source{}), res.WriteImpact(refusingWriter{}, Source{}), res.WriteAlerts(refusingWriter{}, Source{})} {
		if !errors.Is(err, errRefused) {
			t.Errorf("%v", err)
		}
	}
}

var errRefused = errors.New("no space left on device")

type refusingWriter struct{}

func (refusingWriter) Write([]byte) (int, error) { return 0, errRefused }
