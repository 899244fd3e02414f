package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

// noon is the date of every set: the clock stands still.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// saying returns a writer of files that all say the same word. The words have one length.
func saying(word string) Writer {
	return func(f File, w io.Writer) error {
		_, err := io.WriteString(w, word+" "+f.Name())
		return err
	}
}

// openOn returns the folder on a disk in memory as a start finds it.
func openOn(d *disktest.Disk) *Folder {
	f := newFolder(func() (disk.Tree, string, error) { return d.Tree(), "", nil })
	f.start()
	return f
}

// word returns what all three files say, or "" if they are unavailable.
func word(t *testing.T, f *Folder) string {
	t.Helper()
	said := map[string]bool{}
	entries := f.List()
	for file := range File(Count) {
		body := ""
		if c, _, err := f.Read(file); err == nil {
			body = strings.TrimSuffix(string(c.Body), " "+file.Name())
		}
		if (body != "") != entries[file].Available {
			t.Errorf("%s holds %q and is listed as %v", file.Name(), body, entries[file])
		}
		said[body] = true
	}
	if len(said) != 1 {
		t.Fatalf("the files are of several sets: %v", said)
	}
	for word := range said {
		return word
	}
	return ""
}

// published returns a disk with one set on it.
func published(t *testing.T) (*disktest.Disk, *Folder) {
	t.Helper()
	d := disktest.New("", nil)
	f := openOn(d)
	if err := errors.Join(f.Err(), f.Publish(saying("old"), noon)); err != nil {
		t.Fatal(err)
	}
	return d, f
}

// TestEveryOperationOfAPublishCanFail: whatever fails, once or from then on, requests get the old set, or the new one
// if the publish has succeeded. The next publish works once the cause is gone, and so does a start.
func TestEveryOperationOfAPublishCanFail(t *testing.T) {
	t.Parallel()
	faults := map[string]func(int, error) func(string) error{"once": disktest.FailOnly, "from then on": disktest.FailFrom}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := 0
			for n := 0; ; n++ {
				d, f := published(t)
				before := len(d.Steps())
				d.SetFault(fault(n, syscall.EIO))
				err := f.Publish(saying("new"), noon)
				asked := len(d.Steps()) - before
				d.SetFault(nil)
				failed := fmt.Sprintf("operation %d, %s", n, d.Steps()[len(d.Steps())-1])
				if got := word(t, f); err != nil && got != "old" || err == nil && got != "new" {
					t.Errorf("%s: %v, and the set is %q", failed, err, got)
				}
				if err != nil {
					failures++
				}
				if got := word(t, openOn(d.AfterKill())); got != "old" && got != "new" || err == nil && got != "new" {
					t.Errorf("%s: %v, and a start finds %q", failed, err, got)
				}
				if err := f.Publish(saying("3rd"), noon); err != nil || word(t, f) != "3rd" {
					t.Errorf("%s: the next publish: %v, %q", failed, err, word(t, f))
				}
				if left := d.Paths(); len(left) != Count {
					t.Errorf("%s: left behind %v", failed, left)
				}
				if n >= asked {
					break
				}
			}
			if failures < 20 {
				t.Errorf("only %d operations failed a publish", failures)
			}
		})
	}
}

// TestAPowerCutLeavesAWholeSet cuts the power after each operation of a publish. A publish that has succeeded survives.
func TestAPowerCutLeavesAWholeSet(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		d, f := published(t)
		before := len(d.Steps())
		d.SetFault(disktest.FailFrom(n, syscall.EIO))
		err := f.Publish(saying("new"), noon)
		asked := len(d.Steps()) - before
		for _, s := range disktest.Survivals() {
			got := word(t, openOn(d.AfterPowerCut(s)))
			if got != "old" && got != "new" || err == nil && got != "new" {
				t.Errorf("operation %d, %+v: %v, and a start finds %q", n, s, err, got)
			}
		}
		if n >= asked {
			break
		}
	}
}

