// The store: users and sessions, and the rules about them.
//
// Every verb is check, append, apply, wait: under one mutex it checks the rules, appends an event to the journal
// and applies the same event to the maps; then, the mutex released, it waits until the event is on disk.
// apply is the only mutator, and replay goes through it too, so what a restart finds is what was acknowledged.
// A change is seen by others from apply on; it is acknowledged, and so promised, only when it is synced. Once the
// journal has failed nothing is changed any more (errStoreFailed) and reads go on.
//
// The store knows no HTTP, no tokens and no clock; verbs take now and return copies.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"authhub/internal/disk"
	"authhub/internal/journal"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/reply"
)

var (
	errUsernameTaken = errors.New("user name taken")
	errEmailTaken    = errors.New("e-mail address taken")
	errUserLimit     = errors.New("too many users")
	errNoUser        = errors.New("no such user")
	errDisabled      = errors.New("account disabled")
	errRevoked       = errors.New("session ended")
	errReused        = errors.New("refresh token spent before")
	errStoreFailed   = errors.New("the store has failed")
	errDiskFull      = errors.New("disk full")
	errBusy          = errors.New("too much work waiting")
	errReplaced      = errors.New("state replaced") // the cause with which the lab cancels who came before it
)

const (
	maxUsers           = 100_000
	maxSessionsPerUser = 1_000
	maxReused          = 10_000 // sessions ended by reuse that are remembered
)

// formatTime writes ISO 8601 in UTC with exactly three decimals.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// store keeps everything in memory and, unless it is ephemeral, in a journal.
type store struct {
	journal *journal.Journal // nil: ephemeral

	mu       sync.RWMutex
	users    map[string]*user // by id
	byLogin  map[string]*user // by user name and by e-mail address, in lower case: each means one account only
	seeds    int              // how many users are not of the journal
	sessions map[string]*session
	ofUser   map[string]*sessionList
	reused   map[string]int // generation that sessions had reached when the reuse of a spent token ended them
	clash    error          // a user of the journal and a seed that can't both be there
}

// newStore returns an ephemeral store with these users in it.
func newStore(seeds []*user) (*store, error) {
	s := &store{
		users:    make(map[string]*user, len(seeds)),
		byLogin:  make(map[string]*user, 2*len(seeds)),
		sessions: make(map[string]*session),
		ofUser:   make(map[string]*sessionList),
		reused:   make(map[string]int),
		seeds:    len(seeds),
	}
	for _, u := range seeds {
		if s.users[u.ID] != nil {
			return nil, fmt.Errorf("two users have the id %q", u.ID)
		}
		if err := s.freeFor(u); err != nil {
			return nil, fmt.Errorf("user %q: %w", u.Username, err)
		}
		s.addUser(u)
	}
	return s, nil
}

// openStore returns a store whose changes outlive the process in the journal at path.
func openStore(path string, seeds []*user, log *slog.Logger) (*store, error) {
	s, err := newStore(seeds)
	if err != nil {
		return nil, err
	}
	s.journal, err = journal.Open(disk.OS{}, path, s, log)
	if s.clash != nil {
		return nil, s.clash // the journal is sound; the seeds don't go with it
	}
	return s, err
}

// close syncs what is pending and closes the journal.
func (s *store) close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// ready returns nil, or errStoreFailed when the store takes no more changes.
func (s *store) ready() error {
	if s.journal != nil && s.journal.Failed() != nil {
		return errStoreFailed
	}
	return nil
}

// register adds u and starts its first session. Errors: errUsernameTaken, errEmailTaken, errUserLimit,
// errStoreFailed, errDiskFull; after any of them neither user nor session exists.
func (s *store) register(ctx context.Context, u *user, first session) error {
	return s.change(ctx, func() (event, error) {
		if err := s.freeFor(u); err != nil {
			return event{}, err
		}
		if len(s.users) >= maxUsers {
			return event{}, errUserLimit
		}
		return event{User: u.stored(), Start: &first}, nil
	})
}

// startSession adds a session; if its user has the most that one may have, the oldest ends for it.
// Errors: errNoUser, errStoreFailed, errDiskFull.
func (s *store) startSession(ctx context.Context, started session) error {
	return s.change(ctx, func() (event, error) {
		if s.users[started.User] == nil {
			return event{}, errNoUser
		}
		s.dropExpired(started.User, started.Created)
		r := event{Start: &started}
		if of := s.ofUser[started.User]; of != nil && len(of.oldestFirst) >= maxSessionsPerUser {
			r.End = []string{of.oldestFirst[0].ID}
		}
		return r, nil
	})
}

