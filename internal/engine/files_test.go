// What hubs share of files and runs, and what becomes of it when a hub is late, stops for a while or dies.

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/engine"
	"authhub/internal/engine/enginetest"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/phase2"
	"authhub/internal/results"
	"authhub/internal/runs"
)

// openFiles opens the files of one more hub.
func openFiles(t *testing.T, address, dir string) *engine.Files {
	t.Helper()
	s := openAt(t, address)
	f, err := s.OpenFiles(t.Context(), dir, func(r *runs.Run) []byte { return fmt.Appendf(nil, `{"id":%q}`, r.ID) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// write returns what writes three files that say text.
func write(text string) results.Writer {
	return func(file results.File, w io.Writer) error {
		_, err := io.WriteString(w, text+file.Name())
		return err
	}
}

// begin is a run that has its turn.
func begin(t *testing.T, f *engine.Files, id string) (*runs.Run, context.Context) {
	t.Helper()
	r := &runs.Run{ID: id, Parameters: phase2.Parameters{}}
	ctx, err := f.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return r, ctx
}

// wantFiles fails unless f serves the files that say text; "" stands for none.
func wantFiles(t *testing.T, f *engine.Files, text string) {
	t.Helper()
	folder, err := f.Folder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := folder.Read(results.Impact)
	if text == "" && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil || string(c.Body) != text+results.Impact.Name() {
		t.Fatalf("got %+v, %v; want %s", c, err, text)
	}
}

func TestPublishedSetIsSeenByAll(t *testing.T) {
	t.Parallel()
	address, dir := etcdtest.New(t, 1).Address(), t.TempDir()
	a, b := openFiles(t, address, dir), openFiles(t, address, dir)
	wantFiles(t, a, "")
	for i, f := range []*engine.Files{a, b, a} {
		text := fmt.Sprint("set ", i, " ")
		r, _ := begin(t, f, text)
		if err := f.Publish(write(text), now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		f.End(r)
		wantFiles(t, a, text)
		wantFiles(t, b, text)
		if latest, err := b.Latest(t.Context()); err != nil || latest.ID != text || latest.Running || !latest.Published {
			t.Errorf("%+v, %v", latest, err)
		}
	}
}

// TestFailedPublishChangesNothing: a writer that fails leaves the old set and no trace.
func TestFailedPublishChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFiles(t, etcdtest.New(t, 1).Address(), dir)
	r, _ := begin(t, f, "1")
	if err := f.Publish(write("old "), now); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := f.Publish(func(results.File, io.Writer) error { return broken }, now); !errors.Is(err, broken) {
		t.Error(err)
	}
	f.End(r)
	wantFiles(t, f, "old ")
	if sets := setsIn(t, dir); len(sets) != 1 {
		t.Errorf("sets: %v", sets)
	}
}

func setsIn(t *testing.T, dir string) (sets []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "sets"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			sets = append(sets, entry.Name())
		}
	}
	return sets
}

// TestHubThatWasStoppedCannotOverwrite: its lease has ended, another hub has published, and then it goes on.
func TestHubThatWasStoppedCannotOverwrite(t *testing.T) {
	t.Parallel()
	cluster, dir := etcdtest.New(t, 1), t.TempDir()
	late, prompt := openFiles(t, cluster.Address(), dir), openFiles(t, cluster.Address(), dir)
	r, ctx := begin(t, late, "late")

	cluster.EndLeases()
	r2, _ := begin(t, prompt, "prompt")
	if err := prompt.Publish(write("prompt "), now); err != nil {
		t.Fatal(err)
	}
	prompt.End(r2)

	if err := late.Publish(write("late "), now); !errors.Is(err, engine.ErrOtherRun) {
		t.Errorf("the late hub publishes: %v", err)
	}
	<-ctx.Done() // it hears of it when it next renews
	if !errors.Is(context.Cause(ctx), engine.ErrOtherRun) {
		t.Error(context.Cause(ctx))
	}
	late.End(r)
	wantFiles(t, late, "prompt ")
	if latest, err := late.Latest(t.Context()); err != nil || latest.ID != "prompt" {
		t.Errorf("%+v, %v", latest, err)
	}
}

// TestLostAnswerToPublishing: the repetition finds that it has published.
func TestLostAnswerToPublishing(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	f := openFiles(t, cluster.Address(), t.TempDir())
	for lost := range 5 {
		left := lost
		cluster.Fail(func(string) etcdtest.Fault {
			left--
			return etcdtest.Fault{Lost: left == -1}
		})
		text := fmt.Sprint("set ", lost, " ")
		r, _ := begin(t, f, text)
		if err := f.Publish(write(text), now); err != nil {
			t.Fatal(err)
		}
		f.End(r)
		cluster.Fail(nil)
		wantFiles(t, f, text)
	}
}

// TestOldSetsAreRemovedTenMinutesLater by whoever publishes next.
func TestOldSetsAreRemovedTenMinutesLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFiles(t, etcdtest.New(t, 1).Address(), dir)
	r, _ := begin(t, f, "1")
	for i, row := range []struct {
		minute time.Duration
		sets   int
	}{{0, 1}, {1, 2}, {2, 3}, {11, 4}, {22, 2}, {23, 3}} {
		if err := f.Publish(write(fmt.Sprint(i)), now.Add(row.minute*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if sets := setsIn(t, dir); len(sets) != row.sets {
			t.Errorf("minute %d: %d sets, want %d", row.minute, len(sets), row.sets)
		}
		wantFiles(t, f, fmt.Sprint(i))
	}
	f.End(r)
}

// TestHubsWithoutACommonFolder: the second does not pretend, and does not publish what the first can't see.
func TestHubsWithoutACommonFolder(t *testing.T) {
	t.Parallel()
	address, dir := etcdtest.New(t, 1).Address(), t.TempDir()
	a, b := openFiles(t, address, dir), openFiles(t, address, t.TempDir())
	if _, err := b.Folder(t.Context()); !errors.Is(err, engine.ErrNotShared) {
		t.Error(err)
	}
	if _, err := b.Begin(t.Context(), &runs.Run{}); !errors.Is(err, engine.ErrNotShared) {
		t.Error(err)
	}
	r, _ := begin(t, a, "1")
	if err := a.Publish(write("a "), now); err != nil {
		t.Fatal(err)
	}
	a.End(r)

	fresh := openFiles(t, address, dir) // has not opened the set yet
	path := filepath.Join(dir, "sets", setsIn(t, dir)[0], results.Impact.Name())
	if err := os.WriteFile(path, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Folder(t.Context()); !errors.Is(err, engine.ErrNotShared) || !strings.Contains(err.Error(), results.Impact.Name()) {
		t.Errorf("a file with another digest: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, fresh, "") // the disk is the truth
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := openFiles(t, address, dir).Folder(t.Context()); !errors.Is(err, engine.ErrNotShared) {
		t.Errorf("a set that is not there: %v", err)
	}
}

// TestFolderThatGoesAway: a hub whose file system is gone does not publish what no other hub can see, and needs no
// restart when it is back.
func TestFolderThatGoesAway(t *testing.T) {
	t.Parallel()
	address, dir := etcdtest.New(t, 1).Address(), t.TempDir()
	f := openFiles(t, address, dir)
	r, _ := begin(t, f, "1")
	if err := f.Publish(write("old "), now); err != nil {
		t.Fatal(err)
	}
	sets, away := filepath.Join(dir, "sets"), filepath.Join(dir, "away")
	if err := errors.Join(os.Rename(sets, away), os.Mkdir(sets, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(write("lost "), now); !errors.Is(err, engine.ErrNotShared) {
		t.Errorf("published nowhere: %v", err)
	}
	if _, err := f.Folder(t.Context()); !errors.Is(err, engine.ErrNotShared) {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(sets), os.Rename(away, sets)); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, f, "old ")
	f.End(r)
}

// TestFilesWithoutEngine: nobody knows which set is the published one.
func TestFilesWithoutEngine(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	f := openFiles(t, cluster.Address(), t.TempDir())
	cluster.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // limit would end it as well
	defer cancel()
	if _, err := f.Folder(ctx); !errors.Is(err, account.ErrUnavailable) {
		t.Error(err)
	}
}

// TestRunOfAHubThatDied: another hub can run after ten seconds, and until then the record is not a run for ever.
func TestRunOfAHubThatDied(t *testing.T) {
	t.Parallel()
	cluster, dir := enginetest.Start(t, 1), t.TempDir()
	fifo := longReadings(t)
	dying := startQuickHub(t, "-store", cluster.Address(), "-dir", dir, "-readings", fifo)
	other := startQuickHub(t, "-store", cluster.Address(), "-dir", dir)
	if a := ask("POST", dying.base+runPath+"?interval=2h", "", "", "Prefer", "respond-async"); a.Status != 202 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var record struct{ ID, Status string }
	for record.Status != "running" {
		a := ask("GET", other.base+runPath, "", "")
		decode(a.Body, &record)
		<-time.After(20 * time.Millisecond)
	}
	started := record.ID
	dying.kill()

	killed := time.Now()
	for record.Status == "running" {
		decode(ask("GET", other.base+runPath, "", "").Body, &record)
		<-time.After(100 * time.Millisecond)
	}
	if record.ID != started || record.Status != "failed" || time.Since(killed) > patience {
		t.Errorf("after %v the record of %s says %+v", time.Since(killed), started, record)
	}
	ask("POST", other.base+runPath, "", "").want(t, 200, "")
	if took := time.Since(killed); took > patience {
		t.Errorf("another hub can run after %v", took)
	}
}
