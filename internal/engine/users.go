// users.go owns users: how they are kept, found and remembered.

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/etcd"
)

// remembered is a bounded map. When it is full it forgets everything.
type remembered[V any] struct {
	most  int
	mu    sync.Mutex
	items map[string]V
}

func newRemembered[V any](most int) *remembered[V] {
	return &remembered[V]{most: most, items: make(map[string]V)}
}

func (r *remembered[V]) get(key string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.items[key]
	return value, ok
}

func (r *remembered[V]) set(key string, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(key, value)
}

func (r *remembered[V]) setLocked(key string, value V) {
	if len(r.items) >= r.most {
		clear(r.items)
	}
	r.items[key] = value
}

// getOr returns what is remembered, and remembers what fresh returns if nothing is.
func (r *remembered[V]) getOr(key string, fresh func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.items[key]
	if !ok {
		value = fresh()
		r.setLocked(key, value)
	}
	return value
}

// userAt is a user as it was at a revision of its key.
type userAt struct {
	user     *account.User
	revision int64
}

// userValue is what lies under a user's key.
type userValue struct {
	account.UserRecord
	Seed bool `json:"seed,omitempty"` // of -users
}

func encodeUser(u *account.User) []byte {
	value, _ := json.Marshal(userValue{*u.Stored(), u.Seed}) // strings and numbers: it can't fail
	return value
}

// readUser reads a user's key, but its value only if that is newer than what is known.
func (s *Store) readUser(id string, known userAt) etcd.Op {
	return s.user(id).GetNewer(known.revision)
}

// userIn returns the user that readUser found: known, if nothing is newer; nil, if there is none.
func (s *Store) userIn(found etcd.Result, id string, known userAt) (*account.User, error) {
	kv := found.First()
	switch {
	case found.Count == 0:
		return nil, nil
	case kv == nil:
		return known.user, nil
	}
	u, err := s.decodeUser(kv.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s holds no user: %w", account.ErrUnavailable, kv.Key, err)
	}
	s.users.set(id, userAt{u, kv.ModRevision})
	return u, nil
}

// decodeUser reads a user. A user of this hub's -users keeps the plain password that it has there, which is checked
// sooner than a hash.
func (s *Store) decodeUser(value []byte) (*account.User, error) {
	var v userValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	u, err := v.UserRecord.User(nil)
	if err != nil {
		return nil, err
	}
	u.Seed = v.Seed
	if plain, ok := s.plain[u.ID]; ok {
		u.Credential = plain
	}
	u.Record() // made now: from here on the user is shared
	return u, nil
}

// userByID returns the user of that id, or nil.
func (s *Store) userByID(ctx context.Context, id string) (*account.User, error) {
	known, _ := s.users.get(id)
	found, err := s.read(ctx, s.readUser(id, known))
	if err != nil {
		return nil, err
	}
	return s.userIn(found[0], id, known)
}

// UserNamed returns the user of that name or e-mail address, or nil. After an error nobody knows whether there is one.
func (s *Store) UserNamed(ctx context.Context, login string) (*account.User, error) {
	if len(login) > 254 { // nobody has such a name
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := s.name(login)
	id, guessed := s.logins.get(string(key))
	if !guessed {
		return s.findUser(ctx, key)
	}
	known, _ := s.users.get(id)
	found, err := s.read(ctx, key.Get(), s.readUser(id, known))
	if err != nil {
		return nil, err
	}
	if holder := found[0].First(); holder == nil || string(holder.Value) != id {
		return s.findUser(ctx, key)
	}
	return s.userIn(found[1], id, known)
}

// findUser asks for the name and then for its user.
func (s *Store) findUser(ctx context.Context, key etcd.Key) (*account.User, error) {
	found, err := s.read(ctx, key.Get())
	if err != nil {
		return nil, err
	}
	holder := found[0].First()
	if holder == nil {
		return nil, nil
	}
	s.logins.set(string(key), string(holder.Value))
	return s.userByID(ctx, string(holder.Value))
}

// checkRoom returns account.ErrUserLimit when there are account.MaxUsers. Hubs that register users at the same instant
// may exceed the limit by as many users.
func (s *Store) checkRoom(ctx context.Context) error {
	if s.room.left(time.Now()) {
		return nil
	}
	found, err := s.read(ctx, s.keys.users().Count())
	if err != nil {
		return err
	}
	if found[0].Count >= account.MaxUsers {
		return account.ErrUserLimit
	}
	s.room.counted(int(found[0].Count), time.Now())
	return nil
}

// room remembers for how long registrations need not count all users, because there are far fewer than the limit.
type room struct {
	mu    sync.Mutex
	until time.Time
}

func (r *room) left(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}

// counted allows ten seconds without counting for every 20,000 users that are missing.
func (r *room) counted(users int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = now.Add(time.Duration((account.MaxUsers-users)/20_000) * 10 * time.Second)
}
