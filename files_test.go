package main

import (
	"io"
	"os"
	"path/filepath"
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

// TestACrashLeavesAWholeSet stops a publish after each of its steps and starts again.
func TestACrashLeavesAWholeSet(t *testing.T) {
	t.Parallel()
	write := func(content string) func(resultFile, io.Writer) error {
		return func(f resultFile, w io.Writer) error {
			_, err := io.WriteString(w, content+f.name())
			return err
		}
	}
	for name, row := range map[string]struct {
		crash func(t *testing.T, o *output)
		want  string
	}{
		"while staging": {func(t *testing.T, o *output) {
			if err := o.stage(o.root, write("new "), time.Now()); err != nil {
				t.Fatal(err)
			}
		}, "old "},
		"after the commit": {func(t *testing.T, o *output) {
			o.stage(o.root, write("new "), time.Now())
			if err := o.root.Rename(stagingName, commitName); err != nil {
				t.Fatal(err)
			}
		}, "new "},
		"after the first file": {func(t *testing.T, o *output) {
			o.stage(o.root, write("new "), time.Now())
			o.root.Rename(stagingName, commitName)
			if err := o.root.Rename(commitName+"/"+barrierFile.name(), barrierFile.name()); err != nil {
				t.Fatal(err)
			}
		}, "new "},
		"after the last file": {func(t *testing.T, o *output) {
			o.stage(o.root, write("new "), time.Now())
			o.root.Rename(stagingName, commitName)
			if err := o.moveCommitted(); err != nil {
				t.Fatal(err)
			}
		}, "new "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o, err := openOutput(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.publish(write("old "), time.Now()); err != nil {
				t.Fatal(err)
			}
			row.crash(t, o)
			o.close()

			o, err = openOutput(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			for f := range resultFile(resultFiles) {
				if got := readFile(t, filepath.Join(dir, f.name())); got != row.want+f.name() {
					t.Errorf("%s holds %q", f.name(), got)
				}
			}
			if names, _ := os.ReadDir(dir); len(names) != resultFiles {
				t.Errorf("left behind: %v", names)
			}
			if err := o.publish(write("third "), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
}
