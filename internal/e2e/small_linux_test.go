package e2e

import (
	"fmt"
	"syscall"
)

// mountSmall puts a file system of so many bytes at dir.
func mountSmall(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

func unmount(dir string) error { return syscall.Unmount(dir, 0) }
