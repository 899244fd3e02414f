package disk_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"authhub/internal/disk"
)

func TestLockIsTakenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unlock, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = disk.Lock(dir)
	if want := fmt.Sprintf("%s is held by process %d", filepath.Join(dir, "lock"), os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	unlock, err = disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestLockNeedsItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "absent")
	if _, err := disk.Lock(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}

// TestLockEndsWithItsProcess: a killed process leaves its id, and no lock.
func TestLockEndsWithItsProcess(t *testing.T) {
	t.Parallel()
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
	unlock, err := disk.Lock(dir)
	if err != nil {
		t.Fatalf("the dead process holds the lock: %v", err)
	}
	unlock()
}

// TestLockHolder is the other process of TestLockEndsWithItsProcess: it holds the lock until it is killed or its
// input ends.
func TestLockHolder(t *testing.T) {
	dir := os.Getenv("AUTHHUB_TEST_LOCK")
	if dir == "" {
		t.Skip("runs as another test's child")
	}
	unlock, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock() // which keeps the lock from the garbage collector, too
	fmt.Println("locked")
	bufio.NewReader(os.Stdin).ReadByte()
}
