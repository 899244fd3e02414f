// embedded.go owns the verbs of the embedded store: the rules, the order check, append, apply, wait.
//
// A verb checks the rules, appends an event to the journal and applies the same event to the maps, all under one
// mutex. Then it releases the mutex and waits until the last appended event is on disk. That is its own event, or
// another verb's, on which its answer may rest. A change is seen by others from the moment it is applied; it is
// acknowledged, and so promised, only when it is synced. Once the journal has failed nothing is changed any more
// (ErrFailed) and reads go on.

package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"authhub/internal/disk"
	"authhub/internal/journal"
)

// Embedded is the store of one process: in memory and, unless it is ephemeral, in a journal.
type Embedded struct {
	journal *journal.Journal // nil: ephemeral
	log     *slog.Logger     // of what replay finds

	mu       sync.RWMutex
	last     *journal.Commit  // of the event appended last; nil before the first
	users    map[string]*User // by id
	byLogin  map[string]*User // by folded user name and e-mail address
	alike    map[string]*User // by name in lower case: users of an older journal whose folded name another user has
	seeds    map[string]*User // by id: the users that are not of the journal, as they were at the start
	gone     map[string]bool  // ids of seeds that have been deleted
	sessions map[string]*Session
	ofUser   map[string]*sessionList
	reused   map[string]int // by session that the reuse of a spent token ended: the generation that it had reached
	clash    error          // a user of the journal and a seed that can't both be there

	noneOverTil int64 // milliseconds since the Unix epoch; before it no session is over
}

