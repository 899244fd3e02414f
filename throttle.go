// Throttling of failed logins: at most ten a minute for one user name from one address.

package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"authhub/internal/reply"
)

const (
	maxFailures   = 10
	failureWindow = time.Minute
	maxThrottled  = 50_000 // user names and addresses remembered at once
)

// throttle counts failed logins. The address is part of the key so that nobody can lock a user out from
// elsewhere, and attempts under way count as failures until they have ended, so that a burst sent at once gets no
// more guesses than one sent in a row.
type throttle struct {
	mu      sync.Mutex
	entries map[string]*attempts
}

// attempts are those of one user name from one address.
type attempts struct {
	failures []time.Time // the latest, oldest first
	pending  int
	ended    chan struct{} // closed when a pending one ends, for those that wait
}

func newThrottle() *throttle {
	return &throttle{entries: make(map[string]*attempts)}
}

// begin admits an attempt, or says when to come again (429 too_many_attempts). An admitted attempt must be ended
// with end. It waits while more attempts are under way than could all fail.
func (t *throttle) begin(ctx context.Context, key string, now func() time.Time) (*attempts, error) {
	for {
		t.mu.Lock()
		a := t.entry(key, now())
		if len(a.failures) >= maxFailures {
			wait := a.failures[0].Add(failureWindow).Sub(now())
			t.mu.Unlock()
			return nil, reply.RetryAfter(http.StatusTooManyRequests, "too_many_attempts",
				"Too many failed logins for this user name from this address. Wait a little.", wait)
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

// end tells how an admitted attempt came out. A right password clears the failures before it; an attempt that was
// given up, so that nobody learnt anything from it, neither counts nor clears.
func (t *throttle) end(a *attempts, key string, right bool, givenUp error, now time.Time) {
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
		delete(t.entries, key)
	}
}

// entry returns the attempts under key without those that no longer count, making room where needed.
func (t *throttle) entry(key string, now time.Time) *attempts {
	a := t.entries[key]
	if a == nil {
		if len(t.entries) >= maxThrottled {
			t.makeRoom(now)
		}
		a = new(attempts)
		t.entries[key] = a
	}
	a.forget(now)
	return a
}

// makeRoom drops what no longer counts and, if that is not enough, any entry without pending attempts: under a
// flood of names, memory stays bounded and a few names get more guesses than ten.
func (t *throttle) makeRoom(now time.Time) {
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
func (a *attempts) forget(now time.Time) {
	for len(a.failures) > 0 {
		if age := now.Sub(a.failures[0]); age >= 0 && age < failureWindow {
			return
		}
		a.failures = a.failures[1:]
	}
}

func (a *attempts) idle(now time.Time) bool {
	a.forget(now)
	return a.pending == 0 && len(a.failures) == 0
}
