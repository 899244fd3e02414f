package passwd

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestThrottleForgetsUnderAFlood: names come and go, the memory of them has a bound.
func TestThrottleForgetsUnderAFlood(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	now := func() time.Time { return time.UnixMilli(0) }
	for i := range 2 * maxThrottled {
		key := strconv.Itoa(i)
		a, err := th.Begin(t.Context(), key, "192.0.2.1", now)
		if err != nil {
			t.Fatal(err)
		}
		if th.End(a, false, nil, now()); len(th.entries) > maxThrottled {
			t.Fatalf("%d names remembered", len(th.entries))
		}
	}
}

// TestThrottleForgetsLongNames: a name that nobody can have is not kept.
func TestThrottleForgetsLongNames(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	now := func() time.Time { return time.UnixMilli(0) }
	a, err := th.Begin(t.Context(), strings.Repeat("n", 30_000), "192.0.2.1", now)
	if err != nil {
		t.Fatal(err)
	}
	th.End(a, false, nil, now())
	for key := range th.entries {
		if len(key) > 1_000 {
			t.Errorf("the throttle remembers %d bytes", len(key))
		}
	}
}
