// latest.go owns the record of the latest run, as all hubs see it.

package engine

import (
	"context"
	"encoding/json"
	"time"

	"authhub/internal/etcd"
)

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
