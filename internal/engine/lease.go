// lease.go owns the leases that sessions go with.

package engine

import (
	"context"
	"maps"
	"time"

	"authhub/internal/etcd"
)

// slot is how many milliseconds of expiry share a lease. Leases only tidy up: a token's exp decides what it is worth.
const slot = int64(10 * time.Minute / time.Millisecond)

// leases has the leases that this hub's sessions go with, by the slot in which they are over. Each hub grants its own.
// How long a lease lives is measured by the monotonic clock, so that a clock that jumps ends no session early.
type leases struct {
	etcd *etcd.Client
	busy chan struct{} // holds an item while granted is looked at; a channel, since a grant may take seconds
	by   map[int64]lease
}

type lease struct {
	id   int64
	ends time.Time // at the earliest
}

func newLeases(c *etcd.Client) *leases {
	return &leases{etcd: c, busy: make(chan struct{}, 1), by: make(map[int64]lease)}
}

// until returns a lease that lives at least until over, milliseconds since the Unix epoch by the clock that says now.
func (l *leases) until(ctx context.Context, over int64, now time.Time) (int64, error) {
	if err := l.lock(ctx); err != nil {
		return 0, err
	}
	defer l.unlock()
	at := over / slot
	needed := time.Duration(max(0, over-now.UnixMilli())) * time.Millisecond
	if known, ok := l.by[at]; ok && time.Until(known.ends) >= needed {
		return known.id, nil
	}
	ttl := needed + time.Duration(2*slot)*time.Millisecond
	granted := time.Now()
	id, err := l.etcd.Grant(ctx, ttl)
	if err != nil {
		return 0, err
	}
	l.forgetEnded()
	l.by[at] = lease{id, granted.Add(ttl)}
	return id, nil
}

// forget lets the next session of that slot have a new lease: etcd does not know this one any more.
func (l *leases) forget(ctx context.Context, id int64) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	maps.DeleteFunc(l.by, func(_ int64, known lease) bool { return known.id == id })
	return nil
}

func (l *leases) lock(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *leases) unlock() { <-l.busy }

func (l *leases) forgetEnded() {
	maps.DeleteFunc(l.by, func(_ int64, known lease) bool { return time.Until(known.ends) < 0 })
}
