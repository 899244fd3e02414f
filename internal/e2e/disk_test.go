// The folder of a hub under hard conditions: a full disk, a clock that was ahead, a folder that somebody removes.

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// TestFullDisk fills a small disk for real: uploads and runs are 507 and leave the old files and no others, the
// journal fails as it should, and with room again nothing that was acknowledged is missing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk, users := t.TempDir(), writeUsers(t, 0)
	require(t, mountSmall(disk, 512<<10) == nil, "right to mount a small disk")
	defer unmount(disk)
	dir := filepath.Join(disk, "state")
	h := start(t, "-dir", dir, "-users", users)
	defer h.process.kill() // before the disk goes
	h.mayFail = true
	h.upload(fourReadings).Want(200)
	before := h.get(listingPath + "/impact").Want(200)
	untouched := func() {
		t.Helper()
		if after := h.get(listingPath + "/impact").Want(200); string(after.Body) != string(before.Body) {
			t.Error("another file")
		}
		if names := testkit.List(t, filepath.Join(dir, "phase2")); len(names) != len(fileNames) {
			t.Errorf("left behind: %v", names)
		}
	}
	demo := h.login("demo")

	h.upload(fourReadings+strings.Repeat("x\n", 1<<20)).Want(507, "disk_full") // no room for the body
	untouched()
	h.refresh(demo.Refresh).Want(200) // the room is there again

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	h.post(runPath, nil).Want(507, "disk_full") // no room for the files
	untouched()
	full := false
	for range 500 {
		if a := h.post(loginPath, right("demo")); a.Status != 200 {
			if detail := a.Want(507, "disk_full").Text("detail"); strings.ContainsAny(detail, "\r\n") {
				t.Errorf("detail %q", detail)
			}
			full = true
			break
		}
	}
	if !full {
		t.Fatal("the journal never ran out of room")
	}
	h.post(loginPath, right("demo")).Want(503, "store_unavailable")
	h.get("/healthz").Want(503)
	h.me(demo.Access).Want(200)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	h.post(loginPath, right("demo")).Want(503, "store_unavailable")
	h.post(runPath, nil).Want(200) // runs need no restart
	h.process.stop(t)

	h = start(t, "-dir", dir, "-users", users)
	defer h.process.kill()
	h.me(demo.Access).Want(200)
	h.refresh(demo.Refresh).Want(401, "token_reused")
	h.login("demo")
	h.get("/healthz").Want(200)
}

// fill writes until nothing more goes in.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for part := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(part)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestClockSteppedBack: what a restart finds does not depend on which expired sessions were forgotten on the way,
// even where the clock was ahead for a while.
func TestClockSteppedBack(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0), "-lab", "-refresh-ttl", "1h", "-access-ttl", "1h"}
	h := start(t, flags...)
	var pairs []pair
	for range 100 {
		pairs = append(pairs, h.login("demo"))
	}
	h.advance(24 * time.Hour)
	h.login("admin") // which lets a few of the others be forgotten
	h.advance(-24 * time.Hour)
	var kept []pair
	for _, p := range pairs {
		if a := h.refresh(p.Refresh); a.Status == 200 {
			kept = append(kept, a.Pair())
		}
	}
	h.process.kill()

	h = start(t, flags...)
	for _, p := range kept {
		h.me(p.Access).Want(200)
	}
}

// TestWhatHasEndedStaysEnded: a session that was forgotten as expired while the clock was ahead, and was then logged
// out or revoked by reuse, is not alive again when the clock is back.
func TestWhatHasEndedStaysEnded(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0), "-lab"}
	h := start(t, flags...)
	var left []pair
	for range 50 {
		left = append(left, h.login("demo"))
	}
	h.advance(8 * 24 * time.Hour)
	for range 60 {
		h.login("admin") // each lets a few of the expired ones be forgotten
	}
	for _, p := range left {
		h.logout(p.Access).Want(204)
	}
	h.process.kill()

	h = start(t, flags...) // whose clock is right again
	for _, p := range left {
		h.me(p.Access).Want(401, "token_revoked")
		h.refresh(p.Refresh).Want(401, "token_revoked")
	}
}

// TestFolderTakenAway: a hub whose folder, journal or lock is gone, cut or another's acknowledges nothing more, says
// so in /healthz, and goes on reading.
func TestFolderTakenAway(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows neither moves nor deletes a folder with open files")
	}
	in := func(name string, harm func(path string) error) func(string) error {
		return func(dir string) error { return harm(filepath.Join(dir, name)) }
	}
	emptied := func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) }
	copied := func(path string) error {
		content, err := os.ReadFile(path)
		return errors.Join(err, os.Remove(path), os.WriteFile(path, content, 0o600))
	}
	for name, harm := range map[string]func(dir string) error{
		"DIR removed": os.RemoveAll, "DIR moved": func(dir string) error { return os.Rename(dir, dir+"-moved") },
		"DIR replaced": func(dir string) error { return errors.Join(os.Rename(dir, dir+"-moved"), os.Mkdir(dir, 0o700)) },
		"lock removed": in("lock", os.Remove), "lock replaced": in("lock", copied),
		"journal removed": in("journal", os.Remove), "journal replaced": in("journal", copied), "journal emptied": in("journal", emptied),
		"journal truncated": in("journal", func(path string) error { return os.Truncate(path, 100) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			h := start(t, "-dir", dir, "-users", writeUsers(t, 0))
			h.mayFail = true
			demo := h.login("demo")
			h.get("/healthz").Want(200)
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			if len(name)%2 == 0 { // noticed by asking, or by writing
				h.get("/healthz").Want(503, "store_unavailable")
			}
			h.post(loginPath, right("demo")).Want(503, "store_unavailable")
			if !strings.HasPrefix(name, "journal") { // runs do not need that file
				h.post(runPath, nil).Want(503, "store_unavailable")
				h.upload(fourReadings).Want(503, "store_unavailable")
			}
			h.get("/healthz").Want(503, "store_unavailable")
			h.logout(demo.Access).Want(503, "store_unavailable")
			h.me(demo.Access).Want(200)
		})
	}
}

// TestAFolderThatCannotBeOneSaysWhatToDo: the start fails, and names the flags that help.
func TestAFolderThatCannotBeOneSaysWhatToDo(t *testing.T) {
	t.Parallel()
	file := testkit.WriteFile(t, "file", "no folder")
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		status, _, said := run(t, "-addr", "127.0.0.1:0", "-dir", dir)
		if status != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "another folder with -dir") || !strings.Contains(said, "-ephemeral") {
			t.Errorf("exit status %d, %q", status, said)
		}
	}
}

// TestOneHubAFolder: as long as one hub runs on a folder no other one starts there, whatever was done to the lock.
func TestOneHubAFolder(t *testing.T) {
	t.Parallel()
	dir, users := t.TempDir(), writeUsers(t, 0)
	h := start(t, "-dir", dir, "-users", users)
	h.mayFail = true
	for range 2 {
		status, _, said := run(t, "-addr", "127.0.0.1:0", "-dir", dir, "-users", users)
		if status != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, dir) {
			t.Errorf("exit status %d, %q", status, said)
		}
		os.Remove(filepath.Join(dir, "lock")) // what holds the data is locked, not only a file beside it
	}
	h.process.kill()
	start(t, "-dir", dir, "-users", users).login("demo")
}
