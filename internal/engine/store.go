// Package engine keeps users, sessions and the published files of many hubs in one etcd cluster.
//
// Every verb of the store is one transaction, or a linearizable read and then a transaction whose condition is what was
// read. If it is unknown what became of a transaction (a time-out, a 504, a broken connection), the store repeats it
// exactly as it was. A session's value carries the id of its write, and a name has the id of its user; by that the
// repetition sees that the first try has won. A change goes on when its client leaves, and every verb ends within
// limit.
//
// The store remembers only what can't change (a name's user, a user by the revision of its key), so it watches nothing
// and nothing can be stale.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/etcd"
	"authhub/internal/passwd"
)

// limit is how long a verb tries. A lost majority is answered with 503 after it.
const limit = 7 * time.Second

// Store is an account.Store on etcd.
type Store struct {
	keys
	etcd        *etcd.Client
	reads       *batches
	leases      *leases
	users       *remembered[userAt]
	logins      *remembered[string]  // ids of users by folded login
	eldest      *remembered[*eldest] // sessions by user
	room        room
	plain       map[string]passwd.Credential // of this hub's -users, by id
	fingerprint string                       // of the secret
	now         func() time.Time
	log         *slog.Logger
	stop        context.CancelFunc
	looking     sync.WaitGroup
}

// sessionValue is what lies under a session's key. Write is the id of the write that put it there: the current pair's.
type sessionValue struct {
	account.Session
	Write string   `json:"w"`
	Room  etcd.Key `json:"room,omitempty"` // the key of the session that ended for it
}

func (v sessionValue) encode() []byte {
	value, _ := json.Marshal(v) // strings and numbers: it can't fail
	return value
}

