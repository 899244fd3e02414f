package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"authhub/internal/phase2"
	"authhub/internal/runs"
)

// TestARun is the story of one run; internal/e2e tells of its parameters, its bodies and the line for it.
func TestARun(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.get(runPath).want(404, "no_run")
	rec := h.runOn(fourReadings + "x,a,7\n").want(200).json()
	if got := fmt.Sprint(rec["status"], rec["progress"], rec["error"], rec["screening"].(object)["rejected"]); got != "succeeded1 <nil> map[malformed:1 out_of_order:0 saturated:0]" {
		t.Errorf("%s", got)
	}
	for _, path := range []string{"/barrier", "/impact", "/alertesph"} {
		file := h.get(listingPath + path).want(200).json()
		if fmt.Sprint(file["parameters"], file["source"]) != fmt.Sprint(rec["parameters"], rec["source"]) {
			t.Errorf("%s is not of this run: %v", path, file["source"])
		}
	}
	h.runOn("").want(422, "unusable_readings")
	if failed := h.get(runPath).want(200).json(); failed["status"] != "failed" {
		t.Errorf("%v", failed)
	}
	h.get(listingPath + "/impact").want(200)
}

// heldRun is a run that doesn't get its input until it is released.
type heldRun struct {
	*runs.Run
	gate chan struct{}
}

// holdRuns makes h busy with a run until release.
func holdRuns(h *testHub) *heldRun {
	h.t.Helper()
	held := &heldRun{gate: make(chan struct{})}
	var err error
	held.Run, err = h.runs.Start("held", phase2.Default(), runs.Input{
		Name: "held", Key: "held",
		Open: func() (io.ReadCloser, int64, error) {
			<-held.gate
			return io.NopCloser(strings.NewReader(fourReadings)), int64(len(fourReadings)), nil
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return held
}

// release lets the run go on and waits until it has ended.
func (r *heldRun) release() {
	close(r.gate)
	<-r.Done()
}
