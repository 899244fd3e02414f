package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// ledger is a journaled state: records are "key=value", and the last one of a key is live.
type ledger struct {
	mu      sync.Mutex
	live    map[string]string
	applied []string // by replay
}

func newLedger() *ledger { return &ledger{live: map[string]string{}} }

func (l *ledger) apply(payload []byte) error {
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

func (l *ledger) liveRecords() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}

func (l *ledger) snapshot(take func()) iter.Seq[[]byte] {
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
func (l *ledger) put(j *journal, record string) *commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := j.append([]byte(record))
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
func mustOpen(t testing.TB, d disk, path string) (*journal, *ledger) {
	t.Helper()
	l := newLedger()
	j, err := openJournalOn(d, path, l, journalLog(t))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { j.close() })
	return j, l
}

func mustCommit(t testing.TB, c *commit) {
	t.Helper()
	if err := c.wait(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func TestJournalKeepsItsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	want := []string{"a=1", `{"json":"with spaces 0123456789abcdef"}`, "", "a=2", strings.Repeat("x", maxPayload)}
	for n := range len(want) + 1 { // a restart after each record
		l := newLedger()
		j, err := openJournal(path, l, journalLog(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(l.applied, want[:n]) {
			t.Fatalf("start %d replays %d records", n, len(l.applied))
		}
		if n < len(want) {
			mustCommit(t, l.put(j, want[n]))
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

// TestJournalDamages: what is done to a journal of three records, and what of it survives.
func TestJournalDamages(t *testing.T) {
	t.Parallel()
	sound := journalBytes("a=1", "b=2", "c=3")
	lines := bytes.SplitAfter(sound, []byte("\n"))[:4]
	header, a, b, c := lines[0], lines[1], lines[2], lines[3]
	other := bytes.SplitAfter(journalBytes("a=1", "b=2", "c=3"), []byte("\n"))
	offA := len(header)
	offB, offC, end := offA+len(a), offA+len(a)+len(b), len(sound)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	text := func(s string) []byte { return []byte(s) }
	chop := func(b []byte) []byte { return b[:len(b)-1] }

	const repaired = -1
	for _, row := range []struct {
		name    string
		file    []byte
		refused int // offset of the damage, or repaired
		records int // after the repair
	}{
		{"nothing", sound, repaired, 3},
		{"no records", header, repaired, 0},
		{"last line half there", join(header, a, b, c[:9]), repaired, 2},
		{"last line without its end", join(header, a, b, chop(c)), repaired, 2},
		{"first byte of a line", join(sound, text("x")), repaired, 3},
		{"zeros behind the end", join(sound, make([]byte, 4096)), repaired, 3},
		{"zeros in the last line", join(header, a, b, c[:5], make([]byte, 512)), repaired, 2},
		{"last line end changed", join(header, a, b, chop(c), text("\v")), offC, 0},
		{"last line end changed, torn line behind", join(header, a, b, chop(c), text("\vd=4 01")), offC, 0},
		{"zeros in place of the last line end", join(header, a, b, chop(c), make([]byte, 9)), offC, 0},
		{"line doubled", join(header, a, b, b, c), offC, 0},
		{"last line doubled", join(sound, c), end, 0},
		{"lines swapped", join(header, b, a, c), offA, 0},
		{"line inserted", join(header, a, text("x=1 0123456789abcdef\n"), b, c), offB, 0},
		{"line of another journal inserted", join(header, a, other[2], c), offB, 0},
		{"line of another journal appended", join(sound, other[3]), end, 0},
		{"header of another journal", join(other[0], a, b, c), offA, 0},
		{"first record removed", join(header, b, c), offA, 0},
		{"line removed", join(header, a, c), offB, 0},
		{"empty line inserted", join(header, a, text("\n"), b, c), offB, 0},
		{"empty line appended", join(sound, text("\n")), end, 0},
		{"short line", join(header, text("0123456789abcdef\n"), b), offA, 0},
		{"checksum in upper case", join(header, text(strings.ToUpper(string(a))), b), offA, 0},
		{"line end of another system", join(header, chop(a), text("\r\n"), b, c), offA, 0},
		{"line longer than the limit", join(header, a, bytes.Repeat(text("x"), maxLine), text("\n")), offB, 0},
		{"tail longer than the limit", join(header, a, bytes.Repeat(text("x"), 2*maxLine)), offB, 0},
		{"record that doesn't apply", journalBytes("a=1", "refuse"), -2, 0},
		{"empty", nil, 0, 0},
		{"a line end alone", text("\n"), 0, 0},
		{"foreign", text("{\"users\":[]}\n"), 0, 0},
		{"foreign, without a line end", text("hello"), 0, 0},
		{"foreign, binary", make([]byte, 5000), 0, 0},
		{"version 2", bytes.Replace(sound, text("journal 1 "), text("journal 2 "), 1), 0, 0},
		{"version 10", bytes.Replace(sound, text("journal 1 "), text("journal 10 "), 1), 0, 0},
		{"byte order mark", join(text("\ufeff"), sound), 0, 0},
		{"header removed", join(a, b, c), 0, 0},
		{"header half there", header[:20], 0, 0},
		{"header without its end", chop(header), 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.refused == -2 {
				row.refused = bytes.Index(row.file, []byte("refuse"))
			}
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, row.file, 0o600); err != nil {
				t.Fatal(err)
			}
			l := newLedger()
			j, err := openJournal(path, l, journalLog(t))
			if err == nil {
				mustCommit(t, l.put(j, "z=26")) // a repaired journal can be gone on with
				j.close()
			}
			after, _ := os.ReadFile(path)
			var damage *damageError
			switch {
			case row.refused == repaired && err != nil:
				t.Fatalf("refused: %v", err)
			case row.refused == repaired:
				_, again := mustOpen(t, osDisk{}, path)
				if want := append([]string{"a=1", "b=2", "c=3"}[:row.records], "z=26"); !slices.Equal(again.applied, want) {
					t.Errorf("records %q, want %q", again.applied, want)
				}
			case !errors.As(err, &damage):
				t.Fatalf("error %v, want a damageError", err)
			case damage.Path != path || damage.Offset != int64(row.refused) || damage.Cause == "":
				t.Errorf("damage %q, want it at %d", damage, row.refused)
			case !bytes.Equal(after, row.file):
				t.Errorf("a refused journal was changed")
			}
		})
	}
}

func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	records := []string{"a=1", "b=with a space", "c=3"}
	sound := journalBytes(records...)
	header := bytes.IndexByte(sound, '\n') + 1
	for size := range len(sound) {
		d := newMemDisk("journal", sound[:size])
		l := newLedger()
		j, err := openJournalOn(d, "journal", l, journalLog(t))
		if size < header {
			if err == nil || !bytes.Equal(d.content("journal"), sound[:size]) {
				t.Fatalf("cut to %d bytes, in the header: error %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		j.close()
		whole := bytes.LastIndexByte(sound[:size], '\n') + 1
		if n := bytes.Count(sound[header:whole], []byte("\n")); !slices.Equal(l.applied, records[:n]) {
			t.Errorf("cut to %d bytes: records %q", size, l.applied)
		}
		if !bytes.Equal(d.content("journal"), sound[:whole]) {
			t.Errorf("cut to %d bytes: the repair is not the journal up to %d", size, whole)
		}
	}
}

// TestJournalFlippedBits: in what was synced, no flipped bit goes unseen, be there an incomplete line behind it or not.
func TestJournalFlippedBits(t *testing.T) {
	t.Parallel()
	records := []string{"a=1", "b=* J *", `{"c":3}`} // one bit turns * and J into a line end
	sound := journalBytes(records...)
	next := newChain()
	for line := range bytes.Lines(sound) {
		next.accept(bytes.TrimSuffix(line, []byte("\n")))
	}
	torn := next.appendLine(nil, []byte("d=*J*"))
	for _, tail := range [][]byte{nil, torn[:1], torn[:len(torn)/2], torn[:len(torn)-1]} {
		t.Run(fmt.Sprintf("%d bytes behind", len(tail)), func(t *testing.T) {
			t.Parallel()
			file := append(bytes.Clone(sound), tail...)
			for bit := range 8 * len(file) {
				flipped := bytes.Clone(file)
				flipped[bit/8] ^= 1 << (bit % 8)
				checkFlip(t, flipped, bit/8, sound, records)
			}
		})
	}
}

func checkFlip(t *testing.T, flipped []byte, at int, sound []byte, records []string) {
	d := newMemDisk("journal", flipped)
	l := newLedger()
	j, err := openJournalOn(d, "journal", l, slog.New(slog.DiscardHandler))
	var damage *damageError
	switch {
	case err == nil:
		j.close()
		if at < len(sound) || !slices.Equal(l.applied, records) || !bytes.Equal(d.content("journal"), sound) {
			t.Errorf("flip in byte %d unseen, %d records", at, len(l.applied))
		}
	case !errors.As(err, &damage):
		t.Errorf("flip in byte %d: %v", at, err)
	case at < len(sound) && damage.Offset != int64(bytes.LastIndexByte(sound[:at], '\n')+1):
		t.Errorf("flip in byte %d: damage at %d", at, damage.Offset)
	case !bytes.Equal(d.content("journal"), flipped):
		t.Errorf("flip in byte %d: file changed", at)
	}
}

func TestJournalRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "absent"), link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{dir, link, filepath.Join(dir, "absent", "journal")} {
		var damage *damageError
		if _, err := openJournal(path, newLedger(), journalLog(t)); err == nil || errors.As(err, &damage) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// TestJournalSyncsOncePerBatch: while a sync runs, all further records gather for the next one, and nobody is told before theirs.
func TestJournalSyncsOncePerBatch(t *testing.T) {
	t.Parallel()
	d := newMemDisk("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	before := d.count("sync")
	syncing, goOn := make(chan struct{}), make(chan struct{})
	d.setFault(func(op string) error {
		if op == "sync" {
			syncing <- struct{}{}
			<-goOn
		}
		return nil
	})
	first := l.put(j, "first=1")
	<-syncing

	const clients = 100
	commits := make([]*commit, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { commits[i] = l.put(j, fmt.Sprint(i, "=1")) })
	}
	wg.Wait()
	for _, c := range append(commits, first) {
		select {
		case <-c.done:
			t.Fatal("acknowledged before the sync")
		default:
		}
	}
	goOn <- struct{}{}
	mustCommit(t, first)
	<-syncing
	select {
	case <-commits[0].done:
		t.Fatal("acknowledged by the sync before its own")
	default:
	}
	goOn <- struct{}{}
	for _, c := range commits {
		mustCommit(t, c)
	}
	if n := d.count("sync") - before; n != 2 {
		t.Errorf("%d syncs for %d records, want 2", n, clients+1)
	}
}

func TestJournalCommitsForWhoHasLeft(t *testing.T) {
	t.Parallel()
	d := newMemDisk("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	syncing, goOn := make(chan struct{}), make(chan struct{})
	d.setFault(func(op string) error {
		if op == "sync" {
			close(syncing)
			<-goOn
		}
		return nil
	})
	c := l.put(j, "a=1")
	<-syncing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	close(goOn)
	if err := j.close(); err != nil {
		t.Error(err)
	}
	if err := c.wait(ctx); err != nil {
		t.Errorf("wait after the commit, with a context that has ended: %v", err)
	}
	d.setFault(nil)
	if _, again := mustOpen(t, d, "journal"); !slices.Equal(again.applied, []string{"a=1"}) {
		t.Errorf("records %q", again.applied)
	}
}

// TestJournalFailsForGood: after any fault of a write or sync, refused is refused until a restart, and acknowledged is kept.
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
	d := newMemDisk("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	mustCommit(t, l.put(j, "kept=1"))
	var once atomic.Bool
	d.setFault(func(o string) error {
		if o == op && once.CompareAndSwap(false, true) || o == "truncate" && cutFails {
			return cause
		}
		return nil
	})
	refused := l.put(j, "refused=1").wait(t.Context())
	writes := d.count("write")
	later := l.put(j, "later=1")
	select {
	case <-later.done:
	default:
		t.Error("append after the failure waits")
	}
	for _, err := range []error{refused, later.wait(t.Context()), j.failed(), j.close()} {
		if !errors.Is(err, errJournalFailed) || !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	}
	if d.count("write") != writes {
		t.Error("written after the failure")
	}

	d.setFault(nil)
	j, again := mustOpen(t, d, "journal")
	mustCommit(t, again.put(j, "new=1"))
	if again.applied[0] != "kept=1" || slices.Contains(again.applied, "later=1") {
		t.Errorf("records %q", again.applied)
	}
	if !cutFails && len(again.applied) != 1 {
		t.Errorf("refused records came back: %q", again.applied)
	}
}

// TestJournalFailureReachesWhoWaits: a record appended during a sync that fails is refused too.
func TestJournalFailureReachesWhoWaits(t *testing.T) {
	t.Parallel()
	d := newMemDisk("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	syncing, goOn := make(chan struct{}), make(chan struct{})
	d.setFault(func(op string) error {
		if op != "sync" {
			return nil
		}
		close(syncing)
		<-goOn
		return syscall.EIO
	})
	first := l.put(j, "a=1")
	<-syncing
	second := l.put(j, "b=1")
	close(goOn)
	for _, c := range []*commit{first, second} {
		if err := c.wait(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("error %v", err)
		}
	}
}

func TestJournalRefusesImpossibleRecords(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"a\nb", "\n", strings.Repeat("x", maxPayload+1)} {
		d := newMemDisk("journal", journalBytes("a=1"))
		j, _ := mustOpen(t, d, "journal")
		err := j.append([]byte(payload)).wait(t.Context())
		if !errors.Is(err, errJournalFailed) || j.failed() == nil {
			t.Errorf("error %v, failed %v", err, j.failed())
		}
	}
}

func TestJournalClose(t *testing.T) {
	t.Parallel()
	d := newMemDisk("journal", journalBytes())
	j, l := mustOpen(t, d, "journal")
	var commits []*commit
	for i := range 100 {
		commits = append(commits, l.put(j, fmt.Sprint(i, "=1")))
	}
	for range 2 {
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range commits {
		mustCommit(t, c)
	}
	if err := l.put(j, "late=1").wait(t.Context()); !errors.Is(err, errJournalFailed) || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if _, again := mustOpen(t, d, "journal"); len(again.applied) != 100 {
		t.Errorf("%d records", len(again.applied))
	}
}

func TestJournalIsRepairedDurably(t *testing.T) {
	t.Parallel()
	d := newMemDisk("journal", append(journalBytes("a=1"), "torn"...))
	mustOpen(t, d, "journal")
	d = d.afterPowerCut(survival{})
	if bytes.HasSuffix(d.content("journal"), []byte("torn")) {
		t.Error("the cut was not synced")
	}
}

func TestJournalFailsToOpen(t *testing.T) {
	t.Parallel()
	for _, file := range [][]byte{nil, append(journalBytes("a=1"), "torn"...)} {
		steps := newMemDisk("journal", file)
		mustOpen(t, steps, "journal")
		for n := range len(steps.ops) {
			d := newMemDisk("journal", file)
			d.setFault(failFrom(n, syscall.EIO))
			j, err := openJournalOn(d, "journal", newLedger(), journalLog(t))
			if err == nil {
				j.close()
				t.Errorf("opened though %q failed", steps.ops[n])
			}
			d = d.afterPowerCut(survival{names: true, bytes: 1})
			if _, l := mustOpen(t, d, "journal"); file != nil && !slices.Equal(l.applied, []string{"a=1"}) {
				t.Errorf("after a failed %q: records %q", steps.ops[n], l.applied)
			}
		}
	}
}

// failFrom is a fault that lets n operations pass and fails all others: the process has died, or the disk has.
func failFrom(n int, err error) func(string) error {
	var count atomic.Int64
	return func(string) error {
		if count.Add(1) > int64(n) {
			return err
		}
		return nil
	}
}

// FuzzJournal: whatever is accepted reads the same again, and is what was there but for an incomplete last line.
func FuzzJournal(f *testing.F) {
	sound := journalBytes("a=1", "b=with a space", "c=3")
	f.Add(sound)
	f.Add(sound[:len(sound)-1])
	f.Add(append(sound, "d=4 0123"...))
	f.Add(append(sound[:len(sound)-1:len(sound)-1], "\vd=4"...))
	f.Add([]byte("authhub-journal 2 "))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, file := range [][]byte{file, append(bytes.Clone(sound), file...)} {
			d := newMemDisk("journal", append([]byte{}, file...))
			l := newLedger()
			j, err := openJournalOn(d, "journal", l, slog.New(slog.DiscardHandler))
			after := d.content("journal")
			if err != nil {
				if !bytes.Equal(after, file) {
					t.Fatal("refused and changed")
				}
				continue
			}
			j.close()
			if !bytes.HasPrefix(file, after) || bytes.IndexByte(file[len(after):], '\n') >= 0 {
				t.Fatal("more than an incomplete last line was cut off")
			}
			_, again := mustOpen(t, d, "journal")
			if !reflect.DeepEqual(again.applied, l.applied) || !bytes.Equal(d.content("journal"), after) {
				t.Fatal("reads differently again")
			}
		}
	})
}

// BenchmarkJournalAppend: parallel clients on a real disk, each waiting for its commit.
func BenchmarkJournalAppend(b *testing.B) {
	j, err := openJournal(filepath.Join(b.TempDir(), "journal"), allLive{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer j.close()
	payload := bytes.Repeat([]byte("x"), 150)
	b.ReportAllocs()
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.append(payload).wait(b.Context()); err != nil {
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
		j, err := openJournal(path, allLive{}, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		j.close()
	}
}

// allLive is a state without a state.
type allLive struct{}

func (allLive) apply([]byte) error               { return nil }
func (allLive) liveRecords() int                 { return 1 << 40 }
func (allLive) snapshot(func()) iter.Seq[[]byte] { panic("a journal of live records was compacted") }