// NewMemory returns an ephemeral store with these users in it.
func NewMemory(seeds []*User) (*Embedded, error) {
	s := &Embedded{
		users:    make(map[string]*User, len(seeds)),
		byLogin:  make(map[string]*User, 2*len(seeds)),
		alike:    make(map[string]*User),
		sessions: make(map[string]*Session),
		ofUser:   make(map[string]*sessionList),
		reused:   make(map[string]int),
		seeds:    make(map[string]*User, len(seeds)),
		gone:     make(map[string]bool),

		noneOverTil: math.MaxInt64,
	}
	for i, u := range seeds {
		err := s.freeFor(u)
		if err == nil && s.users[u.ID] != nil {
			err = fmt.Errorf("id %q taken", u.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("-users: user %d (%q): %w by a user before it", i+1, u.Username, err)
		}
		s.seeds[u.ID] = u
		s.addUser(u)
	}
	return s, nil
}

// Open returns a store with these users in it whose changes outlive the process in the journal at path. Errors:
// *journal.DamageError, and those of the disk.
func Open(d disk.Disk, path string, seeds []*User, log *slog.Logger) (*Embedded, error) {
	s, err := NewMemory(seeds)
	if err != nil {
		return nil, err
	}
	s.log = log
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

// Ready returns nil, or ErrFailed when the store takes no more changes, because it could not write them or because the
// journal was removed or replaced.
func (s *Embedded) Ready(ctx context.Context) error {
	if s.journal == nil {
		return nil
	}
	if err := s.failed(); err != nil {
		return err
	}
	return storeError(s.journal.Check(ctx))
}

// failed returns nil, or ErrFailed when the store is known to take no more changes.
func (s *Embedded) failed() error {
	if s.journal != nil && s.journal.Failed() != nil {
		return ErrFailed
	}
	return nil
}

// Register adds u and starts its first session.
func (s *Embedded) Register(ctx context.Context, u *User, first Session) error {
	return s.commit(ctx, func() (event, error) {
		if err := s.freeFor(u); err != nil {
			return event{}, err
		}
		if len(s.users) >= MaxUsers {
			return event{}, ErrUserLimit
		}
		return event{End: s.sweep(nil, first.Created), User: u.Stored(), Start: &first}, nil
	})
}

// StartSession adds a session.
func (s *Embedded) StartSession(ctx context.Context, started Session) error {
	return s.commit(ctx, func() (event, error) {
		if s.users[started.User] == nil {
			return event{}, ErrNoUser
		}
		end := s.makeRoom(started.User, started.Created)
		return event{End: s.sweep(end, started.Created), Start: &started}, nil
	})
}

// Rotate spends the refresh token of a generation.
func (s *Embedded) Rotate(ctx context.Context, ref SessionRef, generation int, now time.Time, policy ReusePolicy) (Session, *User, error) {
	var next Session
	var owner *User
	var reused error
	err := s.commit(ctx, func() (event, error) {
		current := s.find(ref)
		switch {
		case current == nil && generation < s.reused[ref.Session]:
			return event{}, ErrReused
		case current == nil:
			return event{}, ErrRevoked
		}
		var err error
		next, err = current.Exchange(generation, now, policy)
		if errors.Is(err, ErrReused) {
			reused = err
			return event{End: []string{current.ID}, Reused: current.Generation}, nil
		}
		if err != nil {
			return event{}, err
		}
		owner = s.users[current.User]
		if owner.Disabled {
			return event{}, ErrDisabled
		}
		if next == *current {
			return event{}, nil // the same pair again
		}
		return event{Rotate: &rotation{current.ID, next.Generation, next.Issued, next.Behind, next.Skipped}}, nil
	})
	if err == nil {
		err = reused
	}
	return next, owner, err
}

// EndSession ends a session, or all of its user's.
func (s *Embedded) EndSession(ctx context.Context, ref SessionRef, all bool) error {
	return s.commit(ctx, func() (event, error) {
		ended := s.find(ref)
		if ended == nil {
			return event{}, nil
		}
		if !all {
			return event{End: []string{ended.ID}}, nil
		}
		return event{End: s.idsOf(ended.User)}, nil
	})
}

// EndOthers ends all sessions of the user but this one.
func (s *Embedded) EndOthers(ctx context.Context, ref SessionRef) error {
	return s.commit(ctx, func() (event, error) {
		spared := s.find(ref)
		if spared == nil {
			return event{}, nil
		}
		return event{End: slices.DeleteFunc(s.idsOf(spared.User), func(id string) bool { return id == spared.ID })}, nil
	})
}

// idsOf returns the ids of the user's sessions, the oldest first.
func (s *Embedded) idsOf(user string) []string {
	var ids []string
	for _, session := range s.ofUser[user].oldestFirst {
		ids = append(ids, session.ID)
	}
	return ids
}

// Live returns the user and a copy of the session.
func (s *Embedded) Live(_ context.Context, ref SessionRef) (Session, *User, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	current := s.find(ref)
	if current == nil {
		return Session{}, nil, ErrRevoked
	}
	owner := s.users[current.User]
	if owner.Disabled {
		return Session{}, nil, ErrDisabled
	}
	return *current, owner, nil
}

// UserNamed returns the user of that name or e-mail address, or nil. It returns no error.
func (s *Embedded) UserNamed(_ context.Context, login string) (*User, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.named(login), nil
}

func (s *Embedded) named(login string) *User {
	if len(s.alike) > 0 {
		if u := s.alike[strings.ToLower(login)]; u != nil {
			return u
		}
	}
	return s.byLogin[Fold(login)]
}

// find returns the session of that user and id, or nil.
func (s *Embedded) find(ref SessionRef) *Session {
	found := s.sessions[ref.Session]
	if found == nil || found.User != ref.User {
		return nil
	}
	return found
}

// commit runs one verb: decide checks the rules under the mutex and says what is to happen. The answer waits for the
// last event, whether it is this verb's or another's: the decision may rest on it. Errors: those of decide,
// ErrFailed, disk.ErrFull, ErrReplaced, and ctx.Err() if ctx ends while the event is being written.
func (s *Embedded) commit(ctx context.Context, decide func() (event, error)) error {
	if err := s.failed(); err != nil {
		return err
	}
	last, err := s.decideAndAppend(ctx, decide)
	if last != nil {
		if failed := storeError(last.Wait(ctx)); failed != nil {
			return failed
		}
	}
	return err
}

// decideAndAppend returns what to wait for.
func (s *Embedded) decideAndAppend(ctx context.Context, decide func() (event, error)) (*journal.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.commitLocked(ctx, decide)
	return s.last, err
}

func (s *Embedded) commitLocked(ctx context.Context, decide func() (event, error)) error {
	if err := context.Cause(ctx); errors.Is(err, ErrReplaced) {
		return err
	}
	e, err := decide()
	if err != nil || e.empty() {
		return err
	}
	return s.appendLocked(&e)
}

// appendLocked is the step that every change takes.
func (s *Embedded) appendLocked(e *event) error {
	if s.journal != nil {
		line, err := json.Marshal(*e)
		if err != nil {
			return err
		}
		s.last = s.journal.Append(line)
	}
	s.applyLocked(e)
	return nil
}

// storeError turns an error of the journal into one of the store.
func storeError(err error) error {
	full := disk.Full(err)
	if full == err && errors.Is(err, journal.ErrFailed) {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return full
}
