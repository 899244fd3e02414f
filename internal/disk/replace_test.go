package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
)

func TestAReplacedFileHasTheNewContentAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "[secret]")
	for _, content := range []string{"old", "new", ""} {
		if err := disk.ReplaceFile(disk.OS{}, path, []byte(content), 0o600); err != nil {
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
	if names, _ := (disk.OS{}).List(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("files left: %v", names)
	}
}

func TestReplaceFileNeedsItsFolder(t *testing.T) {
	t.Parallel()
	err := disk.ReplaceFile(disk.OS{}, filepath.Join(t.TempDir(), "absent", "file"), nil, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestReplaceFileInOrder: synced before it has its name, and its name synced before it is said to be done.
func TestReplaceFileInOrder(t *testing.T) {
	t.Parallel()
	d := disktest.New("file", []byte("old"))
	d.Windows = true
	if err := disk.ReplaceFile(d, "file", []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if want := []string{"open folder", "create", "write", "sync", "rename", "sync folder"}; !slices.Equal(d.Steps(), want) {
		t.Errorf("operations %q, want %q", d.Steps(), want)
	}
}

// TestReplaceFileIsAllOrNothing: with each of its operations failing, with all that follow it or alone, and a power
// cut after it.
func TestReplaceFileIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		for _, s := range disktest.Survivals() {
			d := disktest.New("file", []byte("old"))
			d.SetFault(disktest.FailFrom(n, syscall.EIO))
			if err := disk.ReplaceFile(d, "file", []byte("new"), 0o600); !errors.Is(err, syscall.EIO) {
				t.Errorf("failing from %d: error %v", n, err)
			}
			if got := string(d.AfterPowerCut(s).Content("file")); got != "old" && got != "new" || n < 5 && got != "old" {
				t.Errorf("failing from %d, %+v: content %q", n, s, got)
			}
		}
		d := disktest.New("file", []byte("old"))
		d.SetFault(disktest.FailOnly(n, syscall.ENOSPC))
		if err := disk.ReplaceFile(d, "file", []byte("new"), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("failing %d: error %v", n, err)
		}
		if len(d.Paths()) != 1 {
			t.Errorf("failing %d: the temporary file is left", n)
		}
	}
}
