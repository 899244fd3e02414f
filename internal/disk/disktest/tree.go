// tree.go shows the disk as a folder with folders in it: what publishing a set of files works on.

package disktest

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"authhub/internal/disk"
)

// Tree returns the disk as one folder. Paths are those of Content.
func (d *Disk) Tree() disk.Tree { return tree{d} }

type tree struct{ disk *Disk }

func (t tree) Create(name string) (disk.File, error) { return t.disk.Create(name, 0o600) }

func (t tree) Open(name string) (disk.ReadFile, error) {
	f, err := t.disk.Open(name)
	if err != nil {
		return nil, err
	}
	return readHandle{f.(*handle), path.Base(name)}, nil
}

func (t tree) Stat(name string) (fs.FileInfo, error) {
	if err := t.disk.step("stat"); err != nil {
		return nil, err
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	n := t.disk.names[name]
	if n == nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return n.info(path.Base(name)), nil
}

func (t tree) SetModified(name string, at time.Time) error {
	if err := t.disk.step("set modified"); err != nil {
		return err
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	n := t.disk.names[name]
	if n == nil {
		return fs.ErrNotExist
	}
	n.modified = at
	return nil
}

func (t tree) MakeFolder(name string) error {
	if err := t.disk.step("make folder"); err != nil {
		return err
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if t.disk.names[name] != nil {
		return fs.ErrExist
	}
	t.disk.names[name] = &node{folder: true}
	return nil
}

// Rename moves a folder with all that is in it.
func (t tree) Rename(from, to string) error {
	d := t.disk
	d.mu.Lock()
	moved, replaced := d.names[from], d.names[to]
	d.mu.Unlock()
	if err := d.Rename(from, to); err != nil || !moved.folder {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if replaced != nil {
		panic("a folder is renamed over " + to)
	}
	for name, n := range d.names {
		if rest, inside := strings.CutPrefix(name, from+"/"); inside {
			delete(d.names, name)
			d.names[to+"/"+rest] = n
		}
	}
	return nil
}

func (t tree) Remove(name string) error { return t.disk.Remove(name) }

func (t tree) RemoveAll(name string) error {
	if err := t.disk.step("remove all"); err != nil {
		return err
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	for each := range t.disk.names {
		if each == name || strings.HasPrefix(each, name+"/") {
			delete(t.disk.names, each)
		}
	}
	return nil
}

func (t tree) List() (names []string, err error) {
	if err := t.disk.step("list"); err != nil {
		return nil, err
	}
	for _, name := range t.disk.Paths() {
		if !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names, nil
}

func (t tree) SyncFolder(string) error { return folderHandle{t.disk}.Sync() }

func (t tree) Close() error { return nil }

// readHandle is a handle of a file opened for reading.
type readHandle struct {
	*handle
	name string
}

func (h readHandle) Stat() (fs.FileInfo, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.inode.info(h.name), nil
}

func (n *node) info(name string) fs.FileInfo {
	return info{name: name, size: int64(len(n.data)), modified: n.modified, folder: n.folder}
}

type info struct {
	name     string
	size     int64
	modified time.Time
	folder   bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return i.folder }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
