// The store: users and sessions, and the rules about them.
//
// Every verb is check, append, apply, wait: under one mutex it checks the rules, appends an event to the journal
// and applies the same event to the maps; then, the mutex released, it waits until the event is on disk.
// apply is the only mutator, and replay goes through it too, so what a restart finds is what was acknowledged.
// A change is seen by others from apply on; it is acknowledged, and so promised, only when it is synced. Once the
// journal has failed nothing is changed any more (ErrFailed) and reads go on.
//
// The store knows no HTTP, no tokens and no clock; verbs take now and return copies.

package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"authhub/internal/disk"
	"authhub/internal/journal"
	"authhub/internal/jwt"
)

var (
	ErrUsernameTaken = errors.New("user name taken")
	ErrEmailTaken    = errors.New("e-mail address taken")
	ErrUserLimit     = errors.New("too many users")
	ErrNoUser        = errors.New("no such user")
	ErrDisabled      = errors.New("account disabled")
	ErrRevoked       = errors.New("session ended")
	ErrReused        = errors.New("refresh token spent before")
	ErrFailed        = errors.New("the store has failed")
	ErrDiskFull      = errors.New("disk full")
	ErrReplaced      = errors.New("state replaced") // the cause with which the lab cancels who came before it
)

const (
	maxUsers           = 100_000
	maxSessionsPerUser = 1_000
	maxReused          = 10_000 // sessions ended by reuse that are remembered
)

// timeLayout is ISO 8601 in UTC with exactly three decimals.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Embedded keeps everything in memory and, unless it is ephemeral, in a journal.
type Embedded struct {
	journal *journal.Journal // nil: ephemeral

	mu       sync.RWMutex
	users    map[string]*User // by id
	byLogin  map[string]*User // by user name and by e-mail address, in lower case: each means one account only
	seeds    int              // how many users are not of the journal
	sessions map[string]*Session
	ofUser   map[string]*sessionList
	reused   map[string]int // generation that sessions had reached when the reuse of a spent token ended them
	clash    error          // a user of the journal and a seed that can't both be there
}

