package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

// mostlyDead is n records, of which only the last of each of ten keys lives.
func mostlyDead(n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprintf("key%d=%d", i%10, i))
	}
	return records
}

func TestCompactionKeepsWhatLives(t *testing.T) {
	t.Parallel()
	for _, windows := range []bool{false, true} {
		t.Run(fmt.Sprint("windows ", windows), func(t *testing.T) {
			t.Parallel()
			d := disktest.New("journal", journalBytes(mostlyDead(minCompaction-1)...))
			d.Windows = windows
			j, l := mustOpen(t, d, "journal")
			for i := range 20 { // the first of them makes the journal worth it, the others go into the new one
				mustCommit(t, l.put(j, fmt.Sprint("new", i, "=1")))
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			d = d.AfterPowerCut(disktest.Survival{})
			_, again := mustOpen(t, d, "journal")
			if !maps.Equal(again.live, l.live) || len(again.applied) != 30 {
				t.Errorf("%d records for %d that live, want 30 and %d", len(again.applied), len(again.live), len(l.live))
			}
			if len(d.Paths()) != 1 {
				t.Errorf("files left: %v", d.Paths())
			}
		})
	}
}

func TestCompactionIsWorthIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		file []byte
		add  int // dead records, one by one
		want int // compactions
	}{
		{"too small", journalBytes(mostlyDead(minCompaction - 2)...), 1, 0},
		{"just large enough", journalBytes(mostlyDead(minCompaction - 1)...), 1, 1},
		{"grown again, not enough", journalBytes(mostlyDead(minCompaction - 1)...), minCompaction - 10, 1},
		{"grown again", journalBytes(mostlyDead(minCompaction - 1)...), minCompaction - 9, 2},
		{"half dead", journalBytes(halfDead(1000)...), 1, 0},
		{"more than half dead", journalBytes(halfDead(1000)...), 2, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := disktest.New("journal", row.file)
			j, l := mustOpen(t, d, "journal")
			for range row.add {
				mustCommit(t, l.put(j, "key0=again"))
			}
			j.Close()
			if n := d.Count("rename"); n != row.want {
				t.Errorf("%d compactions, want %d", n, row.want)
			}
		})
	}
}

// halfDead is 1,000 records that live, after dead-1 that don't.
func halfDead(dead int) (records []string) {
	for range dead - 1 {
		records = append(records, "key0=0")
	}
	for i := range 1000 {
		records = append(records, fmt.Sprintf("key%d=1", i))
	}
	return records
}

// TestCompactionLeavesTheOldJournal: what goes wrong with the temporary file costs nothing, and isn't tried again
// with each record.
func TestCompactionLeavesTheOldJournal(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open folder", "create", "write", "sync"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			d := disktest.New("journal", journalBytes(mostlyDead(minCompaction)...))
			j, l := mustOpen(t, d, "journal")
			// The second write and sync are the compaction's. The fault lets through what follows, as do those of a
			// disk that is almost full.
			var mu sync.Mutex
			seen := 0
			atOnce, behind := make(chan *Commit, 1), make(chan *Commit, 1)
			d.SetFault(func(o string) error {
				mu.Lock()
				defer mu.Unlock()
				if o == "create" {
					atOnce <- l.put(j, "during=1") // is in the snapshot, which comes after
				}
				if o == op {
					seen++
				}
				if o == op && seen == map[string]int{"open folder": 1, "create": 1, "write": 2, "sync": 2}[op] {
					behind <- l.put(j, "behind=1") // comes after the snapshot, but for the first two
					return syscall.ENOSPC
				}
				return nil
			})
			mustCommit(t, l.put(j, "first=1"))
			for i := range 400 {
				mustCommit(t, l.put(j, fmt.Sprint("key0=", i)))
			}
			if op != "open folder" {
				mustCommit(t, <-atOnce)
			}
			mustCommit(t, <-behind)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if n := d.Count("open folder"); n != 2 { // one for the start, one for the compaction
				t.Errorf("%d tries to compact", n-1)
			}
			d.SetFault(nil)
			j, again := mustOpen(t, d.AfterPowerCut(disktest.Survival{}), "journal")
			if !maps.Equal(again.live, l.live) {
				t.Errorf("%d live records, want %d", len(again.live), len(l.live))
			}
			if len(d.Paths()) != 1 {
				t.Errorf("files left: %v", d.Paths())
			}
			again.put(j, "key0=x")
		})
	}
}

func TestCompactionIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", journalBytes(mostlyDead(minCompaction)...))
	j, l := mustOpen(t, d, "journal")
	first := true
	d.SetFault(func(op string) error {
		if op == "create" && first {
			first = false
			return syscall.ENOSPC
		}
		return nil
	})
	for i := range minCompaction/2 + 10 {
		mustCommit(t, l.put(j, fmt.Sprint("key0=", i)))
	}
	j.Close()
	if n := d.Count("rename"); n != 1 {
		t.Errorf("%d compactions, want 1", n)
	}
}

// TestCompactionNeverLoops: not even for a state that takes all of its records for dead.
func TestCompactionNeverLoops(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", journalBytes())
	l := newLedger()
	j, err := Open(d, "journal", allDead{l}, journalLog(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		mustCommit(t, l.put(j, fmt.Sprint("key", i, "=1")))
	}
	j.Close()
	if n := d.Count("rename"); n > 3 {
		t.Errorf("%d compactions", n)
	}
}

type allDead struct{ *ledger }

func (allDead) LiveRecords() int { return 0 }

// TestCompactionFailsForGood: when it is unknown which journal has the name, neither is written to, and both hold
// what was acknowledged.
func TestCompactionFailsForGood(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"rename", "sync folder", "open"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			d := disktest.New("journal", journalBytes(mostlyDead(minCompaction)...))
			d.Windows = op == "open"
			j, l := mustOpen(t, d, "journal")
			atOnce := make(chan *Commit, 1)
			d.SetFault(func(o string) error {
				if o == "create" {
					atOnce <- l.put(j, "during=1")
				}
				if o == op {
					return syscall.EIO
				}
				return nil
			})
			mustCommit(t, l.put(j, "kept=1"))
			for _, err := range []error{(<-atOnce).Wait(t.Context()), j.Close(), j.Failed()} {
				if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
					t.Errorf("error %v", err)
				}
			}
			d.SetFault(nil)
			for _, names := range []bool{true, false} {
				_, again := mustOpen(t, d.AfterPowerCut(disktest.Survival{Names: names}), "journal")
				delete(again.live, "during") // refused, so either is right
				if len(again.live) != 11 || again.live["kept"] == "" || again.live["key9"] != "key9=999" {
					t.Errorf("live: %v", again.live)
				}
			}
		})
	}
}

