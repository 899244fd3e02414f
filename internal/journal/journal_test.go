package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

func TestJournalKeepsItsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	want := []string{"a=1", `{"json":"with spaces 0123456789abcdef"}`, "", "a=2", strings.Repeat("x", maxPayload)}
	for n := range len(want) + 1 { // a restart after each record
		l := newLedger()
		j, err := Open(disk.OS{}, path, l, journalLog(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(l.applied, want[:n]) {
			t.Fatalf("start %d replays %d records", n, len(l.applied))
		}
		if n < len(want) {
			mustCommit(t, l.put(j, want[n]))
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, error %v", info, err)
	}
}

// gateSyncs makes every sync from now on say that it begins, and then wait for its result.
func gateSyncs(d *disktest.Disk) (begun chan struct{}, result chan error) {
	begun, result = make(chan struct{}), make(chan error)
	d.SetFault(func(op string) error {
		if op != "sync" {
			return nil
		}
		begun <- struct{}{}
		return <-result
	})
	return begun, result
}

// inBubble runs a test in which a wait that never ends is a failure at once.
func inBubble(t *testing.T, test func(t *testing.T, d *disktest.Disk, j *Journal, l *ledger)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New("journal", journalBytes())
		j, l := mustOpen(t, d, "journal")
		test(t, d, j, l)
	})
}

// TestJournalSyncsOncePerBatch: while a sync runs, all further records gather for the next one, and nobody is told
// before theirs.
func TestJournalSyncsOncePerBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, d *disktest.Disk, j *Journal, l *ledger) {
		before := d.Count("sync")
		begun, result := gateSyncs(d)
		first := l.put(j, "first=1")
		<-begun
		const clients = 100
		commits := make([]*Commit, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() { commits[i] = l.put(j, fmt.Sprint(i, "=1")) })
		}
		wg.Wait()
		mustWait(t, append(commits, first)...)

		result <- nil
		mustCommit(t, first)
		<-begun
		mustWait(t, commits...)
		result <- nil
		for _, c := range commits {
			mustCommit(t, c)
		}
		if n := d.Count("sync") - before; n != 2 {
			t.Errorf("%d syncs for %d records, want 2", n, clients+1)
		}
	})
}

// mustWait fails the test if a commit is acknowledged already.
func mustWait(t *testing.T, commits ...*Commit) {
	t.Helper()
	for _, c := range commits {
		select {
		case <-c.done:
			t.Fatal("acknowledged before the sync")
		default:
		}
	}
}

func TestJournalCommitsForWhoHasLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, d *disktest.Disk, j *Journal, l *ledger) {
		begun, result := gateSyncs(d)
		c := l.put(j, "a=1")
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v", err)
		}
		result <- nil
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Wait(ctx); err != nil {
			t.Errorf("wait after the commit, with a context that has ended: %v", err)
		}
		d.SetFault(nil)
		if _, again := mustOpen(t, d, "journal"); !slices.Equal(again.applied, []string{"a=1"}) {
			t.Errorf("records %q", again.applied)
		}
	})
}