// TestRequestsDuringAPublish get a whole set at every moment.
func TestRequestsDuringAPublish(t *testing.T) {
	t.Parallel()
	d, f := published(t)
	var looking atomic.Bool
	var seen []string
	d.SetFault(func(string) error {
		if looking.Load() || !f.mu.TryRLock() { // a request would wait
			return nil
		}
		f.mu.RUnlock()
		looking.Store(true)
		seen = append(seen, word(t, f))
		looking.Store(false)
		return nil
	})
	if err := f.Publish(saying("new"), noon); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); !strings.HasPrefix(got, "old old") || !strings.HasSuffix(got, "new new") || strings.Contains(got, "new old") {
		t.Errorf("requests got %s", got)
	}
}

// TestAFolderThatCanNotBeMended makes the files unavailable until the cause is gone and a publish has mended it.
func TestAFolderThatCanNotBeMended(t *testing.T) {
	t.Parallel()
	d, f := published(t)
	renames := 0
	d.SetFault(func(op string) error {
		if op == "rename" {
			renames++
		}
		if op == "rename" && renames > Count+2 { // the first of the new files is in place, the second can't be moved
			return syscall.EIO
		}
		return nil
	})
	if err := f.Publish(saying("new"), noon); !errors.Is(err, syscall.EIO) || word(t, f) != "old" {
		t.Fatalf("%v, %q", err, word(t, f))
	}
	if err := f.Publish(saying("3rd"), noon); !errors.Is(err, ErrBroken) || word(t, f) != "old" {
		t.Errorf("%v, %q", err, word(t, f))
	}

	next := d.AfterKill()
	next.SetFault(func(op string) error {
		if op == "rename" {
			return syscall.EIO
		}
		return nil
	})
	f = openOn(next)
	if _, _, err := f.Read(Impact); !errors.Is(f.Err(), ErrBroken) || !errors.Is(err, ErrBroken) || word(t, f) != "" {
		t.Errorf("%v, %v, %q", f.Err(), err, word(t, f))
	}
	next.SetFault(nil)
	if err := f.Publish(saying("3rd"), noon); err != nil || word(t, f) != "3rd" || f.Err() != nil {
		t.Errorf("%v, %q, %v", err, word(t, f), f.Err())
	}
}

// TestClearRemovesAllOrNothing as a publish replaces all or nothing.
func TestClearRemovesAllOrNothing(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		d, f := published(t)
		before := len(d.Steps())
		d.SetFault(disktest.FailFrom(n, syscall.EIO))
		err := f.Clear()
		asked := len(d.Steps()) - before
		d.SetFault(nil)
		if got := word(t, f); err == nil && got != "" || err != nil && got != "" && got != "old" {
			t.Errorf("operation %d: %v, %q", n, err, got)
		}
		if got := word(t, openOn(d.AfterKill())); got != "" && got != "old" || err == nil && got != "" {
			t.Errorf("operation %d: %v, and a start finds %q", n, err, got)
		}
		if n >= asked {
			break
		}
	}
}

// TestAFullDisk is told as such, in one line, and leaves the old set.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	d, f := published(t)
	d.SetFault(func(op string) error {
		if op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	_, keepErr := f.Keep(strings.NewReader("readings"), "1")
	for _, err := range []error{f.Publish(saying("new"), noon), keepErr} {
		if !errors.Is(err, disk.ErrFull) || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	}
	if left := d.Paths(); word(t, f) != "old" || len(left) != Count {
		t.Errorf("%q; left behind %v", word(t, f), left)
	}
}

// TestAWriterThatFails leaves the old set.
func TestAWriterThatFails(t *testing.T) {
	t.Parallel()
	_, f := published(t)
	broken := errors.New("no more")
	for at := range File(Count) {
		err := f.Publish(func(file File, w io.Writer) error {
			w.Write(bytes.Repeat([]byte("x"), 100_000))
			if file == at {
				return broken
			}
			return nil
		}, noon)
		if !errors.Is(err, broken) || word(t, f) != "old" {
			t.Errorf("%s: %v, %q", at.Name(), err, word(t, f))
		}
	}
}
