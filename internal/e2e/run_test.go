// Runs: their record, their parameters, their input, and who waits for whom.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"authhub/internal/testkit"
)

func TestTheRunRecordHoldsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.get(runPath).Want(404, "no_run")

	rec := h.upload(fourReadings + "x,a,7\n2025-01-01T01:00:00Z,a,14\n2025-01-01T00:00:00Z,a,7\n").Want(200).JSON()

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
	if got := h.get(runPath).Want(200).JSON(); fmt.Sprint(got) != fmt.Sprint(rec) {
		t.Errorf("latest run %v", got)
	}
	if got := h.get(listingPath).JSON()["phase2_files"]; fmt.Sprint(got) != fmt.Sprint(rec["phase2_files"]) {
		t.Errorf("listing %v", got)
	}
}

func TestTheThreeFilesBelongTogether(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	rec := h.post(runPath+"?low=7&high=8&interval=30m&max_gap=20m", fourReadings, "Content-Type", "text/csv; charset=UTF-8").Want(200).JSON()

	for _, path := range filePaths {
		file := h.get(path).Want(200)
		if !strings.HasPrefix(string(file.Body), `{"parameters":{"low":7,"high":8,"interval":"30m","max_gap":"20m"},`) {
			t.Errorf("%s begins %.100s", path, file.Body)
		}
		if got := file.JSON(); fmt.Sprint(got["parameters"], got["source"]) != fmt.Sprint(rec["parameters"], rec["source"]) {
			t.Errorf("%s: %v %v", path, got["parameters"], got["source"])
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	one, two := newStillHub(t), newStillHub(t)
	one.post(runPath, nil).Want(200)
	two.post(runPath, nil).Want(200)
	for _, path := range filePaths {
		a, b := one.get(path), two.get(path)
		if string(a.Body) != string(b.Body) || a.Header.Get("ETag") != b.Header.Get("ETag") {
			t.Errorf("%s differs", path)
		}
	}
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for query, field := range map[string]string{
		"low=7&low=7": "low", "low=0": "low", "low=-1": "low", "low=x": "low", "low=": "low", "low=NaN": "low", "low=8.5": "low", "low=9": "low",
		"high=14": "high", "high=6.5": "low", "high=1e3": "high", "high=8,5": "high",
		"interval=59s": "interval", "interval=24h1s": "interval", "interval=1": "interval", "interval=90.5s": "interval", "interval=-1h": "interval",
		"max_gap=0s": "max_gap", "max_gap=-1m": "max_gap", "max_gap=forever": "max_gap", "max_gap=99999999h": "max_gap", "lwo=7": "lwo",
	} {
		h.post(runPath+"?"+query, nil).WantField(field)
	}
	h.get(runPath).Want(404, "no_run")
	for _, query := range []string{"low=0.001&high=13.999", "interval=1m", "interval=24h", "max_gap=1ms", "low=6.5e0"} {
		h.post(runPath+"?"+query, fourReadings, "Content-Type", "text/csv").Want(200)
	}
}

func TestUnusableReadingsLeaveTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "readings.csv")
	h := start(t, "-ephemeral", "-readings", file)
	h.upload(fourReadings).Want(200)
	before := h.get(listingPath).Body

	for name, readings := range map[string]string{
		"nothing":           "",
		"other header":      "zeit,ort,ph\n2025-01-01T00:00:00Z,a,7\n",
		"no rows":           "time,station,ph\n",
		"nothing to accept": "time,station,ph\n2025-01-01T00:00:00Z,a,14\nx\n",
		"a picture":         "\x89PNG\r\n\x1a\n\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			h.upload(readings).Want(422, "unusable_readings")
			rec := h.get(runPath).Want(200).JSON()
			if rec["status"] != "failed" || rec["error"].(object)["code"] != "unusable_readings" {
				t.Errorf("record %v", rec)
			}
		})
	}
	h.post(runPath, nil).Want(422, "unusable_readings") // the file is not there

	if after := h.get(listingPath).Body; string(after) != string(before) {
		t.Errorf("listing changed:\n%s%s", before, after)
	}
}

