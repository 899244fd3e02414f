package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"authhub/internal/phase2"
)

func TestRunRecord(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.get(runPath).want(404, "no_run")

	rec := h.runOn(fourReadings + "x,a,7\n2025-01-01T01:00:00Z,a,14\n2025-01-01T00:00:00Z,a,7\n").want(200).json()

	if got := keysOf(rec); !slices.Equal(got, []string{"duration_ms", "error", "finished_at", "id", "parameters", "phase2_files", "progress", "screening", "source", "started_at", "status"}) {
		t.Errorf("members %v", got)
	}
	for member, want := range map[string]string{
		"status": `"succeeded"`, "progress": `1`, "error": `null`, "started_at": `"2026-03-01T12:00:00.000Z"`, "finished_at": `"2026-03-01T12:00:00.000Z"`,
		"duration_ms": `0`,
		"parameters":  `{"high":8.5,"interval":"1h","low":6.5,"max_gap":"1h"}`,
		"source":      `{"bytes":181,"name":"request","sha256":"`,
		"screening": `{"accepted":4,"first_rejected":[{"line":6,"reason":"malformed"},{"line":7,"reason":"saturated"},{"line":8,"reason":"out_of_order"}],` +
			`"rejected":{"malformed":1,"out_of_order":1,"saturated":1},"rows":7}`,
	} {
		if got, _ := json.Marshal(rec[member]); !strings.HasPrefix(string(got), want) {
			t.Errorf("%s %s, want %s", member, got, want)
		}
	}
	if got := h.get(runPath).want(200).json(); fmt.Sprint(got) != fmt.Sprint(rec) {
		t.Errorf("latest run %v", got)
	}
	if got := h.get(listingPath).json()["phase2_files"]; fmt.Sprint(got) != fmt.Sprint(rec["phase2_files"]) {
		t.Errorf("listing %v", got)
	}
}

func TestTheThreeFilesBelongTogether(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	rec := h.post(runPath+"?low=7&high=8&interval=30m&max_gap=20m", fourReadings, "Content-Type", "text/csv; charset=UTF-8").want(200).json()

	for _, name := range []string{"/barrier", "/impact", "/alertesph"} {
		file := h.get(listingPath + name).want(200)
		if !strings.HasPrefix(string(file.body), `{"parameters":{"low":7,"high":8,"interval":"30m","max_gap":"20m"},`) {
			t.Errorf("%s begins %.100s", name, file.body)
		}
		if got := file.json(); fmt.Sprint(got["parameters"], got["source"]) != fmt.Sprint(rec["parameters"], rec["source"]) {
			t.Errorf("%s: %v %v", name, got["parameters"], got["source"])
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	one, two := newTestHub(t), newTestHub(t)
	two.clock.advance(time.Hour)
	one.post(runPath, nil).want(200)
	two.post(runPath, nil).want(200)
	for _, name := range []string{"/barrier", "/impact", "/alertesph"} {
		a, b := one.get(listingPath+name), two.get(listingPath+name)
		if string(a.body) != string(b.body) || a.header.Get("ETag") != b.header.Get("ETag") {
			t.Errorf("%s differs", name)
		}
	}
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	for query, field := range map[string]string{
		"low=7&low=7": "low", "low=0": "low", "low=-1": "low", "low=x": "low", "low=": "low", "low=NaN": "low", "low=8.5": "low", "low=9": "low",
		"high=14": "high", "high=6.5": "low", "high=1e3": "high", "high=8,5": "high",
		"interval=59s": "interval", "interval=24h1s": "interval", "interval=1": "interval", "interval=90.5s": "interval", "interval=-1h": "interval",
		"max_gap=0s": "max_gap", "max_gap=-1m": "max_gap", "max_gap=forever": "max_gap", "max_gap=99999999h": "max_gap", "lwo=7": "lwo",
	} {
		faults := h.post(runPath+"?"+query, nil).want(422, "invalid_field").json()["errors"].([]any)
		if got := faults[0].(map[string]any)["field"]; got != field {
			t.Errorf("%s: fault in %v, want %s", query, got, field)
		}
	}
	h.get(runPath).want(404, "no_run")
	for _, query := range []string{"low=0.001&high=13.999", "interval=1m", "interval=24h", "max_gap=1ms", "low=6.5e0"} {
		h.post(runPath+"?"+query, fourReadings, "Content-Type", "text/csv").want(200)
	}
}

func TestUnusableReadingsLeaveTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "readings.csv")
	h := newTestHub(t, "-ephemeral", "-readings", file)
	h.runOn(fourReadings).want(200)
	before := h.get(listingPath).body

	for name, readings := range map[string]string{
		"nothing":           "",
		"other header":      "zeit,ort,ph\n2025-01-01T00:00:00Z,a,7\n",
		"no rows":           "time,station,ph\n",
		"nothing to accept": "time,station,ph\n2025-01-01T00:00:00Z,a,14\nx\n",
		"a picture":         "\x89PNG\r\n\x1a\n\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			h.runOn(readings).want(422, "unusable_readings")
			rec := h.get(runPath).want(200).json()
			if rec["status"] != "failed" || rec["error"].(map[string]any)["code"] != "unusable_readings" {
				t.Errorf("record %v", rec)
			}
		})
	}
	h.post(runPath, nil).want(422, "unusable_readings") // the file is not there

	if after := h.get(listingPath).body; string(after) != string(before) {
		t.Errorf("listing changed:\n%s%s", before, after)
	}
}

