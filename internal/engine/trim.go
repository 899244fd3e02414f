// trim.go keeps a user to the most sessions that a user may have.

package engine

import (
	"context"
	"sync"
	"time"

	"authhub/internal/etcd"
)

// lookAgain is how long a hub uses a list of a user's sessions before it asks for a new one.
const lookAgain = 10 * time.Second

// eldest lists the sessions that make room, of a user who has the most: first those that are over, then the oldest. To
// make the list, etcd has to read all sessions of the user, so a hub makes it every ten seconds and not at every login.
// Sessions that begin in between are younger; those that end are passed over.
type eldest struct {
	mu     sync.Mutex
	keys   []etcd.Key
	looked time.Time
}

// trim ends one session of the user of started, who has excess too many: each login ends one itself, so that of logins
// that race none ends more than its own. The session that has been started names the one that made room for it, so that
// a repetition knows its own doing. Sessions that nobody was told of, since their hub was killed before this, are left
// to their leases unless they are many.
func (s *Store) trim(ctx context.Context, started sessionValue, excess int) error {
	missing := min(excess, 1)
	if excess > manyUntold {
		missing = excess
	}
	for missing > 0 {
		key, err := s.nextToGo(ctx, started.User)
		if err != nil || key == "" {
			return err
		}
		started.Room = key
		out, err := s.putLeased(ctx, &started.Session, func(lease int64) etcd.Txn {
			own := s.session(started.Ref())
			return etcd.Txn{
				If:   []etcd.Cond{key.Present()},
				Then: []etcd.Op{key.Delete(), own.Put(started.encode(), lease)},
				Else: []etcd.Op{own.Get()},
			}
		})
		if err != nil {
			return err
		}
		if !out.Succeeded {
			own, err := decodeSession(out.Results[0].First())
			if err != nil || own == nil {
				return err
			}
			if own.Room != key {
				continue // another login was faster
			}
		}
		missing--
	}
	return nil
}

// manyUntold is how many sessions more than the most are no reason to worry: logins that race.
const manyUntold = 100

// nextToGo returns the key of the session that is to end first, or "" if there is none.
func (s *Store) nextToGo(ctx context.Context, user string) (etcd.Key, error) {
	e := s.eldest.getOr(user, func() *eldest { return new(eldest) })
	if key := e.take(); key != "" {
		return key, nil
	}
	out, err := s.etcd.Do(ctx, etcd.Txn{Then: []etcd.Op{s.sessions(user).GetAll()}})
	if err != nil {
		return "", unavailable(err)
	}
	e.fill(byAge(out.Results[0].KVs, s.now().UnixMilli()))
	return e.take(), nil
}

// take returns the next key, or "" if there is none or if it is time to look.
func (e *eldest) take() etcd.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.keys) == 0 || time.Since(e.looked) > lookAgain {
		return ""
	}
	key := e.keys[0]
	e.keys = e.keys[1:]
	return key
}

func (e *eldest) fill(keys []etcd.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys, e.looked = keys, time.Now()
}

// byAge returns the keys of sessions, which come oldest first: those that are over at ms before the others.
func byAge(kvs []etcd.KeyValue, ms int64) []etcd.Key {
	var over, rest []etcd.Key
	for _, kv := range kvs {
		if one, err := decodeSession(&kv); err == nil && one.OverAt() <= ms {
			over = append(over, etcd.Key(kv.Key))
		} else {
			rest = append(rest, etcd.Key(kv.Key))
		}
	}
	return append(over, rest...)
}
