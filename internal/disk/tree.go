// tree.go owns what publishing a set of files asks of the operating system, so that tests can put a failing disk in
// its place (package disktest).

package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Tree is a folder and all that is in it. Paths are relative to the folder, with slashes, and no path leads out of it.
// Errors: fs.ErrNotExist, fs.ErrExist and those of the operating system.
type Tree interface {
	// Create makes a new file of mode 0600. It returns fs.ErrExist if something has that name.
	Create(path string) (File, error)
	Open(path string) (ReadFile, error)
	// Stat returns what has the name itself, also if it is a symbolic link.
	Stat(path string) (fs.FileInfo, error)
	SetModified(path string, t time.Time) error
	MakeFolder(path string) error
	// Rename is atomic. It replaces a file that has the name to, but no folder.
	Rename(from, to string) error
	Remove(path string) error
	// RemoveAll returns nil if there is nothing of that name.
	RemoveAll(path string) error
	// List returns the names in the folder itself.
	List() ([]string, error)
	// SyncFolder makes the names in a folder durable.
	SyncFolder(path string) error
	Close() error
}

// ReadFile is a file opened for reading, as *os.File implements it.
type ReadFile interface {
	io.ReadSeekCloser
	Stat() (fs.FileInfo, error)
}

// OpenTree opens the folder at path. If the folder is a symbolic link, it must not lead out of the folder that it is
// in.
func OpenTree(path string) (Tree, error) {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	root, err := parent.OpenRoot(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	return osTree{root}, nil
}

// osTree is a Tree of the operating system.
type osTree struct{ root *os.Root }

func (t osTree) Create(path string) (File, error) {
	return osFile(t.root.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (t osTree) Open(path string) (ReadFile, error) {
	f, err := t.root.Open(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (t osTree) Stat(path string) (fs.FileInfo, error) { return t.root.Lstat(path) }

func (t osTree) SetModified(path string, at time.Time) error { return t.root.Chtimes(path, at, at) }

func (t osTree) MakeFolder(path string) error { return t.root.Mkdir(path, 0o700) }

func (t osTree) Rename(from, to string) error { return t.root.Rename(from, to) }

func (t osTree) Remove(path string) error { return t.root.Remove(path) }

func (t osTree) RemoveAll(path string) error { return t.root.RemoveAll(path) }

func (t osTree) List() ([]string, error) {
	entries, err := fs.ReadDir(t.root.FS(), ".")
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// SyncFolder does nothing on Windows (OS.OpenFolder says why).
func (t osTree) SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := t.root.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (t osTree) Close() error { return t.root.Close() }
