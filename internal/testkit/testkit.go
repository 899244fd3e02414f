// Package testkit is what the tests of several rooms share: how often to repeat, how to wait, a clock that stands,
// files, answers, and raw connections to a hub.
package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Times is how often a test repeats what it does: few times, or many in CI, where the environment says CI=true.
func Times(few, many int) int {
	if os.Getenv("CI") != "" {
		return many
	}
	return few
}

// WaitTogether lets n parallel tests run at once, unless -parallel says how many. It is for packages whose tests wait
// for other processes most of the time, and is called before testing.M.Run.
func WaitTogether(n int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		flag.Set("test.parallel", strconv.Itoa(n))
	}
}

// Clock is a clock that stands until a test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at noon UTC of 1 March 2026.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now returns the time at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Eventually waits until cond holds, for two minutes at most: machines of CI can be slow.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for !cond() {
		select {
		case <-often.C:
		case <-late:
			t.Fatalf("still not so that %s", what)
		}
	}
}

// WriteFile returns the path of a new file with this content, in a folder of its own.
func WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// List returns the names in a folder.
func List(t testing.TB, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
