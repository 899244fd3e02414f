// tree.go shows the disk as a folder with folders in it: what publishing a set of files works on.

package disktest

import (
	"io/fs"
	"maps"
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
	moveFolder(d.names, from, to)
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

// SyncFolder makes durable the names in this one folder.
func (t tree) SyncFolder(dir string) error {
	if err := t.disk.step("sync folder"); err != nil {
		return err
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	names := map[string]*node{}
	for name, n := range t.disk.names {
		if path.Dir(name) == dir {
			names[path.Base(name)] = n
		}
	}
	if dir == "." {
		t.disk.durable = names
	} else {
		t.disk.names[dir].durableNames = names
	}
	return nil
}

// moveFolder moves what is in one folder to another.
func moveFolder(names map[string]*node, from, to string) {
	for name, n := range names {
		if rest, inside := strings.CutPrefix(name, from+"/"); inside {
			delete(names, name)
			names[to+"/"+rest] = n
		}
	}
}

// withFolders returns the durable names of a disk with those in its folders.
func withFolders(durable map[string]*node) map[string]*node {
	names := maps.Clone(durable)
	for name, n := range durable {
		for base, inside := range n.durableNames {
			names[name+"/"+base] = inside
		}
	}
	return names
}

// settleFolders makes all that is in the disk's folders durable there.
func (d *Disk) settleFolders() {
	for name, n := range d.names {
		if folder := d.names[path.Dir(name)]; folder != nil && folder.folder {
			if folder.durableNames == nil {
				folder.durableNames = map[string]*node{}
			}
			folder.durableNames[path.Base(name)] = n
			delete(d.durable, name)
		}
	}
}

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
