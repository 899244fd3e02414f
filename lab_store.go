// What the lab asks of a store besides the hub's own verbs: to expire tokens, and to look at or replace everything.

package main

import (
	"cmp"
	"context"
	"slices"

	"authhub/internal/journal"
	"authhub/internal/jwt"
)

// expire makes the access or the refresh tokens that a session has issued so far expire, and returns the session.
// Errors: errRevoked, errStoreFailed, errDiskFull.
func (s *store) expire(ctx context.Context, id string, k jwt.Kind) (session, error) {
	var expired session
	err := s.change(ctx, func() (event, error) {
		current := s.sessions[id]
		if current == nil {
			return event{}, errRevoked
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

// replaceAll puts these users and sessions in the place of all there are but the seeds. After a crash meanwhile,
// a part of them may be there. The caller has checked them. Errors: errStoreFailed, errDiskFull.
func (s *store) replaceAll(ctx context.Context, users []userRecord, sessions []session) error {
	written, err := s.appendAndApplyAll(users, sessions)
	if err != nil {
		return err
	}
	return settled(ctx, written)
}

func (s *store) appendAndApplyAll(users []userRecord, sessions []session) (*journal.Commit, error) {
	if err := s.ready(); err != nil {
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
func (s *store) forgetAll() {
	clear(s.sessions)
	clear(s.ofUser)
	clear(s.reused)
	for id, u := range s.users {
		if !u.Seed {
			delete(s.users, id)
			delete(s.byLogin, fold(u.Username))
			delete(s.byLogin, fold(u.Email))
		}
	}
}

// look returns the session and the user of these ids where they exist, whatever state they are in; else zero and nil.
func (s *store) look(sessionID, userID string) (session, *user) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found session
	if current := s.sessions[sessionID]; current != nil {
		found, userID = *current, current.User
	}
	return found, s.users[userID]
}

// userByID returns the user of that id, or nil.
func (s *store) userByID(id string) *user {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.users[id]
}

func (s *store) countUsers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users)
}

// contents returns everything that is not a seed, users by id, sessions oldest first.
func (s *store) contents() ([]userRecord, []session) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	users, sessions := []userRecord{}, []session{}
	for _, u := range s.users {
		if !u.Seed {
			users = append(users, *u.stored())
		}
	}
	for _, one := range s.sessions {
		sessions = append(sessions, *one)
	}
	slices.SortFunc(users, func(a, b userRecord) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(sessions, func(a, b session) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return users, sessions
}

// seedUsers returns the seeds. They are immutable, so that stores may share them.
func (s *store) seedUsers() []*user {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var seeds []*user
	for _, u := range s.users {
		if u.Seed {
			seeds = append(seeds, u)
		}
	}
	return seeds
}
