package journal

import (
	"errors"
	"fmt"
	"maps"
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