// begin is the context of a change: its client may leave.
func begin(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// unavailable turns an error of etcd into one of the store's two.
func unavailable(err error) error {
	switch {
	case errors.Is(err, etcd.ErrUnknown):
		return fmt.Errorf("%w: %w", account.ErrUnknown, err)
	default:
		return fmt.Errorf("%w: %w", account.ErrUnavailable, err)
	}
}

// read is a part of a linearizable read. Errors: account.ErrUnavailable.
func (s *Store) read(ctx context.Context, ops ...etcd.Op) ([]etcd.Result, error) {
	found, err := s.reads.read(ctx, ops...)
	if err != nil {
		err = fmt.Errorf("%w: %w", account.ErrUnavailable, err)
	}
	return found, err
}

// Close ends the look at the nodes and gives the connections back.
func (s *Store) Close() error {
	s.stop()
	s.looking.Wait()
	s.etcd.Close()
	return nil
}

// Register adds u and starts its first session. Errors: account.ErrUsernameTaken, ErrEmailTaken, ErrUserLimit and those
// of an engine that is away.
func (s *Store) Register(ctx context.Context, u *account.User, first account.Session) error {
	ctx, cancel := begin(ctx)
	defer cancel()
	if err := s.checkRoom(ctx); err != nil {
		return err
	}
	started := sessionValue{Session: first, Write: rand.Text()}
	out, err := s.putLeased(ctx, &first, func(lease int64) etcd.Txn {
		t := s.claim(u)
		t.Then = append(t.Then, s.session(first.Ref()).Put(started.encode(), lease))
		return t
	})
	if err != nil || out.Succeeded {
		return err
	}
	return s.taken(ctx, u, out.Results)
}

// claim is the transaction that adds u if its names are free. Its Else reads who has them.
func (s *Store) claim(u *account.User) etcd.Txn {
	t := etcd.Txn{Then: []etcd.Op{s.user(u.ID).Put(encodeUser(u), 0)}}
	for _, name := range s.names(u) {
		t.If = append(t.If, name.Absent())
		t.Then = append(t.Then, name.Put([]byte(u.ID), 0))
		t.Else = append(t.Else, name.Get())
	}
	return t
}

// taken says which name of u another user has, or nil if it is u itself, by a try whose answer was lost.
func (s *Store) taken(ctx context.Context, u *account.User, holders []etcd.Result) error {
	name := holders[0].First()
	switch {
	case name == nil:
		return account.ErrEmailTaken
	case string(name.Value) == u.ID:
		return nil
	case account.Fold(u.Username) != account.Fold(u.Email):
		return account.ErrUsernameTaken
	}
	holder, err := s.userByID(ctx, string(name.Value)) // then it is the address that is taken, unless somebody is called so
	if err == nil && holder != nil && account.Fold(holder.Username) != account.Fold(u.Username) {
		return account.ErrEmailTaken
	}
	if err != nil {
		return err
	}
	return account.ErrUsernameTaken
}

// StartSession adds a session. If its user has more than the most then, the oldest have ended when it returns.
// Errors: account.ErrNoUser and those of an engine that is away.
func (s *Store) StartSession(ctx context.Context, started account.Session) error {
	ctx, cancel := begin(ctx)
	defer cancel()
	value := sessionValue{Session: started, Write: rand.Text()}
	out, err := s.putLeased(ctx, &started, func(lease int64) etcd.Txn {
		return etcd.Txn{
			If:   []etcd.Cond{s.user(started.User).Present()},
			Then: []etcd.Op{s.session(started.Ref()).Put(value.encode(), lease), s.sessions(started.User).Count()},
		}
	})
	switch {
	case err != nil:
		return err
	case !out.Succeeded:
		return account.ErrNoUser
	}
	return s.trim(ctx, value, int(out.Results[1].Count)-account.MaxSessionsPerUser)
}

// Live returns the session and its user. Errors: account.ErrRevoked, ErrDisabled, ErrUnavailable.
func (s *Store) Live(ctx context.Context, ref account.SessionRef) (account.Session, *account.User, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	known, _ := s.users.get(ref.User)
	found, err := s.read(ctx, s.session(ref).Get(), s.readUser(ref.User, known))
	if err != nil {
		return account.Session{}, nil, err
	}
	current, err := decodeSession(found[0].First())
	if err != nil {
		return account.Session{}, nil, err
	}
	owner, err := s.userIn(found[1], ref.User, known)
	switch {
	case err != nil:
		return account.Session{}, nil, err
	case current == nil || owner == nil:
		return account.Session{}, nil, account.ErrRevoked
	case owner.Disabled:
		return account.Session{}, nil, account.ErrDisabled
	}
	return current.Session, owner, nil
}

// EndSession ends the session, or all of its user's with it. One that has ended already is no error, and then nothing
// else ends either.
func (s *Store) EndSession(ctx context.Context, ref account.SessionRef, all bool) error {
	ctx, cancel := begin(ctx)
	defer cancel()
	t := etcd.Txn{Then: []etcd.Op{s.session(ref).Delete()}}
	if all {
		t = etcd.Txn{If: []etcd.Cond{s.session(ref).Present()}, Then: []etcd.Op{s.sessions(ref.User).DeleteAll()}}
	}
	if _, err := s.etcd.Do(ctx, t); err != nil {
		return unavailable(err)
	}
	return nil
}

// EndOthers ends all sessions of the user but this one, if this one has not ended.
func (s *Store) EndOthers(ctx context.Context, ref account.SessionRef) error {
	ctx, cancel := begin(ctx)
	defer cancel()
	t := etcd.Txn{If: []etcd.Cond{s.session(ref).Present()}, Then: s.sessions(ref.User).DeleteAllBut(s.session(ref))}
	if _, err := s.etcd.Do(ctx, t); err != nil {
		return unavailable(err)
	}
	return nil
}

// putLeased carries out the transaction that puts session one, with a lease that lives as long as it may.
func (s *Store) putLeased(ctx context.Context, one *account.Session, txn func(lease int64) etcd.Txn) (etcd.Outcome, error) {
	for {
		id, err := s.leases.until(ctx, one.OverAt(), s.now())
		if err != nil {
			return etcd.Outcome{}, unavailable(err)
		}
		out, err := s.etcd.Do(ctx, txn(id))
		if errors.Is(err, etcd.ErrNoLease) && s.leases.forget(ctx, id) == nil && ctx.Err() == nil {
			continue // it was revoked, or the cluster was restored from a backup
		}
		if err != nil {
			return out, unavailable(err)
		}
		return out, nil
	}
}

// storedSession is a session with the revision that its key has.
type storedSession struct {
	sessionValue
	revision int64
}

// decodeSession returns the session under kv, or nil if there is none.
func decodeSession(kv *etcd.KeyValue) (*storedSession, error) {
	if kv == nil {
		return nil, nil
	}
	stored := storedSession{revision: kv.ModRevision}
	if err := json.Unmarshal(kv.Value, &stored.sessionValue); err != nil {
		return nil, fmt.Errorf("%w: the key %s holds no session: %w", account.ErrUnavailable, kv.Key, err)
	}
	return &stored, nil
}