// NewMemory returns an ephemeral store with these users in it.
func NewMemory(seeds []*User) (*Embedded, error) {
	s := &Embedded{
		users:    make(map[string]*User, len(seeds)),
		byLogin:  make(map[string]*User, 2*len(seeds)),
		sessions: make(map[string]*Session),
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

// Open returns a store whose changes outlive the process in the journal at path.
func Open(d disk.Disk, path string, seeds []*User, log *slog.Logger) (*Embedded, error) {
	s, err := NewMemory(seeds)
	if err != nil {
		return nil, err
	}
	s.journal, err = journal.Open(d, path, s, log)
	if s.clash != nil {
		return nil, s.clash // the journal is sound; the seeds don't go with it
	}
	return s, err
}

// Close syncs what is pending and closes the journal.
func (s *Embedded) Close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// Ready returns nil, or ErrFailed when the store takes no more changes.
func (s *Embedded) Ready() error {
	if s.journal != nil && s.journal.Failed() != nil {
		return ErrFailed
	}
	return nil
}

// Register adds u and starts its first session. Errors: ErrUsernameTaken, ErrEmailTaken, ErrUserLimit,
// ErrFailed, ErrDiskFull; after any of them neither user nor session exists.
func (s *Embedded) Register(ctx context.Context, u *User, first Session) error {
	return s.change(ctx, func() (event, error) {
		if err := s.freeFor(u); err != nil {
			return event{}, err
		}
		if len(s.users) >= maxUsers {
			return event{}, ErrUserLimit
		}
		return event{User: u.stored(), Start: &first}, nil
	})
}

// StartSession adds a session; if its user has the most that one may have, the oldest ends for it.
// Errors: ErrNoUser, ErrFailed, ErrDiskFull.
func (s *Embedded) StartSession(ctx context.Context, started Session) error {
	return s.change(ctx, func() (event, error) {
		if s.users[started.User] == nil {
			return event{}, ErrNoUser
		}
		s.dropExpired(started.User, started.Created)
		r := event{Start: &started}
		if of := s.ofUser[started.User]; of != nil && len(of.oldestFirst) >= maxSessionsPerUser {
			r.End = []string{of.oldestFirst[0].ID}
		}
		return r, nil
	})
}

// Rotate spends the refresh token of generation gen and returns the session with its next pair current.
// A token spent before ends the session, unless policy lets it pass: ErrReused, once that is on disk. The same token
// and the other spent ones of that session are ErrReused from then on, as long as the session is remembered.
// Errors besides: ErrRevoked, jwt.ErrExpired, ErrDisabled, ErrFailed, ErrDiskFull.
func (s *Embedded) Rotate(ctx context.Context, id string, gen int, now time.Time, policy ReusePolicy) (Session, *User, error) {
	var next Session
	var owner *User
	var reused error
	err := s.change(ctx, func() (event, error) {
		current := s.sessions[id]
		switch {
		case current == nil && gen < s.reused[id]:
			return event{}, ErrReused
		case current == nil || gen > current.Generation:
			return event{}, ErrRevoked
		case gen < current.RefreshFrom:
			return event{}, jwt.ErrExpired
		case gen < current.Generation && !policy.forgives(current, gen, now):
			reused = ErrReused
			return event{End: []string{id}, Reused: current.Generation}, nil
		}
		owner = s.users[current.User]
		if owner.Disabled {
			return event{}, ErrDisabled
		}
		next = *current
		if gen == current.Generation || policy.Allow {
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

// EndSession ends the session, or all of its user's with it. One that has ended already is no error, and then
// nothing else ends either: its token has no say any more. Errors: ErrFailed, ErrDiskFull.
func (s *Embedded) EndSession(ctx context.Context, id string, all bool) error {
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

// Live returns the user and a copy of the session, or ErrRevoked, ErrDisabled.
func (s *Embedded) Live(id string) (Session, *User, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	current := s.sessions[id]
	if current == nil {
		return Session{}, nil, ErrRevoked
	}
	owner := s.users[current.User]
	if owner.Disabled {
		return Session{}, nil, ErrDisabled
	}
	return *current, owner, nil
}

// UserNamed returns the user of that name or e-mail address, or nil.
func (s *Embedded) UserNamed(login string) *User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byLogin[Fold(login)]
}

// change runs one verb: decide checks the rules under the mutex and says what is to happen.
func (s *Embedded) change(ctx context.Context, decide func() (event, error)) error {
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
		return errors.Join(ErrDiskFull, err)
	}
	if errors.Is(err, journal.ErrFailed) {
		return errors.Join(ErrFailed, err)
	}
	return err
}

// appendAndApply returns what to wait for; nil when there is nothing to wait for. ErrReplaced if that is why ctx ended.
func (s *Embedded) appendAndApply(ctx context.Context, decide func() (event, error)) (*journal.Commit, error) {
	if err := s.Ready(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(ctx); errors.Is(err, ErrReplaced) {
		return nil, err
	}
	r, err := decide()
	if err != nil || r.empty() {
		return nil, err
	}
	return s.appendAndApplyOne(&r)
}

// appendAndApplyOne is the step that every change takes, under the mutex.
func (s *Embedded) appendAndApplyOne(r *event) (*journal.Commit, error) {
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
func (s *Embedded) Replay(line []byte) error {
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
func (s *Embedded) applyRecord(r *event) {
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
func (s *Embedded) rememberReused(id string, generation int) {
	if len(s.reused) == maxReused {
		clear(s.reused)
	}
	s.reused[id] = generation
}

func (s *Embedded) addUser(u *User) {
	u.Record()
	s.users[u.ID] = u
	s.byLogin[Fold(u.Username)] = u
	if u.Email != "" {
		s.byLogin[Fold(u.Email)] = u
	}
}

// freeFor returns ErrUsernameTaken or ErrEmailTaken if another user has what u wants. A name that is another user's
// e-mail address would shut its owner out, and the other way round, so both are of one kind.
func (s *Embedded) freeFor(u *User) error {
	holder := s.byLogin[Fold(u.Username)]
	onlyEmail := u.Username == u.Email // then it is the address that is taken, unless somebody is called so
	switch {
	case holder != nil && (!onlyEmail || Fold(holder.Username) == Fold(u.Username)):
		return ErrUsernameTaken
	case u.Email != "" && s.byLogin[Fold(u.Email)] != nil:
		return ErrEmailTaken
	}
	return nil
}

// LiveRecords is how many lines a compacted journal would have.
func (s *Embedded) LiveRecords() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users) - s.seeds + len(s.sessions)
}

// Snapshot returns the lines of a compacted journal; take is called at the instant they describe.
func (s *Embedded) Snapshot(take func()) iter.Seq[[]byte] {
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