// TestJournalFailureReachesWhoWaits: a record appended during a sync that fails is refused too.
func TestJournalFailureReachesWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, d *disktest.Disk, j *Journal, l *ledger) {
		begun, result := gateSyncs(d)
		first := l.put(j, "a=1")
		<-begun
		second := l.put(j, "b=1")
		result <- syscall.EIO
		for _, c := range []*Commit{first, second} {
			if err := c.Wait(t.Context()); !errors.Is(err, syscall.EIO) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// TestJournalFailsForGood: after any fault of a write or sync, refused is refused until a restart, and acknowledged
// is kept.
func TestJournalFailsForGood(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		op    string
		cause error
	}{
		{"write", syscall.ENOSPC},
		{"write", syscall.EIO},
		{"sync", syscall.EIO},
		{"sync", syscall.ENOSPC},
	} {
		t.Run(fmt.Sprint(row.op, " ", row.cause), func(t *testing.T) {
			t.Parallel()
			for _, cutToo := range []bool{true, false} {
				failForGood(t, row.op, row.cause, cutToo)
			}
		})
	}
}

// failForGood lets one operation fail, and the truncation after it, if cutFails.
func failForGood(t *testing.T, op string, cause error, cutFails bool) {
	d := disktest.New("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	mustCommit(t, l.put(j, "kept=1"))
	var once atomic.Bool
	d.SetFault(func(o string) error {
		if o == op && once.CompareAndSwap(false, true) || o == "truncate" && cutFails {
			return cause
		}
		return nil
	})
	refused := l.put(j, "refused=1").Wait(t.Context())
	writes := d.Count("write")
	later := l.put(j, "later=1")
	select {
	case <-later.done:
	default:
		t.Error("append after the failure waits")
	}
	for _, err := range []error{refused, later.Wait(t.Context()), j.Failed(), j.Close()} {
		if !errors.Is(err, ErrFailed) || !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	}
	if d.Count("write") != writes {
		t.Error("written after the failure")
	}

	d.SetFault(nil)
	j, again := mustOpen(t, d, "journal")
	mustCommit(t, again.put(j, "new=1"))
	if again.applied[0] != "kept=1" || slices.Contains(again.applied, "later=1") {
		t.Errorf("records %q", again.applied)
	}
	if !cutFails && len(again.applied) != 1 {
		t.Errorf("refused records came back: %q", again.applied)
	}
}

func TestJournalRefusesImpossibleRecords(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"a\nb", "\n", strings.Repeat("x", maxPayload+1)} {
		d := disktest.New("journal", journalBytes("a=1"))
		j, _ := mustOpen(t, d, "journal")
		err := j.Append([]byte(payload)).Wait(t.Context())
		if !errors.Is(err, ErrFailed) || j.Failed() == nil {
			t.Errorf("error %v, failed %v", err, j.Failed())
		}
	}
}

func TestCloseSyncsWhatIsPending(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	var commits []*Commit
	for i := range 100 {
		commits = append(commits, l.put(j, fmt.Sprint(i, "=1")))
	}
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range commits {
		mustCommit(t, c)
	}
	if err := l.put(j, "late=1").Wait(t.Context()); !errors.Is(err, ErrFailed) || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if _, again := mustOpen(t, d, "journal"); len(again.applied) != 100 {
		t.Errorf("%d records", len(again.applied))
	}
}

func TestJournalFailsToOpen(t *testing.T) {
	t.Parallel()
	for _, file := range [][]byte{nil, append(journalBytes("a=1"), "torn"...)} {
		steps := disktest.New("journal", file)
		mustOpen(t, steps, "journal")
		for n := range len(steps.Steps()) {
			d := disktest.New("journal", file)
			d.SetFault(disktest.FailFrom(n, syscall.EIO))
			j, err := Open(d, "journal", newLedger(), journalLog(t))
			if err == nil {
				j.Close()
				t.Errorf("opened though %q failed", steps.Steps()[n])
			}
			d = d.AfterPowerCut(disktest.Survival{Names: true, Bytes: 1})
			if _, l := mustOpen(t, d, "journal"); file != nil && !slices.Equal(l.applied, []string{"a=1"}) {
				t.Errorf("after a failed %q: records %q", steps.Steps()[n], l.applied)
			}
		}
	}
}

// BenchmarkJournalAppend: parallel clients on a real disk, each waiting for its commit.
func BenchmarkJournalAppend(b *testing.B) {
	j, err := Open(disk.OS{}, filepath.Join(b.TempDir(), "journal"), allLive{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	payload := bytes.Repeat([]byte("x"), 150)
	b.ReportAllocs()
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.Append(payload).Wait(b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkJournalReplay: a start with a million records of 150 bytes.
func BenchmarkJournalReplay(b *testing.B) {
	c := newChain()
	file := c.appendLine(nil, newHeader())
	payload := make([]byte, 150)
	for range 1_000_000 {
		for i := range payload {
			payload[i] = 'a' + byte(rand.IntN(26))
		}
		file = c.appendLine(file, payload)
	}
	path := filepath.Join(b.TempDir(), "journal")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		j, err := Open(disk.OS{}, path, allLive{}, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		j.Close()
	}
}

// allLive is a state without a state.
type allLive struct{}

func (allLive) Replay([]byte) error              { return nil }
func (allLive) LiveRecords() int                 { return 1 << 40 }
func (allLive) Snapshot(func()) iter.Seq[[]byte] { panic("a journal of live records was compacted") }
