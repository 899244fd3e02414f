package hubtest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// A binary that says nothing is told; without a limit, the tests of its client would hang.
func TestASilentBinaryIsTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows runs no shell script")
	}
	if _, err := launch("testdata/silent", 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "says nothing within 10ms") {
		t.Errorf("%v", err)
	}
}
