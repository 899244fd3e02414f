package hubtest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A binary that says nothing is told; without a limit, the tests of its client would hang.
func TestASilentBinaryIsTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows runs no shell script")
	}
	silent := filepath.Join(t.TempDir(), "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := launch(silent, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "says nothing within 10ms") {
		t.Errorf("%v", err)
	}
}
