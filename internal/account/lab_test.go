package account

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"authhub/internal/disk/disktest"
	"authhub/internal/passwd"
)

// seedUser returns a seed with a password of its own.
func seedUser() *User {
	u := newUser("user-demo", "demo", "demo@x.test")
	u.Seed, u.Credential = true, passwd.Plain("demo-password")
	return u
}

// disable is a change for PutUser.
func disable(old *User) (*User, error) {
	changed := *old
	changed.Seed, changed.Disabled = false, true
	return &changed, nil
}

func TestChangesOfSeedsOutliveARestartAndEndWithAReset(t *testing.T) {
	t.Parallel()
	ctx, d := context.Background(), disktest.New("journal", nil)
	s := mustOpen(t, d, seedUser())
	must(t, s.StartSession(ctx, newSession("user-demo", "one", start)))
	must(t, s.PutUser(ctx, "demo", disable))
	if _, _, err := s.Live(ctx, SessionRef{"user-demo", "one"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("at once: %v", err)
	}
	users, sessions := s.Contents()
	must(t, s.Close())

	s = mustOpen(t, d, seedUser())
	if u, _ := s.UserNamed(ctx, "DEMO@x.test"); u == nil || !u.Disabled || !u.Credential.Equal(&seedUser().Credential) {
		t.Fatalf("after a restart: %+v", u)
	}
	must(t, s.DeleteUser(ctx, "demo"))
	if _, _, err := s.Live(ctx, SessionRef{"user-demo", "one"}); !errors.Is(err, ErrRevoked) || s.CountUsers() != 0 {
		t.Errorf("deleted: %v", err)
	}
	must(t, s.Register(ctx, newUser("other", "demo", ""), newSession("other", "two", start)))
	afterwards, _ := s.Contents()
	for range s.Snapshot(func() {}) {
	}
	must(t, s.Close())

	s = mustOpen(t, d, seedUser())
	if u, _ := s.UserNamed(ctx, "demo"); u == nil || u.ID != "other" {
		t.Errorf("the name of a deleted seed is %+v's", u)
	}
	for _, state := range [][]UserRecord{afterwards, users, {}} {
		s.Check(state, nil, func(place, detail string) { t.Errorf("%s: %s", place, detail) })
		must(t, s.ReplaceAll(ctx, state, nil))
		if got, _ := s.Contents(); !reflect.DeepEqual(got, state) {
			t.Errorf("put back %+v, want %+v", got, state)
		}
	}
	must(t, s.ReplaceAll(ctx, users, sessions))
	if _, _, err := s.Live(ctx, SessionRef{"user-demo", "one"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("put back: %v", err)
	}
	must(t, s.ReplaceAll(ctx, nil, nil))
	if u, _ := s.UserNamed(ctx, "demo"); u == nil || u.Disabled || !u.Seed {
		t.Errorf("after a reset: %+v", u)
	}
	must(t, s.Close())
}

func TestANewPasswordEndsSessions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := NewMemory([]*User{seedUser()})
	must(t, err)
	must(t, s.StartSession(ctx, newSession("user-demo", "one", start)))
	must(t, s.PutUser(ctx, "demo", func(old *User) (*User, error) {
		changed := *old
		changed.Seed, changed.Name = false, "Another name"
		return &changed, nil
	}))
	_, _, err = s.Live(ctx, SessionRef{"user-demo", "one"})
	must(t, err)
	must(t, s.PutUser(ctx, "demo", func(old *User) (*User, error) {
		changed := *old
		changed.Credential = someHash
		return &changed, nil
	}))
	if _, _, err := s.Live(ctx, SessionRef{"user-demo", "one"}); !errors.Is(err, ErrRevoked) {
		t.Errorf("the session lives: %v", err)
	}
	if err := s.PutUser(ctx, "kim", func(*User) (*User, error) { return newUser("kim", "kim", "demo@x.test"), nil }); !errors.Is(err, ErrEmailTaken) {
		t.Errorf("an address of another user: %v", err)
	}
	if err := s.DeleteUser(ctx, "kim"); !errors.Is(err, ErrNoUser) {
		t.Errorf("nobody: %v", err)
	}
}

func TestWithoutRotationTheRefreshTokenStays(t *testing.T) {
	t.Parallel()
	ctx, d, keep := context.Background(), disktest.New("journal", nil), ReusePolicy{Keep: true}
	s := mustOpen(t, d, seedUser())
	ref := SessionRef{"user-demo", "one"}
	must(t, s.StartSession(ctx, newSession("user-demo", "one", start)))
	for i := range 3 {
		next, _, err := s.Rotate(ctx, ref, 0, start.Add(time.Second), keep)
		if err != nil || next.Generation != i+1 || next.refreshGeneration() != 0 {
			t.Fatalf("%+v, %v", next, err)
		}
	}
	must(t, s.Close())
	s = mustOpen(t, d, seedUser())
	next, _, err := s.Rotate(ctx, ref, 0, start, ReusePolicy{}) // rotation again: the token that stayed is exchanged
	if err != nil || next.Generation != 4 || next.Behind != 0 {
		t.Fatalf("%+v, %v", next, err)
	}
	must(t, s.Close())
	s = mustOpen(t, d, seedUser())
	again, _, err := s.Rotate(ctx, ref, 0, start.Add(time.Second), ReusePolicy{Grace: time.Minute}) // it was spent last
	if err != nil || again != next {
		t.Errorf("within grace: %+v, %v", again, err)
	}
	if _, _, err := s.Rotate(ctx, ref, 0, start, ReusePolicy{}); !errors.Is(err, ErrReused) {
		t.Errorf("and then it is spent: %v", err)
	}
	must(t, s.Close())
}
