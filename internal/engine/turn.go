// turn.go owns whose turn it is to run: one hub at a time.

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"authhub/internal/etcd"
	"authhub/internal/runs"
)

// ErrOtherRun says that another hub is running, or has begun to since this one was last heard of.
var ErrOtherRun = errors.New("another hub is running")

const (
	turnLease = 10 * time.Second // after it, another hub may run in the place of one that has died
	turnRenew = 2 * time.Second
	turnLimit = 30 * time.Second       // how long a run waits for the runs of other hubs
	turnAsk   = 250 * time.Millisecond // how often it asks
)

// turn is a hub's right to run: the key of runs, made at revision, for as long as the lease lives.
type turn struct {
	run      *runs.Run
	lease    int64
	revision int64
	cancel   context.CancelCauseFunc
	ended    chan struct{} // closed when nothing renews it any more
}

// Begin waits for this hub's turn to run, for thirty seconds at the most. The context that it returns ends when another
// hub may take over. Errors: ErrOtherRun, ErrNotShared, and those of an engine that is away.
func (f *Files) Begin(ctx context.Context, r *runs.Run) (context.Context, error) {
	if err := f.here(); err != nil {
		return nil, err
	}
	waiting, stop := context.WithTimeout(ctx, turnLimit)
	defer stop()
	t := &turn{run: r, ended: make(chan struct{})}
	if err := f.take(waiting, t, rand.Text()); err != nil {
		return nil, err
	}
	ctx, t.cancel = context.WithCancelCause(ctx)
	f.setTurn(t)
	go f.renew(ctx, t)
	return ctx, nil
}

func (f *Files) setTurn(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn = t
}

func (f *Files) currentTurn() *turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turn
}

// take makes the key of runs, with me in it, as soon as there is none.
func (f *Files) take(ctx context.Context, t *turn, me string) error {
	s := f.store
	for {
		out, err := f.tryTake(ctx, t, me)
		holder := (*etcd.KeyValue)(nil)
		if err == nil && !out.Succeeded {
			holder = out.Results[0].First()
		}
		switch {
		case errors.Is(err, etcd.ErrNoLease): // it has waited for longer than its lease lives
			t.lease = 0
			continue
		case err != nil:
			return unavailable(err)
		case out.Succeeded:
			t.revision = out.Revision
			return nil
		case holder != nil && string(holder.Value) == me: // an answer was lost
			t.revision = holder.CreateRevision
			return nil
		}
		select {
		case <-time.After(turnAsk):
		case <-ctx.Done():
			s.revoke(t.lease)
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err() // the hub stops
			}
			return ErrOtherRun
		}
	}
}

func (f *Files) tryTake(ctx context.Context, t *turn, me string) (etcd.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := f.store
	if t.lease == 0 {
		lease, err := s.etcd.Grant(ctx, turnLease)
		if err != nil {
			return etcd.Outcome{}, err
		}
		t.lease = lease
	}
	return s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.running().Absent()},
		Then: []etcd.Op{s.running().Put([]byte(me), t.lease), s.latest().Put(f.record(t.run), 0)},
		Else: []etcd.Op{s.running().Get()},
	})
}

// renew keeps the lease alive and the record fresh until ctx ends, or until the lease may have ended.
func (f *Files) renew(ctx context.Context, t *turn) {
	defer close(t.ended)
	every := time.NewTicker(turnRenew)
	defer every.Stop()
	for alive := time.Now(); ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		err := f.renewOnce(ctx, t)
		switch {
		case err == nil:
			alive = asked
		case errors.Is(err, etcd.ErrNoLease):
			t.cancel(ErrOtherRun)
			return
		case time.Since(alive) >= turnLease:
			t.cancel(unavailable(err))
			return
		}
	}
}

func (f *Files) renewOnce(ctx context.Context, t *turn) error {
	ctx, cancel := context.WithTimeout(ctx, turnRenew)
	defer cancel()
	if err := f.store.etcd.KeepAlive(ctx, t.lease); err != nil {
		return err
	}
	f.keepRecord(ctx, t, f.store.latest().Put(f.record(t.run), 0))
	return nil
}

// keepRecord carries ops out if the turn is still this hub's.
func (f *Files) keepRecord(ctx context.Context, t *turn, ops ...etcd.Op) error {
	_, err := f.store.etcd.Do(ctx, etcd.Txn{If: []etcd.Cond{f.store.running().CreatedAt(t.revision)}, Then: ops})
	return err
}

// End gives the turn to the next hub and keeps the record of the run, which has ended.
func (f *Files) End(r *runs.Run) {
	t := f.currentTurn()
	if t == nil || t.run != r {
		return
	}
	f.setTurn(nil)
	t.cancel(context.Canceled)
	<-t.ended
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s := f.store
	if err := f.keepRecord(ctx, t, s.latest().Put(f.record(r), 0), s.running().Delete()); err != nil {
		s.log.Warn("the record of a run is not kept", "id", r.ID, "cause", err)
	}
	s.revoke(t.lease)
}

// revoke ends a lease that nothing needs any more; if it fails, the lease ends by itself.
func (s *Store) revoke(lease int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.etcd.Revoke(ctx, lease)
}
