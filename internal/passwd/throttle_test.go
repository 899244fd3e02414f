package passwd

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

const address = "192.0.2.1"

// guess is a failed attempt, or the error of one that is not admitted.
func guess(t *testing.T, th *Throttle, name string, clock *testkit.Clock) error {
	t.Helper()
	a, err := th.Begin(t.Context(), name, address, clock.Now)
	if err == nil {
		th.End(a, false, nil, clock.Now())
	}
	return err
}

func mustGuess(t *testing.T, th *Throttle, name string, clock *testkit.Clock) {
	t.Helper()
	if err := guess(t, th, name, clock); err != nil {
		t.Fatal(err)
	}
}

// TestThrottleForgetsNothingInAFlood: however many other names are tried, from the same address, a name gets ten
// guesses a minute and no more, and the memory of all has a bound.
func TestThrottleForgetsNothingInAFlood(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 2 * maxThrottled} { // the name comes before the flood, or in the midst of it
		th, clock := NewThrottle(), testkit.NewClock()
		flood := func(from, n int) {
			for i := range n {
				guess(t, th, strconv.Itoa(from+i), clock)
				if len(th.own) > maxThrottled || len(th.shared) > sharedCounts {
					t.Fatalf("%d and %d counts", len(th.own), len(th.shared))
				}
			}
		}
		flood(0, before)
		admitted := 0
		for round := range 2 * maxFailures {
			if guess(t, th, "admin", clock) == nil {
				admitted++
			}
			flood(before+round*maxThrottled/10, maxThrottled/10)
		}
		if admitted > maxFailures || before == 0 && admitted != maxFailures {
			t.Errorf("%d guesses at one name with %d names before it", admitted, before)
		}
		clock.Advance(failureWindow)
		mustGuess(t, th, "admin", clock)
	}
}

// TestThrottleForgetsWhatIsOver: of names that come and go, none is kept for more than its minute for long.
func TestThrottleForgetsWhatIsOver(t *testing.T) {
	t.Parallel()
	th, clock := NewThrottle(), testkit.NewClock()
	for i := range 10_000 {
		mustGuess(t, th, strconv.Itoa(i), clock)
		clock.Advance(failureWindow / 10)
	}
	if n := len(th.own); n > 100 {
		t.Errorf("%d names are remembered, of which 10 matter", n)
	}
}

// TestThrottleForgetsLongNames: a name that nobody can have is not kept.
func TestThrottleForgetsLongNames(t *testing.T) {
	t.Parallel()
	th, clock := NewThrottle(), testkit.NewClock()
	for i := range maxFailures {
		mustGuess(t, th, strings.Repeat("n", 30_000+i), clock)
	}
	var throttled *ThrottledError
	if err := guess(t, th, strings.Repeat("m", 30_000), clock); !errors.As(err, &throttled) || throttled.Wait != failureWindow {
		t.Errorf("error %v", err)
	}
	for p := range th.own {
		if len(p.name) > maxName {
			t.Errorf("the throttle remembers %d bytes", len(p.name))
		}
	}
}
