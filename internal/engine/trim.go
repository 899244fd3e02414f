package engine

import (
	"context"
	"sync"
	"time"

	"authhub/internal/etcd"
)

// lookAgain is how long a hub goes by the sessions that a user had when it looked.
const lookAgain = 10 * time.Second

// eldest has the sessions that are to make room, of a user who has the most: first those that are over, then the
// oldest. To find them costs etcd a look at all, so it is done every ten seconds and not at every login. Sessions that
// begin in between are younger; any that end are passed over.
type eldest struct {
	mu     sync.Mutex
	keys   []string
	looked time.Time
}

// trim ends one session of a user who has excess too many: each login ends one itself, so that of logins that race none
// ends more than its own. Sessions that nobody was told of, since their hub was killed at this place, are left to their
// leases unless they are many.
func (s *Store) trim(ctx context.Context, user string, excess int) error {
	missing := 1
	if excess > manyUntold {
		missing = excess
	}
	for excess > 0 && missing > 0 {
		keys, err := s.makeRoom(ctx, user, min(missing, etcd.MaxOps))
		if err != nil || len(keys) == 0 {
			return err
		}
		var t etcd.Txn
		for _, key := range keys {
			t.Then = append(t.Then, etcd.Delete(key))
		}
		out, err := s.etcd.Do(ctx, t)
		if err != nil {
			return unavailable(err)
		}
		for _, deleted := range out.Results {
			if deleted.Count > 0 || out.Repeated {
				missing--
			} // else another login was faster
		}
	}
	return nil
}

// manyUntold is how many sessions more than the most are no reason to worry: logins that race.
const manyUntold = 100

// makeRoom returns the keys of the n sessions that are to end first, or fewer.
func (s *Store) makeRoom(ctx context.Context, user string, n int) ([]string, error) {
	e := s.eldest.getOr(user, func() *eldest { return new(eldest) })
	if keys := e.take(n); keys != nil {
		return keys, nil
	}
	out, err := s.etcd.Do(ctx, etcd.Txn{Then: []etcd.Op{etcd.GetAll(s.sessions(user))}})
	if err != nil {
		return nil, unavailable(err)
	}
	e.fill(byAge(out.Results[0].KVs, s.now().UnixMilli()))
	return e.take(n), nil
}

// take returns the next n keys, fewer if there are fewer, or nil if it is time to look.
func (e *eldest) take(n int) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.keys) == 0 || time.Since(e.looked) > lookAgain {
		return nil
	}
	n = min(n, len(e.keys))
	taken := e.keys[:n:n]
	e.keys = e.keys[n:]
	return taken
}

func (e *eldest) fill(keys []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys, e.looked = keys, time.Now()
}

// byAge returns the keys of sessions, which come oldest first: those that are over at ms before the others.
func byAge(kvs []etcd.KeyValue, ms int64) []string {
	var over, rest []string
	for _, kv := range kvs {
		if one, err := decodeSession(&kv); err == nil && one.OverAt() <= ms {
			over = append(over, string(kv.Key))
		} else {
			rest = append(rest, string(kv.Key))
		}
	}
	return append(over, rest...)
}