func TestReadingsFileIsReadAfresh(t *testing.T) {
	t.Parallel()
	file := testkit.WriteFile(t, "plant.csv", fourReadings)
	h := start(t, "-ephemeral", "-readings", file)
	if got := h.post(runPath, nil).Want(200).JSON()["source"].(object)["name"]; got != "plant.csv" {
		t.Errorf("source %v", got)
	}
	if err := os.WriteFile(file, []byte(fourReadings+"2025-01-01T01:00:00Z,a,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.post(runPath, nil).Want(200).JSON()["screening"].(object)["accepted"]; got != 5.0 {
		t.Errorf("accepted %v", got)
	}
}

func TestARunTakesCSVOrNoBody(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.post(runPath, "", "Content-Type", "application/json").Want(200) // clients that always send a type
	h.post(runPath, "{}", "Content-Type", "application/json").Want(415, "unsupported_media_type")
	if a := h.post(runPath, fourReadings, "Content-Type", "text/csv", "Content-Encoding", "gzip").Want(415, "unsupported_media_type"); a.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("%v", a.Header)
	}
	h.post(loginPath, right("demo"), "Content-Encoding", "gzip").Want(415, "unsupported_media_type")
	h.post(loginPath, right("demo"), "Content-Encoding", "identity").Want(200)
	h.post(runPath, fourReadings).Want(415, "unsupported_media_type")
	h.post(runPath, fourReadings, "Content-Type", "text/csv; charset=latin1").Want(415, "unsupported_media_type")
	h.post(runPath, fourReadings+strings.Repeat("x", 64<<20), "Content-Type", "text/csv").Want(413, "body_too_large")
}

func TestRunWithoutWaiting(t *testing.T) {
	t.Parallel()
	held := holdRun(t)
	h := held.hub

	a := h.post(runPath, nil, "Prefer", "wait=1, Respond-Async").Want(202) // joins the one that is held
	if rec := a.JSON(); rec["id"] != held.id || rec["status"] != "running" || rec["finished_at"] != nil {
		t.Errorf("record %v", rec)
	}
	if a.Header.Get("Preference-Applied") != "respond-async" || a.Header.Get("Location") != h.base+runPath {
		t.Errorf("header %v", a.Header)
	}
	if rec := h.get(runPath).Want(200).JSON(); rec["id"] != held.id || rec["status"] != "running" || rec["progress"].(float64) >= 1 {
		t.Errorf("record %v", rec)
	}

	held.release()
	if rec := h.post(runPath, nil, "Prefer", "respond-async").Want(202).JSON(); rec["id"] == held.id {
		t.Error("a run that has ended is joined")
	}
}

func TestRunsJoinOrQueue(t *testing.T) {
	t.Parallel()
	held := holdRun(t)
	h := held.hub
	async := func(query, readings string) *answer {
		return h.post(runPath+query, readings, "Content-Type", "text/csv", "Prefer", "respond-async")
	}

	queued := async("", fourReadings).Want(202).Text("id")
	if joined := async("", fourReadings).Want(202).Text("id"); joined != queued {
		t.Errorf("the same input does not join")
	}
	if other := async("?low=7", fourReadings).Want(202).Text("id"); other == queued {
		t.Errorf("other parameters join")
	}
	for i := range 6 { // eight wait
		async("", fourReadings+fmt.Sprintf("2025-01-02T00:00:0%dZ,a,7\n", i)).Want(202)
	}
	if a := async("?low=7.5", fourReadings).Want(503, "busy"); a.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After")
	}
	async("", fourReadings).Want(202) // joining takes no room

	held.release()
	h.upload(fourReadings + "2025-01-03T00:00:00Z,a,7\n").Want(200) // the last in line
	if names := testkit.List(t, filepath.Join(held.dir, "phase2")); len(names) != 3 {
		t.Errorf("left behind: %v", names)
	}
}

// heldRun is a run of a durable hub that doesn't get its readings until it is released.
type heldRun struct {
	*hub
	id        string
	dir, fifo string
}

// holdRun starts a hub and a run of its own readings, which come through a FIFO.
func holdRun(t *testing.T, flags ...string) *heldRun {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "readings.csv")
	if err := mkfifo(fifo); err != nil {
		t.Skip("no FIFO to hold a run with: ", err)
	}
	held := &heldRun{dir: t.TempDir(), fifo: fifo}
	held.hub = start(t, append([]string{"-dir", held.dir, "-readings", fifo}, flags...)...)
	held.id = held.post(runPath, nil, "Prefer", "respond-async").Want(202).Text("id")
	return held
}

