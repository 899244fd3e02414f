package main

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
)

// memDisk is a disk in memory that knows what a power cut would leave: contents as last synced, names as their folder was last
// synced. A fault may hold any operation up or make it fail.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*memInode
	durable map[string]*memInode
	ops     []string              // done or failed, in order
	fault   func(op string) error // asked before each operation; a write that it fails is half done
	windows bool                  // open files can't be renamed or replaced
}

type memInode struct {
	data, durable []byte
	handles       int
}

// newMemDisk returns a disk with one durable file, or with none if data is nil.
func newMemDisk(path string, data []byte) *memDisk {
	d := &memDisk{names: map[string]*memInode{}}
	if data != nil {
		d.names[path] = &memInode{data: bytes.Clone(data), durable: bytes.Clone(data)}
	}
	d.durable = maps.Clone(d.names)
	return d
}

// survival says what of the unsynced is still there after a power cut.
type survival struct {
	names bool // the folder as it was seen, else as last synced
	bytes int  // of what was written behind the synced: 0 nothing, 1 half, 2 all
}

// afterPowerCut returns the disk that the next start finds.
func (d *memDisk) afterPowerCut(s survival) *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := d.durable
	if s.names {
		names = d.names
	}
	next := newMemDisk("", nil)
	for path, inode := range names {
		data := inode.data
		if grown := len(inode.data) - len(inode.durable); s.bytes == 0 || s.bytes == 1 && grown < 0 {
			data = inode.durable
		} else if s.bytes == 1 {
			data = inode.data[:len(inode.durable)+grown/2]
		}
		next.names[path] = &memInode{data: bytes.Clone(data), durable: bytes.Clone(data)}
	}
	next.durable = maps.Clone(next.names)
	return next
}

// afterKill returns the disk that the next process finds: all that was written is seen, and is as durable as it was.
func (d *memDisk) afterKill() *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newMemDisk("", nil)
	copies := map[*memInode]*memInode{}
	copied := func(names map[string]*memInode) map[string]*memInode {
		names = maps.Clone(names)
		for path, inode := range names {
			if copies[inode] == nil {
				copies[inode] = &memInode{data: bytes.Clone(inode.data), durable: bytes.Clone(inode.durable)}
			}
			names[path] = copies[inode]
		}
		return names
	}
	next.names, next.durable = copied(d.names), copied(d.durable)
	return next
}

// content returns what a reader of path sees.
func (d *memDisk) content(path string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.names[path].data)
}

// count returns how often an operation was asked for.
func (d *memDisk) count(op string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.ops {
		if o == op {
			n++
		}
	}
	return n
}

// step notes an operation and asks for its fault, without the lock, since a fault may wait.
func (d *memDisk) step(op string) error {
	d.mu.Lock()
	d.ops = append(d.ops, op)
	fault := d.fault
	d.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op)
}

func (d *memDisk) setFault(f func(op string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

func (d *memDisk) open(path string) (file, error) {
	if err := d.step("open"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	inode, ok := d.names[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	inode.handles++
	return &memFile{disk: d, inode: inode}, nil
}

func (d *memDisk) create(path string, mode fs.FileMode) (file, error) {
	if err := d.step("create"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[path] != nil {
		return nil, fs.ErrExist
	}
	inode := &memInode{handles: 1}
	d.names[path] = inode
	return &memFile{disk: d, inode: inode}, nil
}

func (d *memDisk) rename(from, to string) error {
	if err := d.step("rename"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	if old := d.names[to]; d.windows && (d.names[from].handles > 0 || old != nil && old.handles > 0) {
		return fs.ErrPermission
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *memDisk) remove(path string) error {
	if err := d.step("remove"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[path] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, path)
	return nil
}

func (d *memDisk) list(dir string) (names []string, err error) {
	if err := d.step("list"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.names {
		names = append(names, filepath.Base(path))
	}
	return names, nil
}

func (d *memDisk) openFolder(string) (folder, error) {
	if err := d.step("open folder"); err != nil {
		return nil, err
	}
	return memFolder{d}, nil
}

func (d *memDisk) renamesOpen() bool { return !d.windows }

type memFolder struct{ disk *memDisk }

func (f memFolder) Close() error { return nil }

func (f memFolder) Sync() error {
	if err := f.disk.step("sync folder"); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.durable = maps.Clone(f.disk.names)
	return nil
}

// memFile is an open file of a memDisk. It is written at its end only.
type memFile struct {
	disk   *memDisk
	inode  *memInode
	at     int
	closed bool
}

func (f *memFile) Read(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.at >= len(f.inode.data) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[f.at:])
	f.at += n
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	err := f.disk.step("write")
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	switch {
	case f.closed:
		return 0, fs.ErrClosed
	case f.at != len(f.inode.data):
		panic("a write that is not at the end of the file")
	case err != nil:
		p = p[:len(p)/2]
	}
	f.inode.data = append(f.inode.data, p...)
	f.at += len(p)
	return len(p), err
}

func (f *memFile) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		panic("a seek that is not from the start")
	}
	f.at = int(offset)
	return offset, nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.disk.step("truncate"); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.inode.data = f.inode.data[:size:size]
	return nil
}

func (f *memFile) Sync() error {
	if err := f.disk.step("sync"); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.inode.durable = bytes.Clone(f.inode.data)
	return nil
}

func (f *memFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.inode.handles--
	return nil
}
