package disk_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"authhub/internal/disk"
)

func TestLockIsTakenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = disk.Lock(dir)
	if want := fmt.Sprintf("%s is held by process %d", filepath.Join(dir, "lock"), os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
	l, err = disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
}

func TestLockNeedsItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "absent")
	if _, err := disk.Lock(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}

// TestLockEndsWithItsProcess: a killed process leaves its id, and no lock.
//
// It has the process to itself: a child that is being started holds, for a moment, the locks of tests beside it.
func TestLockEndsWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHolder$")
	cmd.Env = append(os.Environ(), "AUTHHUB_TEST_LOCK="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q", line)
	}
	_, err = disk.Lock(dir)
	if want := fmt.Sprintf("is held by process %d", cmd.Process.Pid); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}

	cmd.Process.Kill()
	cmd.Wait()
	l, err := disk.Lock(dir)
	if err != nil {
		t.Fatalf("the dead process holds the lock: %v", err)
	}
	l.Unlock()
}

// TestLockHolder is the other process of TestLockEndsWithItsProcess: it holds the lock until it is killed or its
// input ends.
func TestLockHolder(t *testing.T) {
	dir := os.Getenv("AUTHHUB_TEST_LOCK")
	if dir == "" {
		t.Skip("runs as another test's child")
	}
	l, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	fmt.Println("locked")
	bufio.NewReader(os.Stdin).ReadByte()
}

// TestLockIsOfTheFolder: whoever deletes or moves DIR/lock can't start a second hub.
func TestLockIsOfTheFolder(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete a lock that is open")
	}
	dir := t.TempDir()
	l, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	moved := dir + "-moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Lock(moved); err == nil || !strings.Contains(err.Error(), "is held by another process") {
		t.Errorf("error %v", err)
	}
}

// TestLockSparesOtherFiles: what has the name of the lock, and what a link of that name points to, keeps its content.
func TestLockSparesOtherFiles(t *testing.T) {
	t.Parallel()
	const content = "somebody's thesis\n"
	for name, plant := range map[string]func(thesis, lock string) error{"symbolic link": os.Symlink, "hard link": os.Link, "the file": os.Rename} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			thesis, lock := filepath.Join(t.TempDir(), "thesis"), filepath.Join(dir, "lock")
			if err := os.WriteFile(thesis, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plant(thesis, lock); err != nil {
				t.Skip(err) // not every user of Windows may link
			}
			if _, err := disk.Lock(dir); err == nil || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("error %v", err)
			}
			if got, err := os.ReadFile(lock); err != nil || string(got) != content {
				t.Errorf("the file holds %q (%v)", got, err)
			}
		})
	}
}

// TestAFileThatWasReplacedIsNoticed: a file that was replaced or removed, and one whose lock was, is noticed.
func TestAFileThatWasReplacedIsNoticed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete a lock that is open")
	}
	for name, harm := range map[string]func(dir string) error{
		"nothing":       func(string) error { return nil },
		"file removed":  func(dir string) error { return os.Remove(filepath.Join(dir, "file")) },
		"file replaced": func(dir string) error { return disk.ReplaceFile(disk.OS{}, filepath.Join(dir, "file"), nil, 0o600) },
		"lock removed":  func(dir string) error { return os.Remove(filepath.Join(dir, "lock")) },
		"lock replaced": func(dir string) error { return disk.ReplaceFile(disk.OS{}, filepath.Join(dir, "lock"), nil, 0o600) },
		"DIR moved":     func(dir string) error { return os.Rename(dir, dir+"-moved") },
		"DIR removed":   os.RemoveAll,
		"a link to it": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "file"), dir+"-file"), os.Symlink(dir+"-file", filepath.Join(dir, "file")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, err := disk.Lock(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Unlock()
			path := filepath.Join(dir, "file")
			f, err := l.Create(path, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			if err := l.Holds(path, f); errors.Is(err, disk.ErrGone) != (name != "nothing") {
				t.Errorf("error %v", err)
			}
		})
	}
}
