// lock.go owns the rule that one process at a time works in a folder. How files and folders are locked is in
// lock_unix.go and lock_windows.go.

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// errLocked is the error of lockFolder and openLocked when another process holds the lock.
var errLocked = errors.New("locked")

// Locked is the operating system's disk, with a folder in which no other process works until Unlock or the end of this
// process. The operating system holds the lock, so a killed process leaves none behind.
type Locked struct {
	OS
	path   string   // of DIR/lock, which says the process id of the holder
	file   *os.File // DIR/lock, locked
	folder *os.File // DIR, locked as well where the system can; nil where it can't
}

// Lock locks the folder dir. If another process holds it, the error names that process. Both the folder and DIR/lock
// are locked, so deleting DIR/lock lets no second hub in.
func Lock(dir string) (*Locked, error) {
	l := &Locked{path: filepath.Join(dir, "lock")}
	err := l.take(dir)
	if err == nil {
		return l, nil
	}
	l.close()
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is held by %s", l.path, lockHolder(l.path))
	}
	return nil, fmt.Errorf("locking %s: %w", l.path, err)
}

func (l *Locked) take(dir string) (err error) {
	if l.folder, err = lockFolder(dir); err != nil {
		return err
	}
	if l.file, err = openLocked(l.path); err != nil {
		return err
	}
	if !mayBeLock(l.file) {
		return errors.New("the file is not a lock of authhub: move it away")
	}
	if err = l.file.Truncate(0); err == nil {
		_, err = fmt.Fprintln(l.file, os.Getpid())
	}
	return err
}

// Held returns ErrGone unless DIR/lock still is the name of the lock. If it is not, DIR may be another process's.
func (l *Locked) Held() error { return l.OS.Holds(l.path, l.file) }

// Holds returns ErrGone unless the lock is Held and path still is the name of f.
func (l *Locked) Holds(path string, f File) error {
	if err := l.Held(); err != nil {
		return err
	}
	return l.OS.Holds(path, f)
}

// Unlock lets other processes work in the folder.
func (l *Locked) Unlock() error {
	return errors.Join(l.file.Truncate(0), l.close())
}

func (l *Locked) close() error {
	var errs []error
	for _, f := range []*os.File{l.file, l.folder} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// mayBeLock reports whether f is a regular file and is empty or says a process id.
func mayBeLock(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, err = readLock(f)
	return info.Size() == 0 || err == nil
}

// lockHolder names the process that holds the lock. Until that process has written its id, it is "another process".
func lockHolder(path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeType != 0 {
		return "another process"
	}
	f, err := os.Open(path)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	pid, err := readLock(f)
	if err != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// readLock returns the process id that a lock says.
func readLock(f *os.File) (pid int, err error) {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	return strconv.Atoi(strings.TrimSpace(string(text[:n])))
}
