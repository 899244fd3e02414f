// Package account owns users and sessions and the rules about them, without HTTP and without a clock: verbs take the
// time and return copies and errors.
//
// account.go owns what every store promises; accounttest is that promise as a test suite. The embedded store, in
// memory or with a journal, is in embedded.go and apply.go.
package account

import (
	"context"
	"errors"
	"time"
)

// Store keeps users and sessions. Many hubs may share the state behind it. A nil error means that the change is
// durable, as far as the store keeps anything at all, and that everybody who asks any hub from then on sees it. So
// does every other answer that rests on somebody else's change, such as ErrReused or the second end of a session;
// only Live, UserNamed and the refusals of names may tell of a change that is not yet durable.
//
// A verb that changes something goes on when ctx ends while it waits; the caller then knows as much as after
// ErrUnknown. Every verb may return ErrUnavailable, and every verb that changes something ErrUnknown. Both mean that
// the store does not know the answer: never that a name is free, a password wrong or a session over.
type Store interface {
	// Register adds u and starts its first session. Errors: ErrUsernameTaken, ErrEmailTaken, ErrUserLimit. After one
	// of these neither user nor session exists.
	Register(ctx context.Context, u *User, first Session) error
	// UserNamed returns the user of that name or e-mail address, or nil and no error if there is none.
	UserNamed(ctx context.Context, login string) (*User, error)
	// StartSession adds a session. If its user has the most sessions that a user may have, the oldest one ends for it.
	// Errors: ErrNoUser.
	StartSession(ctx context.Context, started Session) error
	// Live returns the session and its user. It sees every change that was acknowledged before the call, by any hub.
	// Errors: ErrRevoked, ErrDisabled.
	Live(ctx context.Context, ref SessionRef) (Session, *User, error)
	// Rotate spends the refresh token of generation and returns the session with its next pair current. Of racing
	// calls with one token exactly one wins. A token that was spent before ends the session unless policy forgives
	// it: ErrReused, for this token and for the other spent ones of that session as long as the session is
	// remembered. Errors besides: ErrRevoked, ErrDisabled, jwt.ErrExpired.
	Rotate(ctx context.Context, ref SessionRef, generation int, now time.Time, policy ReusePolicy) (Session, *User, error)
	// EndSession ends the session, and all others of its user too if all is set. A session that has ended already is
	// no error, and then no other session ends: its token has no say any more.
	EndSession(ctx context.Context, ref SessionRef, all bool) error
	// EndOthers ends all sessions of the user but this one. Nothing ends if this one has ended already: that is no
	// error.
	EndOthers(ctx context.Context, ref SessionRef) error
	// Ready returns nil if the store takes changes. It may try to recover.
	Ready(ctx context.Context) error
	// Close ends the use of the store. Changes under way are finished.
	Close() error
}

// SessionRef says which session. A session of another user is not found. Both ids are in every token.
type SessionRef struct{ User, Session string }

// Errors that are answers.
var (
	ErrUsernameTaken = errors.New("user name taken")
	ErrEmailTaken    = errors.New("e-mail address taken")
	ErrUserLimit     = errors.New("too many users")
	ErrNoUser        = errors.New("no such user")
	ErrDisabled      = errors.New("account disabled")
	ErrRevoked       = errors.New("session ended")
	ErrReused        = errors.New("refresh token spent before")
)

// Errors of a store that can't answer.
var (
	// ErrUnavailable says that the store does not answer and that nothing has changed. It may pass by itself.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrUnknown says that the store did not answer in time. What was asked for may have happened.
	ErrUnknown = errors.New("the store did not answer, and the change may have been made")
	// ErrFailed is the embedded store's alone: it takes no changes until a restart.
	ErrFailed = errors.New("the store has failed")
	// ErrReplaced is the cause with which the lab cancels requests to a state that it replaces: they change nothing.
	ErrReplaced = errors.New("state replaced")
)

const (
	MaxUsers           = 100_000 // of a store
	MaxSessionsPerUser = 1_000   // that live

	// MaxTTL is the longest lifetime of a token.
	MaxTTL = 10 * 365 * 24 * time.Hour
)
