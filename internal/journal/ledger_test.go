// A state to keep in a journal, and what all tests of journals do with it.

package journal

import (
	"bytes"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"authhub/internal/disk"
)

// ledger is a journaled state: records are "key=value", and the last one of a key is live.
type ledger struct {
	mu      sync.Mutex
	live    map[string]string
	applied []string // by replay
}

func newLedger() *ledger { return &ledger{live: map[string]string{}} }

func (l *ledger) Replay(payload []byte) error {
	if bytes.Equal(payload, []byte("refuse")) {
		return errors.New("no such record")
	}
	l.applied = append(l.applied, string(payload))
	l.set(string(payload))
	return nil
}

func (l *ledger) set(record string) {
	key, _, _ := strings.Cut(record, "=")
	l.live[key] = record
}

func (l *ledger) LiveRecords() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}

func (l *ledger) Snapshot(take func()) iter.Seq[[]byte] {
	l.mu.Lock()
	defer l.mu.Unlock()
	take()
	records := slices.Sorted(maps.Values(l.live))
	return func(yield func([]byte) bool) {
		for _, r := range records {
			if !yield([]byte(r)) {
				return
			}
		}
	}
}

// put changes the state and its journal as the store does.
func (l *ledger) put(j *Journal, record string) *Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	payload := []byte(record)
	c := j.Append(payload)
	clear(payload) // append has copied it
	l.set(record)
	return c
}

// journalLog sends what the journal logs to the test's output.
func journalLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// journalBytes is a journal of these records.
func journalBytes(records ...string) []byte {
	c := newChain()
	out := c.appendLine(nil, newHeader())
	for _, r := range records {
		out = c.appendLine(out, []byte(r))
	}
	return out
}

// mustOpen opens a journal that the test takes for sound, and closes it at the end.
func mustOpen(t testing.TB, d disk.Disk, path string) (*Journal, *ledger) {
	t.Helper()
	l := newLedger()
	j, err := Open(d, path, l, journalLog(t))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j, l
}

func mustCommit(t testing.TB, c *Commit) {
	t.Helper()
	if err := c.Wait(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}
