//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"
	"syscall"
)

// openLocked opens the file at path, makes it if it is absent, and locks it with flock. It returns errLocked if
// another process has locked it, and an error if path is a symbolic link.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // EMLINK: FreeBSD
		return nil, errors.New("it is a symbolic link: move it away")
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockFolder locks the folder dir itself. It returns nil and no error where the file system can't lock folders, as NFS
// can't, and errLocked if another process has locked it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = flock(f)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, errLocked) {
		return nil, err
	}
	return nil, nil
}

func flock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
