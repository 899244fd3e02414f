// lock.go owns the rule that one process at a time works in a folder. How a file is locked is in lock_unix.go and
// lock_windows.go.

package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// errLocked is openLocked's error when another process holds the lock.
var errLocked = errors.New("locked")

// Lock makes this process the only one that works in dir, until it calls unlock or ends. The operating system holds
// the lock, so a killed process leaves none behind. Keep unlock reachable: if the file is garbage-collected, the lock
// is released. DIR/lock stays and says the process id of the holder. If another process holds the lock, the error
// names it.
func Lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	f, err := openLocked(path)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is held by %s", path, lockHolder(path))
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() error { return errors.Join(f.Truncate(0), f.Close()) }, nil
}

// lockHolder names the process that holds the lock. Until that process has written its id, it is "another process".
func lockHolder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}
