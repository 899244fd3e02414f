// What attacks share: paths, time limits, and what a machine must have.

package main

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"
)

const mePath = "/api/authentication/me"

// require skips a test for want of something that not every machine has; on the project's own it has to be there.
func require(t testing.TB, have bool, what string) {
	t.Helper()
	if have {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("CI has no %s", what)
	}
	t.Skipf("this machine has no %s", what)
}

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

// newAnswer reads a response to its end.
func newAnswer(t testing.TB, resp *http.Response) *answer {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{t, resp.StatusCode, resp.Header, body}
}

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
