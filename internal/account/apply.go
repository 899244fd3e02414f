// apply.go owns the maps of the embedded store: how events change them, live and in replay, and what a compacted
// journal holds.

package account

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
)

const maxReused = 10_000 // sessions ended by reuse that are remembered

// sessionList is the sessions of one user.
type sessionList struct {
	oldestFirst []*Session
	noneOverTil int64 // milliseconds since the Unix epoch; before it no session of the list is over
}

// Replay applies one line of the journal.
func (s *Embedded) Replay(line []byte) error {
	e, err := parseEvent(line)
	if err != nil {
		return err
	}
	if e.User != nil && !(e.User.Hash == "" && s.seeds[e.User.ID] == nil) { // a changed seed that is not in -users any more
		u, err := e.User.User(s.seeds[e.User.ID])
		if err != nil {
			return err
		}
		if err := s.admit(u); err != nil {
			return err
		}
	}
	s.applyLocked(&e)
	return nil
}

// admit checks a user of the journal. Before names were folded, two could register whose names differ by more than
// small and capital letters, but are one when folded: both stay.
func (s *Embedded) admit(u *User) error {
	taken := s.freeFor(u)
	if taken == nil {
		return nil
	}
	for _, name := range u.logins() {
		holder := s.named(name)
		if holder == nil {
			continue
		}
		lower := strings.ToLower(name) // not folded: the index has found holder by that
		if slices.ContainsFunc(holder.logins(), func(other string) bool { return strings.ToLower(other) == lower }) {
			s.clash = fmt.Errorf("user %q has registered in this folder and can't be one of -users or a demo account as well: %w; "+
				"take it out there", u.Username, taken)
			return s.clash
		}
		s.log.Warn("two users have one name but for its case: both stay, and each logs in with its own spelling", "user", u.Username, "other", holder.Username)
	}
	return nil
}

// applyLocked is the only function that changes users and sessions. An event of a session or user that is not there
// changes nothing: if a seed is taken out of -users, its sessions go too.
func (s *Embedded) applyLocked(e *event) {
	if e.Reset {
		s.forgetAll()
	}
	for _, id := range e.End {
		if ended := s.sessions[id]; ended != nil {
			s.removeSession(ended)
		}
		if e.Reused > 0 {
			s.rememberReused(id, e.Reused)
		}
	}
	if e.Gone != "" {
		s.removeUser(e.Gone)
	}
	if e.User != nil {
		if u, err := e.User.User(s.seeds[e.User.ID]); err == nil {
			s.addUser(u)
		}
	}
	if e.Start != nil && s.users[e.Start.User] != nil {
		s.addSession(e.Start)
	}
	if e.Rotate != nil {
		if current := s.sessions[e.Rotate.Session]; current != nil {
			current.Generation, current.Issued = e.Rotate.Generation, e.Rotate.Issued
			current.Behind, current.Skipped = e.Rotate.Behind, e.Rotate.Skipped
		}
	}
	if e.Expire != nil {
		if current := s.sessions[e.Expire.Session]; current != nil {
			current.AccessFrom, current.RefreshFrom = e.Expire.AccessFrom, e.Expire.RefreshFrom
		}
	}
}

// forgetAll removes all sessions and all users but the seeds, which become what they were.
func (s *Embedded) forgetAll() {
	clear(s.sessions)
	clear(s.ofUser)
	clear(s.reused)
	clear(s.users)
	clear(s.byLogin)
	clear(s.alike)
	clear(s.gone)
	for _, u := range s.seeds {
		s.addUser(u)
	}
}

// removeUser removes a user and its sessions.
func (s *Embedded) removeUser(id string) {
	if of := s.ofUser[id]; of != nil {
		for _, session := range slices.Clone(of.oldestFirst) {
			s.removeSession(session)
		}
	}
	if u := s.users[id]; u != nil {
		s.forgetLogins(u)
		delete(s.users, id)
	}
	if s.seeds[id] != nil {
		s.gone[id] = true
	}
}

func (s *Embedded) forgetLogins(u *User) {
	for _, name := range u.logins() {
		if s.alike[strings.ToLower(name)] == u {
			delete(s.alike, strings.ToLower(name))
		}
		if s.byLogin[Fold(name)] == u {
			delete(s.byLogin, Fold(name))
			s.promote(Fold(name))
		}
	}
}

// promote lets a user who is alike have the folded name that has become free.
func (s *Embedded) promote(folded string) {
	for name, u := range s.alike {
		if Fold(name) == folded {
			delete(s.alike, name)
			s.byLogin[folded] = u
			return
		}
	}
}

// rememberReused keeps the latest sessions that reuse ended. When they are too many, it forgets all before.
func (s *Embedded) rememberReused(id string, generation int) {
	if len(s.reused) == maxReused {
		clear(s.reused)
	}
	s.reused[id] = generation
}

