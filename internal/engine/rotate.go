// rotate.go owns refresh tokens: one is spent, or its reuse ends the session.

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"authhub/internal/account"
	"authhub/internal/etcd"
)

// standing is what etcd has of a session when a refresh token comes.
type standing struct {
	current *storedSession // nil: it has ended
	reused  int            // the generation at which the reuse of a token ended it; 0 if none did
}

// Rotate spends the refresh token of generation gen and returns the session with its next pair current. A token spent
// before ends the session, unless policy lets it pass: account.ErrReused, then and from then on.
// Errors besides: account.ErrRevoked, ErrDisabled, jwt.ErrExpired and those of an engine that is away.
func (s *Store) Rotate(ctx context.Context, ref account.SessionRef, gen int, now time.Time, policy account.ReusePolicy) (account.Session, *account.User, error) {
	ctx, cancel := begin(ctx)
	defer cancel()
	at, owner, err := s.standing(ctx, ref)
	write := rand.Text()
	for err == nil {
		var next account.Session
		next, err = at.exchange(gen, now, policy)
		switch {
		case errors.Is(err, account.ErrReused) && at.current != nil:
			at, err = s.endReused(ctx, ref, at) // the next time round says so
		case err != nil:
		case owner == nil:
			err = account.ErrRevoked
		case owner.Disabled:
			err = account.ErrDisabled
		default:
			at, err = s.put(ctx, sessionValue{Session: next, Write: write}, at.current.revision)
			if err == nil && at.current != nil && at.current.Write == write {
				return at.current.Session, owner, nil
			}
		}
	}
	return account.Session{}, nil, err
}

// exchange says what a token of generation gen makes of the session.
func (at standing) exchange(gen int, now time.Time, policy account.ReusePolicy) (account.Session, error) {
	switch {
	case at.current == nil && gen < at.reused:
		return account.Session{}, account.ErrReused
	case at.current == nil:
		return account.Session{}, account.ErrRevoked
	}
	return at.current.Exchange(gen, now, policy)
}

// standing reads the session, what its reuse left, and its user.
func (s *Store) standing(ctx context.Context, ref account.SessionRef) (standing, *account.User, error) {
	known, _ := s.users.get(ref.User)
	found, err := s.read(ctx, s.session(ref).Get(), s.reused(ref.Session).Get(), s.readUser(ref.User, known))
	if err != nil {
		return standing{}, nil, err
	}
	owner, err := s.userIn(found[2], ref.User, known)
	if err != nil {
		return standing{}, nil, err
	}
	at, err := standingIn(found)
	return at, owner, err
}

// standingIn reads the first two of found.
func standingIn(found []etcd.Result) (standing, error) {
	current, err := decodeSession(found[0].First())
	at := standing{current: current}
	if kv := found[1].First(); kv != nil {
		at.reused, _ = strconv.Atoi(string(kv.Value))
	}
	return at, err
}

// put replaces the session of revision seen, and returns what stands then: next, or what another hub has made of it.
func (s *Store) put(ctx context.Context, next sessionValue, seen int64) (standing, error) {
	key := s.session(next.Ref())
	out, err := s.putLeased(ctx, &next.Session, func(lease int64) etcd.Txn {
		return etcd.Txn{
			If:   []etcd.Cond{key.Unchanged(seen)},
			Then: []etcd.Op{key.Put(next.encode(), lease)},
			Else: []etcd.Op{key.Get(), s.reused(next.ID).Get()},
		}
	})
	switch {
	case err != nil:
		return standing{}, err
	case out.Succeeded:
		return standing{current: &storedSession{next, out.Revision}}, nil
	}
	now, err := standingIn(out.Results)
	if err == nil && now.current == nil && out.Repeated {
		err = fmt.Errorf("%w: the session has ended since the first try, whose answer was lost", account.ErrUnknown)
	}
	return now, err
}

// endReused ends the session that stands at, and returns what stands then: nothing, or what another hub has made of it.
func (s *Store) endReused(ctx context.Context, ref account.SessionRef, at standing) (standing, error) {
	key, generation := s.session(ref), at.current.Generation
	out, err := s.putLeased(ctx, &at.current.Session, func(lease int64) etcd.Txn {
		return etcd.Txn{
			If:   []etcd.Cond{key.Unchanged(at.current.revision)},
			Then: []etcd.Op{key.Delete(), s.reused(ref.Session).Put(strconv.AppendInt(nil, int64(generation), 10), lease)},
			Else: []etcd.Op{key.Get(), s.reused(ref.Session).Get()},
		}
	})
	switch {
	case err != nil:
		return standing{}, err
	case out.Succeeded:
		return standing{reused: generation}, nil
	}
	return standingIn(out.Results)
}
