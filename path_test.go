// The output folder against what somebody may have planted in it, and against its own edges.

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLargeFileCompressed: a file too large to be kept in memory is compressed from its first byte, whoever has
// read it before.
func TestLargeFileCompressed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newTestHub(t, "-dir", dir)
	h.output.keepPlain = 1 << 10
	large := bytes.Repeat([]byte(`{"padding":"0123456789"}`), 1_000)
	if err := os.WriteFile(filepath.Join(dir, "phase2", barrierFile.name()), large, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := h.get(listingPath+"/barrier", "Accept-Encoding", "gzip").want(200)
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, large) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(large), err)
		}
	}
}

// TestNothingIsWrittenAfterTheEnd: a request that outlives its hub makes no folder that nobody will remove.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	h, stop := openTestHub(t, newTestClock(), "-ephemeral")
	h.runOn(fourReadings).want(200)
	made := h.output.path
	stop()
	h.runOn(fourReadings).want(503, "busy")
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) || h.output.path != made {
		t.Errorf("%s: %v; then %s", made, err, h.output.path)
	}
}
