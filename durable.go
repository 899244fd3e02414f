package main

// durable.go owns the replacement of one file by another such that a crash at any instant leaves the old content whole
// or the new content whole. It does not know what is in the files.
//
// The system calls, in this order, as on Linux:
//
//	open(DIR, O_RDONLY)                                        the folder, while failing is still harmless
//	open(DIR/name.tmp-RANDOM, O_RDWR|O_CREAT|O_EXCL, mode)     a new file in the same folder, thus the same file system
//	write(…)
//	fsync(file)                                                the content is on the disk before the name points to it
//	rename(DIR/name.tmp-RANDOM, DIR/name)                      the commit point for processes
//	fsync(folder)                                              the commit point for power cuts
//	close(…)
//
// A crash before the rename leaves a temporary file behind; removeLeftovers removes it.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// disk is what durable writing asks of the operating system. Tests put a faulty one in the place of osDisk.
type disk interface {
	open(path string) (file, error)                     // for reading and writing; fs.ErrNotExist if absent, an error if not a regular file
	create(path string, mode fs.FileMode) (file, error) // fs.ErrExist if something has that name
	rename(from, to string) error                       // atomic; replaces a file named to
	remove(path string) error
	list(dir string) ([]string, error) // names, without the folder
	openFolder(dir string) (folder, error)
	renamesOpen() bool // reports whether open files can be renamed and replaced
}

// file is an open file, as *os.File implements it.
type file interface {
	io.ReadWriteSeeker
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// folder is an open folder. Sync makes the names in it durable.
type folder interface {
	Sync() error
	Close() error
}

// replaceFile makes data the content of the file at path, durably: nil means that it will survive a power cut. On an error the
// old content stands, or, if the rename or what follows it has gone wrong, the old or the new. A new file gets mode, less the umask.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	return replaceFileOn(osDisk{}, path, data, mode)
}

func replaceFileOn(d disk, path string, data []byte, mode fs.FileMode) error {
	r, err := beginReplacement(d, path, mode)
	if err != nil {
		return err
	}
	if _, err = r.Write(data); err == nil {
		err = r.Sync()
	}
	if err != nil {
		r.abandon()
		return err
	}
	r.Close() // synced, so a late error has nothing to say; Windows renames only closed files
	return r.place()
}

// replacement is a file being written that is to take the place of another.
type replacement struct {
	file
	disk      disk
	folder    folder
	path, tmp string
}

func beginReplacement(d disk, path string, mode fs.FileMode) (*replacement, error) {
	dir, err := d.openFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	tmp := path + leftoverInfix + rand.Text()
	f, err := d.create(tmp, mode)
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &replacement{file: f, disk: d, folder: dir, path: path, tmp: tmp}, nil
}

// abandon drops the replacement; the file at path stays as it was.
func (r *replacement) abandon() {
	r.Close()
	r.folder.Close()
	r.disk.remove(r.tmp) // if this fails, removeLeftovers comes by later
}

// place gives the replacement, which the caller has synced, its name. After an error it is unknown which file has the name.
func (r *replacement) place() error {
	defer r.folder.Close()
	if err := r.disk.rename(r.tmp, r.path); err != nil {
		r.disk.remove(r.tmp)
		return err
	}
	return r.folder.Sync()
}

// leftoverInfix stands between the name of a file and the random part in the name of its temporary file.
const leftoverInfix = ".tmp-"

// removeLeftovers removes the temporary files that a crash has left beside the file at path. No replacement of it may be under way.
func removeLeftovers(d disk, path string) error {
	dir := filepath.Dir(path)
	names, err := d.list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, filepath.Base(path)+leftoverInfix) {
			continue
		}
		if err := d.remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(d disk, dir string) error {
	f, err := d.openFolder(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) open(path string) (file, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return osFile(os.OpenFile(path, os.O_RDWR, 0))
}

func (osDisk) create(path string, mode fs.FileMode) (file, error) {
	return osFile(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode))
}

// osFile keeps a nil *os.File from becoming a file that is not nil.
func osFile(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// openFolder opens nothing on Windows, which has no way to sync a folder: FlushFileBuffers refuses its handle, and NTFS
// keeps names in its own log.
func (osDisk) openFolder(dir string) (folder, error) {
	if runtime.GOOS == "windows" {
		return noFolder{}, nil
	}
	return osFile(os.Open(dir))
}

type noFolder struct{}

func (noFolder) Sync() error  { return nil }
func (noFolder) Close() error { return nil }

// renamesOpen: package os opens files on Windows without FILE_SHARE_DELETE.
func (osDisk) renamesOpen() bool { return runtime.GOOS != "windows" }

// isDiskFull reports whether err is the refusal of a disk that has no room left, or none for this user.
func isDiskFull(err error) bool {
	const errorDiskFull = syscall.Errno(112) // ERROR_DISK_FULL in winerror.h
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || runtime.GOOS == "windows" && errors.Is(err, errorDiskFull)
}
