// What the lab asks of a store besides the hub's own verbs: to expire tokens, and to look at or replace everything.

package account

import (
	"cmp"
	"context"
	"slices"

	"authhub/internal/journal"
	"authhub/internal/jwt"
)

// Expire makes the access or the refresh tokens that a session has issued so far expire, and returns the session.
// Errors: ErrRevoked, ErrFailed, ErrDiskFull.
func (s *Embedded) Expire(ctx context.Context, id string, k jwt.Kind) (Session, error) {
	var expired Session
	err := s.change(ctx, func() (event, error) {
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

// ReplaceAll puts these users and sessions in the place of all there are but the seeds. After a crash meanwhile,
// a part of them may be there. The caller has checked them. Errors: ErrFailed, ErrDiskFull.
func (s *Embedded) ReplaceAll(ctx context.Context, users []UserRecord, sessions []Session) error {
	written, err := s.appendAndApplyAll(users, sessions)
	if err != nil {
		return err
	}
	return settled(ctx, written)
}

func (s *Embedded) appendAndApplyAll(users []UserRecord, sessions []Session) (*journal.Commit, error) {
	if err := s.Ready(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	written, err := s.appendAndApplyOne(&event{Reset: true})
	for i := range users {
		if err == nil {
			written, err = s.appendAndApplyOne(&event{User: &users[i]})
		}
	}
	for i := range sessions {
		if err == nil {
			written, err = s.appendAndApplyOne(&event{Start: &sessions[i]})
		}
	}
	return written, err
}

// forgetAll leaves the seeds and nothing else.
func (s *Embedded) forgetAll() {
	clear(s.sessions)
	clear(s.ofUser)
	clear(s.reused)
	for id, u := range s.users {
		if !u.Seed {
			delete(s.users, id)
			delete(s.byLogin, Fold(u.Username))
			delete(s.byLogin, Fold(u.Email))
		}
	}
}

// Look returns the session and the user of these ids where they exist, whatever state they are in; else zero and nil.
func (s *Embedded) Look(sessionID, userID string) (Session, *User) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found Session
	if current := s.sessions[sessionID]; current != nil {
		found, userID = *current, current.User
	}
	return found, s.users[userID]
}

// UserByID returns the user of that id, or nil.
func (s *Embedded) UserByID(id string) *User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.users[id]
}

func (s *Embedded) CountUsers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users)
}

// Contents returns everything that is not a seed, users by id, sessions oldest first.
func (s *Embedded) Contents() ([]UserRecord, []Session) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	users, sessions := []UserRecord{}, []Session{}
	for _, u := range s.users {
		if !u.Seed {
			users = append(users, *u.stored())
		}
	}
	for _, one := range s.sessions {
		sessions = append(sessions, *one)
	}
	slices.SortFunc(users, func(a, b UserRecord) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(sessions, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return users, sessions
}

// Seeds returns the seeds. They are immutable, so that stores may share them.
func (s *Embedded) Seeds() []*User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var seeds []*User
	for _, u := range s.users {
		if u.Seed {
			seeds = append(seeds, u)
		}
	}
	return seeds
}