func TestReadingsFileIsReadAfresh(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "plant.csv", fourReadings)
	h := newTestHub(t, "-ephemeral", "-readings", file)
	if got := h.post(runPath, nil).want(200).json()["source"].(map[string]any)["name"]; got != "plant.csv" {
		t.Errorf("source %v", got)
	}
	if err := os.WriteFile(file, []byte(fourReadings+"2025-01-01T01:00:00Z,a,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.post(runPath, nil).want(200).json()["screening"].(map[string]any)["accepted"]; got != 5.0 {
		t.Errorf("accepted %v", got)
	}
}

func TestRunBodies(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.post(runPath, "", "Content-Type", "application/json").want(200) // clients that always send a type
	h.post(runPath, "{}", "Content-Type", "application/json").want(415, "unsupported_media_type")
	if a := h.post(runPath, fourReadings, "Content-Type", "text/csv", "Content-Encoding", "gzip").want(415, "unsupported_media_type"); a.header.Get("Accept-Encoding") != "identity" {
		t.Errorf("%v", a.header)
	}
	h.post(loginPath, object{"username": "demo", "password": "demo-password"}, "Content-Encoding", "gzip").want(415, "unsupported_media_type")
	h.post(loginPath, object{"username": "demo", "password": "demo-password"}, "Content-Encoding", "identity").want(200)
	h.post(runPath, fourReadings).want(415, "unsupported_media_type")
	h.post(runPath, fourReadings, "Content-Type", "text/csv; charset=latin1").want(415, "unsupported_media_type")
	h.post(runPath, fourReadings+strings.Repeat("x", maxUpload), "Content-Type", "text/csv").want(413, "body_too_large")
}

func TestRunWithoutWaiting(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	held := holdRuns(h)

	a := h.post(runPath, fourReadings, "Content-Type", "text/csv", "Prefer", "wait=1, Respond-Async").want(202)
	if rec := a.json(); rec["status"] != "running" || rec["finished_at"] != nil {
		t.Errorf("record %v", rec)
	}
	if a.header.Get("Preference-Applied") != "respond-async" || a.header.Get("Location") != "http://hub.test"+runPath {
		t.Errorf("header %v", a.header)
	}
	if rec := h.get(runPath).want(200).json(); rec["id"] != held.run.id || rec["status"] != "running" || rec["progress"].(float64) >= 1 {
		t.Errorf("record %v", rec)
	}

	held.release()
	if rec := h.get(runPath).want(200).json(); rec["id"] != a.str("id") || rec["status"] != "succeeded" || rec["progress"] != 1.0 {
		t.Errorf("record %v", rec)
	}
}

func TestRunsJoinOrQueue(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	held := holdRuns(h)
	async := func(query, readings string) *answer {
		return h.post(runPath+query, readings, "Content-Type", "text/csv", "Prefer", "respond-async")
	}

	queued := async("", fourReadings).want(202).str("id")
	if joined := async("", fourReadings).want(202).str("id"); joined != queued {
		t.Errorf("the same input does not join")
	}
	if other := async("?low=7", fourReadings).want(202).str("id"); other == queued {
		t.Errorf("other parameters join")
	}
	for i := range maxWaiting - 2 {
		async("", fourReadings+fmt.Sprintf("2025-01-02T00:00:0%dZ,a,7\n", i)).want(202)
	}
	if a := async("?low=7.5", fourReadings).want(503, "busy"); a.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After")
	}
	async("", fourReadings).want(202) // joining takes no room

	held.release()
	h.runOn(fourReadings).want(200)
	if names, _ := fs.ReadDir(h.output.root.FS(), "."); len(names) != resultFiles {
		t.Errorf("left behind: %v", names)
	}
}

// heldRun is a run that doesn't get its input until it is released.
type heldRun struct {
	*run
	runs *runs
	gate chan struct{}
}

