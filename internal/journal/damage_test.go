package journal

// damage_test.go: what a start makes of a journal that is not what was written.

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

// damage is what is done to a journal of three records, and what becomes of it.
type damage struct {
	name    string
	file    []byte
	refused int // offset of the damage, or repaired
	records int // after the repair
}

const repaired = -1

func TestJournalDamages(t *testing.T) {
	t.Parallel()
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			d.check(t)
		})
	}
}

// check starts on the damaged journal.
func (d *damage) check(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, d.file, 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	j, err := Open(disk.OS{}, path, l, journalLog(t))
	if err == nil {
		mustCommit(t, l.put(j, "z=26")) // a repaired journal can be gone on with
		j.Close()
	}
	after, _ := os.ReadFile(path)
	var found *DamageError
	switch {
	case d.refused == repaired && err != nil:
		t.Fatalf("refused: %v", err)
	case d.refused == repaired:
		_, again := mustOpen(t, disk.OS{}, path)
		if want := append([]string{"a=1", "b=2", "c=3"}[:d.records], "z=26"); !slices.Equal(again.applied, want) {
			t.Errorf("records %q, want %q", again.applied, want)
		}
	case !errors.As(err, &found):
		t.Fatalf("error %v, want a DamageError", err)
	case found.Path != path || found.Offset != int64(d.refused) || found.Cause == "":
		t.Errorf("damage %q, want it at %d", found, d.refused)
	case !bytes.Equal(after, d.file):
		t.Errorf("a refused journal was changed")
	}
}

func damages() []damage {
	sound := journalBytes("a=1", "b=2", "c=3")
	lines := bytes.SplitAfter(sound, []byte("\n"))[:4]
	header, a, b, c := lines[0], lines[1], lines[2], lines[3]
	other := bytes.SplitAfter(journalBytes("a=1", "b=2", "c=3"), []byte("\n"))
	offA := len(header)
	offB, offC, end := offA+len(a), offA+len(a)+len(b), len(sound)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	text := func(s string) []byte { return []byte(s) }
	chop := func(b []byte) []byte { return b[:len(b)-1] }
	unfit := journalBytes("a=1", "refuse")
	return []damage{
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
		{"record that doesn't apply", unfit, bytes.Index(unfit, text("refuse")), 0},
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
	}
}

// TestDamageSaysTheCause: each kind of damage in its own words.
func TestDamageSaysTheCause(t *testing.T) {
	t.Parallel()
	sound := string(journalBytes("a=1"))
	for _, row := range []struct{ file, cause string }{
		{"", "empty"},
		{"{}\n", "not the header"},
		{strings.Replace(sound, "journal 1", "journal 2", 1), "version"},
		{strings.Replace(sound, "journal 1 ", "journal 1 x", 1), "checksum of the header"},
		{sound[:40], "header has no line end"},
		{strings.Replace(sound, "a=1", "a=2", 1), "checksum does not match"},
		{sound[:len(sound)-1] + "x", "line end"},
		{sound + strings.Repeat("x", maxLine), "1 MiB"},
		{string(journalBytes("refuse")), "no such record"},
	} {
		d := disktest.New("journal", append([]byte{}, row.file...))
		_, err := Open(d, "journal", newLedger(), journalLog(t))
		if err == nil || !strings.Contains(err.Error(), row.cause) {
			t.Errorf("error %v, want it to say %q", err, row.cause)
		}
	}
}

func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	records := []string{"a=1", "b=with a space", "c=3"}
	sound := journalBytes(records...)
	header := bytes.IndexByte(sound, '\n') + 1
	for size := range len(sound) {
		d := disktest.New("journal", sound[:size])
		l := newLedger()
		j, err := Open(d, "journal", l, journalLog(t))
		if size < header {
			if err == nil || !bytes.Equal(d.Content("journal"), sound[:size]) {
				t.Fatalf("cut to %d bytes, in the header: error %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		j.Close()
		whole := bytes.LastIndexByte(sound[:size], '\n') + 1
		if n := bytes.Count(sound[header:whole], []byte("\n")); !slices.Equal(l.applied, records[:n]) {
			t.Errorf("cut to %d bytes: records %q", size, l.applied)
		}
		if !bytes.Equal(d.Content("journal"), sound[:whole]) {
			t.Errorf("cut to %d bytes: the repair is not the journal up to %d", size, whole)
		}
	}
}

// TestJournalFlippedBits: in what was synced, no flipped bit goes unseen, be there an incomplete line behind it or
// not.
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
	d := disktest.New("journal", flipped)
	l := newLedger()
	j, err := Open(d, "journal", l, slog.New(slog.DiscardHandler))
	var damage *DamageError
	switch {
	case err == nil:
		j.Close()
		if at < len(sound) || !slices.Equal(l.applied, records) || !bytes.Equal(d.Content("journal"), sound) {
			t.Errorf("flip in byte %d unseen, %d records", at, len(l.applied))
		}
	case !errors.As(err, &damage):
		t.Errorf("flip in byte %d: %v", at, err)
	case at < len(sound) && damage.Offset != int64(bytes.LastIndexByte(sound[:at], '\n')+1):
		t.Errorf("flip in byte %d: damage at %d", at, damage.Offset)
	case !bytes.Equal(d.Content("journal"), flipped):
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
		var damage *DamageError
		if _, err := Open(disk.OS{}, path, newLedger(), journalLog(t)); err == nil || errors.As(err, &damage) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestJournalIsRepairedDurably(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", append(journalBytes("a=1"), "torn"...))
	mustOpen(t, d, "journal")
	d = d.AfterPowerCut(disktest.Survival{})
	if bytes.HasSuffix(d.Content("journal"), []byte("torn")) {
		t.Error("the cut was not synced")
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
			d := disktest.New("journal", append([]byte{}, file...))
			l := newLedger()
			j, err := Open(d, "journal", l, slog.New(slog.DiscardHandler))
			after := d.Content("journal")
			if err != nil {
				if !bytes.Equal(after, file) {
					t.Fatal("refused and changed")
				}
				continue
			}
			j.Close()
			if !bytes.HasPrefix(file, after) || bytes.IndexByte(file[len(after):], '\n') >= 0 {
				t.Fatal("more than an incomplete last line was cut off")
			}
			_, again := mustOpen(t, d, "journal")
			if !slices.Equal(again.applied, l.applied) || !bytes.Equal(d.Content("journal"), after) {
				t.Fatal("reads differently again")
			}
		}
	})
}
