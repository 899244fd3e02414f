// Package disktest is a disk in memory for tests, which fails as told and has power cuts.
package disktest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/disk"
)

// Disk is a disk in memory. It knows what a power cut leaves: the contents as last synced, and the names as their
// folder was last synced. A fault can delay any operation or make it fail.
type Disk struct {
	mu      sync.Mutex
	names   map[string]*node
	durable map[string]*node
	ops     []string              // done or failed, in order
	fault   func(op string) error // asked before each operation; a write that it fails is half done

	Windows bool // open files can't be renamed or replaced, as on Windows
}

type node struct {
	data, durable []byte
	handles       int
	modified      time.Time

	folder       bool
	durableNames map[string]*node // in a folder of a Tree
}

// New returns a disk with one durable file, or with none if data is nil.
func New(path string, data []byte) *Disk {
	d := &Disk{names: map[string]*node{}}
	if data != nil {
		d.names[path] = &node{data: bytes.Clone(data), durable: bytes.Clone(data)}
	}
	d.durable = maps.Clone(d.names)
	return d
}

// Survival says what of the unsynced is still there after a power cut.
type Survival struct {
	Names bool // the folder as it was seen, else as last synced
	Bytes int  // of what was written behind the synced: 0 nothing, 1 half, 2 all
}

// Survivals returns all that can be.
func Survivals() []Survival {
	return []Survival{{false, 0}, {false, 1}, {false, 2}, {true, 0}, {true, 1}, {true, 2}}
}

// AfterPowerCut returns the disk that the next start finds.
func (d *Disk) AfterPowerCut(s Survival) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := withFolders(d.durable)
	if s.Names {
		names = d.names
	}
	next := New("", nil)
	for path, inode := range names {
		data := inode.data
		if grown := len(inode.data) - len(inode.durable); s.Bytes == 0 || s.Bytes == 1 && grown < 0 {
			data = inode.durable
		} else if s.Bytes == 1 {
			data = inode.data[:len(inode.durable)+grown/2]
		}
		next.names[path] = &node{data: bytes.Clone(data), durable: bytes.Clone(data), folder: inode.folder, modified: inode.modified}
	}
	next.durable = maps.Clone(next.names)
	next.settleFolders()
	return next
}

// AfterKill returns the disk that the next process finds: all that was written is seen, and is as durable as it was.
func (d *Disk) AfterKill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := New("", nil)
	copies := map[*node]*node{}
	copied := func(names map[string]*node) map[string]*node {
		names = maps.Clone(names)
		for path, inode := range names {
			if copies[inode] == nil {
				copies[inode] = &node{data: bytes.Clone(inode.data), durable: bytes.Clone(inode.durable), folder: inode.folder, modified: inode.modified}
			}
			names[path] = copies[inode]
		}
		return names
	}
	next.names, next.durable = copied(d.names), copied(d.durable)
	return next
}

// Content returns what a reader of path sees.
func (d *Disk) Content(path string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.names[path].data)
}

// Paths returns the names that a reader sees.
func (d *Disk) Paths() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names))
}

// Steps returns the operations done or failed so far, in order.
func (d *Disk) Steps() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

// Count returns how often an operation was asked for.
func (d *Disk) Count(op string) (n int) {
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
func (d *Disk) step(op string) error {
	d.mu.Lock()
	d.ops = append(d.ops, op)
	fault := d.fault
	d.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op)
}

// SetFault makes f decide which operations fail. It is asked before each of them.
func (d *Disk) SetFault(f func(op string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

func (d *Disk) Open(path string) (disk.File, error) {
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
	return &handle{disk: d, inode: inode}, nil
}

func (d *Disk) Create(path string, mode fs.FileMode) (disk.File, error) {
	if err := d.step("create"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[path] != nil {
		return nil, fs.ErrExist
	}
	inode := &node{handles: 1}
	d.names[path] = inode
	return &handle{disk: d, inode: inode}, nil
}

func (d *Disk) Rename(from, to string) error {
	if err := d.step("rename"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	if old := d.names[to]; d.Windows && (d.names[from].handles > 0 || old != nil && old.handles > 0) {
		return fs.ErrPermission
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *Disk) Remove(path string) error {
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

func (d *Disk) List(dir string) (names []string, err error) {
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

func (d *Disk) Holds(path string, f disk.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[path] != f.(*handle).inode {
		return disk.ErrGone
	}
	return nil
}

func (d *Disk) OpenFolder(string) (disk.Folder, error) {
	if err := d.step("open folder"); err != nil {
		return nil, err
	}
	return folderHandle{d}, nil
}

func (d *Disk) RenamesOpen() bool { return !d.Windows }

type folderHandle struct{ disk *Disk }

func (f folderHandle) Close() error { return nil }

func (f folderHandle) Sync() error {
	if err := f.disk.step("sync folder"); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.durable = maps.Clone(f.disk.names)
	return nil
}

// handle is an open file of a Disk. It is written at its end only.
type handle struct {
	disk   *Disk
	inode  *node
	at     int
	closed bool
}

func (f *handle) Read(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.at >= len(f.inode.data) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[f.at:])
	f.at += n
	return n, nil
}

func (f *handle) Write(p []byte) (int, error) {
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

func (f *handle) Seek(offset int64, whence int) (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekEnd:
		offset += int64(len(f.inode.data))
	default:
		panic("a seek from where the file is")
	}
	f.at = int(offset)
	return offset, nil
}

func (f *handle) Truncate(size int64) error {
	if err := f.disk.step("truncate"); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.inode.data = f.inode.data[:size:size]
	return nil
}

func (f *handle) Sync() error {
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

func (f *handle) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.inode.handles--
	return nil
}

// FailFrom is a fault that lets n operations pass and fails all others: the process has died, or the disk has.
func FailFrom(n int, err error) func(string) error {
	var count atomic.Int64
	return func(string) error {
		if count.Add(1) > int64(n) {
			return err
		}
		return nil
	}
}

// FailOnly is a fault of the one operation that comes after n others.
func FailOnly(n int, err error) func(string) error {
	var count atomic.Int64
	return func(string) error {
		if count.Add(1) == int64(n)+1 {
			return err
		}
		return nil
	}
}