// open opens the FIFO for writing once the run reads it.
func (r *heldRun) open() (w *os.File) {
	r.t.Helper()
	testkit.Eventually(r.t, "the run reads", func() (ok bool) {
		var err error
		w, err = os.OpenFile(r.fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0) // refused as long as nobody reads
		return err == nil
	})
	r.t.Cleanup(func() { w.Close() })
	return w
}

// release lets the run go on and waits until it has ended.
func (r *heldRun) release() {
	r.t.Helper()
	r.finish(r.open())
}

// finish sends the readings and waits until the run has ended.
func (r *heldRun) finish(w *os.File) {
	r.t.Helper()
	io.WriteString(w, fourReadings)
	w.Close()
	testkit.Eventually(r.t, "the run has ended", func() bool {
		rec := r.get(runPath).Want(200).JSON()
		return rec["id"] != r.id || rec["status"] != "running"
	})
}

// TestAClientThatLeavesStopsNoRun: the run that a client waited for goes on without it.
func TestAClientThatLeavesStopsNoRun(t *testing.T) {
	t.Parallel()
	held := holdRun(t)
	c := testkit.Dial(t, held.addr())
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", runPath)
	c.Close()
	held.release()
	for _, e := range held.entries() {
		if e["available"] != true {
			t.Errorf("%v", e)
		}
	}
}

func TestAStopLeavesTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	held := holdRun(t)
	held.release()
	before := held.get(listingPath + "/impact").Want(200).Body
	held.post(runPath+"?high=8", nil, "Prefer", "respond-async").Want(202)
	w := held.open()
	io.WriteString(w, fourReadings[:60])
	held.process.cmd.Process.Signal(os.Interrupt)
	testkit.Eventually(t, "the hub stops", func() bool { return strings.Contains(held.process.stderr.String(), "stopping") })
	w.Close()
	if status := held.process.stop(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	h := start(t, "-dir", held.dir)
	if after := h.get(listingPath + "/impact").Want(200).Body; string(after) != string(before) {
		t.Errorf("changed:\n%s", after)
	}
}

func TestARunOfAFileThatWasReplacedIsAnotherRun(t *testing.T) {
	t.Parallel()
	held := holdRun(t)
	w := held.open() // before that the hub might find the other file
	if err := os.Rename(held.fifo, held.fifo+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(held.fifo, []byte(fourReadings), 0o600); err != nil {
		t.Fatal(err)
	}
	if second := held.post(runPath, nil, "Prefer", "respond-async").Want(202).Text("id"); second == held.id {
		t.Errorf("another file joins")
	}
	held.finish(w)
}

func TestAFolderRemovedByHandIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	h.upload(fourReadings).Want(200)
	if err := os.RemoveAll(filepath.Join(dir, "phase2")); err != nil {
		t.Fatal(err)
	}
	h.get(listingPath+"/impact").Want(404, "file_unavailable")
	h.upload(fourReadings).Want(200)
	h.get(listingPath + "/impact").Want(200)
}

func TestAFailedRunTellsOfAllItsInput(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	readings := "no header\n" + strings.Repeat("and more\n", 100_000)
	h.upload(readings).Want(422, "unusable_readings")
	if got := h.get(runPath).JSON()["source"].(object)["bytes"]; got != float64(len(readings)) {
		t.Errorf("source of %v bytes, sent were %d", got, len(readings))
	}
}

// TestRealReadings runs on a year's real readings, which are no part of the project.
func TestRealReadings(t *testing.T) {
	t.Parallel()
	file := os.Getenv("AUTHHUB_REAL_READINGS")
	if file == "" {
		file, _ = filepath.Abs(root + "/../shared/data/nerrs_2013.csv")
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("the readings are not part of the project; AUTHHUB_REAL_READINGS says where they are: ", err)
	}
	h := start(t, "-ephemeral", "-readings", file)
	rec := h.post(runPath, nil).Want(200).JSON()
	if got := fmt.Sprint(rec["screening"].(object)["rows"], rec["screening"].(object)["rejected"]); got != "43414 map[malformed:0 out_of_order:0 saturated:1061]" {
		t.Errorf("screening %s", got)
	}
	if alerts := h.get(listingPath + "/alertesph").JSON()["alerts"].([]any); len(alerts) != 54 {
		t.Errorf("%d alerts", len(alerts))
	}
}
