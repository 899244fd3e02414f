// throttle.go limits failed logins to ten a minute for one user name from one address.

package passwd

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	maxFailures   = 10
	failureWindow = time.Minute
	maxThrottled  = 50_000 // user names and addresses remembered at once
	maxName       = 254    // bytes; nobody has a longer name, so it need not be remembered
)

// Throttle counts failed logins. The address is part of the key so that nobody can lock a user out from
// elsewhere, and attempts under way count as failures until they have ended, so that a burst sent at once gets no
// more guesses than one sent in a row.
type Throttle struct {
	mu      sync.Mutex
	entries map[string]*Attempts
}

// Attempts are those of one user name from one address.
type Attempts struct {
	key      string
	failures []time.Time // the latest, oldest first
	pending  int
	ended    chan struct{} // closed when a pending one ends, for those that wait
}

// NewThrottle returns a throttle that knows of no failures.
func NewThrottle() *Throttle {
	return &Throttle{entries: make(map[string]*Attempts)}
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
	key := name + "\x00" + address
	if len(name) > maxName {
		key = address
	}
	for {
		t.mu.Lock()
		a := t.entry(key, now())
		if len(a.failures) >= maxFailures {
			wait := a.failures[0].Add(failureWindow).Sub(now())
			t.mu.Unlock()
			return nil, &ThrottledError{wait}
		}
		if len(a.failures)+a.pending < maxFailures {
			a.pending++
			t.mu.Unlock()
			return a, nil
		}
		if a.ended == nil {
			a.ended = make(chan struct{})
		}
		ended := a.ended
		t.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// End tells how an admitted attempt came out. A right password clears the failures before it; an attempt that was
// given up, so that nobody learnt anything from it, neither counts nor clears.
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
	if a.idle(now) {
		delete(t.entries, a.key)
	}
}

// entry returns the attempts under key without those that no longer count, making room where needed.
func (t *Throttle) entry(key string, now time.Time) *Attempts {
	a := t.entries[key]
	if a == nil {
		if len(t.entries) >= maxThrottled {
			t.makeRoom(now)
		}
		a = &Attempts{key: key}
		t.entries[key] = a
	}
	a.forget(now)
	return a
}

// makeRoom drops what no longer counts and, if that is not enough, any entry without pending attempts: under a
// flood of names, memory stays bounded and a few names get more guesses than ten.
func (t *Throttle) makeRoom(now time.Time) {
	for key, a := range t.entries {
		if a.idle(now) {
			delete(t.entries, key)
		}
	}
	for key, a := range t.entries {
		if len(t.entries) < maxThrottled*9/10 {
			return
		}
		if a.pending == 0 {
			delete(t.entries, key)
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
