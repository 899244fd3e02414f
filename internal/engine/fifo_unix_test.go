//go:build unix

package engine_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// longReadings returns the path of readings that never end.
func longReadings(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "readings.csv")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := os.OpenFile(path, os.O_RDWR, 0) // keeps the pipe open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	return path
}
