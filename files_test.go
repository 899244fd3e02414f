package main

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

const (
	listingPath = "/api/files/phase2"
	runPath     = "/api/run-ph-barrier-phase2"
)

// fourReadings is about the least input that gives something in each file.
const fourReadings = "time,station,ph\n" +
	"2025-01-01T00:00:00Z,a,7.5\n" +
	"2025-01-01T00:15:00Z,a,8.6\n" +
	"2025-01-01T00:30:00Z,a,9.1\n" +
	"2025-01-01T00:45:00Z,a,7.5\n"

func (h *testHub) runOn(readings string) *answer {
	h.t.Helper()
	return h.post(runPath, readings, "Content-Type", "text/csv")
}

// entries returns the listing's three entries.
func (h *testHub) entries() []map[string]any {
	h.t.Helper()
	var entries []map[string]any
	for _, e := range h.get(listingPath).want(200).json()["phase2_files"].([]any) {
		entries = append(entries, e.(map[string]any))
	}
	return entries
}

func TestListingAfterARun(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.clock.advance(1234 * time.Millisecond)
	h.runOn(fourReadings).want(200)

	for _, e := range h.entries() {
		file := h.get(e["endpoint"].(string)).want(200)
		if e["available"] != true || e["size_bytes"] != float64(len(file.body)) || e["last_modified"] != "2026-03-01T12:00:01.234Z" {
			t.Errorf("%v, %d bytes", e, len(file.body))
		}
		file.json()
	}
}

// TestNothingIsWrittenAfterTheEnd: a request that outlives its hub makes no folder that nobody will remove.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	h, stop := openTestHub(t, newTestClock(), "-ephemeral")
	h.runOn(fourReadings).want(200)
	made := h.output.Path()
	stop()
	h.runOn(fourReadings).want(503, "busy")
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) || h.output.Path() != made {
		t.Errorf("%s: %v; then %s", made, err, h.output.Path())
	}
}
