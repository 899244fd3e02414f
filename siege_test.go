// What attacks share: paths, time limits, and what a machine must have.

package main

import (
	"log/slog"
	"os"
	"testing"
	"time"
)

// eventually waits until cond holds, for half a minute at most.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for !cond() {
		select {
		case <-often.C:
		case <-late:
			t.Fatalf("still not so that %s", what)
		}
	}
}

// quietLog is for tests in which the hub has reason to log errors.
func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// mustList returns the names in a folder.
func mustList(t testing.TB, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