// addUser adds a user, or puts it in the place of the one of its id.
func (s *Embedded) addUser(u *User) {
	u.Record()
	if old := s.users[u.ID]; old != nil {
		s.forgetLogins(old)
	}
	delete(s.gone, u.ID)
	s.users[u.ID] = u
	for _, name := range u.logins() {
		if holder := s.byLogin[Fold(name)]; holder == nil || holder.ID == u.ID {
			s.byLogin[Fold(name)] = u
		} else {
			s.alike[strings.ToLower(name)] = u
		}
	}
}

// freeFor returns ErrUsernameTaken or ErrEmailTaken if another user has what u wants. User names and e-mail addresses
// are of one kind: a name that is another user's e-mail address would lock that user out, and the other way round.
func (s *Embedded) freeFor(u *User) error {
	holder := s.byLogin[Fold(u.Username)]
	onlyEmail := u.Username == u.Email // then it is the address that is taken, unless a user has it as the user name
	switch {
	case holder != nil && holder.ID != u.ID && (!onlyEmail || Fold(holder.Username) == Fold(u.Username)):
		return ErrUsernameTaken
	case u.Email == "":
		return nil
	}
	if holder = s.byLogin[Fold(u.Email)]; holder != nil && holder.ID != u.ID {
		return ErrEmailTaken
	}
	return nil
}

func (s *Embedded) addSession(started *Session) {
	s.sessions[started.ID] = started
	of := s.ofUser[started.User]
	if of == nil {
		of = &sessionList{noneOverTil: math.MaxInt64}
		s.ofUser[started.User] = of
	}
	of.oldestFirst = append(of.oldestFirst, started)
	of.noneOverTil = min(of.noneOverTil, started.OverAt())
	s.noneOverTil = min(s.noneOverTil, started.OverAt())
}

func (s *Embedded) removeSession(ended *Session) {
	delete(s.sessions, ended.ID)
	of := s.ofUser[ended.User]
	if i := slices.Index(of.oldestFirst, ended); i == 0 { // to move the others up, 999 at the limit, is 2 % of a login
		of.oldestFirst[0] = nil
		of.oldestFirst = of.oldestFirst[1:]
	} else {
		of.oldestFirst = slices.Delete(of.oldestFirst, i, i+1)
	}
	if len(of.oldestFirst) == 0 {
		delete(s.ofUser, ended.User)
	}
}

// makeRoom returns the sessions of a user that end when a new one starts at ms: those that are over, and the oldest
// if there are still as many as a user may have. They become part of the event, so that they stay ended after a
// restart even if the clock was ahead.
func (s *Embedded) makeRoom(userID string, ms int64) (end []string) {
	of := s.ofUser[userID]
	if of == nil {
		return nil
	}
	oldest := ""
	if ms >= of.noneOverTil {
		of.noneOverTil = math.MaxInt64
		for _, session := range of.oldestFirst {
			if ms >= session.OverAt() {
				end = append(end, session.ID)
				continue
			}
			of.noneOverTil = min(of.noneOverTil, session.OverAt())
			if oldest == "" {
				oldest = session.ID
			}
		}
	} else {
		oldest = of.oldestFirst[0].ID
	}
	if len(of.oldestFirst)-len(end) >= MaxSessionsPerUser {
		end = append(end, oldest)
	}
	return end
}

// sweep adds to end some sessions of any users that are over at ms. It looks at a few, wherever the map's order
// begins: at a few for each session that starts, those that are over never outnumber the live ones for long.
func (s *Embedded) sweep(end []string, ms int64) []string {
	if ms < s.noneOverTil {
		return end
	}
	looked := 0
	for id, session := range s.sessions {
		if ms >= session.OverAt() && !slices.Contains(end, id) {
			end = append(end, id)
		}
		if looked++; looked == 4 {
			break
		}
	}
	return end
}

// LiveRecords returns how many lines a compacted journal would have.
func (s *Embedded) LiveRecords() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.liveLocked()
}

// liveLocked counts every seed as unchanged, since the lab alone changes seeds and there are few of them.
func (s *Embedded) liveLocked() int {
	return max(0, len(s.users)-len(s.seeds)) + len(s.gone) + len(s.sessions)
}

// Snapshot returns the lines of a compacted journal. It calls take at the instant that they describe.
func (s *Embedded) Snapshot(take func()) iter.Seq[[]byte] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	take()
	events := make([]event, 0, s.liveLocked())
	for id := range s.gone {
		events = append(events, event{Gone: id})
	}
	for _, u := range s.users {
		if !u.Seed {
			events = append(events, event{User: u.Stored()})
		}
	}
	for _, of := range s.ofUser {
		for _, session := range of.oldestFirst {
			copied := *session
			events = append(events, event{Start: &copied})
		}
	}
	return func(yield func([]byte) bool) {
		for _, e := range events {
			if line, _ := json.Marshal(e); !yield(line) {
				return
			}
		}
	}
}
