package results

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/disk"
)

// body returns a file's bytes, in memory or not, and its ETag.
func body(t *testing.T, f *Folder, file File) (string, string) {
	t.Helper()
	c, open, err := f.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c.Reader(open))
	if open != nil {
		err = errors.Join(err, open.Close())
	}
	if err != nil || c.Length[0] == "" {
		t.Fatal(err, c.Length)
	}
	return string(all), c.ETag[0]
}

// TestContentsOfAnEarlierSetAreLetGo, also if the new files have the same size and date, in memory or not.
func TestContentsOfAnEarlierSetAreLetGo(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]int64{"in memory": usualPlain, "on disk": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Open(t.TempDir(), nil)
			defer f.Close()
			f.keepPlain = keep
			tags := map[string]bool{}
			for _, word := range []string{"one", "two", "six", "one"} {
				if err := f.Publish(saying(word), noon); err != nil {
					t.Fatal(err)
				}
				if c := f.kept[Impact].content.Load(); c == nil || c.Body != nil {
					t.Errorf("of an earlier set %v is remembered", c)
				}
				got, tag := body(t, f, Impact)
				if got != word+" "+Impact.Name() {
					t.Errorf("after %q was published the file says %q", word, got)
				}
				if again, same := body(t, f, Impact); again != got || same != tag {
					t.Errorf("%q with %s, then %q with %s", got, tag, again, same)
				}
				tags[tag] = true
			}
			if len(tags) != 3 {
				t.Errorf("three different contents have %d ETags", len(tags))
			}
		})
	}
}

// TestAFileEditedByHand is served as it is now: of another date and the same size, and where the system tells of it, of
// the same date and size, too.
func TestAFileEditedByHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := Open(dir, nil)
	defer f.Close()
	if err := f.Publish(saying("old"), noon); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Impact.Name())
	edit := func(word string, date time.Time) {
		t.Helper()
		before, _ := body(t, f, Impact)
		if err := errors.Join(os.WriteFile(path, []byte(word+before[len(word):]), 0o600), os.Chtimes(path, date, date)); err != nil {
			t.Fatal(err)
		}
		if got, _ := body(t, f, Impact); got[:len(word)] != word {
			t.Errorf("the file says %q, served is %q", word, got)
		}
	}
	edit("two", noon.Add(time.Second))
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		waitForTick(t, dir)
		edit("six", noon.Add(time.Second))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Read(Impact); !errors.Is(err, fs.ErrNotExist) || f.List()[Impact].Available {
		t.Errorf("a removed file: %v", err)
	}
}

// waitForTick waits until the file system gives another change time.
func waitForTick(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "tick")
	defer os.Remove(path)
	first := int64(0)
	for range 1_000_000 {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = changeTime(info)
		}
		if changeTime(info) != first {
			return
		}
	}
}

// TestGzipIsSentWhileItIsMade: the form of a large content begins before its end has been read, all who ask get the
// same bytes, and it is made once.
func TestGzipIsSentWhileItIsMade(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	g := newGzip()
	go g.compress(in, gzip.BestSpeed)
	plain := make([]byte, 4<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range plain {
		plain[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	half := len(plain) / 2
	if _, err := out.Write(plain[:half]); err != nil {
		t.Fatal(err)
	}
	if part, err := g.after(0); len(part) == 0 || err != nil || g.Length() != nil {
		t.Errorf("half of the content is %d bytes, %v, Length %v", len(part), err, g.Length())
	}

	var forms [3]bytes.Buffer
	var all sync.WaitGroup
	for i := range forms {
		all.Go(func() { g.WriteTo(&forms[i]) })
	}
	out.Write(plain[half:])
	out.Close()
	all.Wait()
	z, err := gzip.NewReader(&forms[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d of %d bytes, %v", len(got), len(plain), err)
	}
	if forms[1].Len() == 0 || !bytes.Equal(forms[1].Bytes(), forms[2].Bytes()) {
		t.Error("two readers get different bytes")
	}
}

// TestGzipOfAFileOnDisk is complete, whoever has read the file before, and made once.
func TestGzipOfAFileOnDisk(t *testing.T) {
	t.Parallel()
	f := Open(t.TempDir(), nil)
	defer f.Close()
	f.keepPlain = 0
	if err := f.Publish(saying("old"), noon); err != nil {
		t.Fatal(err)
	}
	body(t, f, Alerts)
	var made *Gzip
	for range 2 {
		c, open, err := f.Read(Alerts)
		if err != nil {
			t.Fatal(err)
		}
		g := c.Gzip(open)
		if made != nil && g != made {
			t.Error("it is made again")
		}
		made = g
		var form bytes.Buffer
		if _, err := g.WriteTo(&form); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(&form)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != "old "+Alerts.Name() {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestGzipThatFails says so, and is made anew for the next who asks.
func TestGzipThatFails(t *testing.T) {
	t.Parallel()
	_, f := published(t)
	c, _, err := f.Read(Alerts)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	c.gzip = newGzip()
	c.gzip.compress(io.MultiReader(bytes.NewReader(c.Body), errReader{broken}), gzip.BestSpeed)
	if _, err := c.gzip.WriteTo(io.Discard); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := c.Gzip(nil).WriteTo(io.Discard); err != nil {
		t.Errorf("%v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestATemporaryFolder comes with the first file and goes with Close. After that nothing is written.
func TestATemporaryFolder(t *testing.T) {
	t.Parallel()
	f := Temporary()
	if f.Path() != "" || f.Clear() != nil || f.Path() != "" {
		t.Errorf("there is a folder before it is needed: %s", f.Path())
	}
	if err := f.Publish(saying("old"), noon); err != nil || word(t, f) != "old" {
		t.Fatal(err)
	}
	path := f.Path()
	kept, err := f.Keep(strings.NewReader("readings"), "0")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Drop()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", path, err)
	}
	_, keepErr := f.Keep(bytes.NewReader(nil), "1")
	_, openErr := kept.Open()
	for _, err := range []error{f.Publish(saying("new"), noon), keepErr, openErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// TestNothingIsWrittenWhileAnotherMayHoldThePlace: neither a folder nor a file appears, and the old set stays.
func TestNothingIsWrittenWhileAnotherMayHoldThePlace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "phase2")
	var lost error
	f := Open(dir, func() error { return lost })
	defer f.Close()
	write := func(content string) error {
		return f.Publish(func(_ File, w io.Writer) error {
			if content == "lost meanwhile" {
				lost = disk.ErrGone
			}
			_, err := io.WriteString(w, content)
			return err
		}, time.Now())
	}
	if err := write("old"); err != nil {
		t.Fatal(err)
	}
	if err := write("lost meanwhile"); !errors.Is(err, disk.ErrGone) {
		t.Errorf("Publish: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, Barrier.Name())); err != nil || string(got) != "old" {
		t.Errorf("the file holds %q (%v)", got, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := write("new"); !errors.Is(err, disk.ErrGone) {
		t.Errorf("Publish: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made again")
	}
}
