// turn.go owns runs: one hub at a time, publishing, and the record of the latest run.

package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"authhub/internal/disk"
	"authhub/internal/etcd"
	"authhub/internal/results"
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

// Publish writes a new set and makes it the published one, if this hub's turn lasts until then. After an error the old
// set is the published one, unless the error is account.ErrUnknown. Errors besides: ErrOtherRun, write's own, and those
// of results.Folder.Publish.
func (f *Files) Publish(write results.Writer, modified time.Time) error {
	t := f.currentTurn()
	set := published{ID: modified.UTC().Format("20060102T150405") + "-" + rand.Text()[:10], Run: t.run.ID, Time: modified}
	path := filepath.Join(f.sets, set.ID)
	err := writeSet(path, &set, write, modified)
	if err == nil {
		err = disk.SyncFolder(disk.OS{}, f.sets)
	}
	if err == nil {
		err = f.here()
	}
	if err != nil {
		os.RemoveAll(path)
		return err
	}
	before, err := f.swap(t, set)
	if err != nil {
		return err // the next to publish removes the set
	}
	f.removeOld(set, before)
	return nil
}

// writeSet writes the three files, durably, and notes their sizes and digests.
func writeSet(path string, set *published, write results.Writer, modified time.Time) error {
	folder := results.Open(path, nil)
	if err := errors.Join(folder.Publish(write, modified), folder.Close()); err != nil {
		return err
	}
	for file := range set.Digests {
		var err error
		if set.Sizes[file], set.Digests[file], err = digestOf(filepath.Join(path, results.File(file).Name())); err != nil {
			return err
		}
	}
	return nil
}

// swap is the commit point. It returns the set that was the published one until then.
func (f *Files) swap(t *turn, set published) (published, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s := f.store
	stood, err := s.etcd.Do(ctx, etcd.Txn{Then: []etcd.Op{s.published().Get()}})
	if err != nil {
		return published{}, unavailable(err)
	}
	before, err := decodePublished(stood.Results[0].First())
	if err != nil {
		return published{}, unavailable(err)
	}
	value, _ := json.Marshal(set) // strings and numbers: it can't fail
	out, err := s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.running().CreatedAt(t.revision)},
		Then: []etcd.Op{s.published().Put(value, 0)},
		Else: []etcd.Op{s.published().Get()},
	})
	if err != nil {
		return published{}, unavailable(err)
	}
	if !out.Succeeded {
		if now, err := decodePublished(out.Results[0].First()); err != nil || now.ID != set.ID { // else an answer was lost
			return published{}, ErrOtherRun
		}
	}
	return before, nil
}

// removeOld removes the sets that were left ten minutes ago or earlier: all but the new one and the one before it, if
// that was published so long ago. Requests that were about to read a set have done so by then.
func (f *Files) removeOld(set, before published) {
	if set.Time.Sub(before.Time) < oldSets {
		return
	}
	entries, err := os.ReadDir(f.sets)
	if err != nil {
		return // the next to publish tries again
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && name != set.ID && name != before.ID && !strings.HasPrefix(name, ".") {
			if err := os.RemoveAll(filepath.Join(f.sets, name)); err != nil {
				f.store.log.Warn("an old set of files is not removed", "cause", err)
			}
		}
	}
}

// Latest is the latest run of any hub.
type Latest struct {
	ID        string
	Record    []byte    // as its hub wrote it last; nil if there has been no run
	Running   bool      // its hub still has the turn
	Published bool      // its files are the published ones
	Time      time.Time // when they were published

	revision int64
}

// Latest returns the latest run. Errors: those of an engine that is away.
func (f *Files) Latest(ctx context.Context) (Latest, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := f.store
	found, err := s.read(ctx, s.latest().Get(), s.running().Get(), s.published().Get())
	if err != nil {
		return Latest{}, err
	}
	set, err := decodePublished(found[2].First())
	if err != nil {
		return Latest{}, unavailable(err)
	}
	kv := found[0].First()
	if kv == nil {
		return Latest{}, nil
	}
	var run struct{ ID string }
	json.Unmarshal(kv.Value, &run) // what is no record has no id
	return Latest{ID: run.ID, Record: kv.Value, Running: found[1].First() != nil, Published: run.ID == set.Run && run.ID != "", Time: set.Time, revision: kv.ModRevision}, nil
}

// Correct puts record in the place of the latest one, whose hub died before it could, if that is still the latest.
func (f *Files) Correct(ctx context.Context, latest Latest, record []byte) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := f.store
	_, err := s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.latest().Unchanged(latest.revision), s.running().Absent()},
		Then: []etcd.Op{s.latest().Put(record, 0)},
	})
	if err != nil {
		s.log.Warn("the record of a run whose hub died is not corrected", "cause", err)
	}
}
