package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestReplaceFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "[secret]")
	for _, content := range []string{"old", "new", ""} {
		if err := replaceFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("content %q, error %v, want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, error %v", info, err)
	}
	if names, _ := (osDisk{}).list(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("files left: %v", names)
	}
}

func TestReplaceFileNeedsItsFolder(t *testing.T) {
	t.Parallel()
	err := replaceFile(filepath.Join(t.TempDir(), "absent", "file"), nil, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestReplaceFileInOrder: synced before it has its name, and its name synced before it is said to be done.
func TestReplaceFileInOrder(t *testing.T) {
	t.Parallel()
	d := newMemDisk("file", []byte("old"))
	d.windows = true
	if err := replaceFileOn(d, "file", []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if want := []string{"open folder", "create", "write", "sync", "rename", "sync folder"}; !slices.Equal(d.ops, want) {
		t.Errorf("operations %q, want %q", d.ops, want)
	}
}

// TestReplaceFileIsAllOrNothing: with each of its operations failing, with all that follow it or alone, and a power cut after it.
func TestReplaceFileIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		for _, s := range []survival{{false, 0}, {false, 1}, {true, 0}, {true, 1}, {true, 2}} {
			d := newMemDisk("file", []byte("old"))
			d.setFault(failFrom(n, syscall.EIO))
			if err := replaceFileOn(d, "file", []byte("new"), 0o600); !errors.Is(err, syscall.EIO) {
				t.Errorf("failing from %d: error %v", n, err)
			}
			if got := string(d.afterPowerCut(s).content("file")); got != "old" && got != "new" || n < 5 && got != "old" {
				t.Errorf("failing from %d, %+v: content %q", n, s, got)
			}
		}
		d := newMemDisk("file", []byte("old"))
		d.setFault(failOnly(n, syscall.ENOSPC))
		if err := replaceFileOn(d, "file", []byte("new"), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("failing %d: error %v", n, err)
		}
		if len(d.names) != 1 {
			t.Errorf("failing %d: the temporary file is left", n)
		}
	}
}

// failOnly is a fault of the one operation that comes after n others.
func failOnly(n int, err error) func(string) error {
	var count atomic.Int64
	return func(string) error {
		if count.Add(1) == int64(n)+1 {
			return err
		}
		return nil
	}
}
