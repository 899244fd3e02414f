// lab.go owns what the lab asks of an embedded store besides the verbs of Store: to expire tokens, and to look at or
// replace everything.

package account

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"

	"authhub/internal/journal"
	"authhub/internal/jwt"
)

// Expire makes the access or the refresh tokens that a session has issued so far expire, and returns the session.
// Errors: ErrRevoked, ErrFailed, disk.ErrFull.
func (s *Embedded) Expire(ctx context.Context, id string, k jwt.Kind) (Session, error) {
	var expired Session
	err := s.commit(ctx, func() (event, error) {
		current := s.sessions[id]
		if current == nil {
			return event{}, ErrRevoked
		}
		expired = *current
		if k == jwt.Access {
			expired.AccessFrom = current.Generation + 1
		} else {
			expired.RefreshFrom = current.Generation + 1
		}
		return event{Expire: &expiry{id, expired.AccessFrom, expired.RefreshFrom}}, nil
	})
	return expired, err
}

// ReplaceAll puts these users and sessions in the place of all there are but the seeds. The caller has checked them.
// If the process dies meanwhile, a part of them may be there. Errors: ErrFailed, disk.ErrFull.
func (s *Embedded) ReplaceAll(ctx context.Context, users []UserRecord, sessions []Session) error {
	if err := s.failed(); err != nil {
		return err
	}
	last, err := s.appendAll(users, sessions)
	if err != nil || last == nil {
		return err
	}
	return storeError(last.Wait(ctx))
}

func (s *Embedded) appendAll(users []UserRecord, sessions []Session) (*journal.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.appendLocked(&event{Reset: true})
	for i := range users {
		e := &event{User: &users[i]}
		if users[i].Gone {
			e = &event{Gone: users[i].ID}
		}
		if err == nil {
			err = s.appendLocked(e)
		}
	}
	for _, started := range sessions {
		if err == nil {
			err = s.appendLocked(&event{Start: &started})
		}
	}
	return s.last, err
}

// Look returns the session of that id with its user, or else a zero session with the user of that id, or else nil.
func (s *Embedded) Look(sessionID, userID string) (Session, *User) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found Session
	if current := s.sessions[sessionID]; current != nil {
		found, userID = *current, current.User
	}
	return found, s.users[userID]
}

// UserByLogin returns the user of that name or e-mail address, or nil.
func (s *Embedded) UserByLogin(login string) *User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.named(login)
}

// UserByID returns the user of that id, or nil.
func (s *Embedded) UserByID(id string) *User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.users[id]
}

// CountUsers returns how many users there are.
func (s *Embedded) CountUsers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users)
}

// Contents returns everything that is not a seed as it was at the start: users by id after the seeds that are gone,
// sessions oldest first.
func (s *Embedded) Contents() ([]UserRecord, []Session) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	users, sessions := []UserRecord{}, []Session{}
	for id := range s.gone {
		users = append(users, UserRecord{ID: id, Gone: true})
	}
	for _, u := range s.users {
		if !u.Seed {
			users = append(users, *u.Stored())
		}
	}
	for _, session := range s.sessions {
		sessions = append(sessions, *session)
	}
	// Not slices.SortFunc, which is 25 kB of the binary for each type of large elements.
	sort.Slice(users, func(i, j int) bool {
		if a, b := users[i], users[j]; a.Gone == b.Gone {
			return a.ID < b.ID
		}
		return users[i].Gone
	})
	sort.Slice(sessions, func(i, j int) bool {
		a, b := sessions[i], sessions[j]
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID)) < 0
	})
	return users, sessions
}

// Users returns all users by name.
func (s *Embedded) Users() []*User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.users), func(a, b *User) int { return cmp.Compare(a.Username, b.Username) })
}

// PutUser puts the user that change returns in the place of the one whose name or e-mail address login is; nil stands
// for none, and then it adds the user. If the password has changed, all sessions of the user end. Errors: those of
// change, ErrUsernameTaken, ErrEmailTaken, ErrUserLimit, ErrFailed, disk.ErrFull; after any of them nothing has
// changed.
func (s *Embedded) PutUser(ctx context.Context, login string, change func(old *User) (*User, error)) error {
	return s.commit(ctx, func() (event, error) {
		old := s.named(login)
		u, err := change(old)
		if err != nil {
			return event{}, err
		}
		if err := s.freeFor(u); err != nil {
			return event{}, err
		}
		if old == nil && len(s.users) >= MaxUsers {
			return event{}, ErrUserLimit
		}
		e := event{User: u.Stored()}
		if of := s.ofUser[u.ID]; of != nil && !u.Credential.Equal(&old.Credential) {
			for _, session := range of.oldestFirst {
				e.End = append(e.End, session.ID)
			}
		}
		return e, nil
	})
}

// DeleteUser deletes the user whose name or e-mail address login is, and ends its sessions. Errors: ErrNoUser,
// ErrFailed, disk.ErrFull.
func (s *Embedded) DeleteUser(ctx context.Context, login string) error {
	return s.commit(ctx, func() (event, error) {
		if u := s.named(login); u != nil {
			return event{Gone: u.ID}, nil
		}
		return event{}, ErrNoUser
	})
}

// Seeds returns the seeds as they were at the start. They are immutable, so that stores may share them.
func (s *Embedded) Seeds() []*User { return slices.Collect(maps.Values(s.seeds)) }
