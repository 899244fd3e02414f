// throttle.go limits failed logins to ten a minute for one user name from one address.

package passwd

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

const (
	maxFailures   = 10
	failureWindow = time.Minute
	maxThrottled  = 50_000 // pairs of user name and address that have a count of their own
	sharedCounts  = 4_096  // for all other pairs
	maxName       = 254    // bytes; nobody has a longer name, so it need not be remembered
)

// Throttle counts failed logins. The address is part of what it counts by, so that nobody can lock a user out from
// elsewhere. Attempts under way count as failures until they have ended, so that a burst sent at once gets no more
// guesses than one sent in a row.
//
// Its memory is bounded and forgets no failure within its minute: under a flood of names the names beyond the bound
// share counts, and get fewer guesses than ten.
type Throttle struct {
	mu     sync.Mutex
	seed   maphash.Seed
	own    map[pair]*Attempts
	shared map[uint64]*Attempts // by a hash of the pair
}

// pair is what failures are counted by.
type pair struct{ name, address string }

// Attempts counts the attempts of one pair, or of several pairs that share a count.
type Attempts struct {
	failures []time.Time // the latest, oldest first
	pending  int
	ended    chan struct{} // closed when a pending attempt ends; waiting attempts listen
}

// NewThrottle returns a throttle that knows of no failures.
func NewThrottle() *Throttle {
	return &Throttle{seed: maphash.MakeSeed(), own: make(map[pair]*Attempts), shared: make(map[uint64]*Attempts)}
}

// ThrottledError says that a user name has failed too often from an address.
type ThrottledError struct {
	Wait time.Duration // until the next attempt is admitted
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many failed logins, the next is admitted in %v", e.Wait)
}

// Begin admits an attempt to log in as name, in its folded form, from address, or returns a *ThrottledError. The
// caller must End an admitted attempt. While more attempts are under way than could all fail, Begin waits.
func (t *Throttle) Begin(ctx context.Context, name, address string, now func() time.Time) (*Attempts, error) {
	if len(name) > maxName {
		name = ""
	}
	for {
		a, wait, err := t.tryBegin(pair{name, address}, now())
		if wait == nil {
			return a, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryBegin returns what to wait for if the attempt can be neither admitted nor refused yet.
func (t *Throttle) tryBegin(p pair, now time.Time) (*Attempts, chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.entry(p, now)
	switch {
	case len(a.failures) >= maxFailures:
		return nil, nil, &ThrottledError{a.failures[0].Add(failureWindow).Sub(now)}
	case len(a.failures)+a.pending < maxFailures:
		a.pending++
		return a, nil, nil
	case a.ended == nil:
		a.ended = make(chan struct{})
	}
	return nil, a.ended, nil
}

// End tells how an admitted attempt came out. A right password clears the failures before it. An attempt that was
// given up, and so told nobody anything, neither counts nor clears.
func (t *Throttle) End(a *Attempts, right bool, givenUp error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.pending--
	switch {
	case right:
		a.failures = nil
	case givenUp == nil:
		a.failures = append(a.failures, now)
	}
	if a.ended != nil {
		close(a.ended)
		a.ended = nil
	}
}

// entry returns the count for p, without the failures that no longer matter. A pair whose failures are in a shared
// count stays with it until they are a minute old.
func (t *Throttle) entry(p pair, now time.Time) *Attempts {
	if a := t.own[p]; a != nil {
		a.forget(now)
		return a
	}
	bucket := maphash.Comparable(t.seed, p) % sharedCounts
	a := t.shared[bucket]
	if a != nil && !a.idle(now) {
		return a
	}
	if t.sweep(now); len(t.own) < maxThrottled {
		a = new(Attempts)
		t.own[p] = a
		return a
	}
	a = new(Attempts)
	t.shared[bucket] = a
	return a
}

// sweep looks at a few counts, wherever the map's order begins, and drops those that no longer matter. At a few for
// each that is new, they never outnumber the others for long. So a user who logs in again and again keeps a count.
func (t *Throttle) sweep(now time.Time) {
	looked := 0
	for p, a := range t.own {
		if a.idle(now) {
			delete(t.own, p)
		}
		if looked++; looked == 4 {
			return
		}
	}
}

// forget drops the failures that are a minute old, or that a clock set back has left in the future.
func (a *Attempts) forget(now time.Time) {
	for len(a.failures) > 0 {
		if age := now.Sub(a.failures[0]); age >= 0 && age < failureWindow {
			return
		}
		a.failures = a.failures[1:]
	}
}

func (a *Attempts) idle(now time.Time) bool {
	a.forget(now)
	return a.pending == 0 && len(a.failures) == 0
}