// TestFailureAfterCompaction: what the failure takes back is taken back from the new journal.
func TestFailureAfterCompaction(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", journalBytes(mostlyDead(minCompaction)...))
	j, l := mustOpen(t, d, "journal")
	mustCommit(t, l.put(j, "a=1"))
	mustCommit(t, l.put(j, "b=1")) // after the compaction
	d.SetFault(disktest.FailOnly(0, syscall.ENOSPC))
	if err := l.put(j, "c=1").Wait(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	j.Close()
	_, again := mustOpen(t, d, "journal")
	delete(l.live, "c")
	if !maps.Equal(again.live, l.live) {
		t.Errorf("live: %v", again.live)
	}
}

func TestCompactionRefusesImpossibleRecords(t *testing.T) {
	t.Parallel()
	file := journalBytes(mostlyDead(minCompaction)...)
	d := disktest.New("journal", file)
	j, l := mustOpen(t, d, "journal")
	l.mu.Lock()
	l.live["key0"] = "key0=two\nlines"
	l.mu.Unlock()
	mustCommit(t, l.put(j, "a=1"))
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.HasPrefix(d.Content("journal"), file) {
		t.Error("a journal that can't be read was put in place")
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"journal.tmp-ABC", "journal.tmp-DEF", "secret.tmp-ABC", "journal.old"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, disk.OS{}, filepath.Join(dir, "journal"))
	names, err := disk.OS{}.List(dir)
	if want := []string{"journal", "journal.old", "secret.tmp-ABC"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
}

// TestCompactionUnderLoad: clients write all the while, on a real disk, and each finds its last acknowledged record
// again.
func TestCompactionUnderLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, l := mustOpen(t, disk.OS{}, path)
	var wg sync.WaitGroup
	const clients, rounds = 64, 200
	for client := range clients {
		wg.Go(func() {
			for i := range rounds {
				if err := l.put(j, fmt.Sprintf("client%d=%d", client, i)).Wait(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, again := mustOpen(t, disk.OS{}, path)
	if !maps.Equal(again.live, l.live) || len(again.live) != clients {
		t.Errorf("live records %d, want %d", len(again.live), clients)
	}
	if len(again.applied) >= clients*rounds/2 {
		t.Errorf("%d records in the file, never compacted", len(again.applied))
	}
}

// TestCrashAnywhere lets the process die at each operation of a life with a compaction, in all that a power cut may
// leave, and after a further short life between the two. What is left must be the state after some number of records
// that includes all acknowledged.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	base := mostlyDead(minCompaction - 5)
	whole := disktest.New("journal", journalBytes(base...))
	liveShortly(t, whole)
	if whole.Count("rename") != 1 {
		t.Fatal("this life has no compaction")
	}
	for n := range len(whole.Steps()) + 1 {
		for _, windows := range []bool{false, true} {
			d := disktest.New("journal", journalBytes(base...))
			d.Windows = windows
			d.SetFault(disktest.FailFrom(n, errors.New("crashed")))
			put, acked := liveShortly(t, d)
			for _, s := range disktest.Survivals() {
				checkSurvivor(t, fmt.Sprintf("crash at %d, %+v", n, s), d.AfterPowerCut(s), append(base, put...), len(base)+acked)
				again := d.AfterKill()
				more, ackedMore := liveAgain(t, again, append(base, put...))
				checkSurvivor(t, fmt.Sprintf("kill at %d, then %+v", n, s), again.AfterPowerCut(s), more, ackedMore)
			}
		}
	}
}

// liveShortly opens the journal and puts ten records, one after the other. It returns them, and how many were
// acknowledged.
func liveShortly(t *testing.T, d *disktest.Disk) (put []string, acked int) {
	l := newLedger()
	j, err := Open(d, "journal", l, journalLog(t))
	if err != nil {
		return nil, 0
	}
	defer j.Close()
	for i := range 10 {
		record := fmt.Sprintf("key%d=new%d", i%3, i)
		put = append(put, record)
		if l.put(j, record).Wait(t.Context()) == nil {
			acked = len(put)
		}
	}
	return put, acked
}

// liveAgain opens the journal after a kill. All that it reads back, and a record more, then counts as acknowledged.
func liveAgain(t *testing.T, d *disktest.Disk, records []string) (more []string, acked int) {
	j, l := mustOpen(t, d, "journal")
	n := stateAfter(records, l.live)
	more = append(records[:n:n], "again=1")
	mustCommit(t, l.put(j, "again=1"))
	j.Close()
	return more, len(more)
}

// stateAfter returns the largest number of records after which the state is live, or -1.
func stateAfter(records []string, live map[string]string) int {
	l := newLedger()
	n := -1
	for i, r := range records {
		l.set(r)
		if maps.Equal(l.live, live) {
			n = i + 1
		}
	}
	return n
}

func checkSurvivor(t *testing.T, when string, d *disktest.Disk, records []string, acked int) {
	t.Helper()
	_, l := mustOpen(t, d, "journal")
	if n := stateAfter(records, l.live); n < acked {
		t.Errorf("%s: the state is that after %d records, %d acknowledged", when, n, acked)
	}
	for _, path := range d.Paths() {
		if path != "journal" {
			t.Errorf("%s: %s is left", when, path)
		}
	}
}
