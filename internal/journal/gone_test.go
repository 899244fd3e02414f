package journal

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
	mustNotice(t, harms, func(err error) bool { return errors.Is(err, disk.ErrGone) })
}

// TestJournalNoticesThatItWasChanged: a record is not acknowledged behind a hole or behind what somebody else wrote.
func TestJournalNoticesThatItWasChanged(t *testing.T) {
	t.Parallel()
	resized := func(by int) func(*disktest.Disk) error {
		return func(d *disktest.Disk) error {
			size := int64(len(d.Content("journal")))
			f, err := d.Open("journal")
			if err != nil {
				return err
			}
			if by <= 0 {
				return f.Truncate(max(0, size+int64(by)))
			}
			f.Seek(size, io.SeekStart)
			_, err = f.Write(make([]byte, by))
			return err
		}
	}
	harms := map[string]func(*disktest.Disk) error{"emptied": resized(-1000), "cut": resized(-5), "grown": resized(5)}
	mustNotice(t, harms, func(err error) bool { return strings.Contains(err.Error(), "instead of") })
}

// mustNotice fails unless a journal that somebody has harmed takes no more records, for the reason that is wanted, and
// leaves what it finds under its name as it is.
func mustNotice(t *testing.T, harms map[string]func(*disktest.Disk) error, wanted func(error) bool) {
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
				left := named(d)
				if byCheck {
					if err := j.Check(t.Context()); !errors.Is(err, ErrFailed) || !wanted(err) {
						t.Errorf("Check: %v", err)
					}
				}
				if err := l.put(j, "key=other").Wait(t.Context()); !errors.Is(err, ErrFailed) || !wanted(err) {
					t.Errorf("a record after it: %v", err)
				}
				if err := j.Check(t.Context()); !errors.Is(err, ErrFailed) {
					t.Errorf("Check afterwards: %v", err)
				}
				if now := named(d); now != left {
					t.Errorf("the file was %q and is %q", left, now)
				}
			})
		}
	}
}

// named returns what the file with the journal's name holds; "" if there is none.
func named(d *disktest.Disk) string {
	if !slices.Contains(d.Paths(), "journal") {
		return ""
	}
	return string(d.Content("journal"))
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
