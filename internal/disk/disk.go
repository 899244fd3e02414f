// Package disk replaces files durably and locks folders; it does not know what the files say.
//
// disk.go owns what the hub asks of the operating system's files, so that tests can put a failing disk in its place
// (package disktest).
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

var (
	// ErrFull says that the disk is full, or this user's quota, or that the process may write no larger file.
	ErrFull = errors.New("the disk is full")
	// ErrGone says that something else has the name of a file that is in use, or nothing has.
	ErrGone = errors.New("the file was removed or replaced while it was in use")
)

// Disk is what durable writing asks of the operating system. OS asks the operating system itself.
type Disk interface {
	// Open opens a file for reading and writing. It returns fs.ErrNotExist if the file is absent, and an error if
	// something other than a regular file has the name.
	Open(path string) (File, error)
	// Create makes a new file. It returns fs.ErrExist if something has that name.
	Create(path string, mode fs.FileMode) (File, error)
	// Rename is atomic. It replaces a file that has the name to.
	Rename(from, to string) error
	Remove(path string) error
	// List returns the names in a folder, without the folder.
	List(dir string) ([]string, error)
	OpenFolder(dir string) (Folder, error)
	// Holds returns ErrGone unless path is the name of f.
	Holds(path string, f File) error
	// RenamesOpen reports whether open files can be renamed and replaced.
	RenamesOpen() bool
}

// File is an open file, as *os.File implements it.
type File interface {
	io.ReadWriteSeeker
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// Folder is an open folder. Sync makes the names in it durable.
type Folder interface {
	Sync() error
	Close() error
}

// OS is the disk of the operating system.
type OS struct{}

func (OS) Open(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return osFile(os.OpenFile(path, os.O_RDWR, 0))
}

func (OS) Create(path string, mode fs.FileMode) (File, error) {
	return osFile(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode))
}

// osFile keeps a nil *os.File from becoming a file that is not nil.
func osFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (OS) Rename(from, to string) error { return os.Rename(from, to) }

func (OS) Remove(path string) error { return os.Remove(path) }

func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (OS) Holds(path string, f File) error {
	named, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	open, err := f.(*os.File).Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(named, open) {
		return fmt.Errorf("%w: %s", ErrGone, path)
	}
	return nil
}

// OpenFolder opens nothing on Windows, which can't sync a folder: FlushFileBuffers refuses the handle of a folder, and
// NTFS keeps names in its own log.
func (OS) OpenFolder(dir string) (Folder, error) {
	if runtime.GOOS == "windows" {
		return noFolder{}, nil
	}
	return osFile(os.Open(dir))
}

type noFolder struct{}

func (noFolder) Sync() error  { return nil }
func (noFolder) Close() error { return nil }

// RenamesOpen: package os opens files on Windows without FILE_SHARE_DELETE.
func (OS) RenamesOpen() bool { return runtime.GOOS != "windows" }

// Full returns err, wrapped as ErrFull if it says that the disk is full.
func Full(err error) error {
	if !isFull(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFull, err)
}

func isFull(err error) bool {
	const errorDiskFull = syscall.Errno(112) // ERROR_DISK_FULL in winerror.h
	if runtime.GOOS == "windows" && errors.Is(err, errorDiskFull) {
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