// rotate spends the refresh token of generation gen and returns the session with its next pair current.
// A token spent before ends the session, unless policy lets it pass: errReused, once that is on disk. The same token
// and the other spent ones of that session are errReused from then on, as long as the session is remembered.
// Errors besides: errRevoked, jwt.ErrExpired, errDisabled, errStoreFailed, errDiskFull.
func (s *store) rotate(ctx context.Context, id string, gen int, now time.Time, policy reusePolicy) (session, *user, error) {
	var next session
	var owner *user
	var reused error
	err := s.change(ctx, func() (event, error) {
		current := s.sessions[id]
		switch {
		case current == nil && gen < s.reused[id]:
			return event{}, errReused
		case current == nil || gen > current.Generation:
			return event{}, errRevoked
		case gen < current.RefreshFrom:
			return event{}, jwt.ErrExpired
		case gen < current.Generation && !policy.forgives(current, gen, now):
			reused = errReused
			return event{End: []string{id}, Reused: current.Generation}, nil
		}
		owner = s.users[current.User]
		if owner.Disabled {
			return event{}, errDisabled
		}
		next = *current
		if gen == current.Generation || policy.allow {
			next.Generation++
			next.Issued = now.UnixMilli()
		} // else the same pair again: written once more, so that it is on disk before it is answered
		return event{Rotate: &rotation{id, next.Generation, next.Issued}}, nil
	})
	if err == nil {
		err = reused
	}
	return next, owner, err
}

// endSession ends the session, or all of its user's with it. One that has ended already is no error, and then
// nothing else ends either: its token has no say any more. Errors: errStoreFailed, errDiskFull.
func (s *store) endSession(ctx context.Context, id string, all bool) error {
	return s.change(ctx, func() (event, error) {
		ended := s.sessions[id]
		if ended == nil {
			return event{}, nil
		}
		if !all {
			return event{End: []string{id}}, nil
		}
		var r event
		for _, one := range s.ofUser[ended.User].oldestFirst {
			r.End = append(r.End, one.ID)
		}
		return r, nil
	})
}

// live returns the user and a copy of the session, or errRevoked, errDisabled.
func (s *store) live(id string) (session, *user, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	current := s.sessions[id]
	if current == nil {
		return session{}, nil, errRevoked
	}
	owner := s.users[current.User]
	if owner.Disabled {
		return session{}, nil, errDisabled
	}
	return *current, owner, nil
}

// userNamed returns the user of that name or e-mail address, or nil.
func (s *store) userNamed(login string) *user {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byLogin[fold(login)]
}

// change runs one verb: decide checks the rules under the mutex and says what is to happen.
func (s *store) change(ctx context.Context, decide func() (event, error)) error {
	written, err := s.appendAndApply(ctx, decide)
	if err != nil {
		return err
	}
	return settled(ctx, written)
}

// settled waits until what was written is on disk; nil stands for nothing to wait for.
func settled(ctx context.Context, written *journal.Commit) error {
	if written == nil {
		return nil
	}
	err := written.Wait(ctx)
	if disk.IsFull(err) {
		return errors.Join(errDiskFull, err)
	}
	if errors.Is(err, journal.ErrFailed) {
		return errors.Join(errStoreFailed, err)
	}
	return err
}

// appendAndApply returns what to wait for; nil when there is nothing to wait for. errReplaced if that is why ctx ended.
func (s *store) appendAndApply(ctx context.Context, decide func() (event, error)) (*journal.Commit, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(ctx); errors.Is(err, errReplaced) {
		return nil, err
	}
	r, err := decide()
	if err != nil || r.empty() {
		return nil, err
	}
	return s.appendAndApplyOne(&r)
}

// appendAndApplyOne is the step that every change takes, under the mutex.
func (s *store) appendAndApplyOne(r *event) (*journal.Commit, error) {
	var written *journal.Commit
	if s.journal != nil {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		written = s.journal.Append(line)
	}
	s.applyRecord(r)
	if r.Start != nil { // not in replay: had the clock been ahead then, sessions that were refreshed since would be lost
		s.sweep(r.Start.Created)
	}
	return written, nil
}

// Replay is replay: it reads one line of the journal and applies it.
func (s *store) Replay(line []byte) error {
	r, err := parseEvent(line)
	if err != nil {
		return err
	}
	if r.User != nil {
		u, err := r.User.user()
		if err != nil {
			return err
		}
		if err := s.freeFor(u); err != nil {
			s.clash = fmt.Errorf("user %q has registered in this folder and can't be one of -users or a demo account as well: %w; take it out there", u.Username, err)
			return s.clash
		}
	}
	s.applyRecord(&r)
	return nil
}

// applyRecord is the only mutator. What refers to a session or user that is not there is passed over: a seed that
// was taken out of -users takes its sessions with it.
func (s *store) applyRecord(r *event) {
	if r.Reset {
		s.forgetAll()
	}
	for _, id := range r.End {
		if ended := s.sessions[id]; ended != nil {
			s.removeSession(ended)
		}
		if r.Reused > 0 {
			s.rememberReused(id, r.Reused)
		}
	}
	if r.User != nil {
		if u, err := r.User.user(); err == nil {
			s.addUser(u)
		}
	}
	if r.Start != nil && s.users[r.Start.User] != nil {
		started := *r.Start
		s.addSession(&started)
	}
	if r.Rotate != nil {
		if current := s.sessions[r.Rotate.Session]; current != nil {
			current.Generation, current.Issued = r.Rotate.Generation, r.Rotate.Issued
		}
	}
	if r.Expire != nil {
		if current := s.sessions[r.Expire.Session]; current != nil {
			current.AccessFrom, current.RefreshFrom = r.Expire.AccessFrom, r.Expire.RefreshFrom
		}
	}
}

