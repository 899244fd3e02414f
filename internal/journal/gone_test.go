package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

// TestJournalNoticesThatItIsGone: records that the next start would not find are not acknowledged, and Check says so
// without a record.
func TestJournalNoticesThatItIsGone(t *testing.T) {
	t.Parallel()
	harms := map[string]func(*disktest.Disk) error{
		"removed": func(d *disktest.Disk) error { return d.Remove("journal") },
		"moved":   func(d *disktest.Disk) error { return d.Rename("journal", "elsewhere") },
		"replaced": func(d *disktest.Disk) error {
			return disk.ReplaceFile(d, "journal", journalBytes(), 0o600)
		},
	}
	for name, harm := range harms {
		for _, byCheck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/check=%v", name, byCheck), func(t *testing.T) {
				t.Parallel()
				d := disktest.New("journal", nil)
				j, l := mustOpen(t, d, "journal")
				mustCommit(t, l.put(j, "key=value"))
				if err := j.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := harm(d); err != nil {
					t.Fatal(err)
				}
				if byCheck {
					if err := j.Check(t.Context()); !errors.Is(err, ErrFailed) || !errors.Is(err, disk.ErrGone) {
						t.Errorf("Check: %v", err)
					}
				}
				if err := l.put(j, "key=other").Wait(t.Context()); !errors.Is(err, ErrFailed) || !errors.Is(err, disk.ErrGone) {
					t.Errorf("a record after it: %v", err)
				}
				if err := j.Check(t.Context()); !errors.Is(err, ErrFailed) {
					t.Errorf("Check afterwards: %v", err)
				}
			})
		}
	}
}

// TestJournalNoticesThatItWasChanged: a record is not acknowledged behind a hole or behind what somebody else wrote, and
// the file stays as it was found.
func TestJournalNoticesThatItWasChanged(t *testing.T) {
	t.Parallel()
	harms := map[string]func(disk.File, int64) error{
		"emptied": func(f disk.File, _ int64) error { return f.Truncate(0) },
		"cut":     func(f disk.File, size int64) error { return f.Truncate(size - 5) },
		"grown": func(f disk.File, size int64) error {
			f.Seek(size, io.SeekStart)
			_, err := f.Write([]byte("more"))
			return err
		},
	}
	for name, harm := range harms {
		for _, byCheck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/check=%v", name, byCheck), func(t *testing.T) {
				t.Parallel()
				d := disktest.New("journal", nil)
				j, l := mustOpen(t, d, "journal")
				mustCommit(t, l.put(j, "key=value"))
				other, err := d.Open("journal")
				if err == nil {
					err = harm(other, int64(len(d.Content("journal"))))
				}
				if err != nil {
					t.Fatal(err)
				}
				left := d.Content("journal")
				if byCheck {
					if err := j.Check(t.Context()); !errors.Is(err, ErrFailed) {
						t.Errorf("Check: %v", err)
					}
				}
				if err := l.put(j, "key=other").Wait(t.Context()); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "instead of") {
					t.Errorf("a record after it: %v", err)
				}
				if now := d.Content("journal"); !bytes.Equal(now, left) {
					t.Errorf("the file was %q and is %q", left, now)
				}
			})
		}
	}
}

// TestCompactionLeavesAnothersJournal: a hub whose folder is another hub's now writes nothing there.
func TestCompactionLeavesAnothersJournal(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", nil)
	j, l := mustOpen(t, d, "journal")
	for _, record := range mostlyDead(minCompaction - 1) {
		mustCommit(t, l.put(j, record))
	}
	if err := disk.ReplaceFile(d, "journal", journalBytes("another=hub"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.put(j, "key=value").Wait(t.Context())
	}
	j.Close()
	_, again := mustOpen(t, d, "journal")
	if !maps.Equal(again.live, map[string]string{"another": "another=hub"}) {
		t.Errorf("the other hub's journal says %v", again.live)
	}
}
