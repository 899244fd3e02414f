package disk

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// TestNoRoomHasManyNames: a full disk, a used up quota and the limit of a process on its files (ulimit -f) are all no
// room; other failures are not.
func TestNoRoomHasManyNames(t *testing.T) {
	t.Parallel()
	for cause, full := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EFBIG: true, syscall.EIO: false, syscall.EACCES: false} {
		err := Full(&fs.PathError{Op: "write", Path: "journal", Err: cause})
		if errors.Is(err, ErrFull) != full || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