// rememberReused keeps the latest of them: it forgets all when they are too many.
func (s *store) rememberReused(id string, generation int) {
	if len(s.reused) == maxReused {
		clear(s.reused)
	}
	s.reused[id] = generation
}

func (s *store) addUser(u *user) {
	u.record()
	s.users[u.ID] = u
	s.byLogin[fold(u.Username)] = u
	if u.Email != "" {
		s.byLogin[fold(u.Email)] = u
	}
}

// freeFor returns errUsernameTaken or errEmailTaken if another user has what u wants. A name that is another user's
// e-mail address would shut its owner out, and the other way round, so both are of one kind.
func (s *store) freeFor(u *user) error {
	holder := s.byLogin[fold(u.Username)]
	onlyEmail := u.Username == u.Email // then it is the address that is taken, unless somebody is called so
	switch {
	case holder != nil && (!onlyEmail || fold(holder.Username) == fold(u.Username)):
		return errUsernameTaken
	case u.Email != "" && s.byLogin[fold(u.Email)] != nil:
		return errEmailTaken
	}
	return nil
}

// LiveRecords is how many lines a compacted journal would have.
func (s *store) LiveRecords() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users) - s.seeds + len(s.sessions)
}

// Snapshot returns the lines of a compacted journal; take is called at the instant they describe.
func (s *store) Snapshot(take func()) iter.Seq[[]byte] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	take()
	records := make([]event, 0, len(s.users)-s.seeds+len(s.sessions))
	for _, u := range s.users {
		if !u.Seed {
			records = append(records, event{User: u.stored()})
		}
	}
	for _, of := range s.ofUser {
		for _, one := range of.oldestFirst {
			copied := *one
			records = append(records, event{Start: &copied})
		}
	}
	return func(yield func([]byte) bool) {
		for _, r := range records {
			if line, _ := json.Marshal(r); !yield(line) {
				return
			}
		}
	}
}

// answerFor returns the answer that err gets: its own, or that of the room's error which it is or wraps.
func answerFor(err error) *reply.Error {
	var throttled *passwd.ThrottledError
	if errors.As(err, &throttled) {
		return reply.RetryAfter(429, "too_many_attempts",
			"Too many failed logins for this user name from this address. Wait a little.", throttled.Wait)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.answer
		}
	}
	return reply.As(err)
}

// busy is shared, so never written to.
var busy = reply.Fail(503, "busy", "The hub has as much work waiting as it takes on. Try again.")

// sentinels are the errors of the rooms below, with their places in the contract.
var sentinels = []struct {
	err    error
	answer *reply.Error // shared, so never written to
}{
	{jwt.ErrMalformed, reply.Fail(401, "token_malformed", "The token is not one that this hub issued: its form or its signature is wrong.")},
	{jwt.ErrNotYet, reply.Fail(401, "token_malformed", "The token is not valid yet (its nbf is in the future).")},
	{jwt.ErrExpired, reply.Fail(401, "token_expired", "The token has expired. Refresh, or log in again.")},
	{jwt.ErrWrongType, reply.Fail(401, "token_wrong_type", "The token is of the wrong type for this operation (access or refresh).")},
	{errRevoked, reply.Fail(401, "token_revoked", "The session of this token has ended. Log in again.")},
	{errReused, reply.Fail(401, "token_reused", "This refresh token was spent before, so its session has been ended. Log in again.")},
	{errDisabled, reply.Fail(403, "account_disabled", "The account is disabled.")},
	{errUsernameTaken, taken("username", "The user name is taken. Choose another one.")},
	{errEmailTaken, taken("email", "The e-mail address belongs to another account.")},
	{errUserLimit, reply.Fail(507, "user_limit", "The hub holds as many users as it can.")},
	{errDiskFull, reply.Fail(507, "disk_full", "The disk is full. Free some space; if the store has failed (see /healthz), restart the hub then.")},
	{errStoreFailed, reply.Fail(503, "store_unavailable", "The store could not write and takes no changes until the hub is restarted. Reading goes on.")},
	{passwd.ErrBusy, busy},
	{errBusy, busy},
	{errReplaced, reply.Fail(503, "busy", "The hub was reset, or a snapshot put back, while this request was under way. Nothing of it remains.")},
}

// taken is the answer to a registration of what another account has.
func taken(field, detail string) *reply.Error {
	e := reply.Fail(http.StatusConflict, field+"_taken", detail)
	e.Fields = []reply.FieldError{{Field: field, Detail: detail}}
	return e
}