// holdRuns makes h busy with a run until release.
func holdRuns(h *testHub) *heldRun {
	h.t.Helper()
	held := &heldRun{runs: h.runs, gate: make(chan struct{})}
	var err error
	held.run, err = h.runs.start("held", phase2.Default(), input{
		name: "held", key: "held",
		open: func() (io.ReadCloser, int64, error) {
			<-held.gate
			return io.NopCloser(strings.NewReader(fourReadings)), int64(len(fourReadings)), nil
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return held
}

// release lets the run go on and waits until it and all that wait behind it have ended.
func (r *heldRun) release() {
	close(r.gate)
	r.runs.idle.Wait()
}

func TestARunIsNobodysToStop(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	held := holdRuns(h)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r := httptest.NewRequestWithContext(ctx, "POST", runPath, nil)
		h.Hub.ServeHTTP(httptest.NewRecorder(), r) // it answers nothing, since nobody is there
	}()
	leave()
	<-gone

	held.release()
	if h.entries()[0]["available"] != true {
		t.Errorf("%v", h.entries()[0])
	}
}

func TestAStopLeavesTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, stop := openTestHub(t, newTestClock(), "-dir", dir)
	h.runOn(fourReadings).want(200)
	before := h.get(listingPath + "/impact").body
	held := holdRuns(h)
	h.runs.stop()
	held.release()
	stop()
	if !errors.Is(held.err, context.Canceled) {
		t.Errorf("run ended with %v", held.err)
	}

	h, stop = openTestHub(t, newTestClock(), "-dir", dir)
	defer stop()
	if after := h.get(listingPath + "/impact").body; string(after) != string(before) {
		t.Errorf("changed:\n%s", after)
	}
}

func TestARunOfAFileThatWasReplacedIsAnotherRun(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "plant.csv", fourReadings)
	h := newTestHub(t, "-ephemeral", "-readings", file)
	held := holdRuns(h)
	first := h.post(runPath, nil, "Prefer", "respond-async").want(202).str("id")
	if joined := h.post(runPath, nil, "Prefer", "respond-async").want(202).str("id"); joined != first {
		t.Errorf("the same file does not join")
	}
	if err := os.WriteFile(file, []byte(fourReadings+"2025-01-01T01:00:00Z,a,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if second := h.post(runPath, nil, "Prefer", "respond-async").want(202).str("id"); second == first {
		t.Errorf("another file joins")
	}
	held.release()
}

func TestAFolderRemovedByHandIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newTestHub(t, "-dir", dir)
	h.runOn(fourReadings).want(200)
	if err := os.RemoveAll(filepath.Join(dir, "phase2")); err != nil {
		t.Fatal(err)
	}
	h.get(listingPath+"/impact").want(404, "file_unavailable")
	h.runOn(fourReadings).want(200)
	h.get(listingPath + "/impact").want(200)
}

func TestAPanicEndsOneRunOnly(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.runs.report = func(*run, error) {} // it is logged as the defect that it would be
	r, err := h.runs.start("id", phase2.Default(), input{
		name: "panics", key: "panics",
		open: func() (io.ReadCloser, int64, error) { panic("a defect") },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-r.done
	if code := h.get(runPath).want(200).json()["error"].(map[string]any)["code"]; code != "internal" {
		t.Errorf("code %v", code)
	}
	h.runOn(fourReadings).want(200)
}

func TestAFailedRunTellsOfAllItsInput(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	readings := "no header\n" + strings.Repeat("and more\n", 100_000)
	h.runOn(readings).want(422, "unusable_readings")
	if got := h.get(runPath).json()["source"].(map[string]any)["bytes"]; got != float64(len(readings)) {
		t.Errorf("source of %v bytes, sent were %d", got, len(readings))
	}
}

// TestRealReadings runs on a year's real readings, which are no part of the project.
func TestRealReadings(t *testing.T) {
	t.Parallel()
	const file = "../shared/data/nerrs_2013.csv"
	_, err := os.Stat(file)
	require(t, err == nil, "readings of shared/data")
	h := newTestHub(t, "-ephemeral", "-readings", file)
	rec := h.post(runPath, nil).want(200).json()
	if got := fmt.Sprint(rec["screening"].(map[string]any)["rows"], rec["screening"].(map[string]any)["rejected"]); got != "43414 map[malformed:0 out_of_order:0 saturated:1061]" {
		t.Errorf("screening %s", got)
	}
	if alerts := h.get(listingPath + "/alertesph").json()["alerts"].([]any); len(alerts) != 54 {
		t.Errorf("%d alerts", len(alerts))
	}
}
