package accounttest

import (
	"errors"
	"testing"

	"authhub/internal/account"
	"authhub/internal/testkit"
)

// testKill: what was acknowledged is there after a kill of all hubs.
func testKill(t *testing.T, b Backend) {
	if b.Kill == nil {
		t.Skip("this state ends with its hub")
	}
	ctx := t.Context()
	must(t, b.store(0).Register(ctx, User("max"), Session("max", "first")))
	rotated, ended, replayed := b.login(t, 0, "kim", "rotated"), b.login(t, 1, "kim", "ended"), b.login(t, 0, "kim", "replayed")
	for range 3 {
		_, err := rotate(t, b.store(1), rotated, 0)
		must(t, err)
		must(t, b.store(0).EndSession(ctx, ended, false))
		_, err = rotate(t, b.store(1), replayed, 0)
		must(t, err)
		_, err = rotate(t, b.store(0), replayed, 0)
		want(t, err, account.ErrReused)

		b.Stores = b.Kill(t)
		b.wantUser(t, "MAX@example.test", "max")
		b.wantLive(t, account.SessionRef{User: "max", Session: "first"}, nil)
		b.wantLive(t, ended, account.ErrRevoked)
		b.wantLive(t, replayed, account.ErrRevoked)
		_, err = rotate(t, b.store(0), rotated, 1)
		must(t, err)
		_, err = rotate(t, b.store(1), rotated, 0)
		want(t, err, account.ErrReused)
		b.wantLive(t, rotated, account.ErrRevoked)
		rotated, ended, replayed = b.login(t, 0, "lee", ended.Session+"+"), b.login(t, 1, "lee", rotated.Session+"+"), b.login(t, 0, "lee", replayed.Session+"+")
	}
}

// testLostAnswers: a nil error means that it happened, ErrUnavailable that it didn't, ErrUnknown either. A store's own
// second try is no replay and takes no name from itself.
func testLostAnswers(t *testing.T, b Backend) {
	if b.Lossy == nil {
		t.Skip("this store has no engine whose answers could be lost")
	}
	lossy, ctx := b.Lossy(t), t.Context()
	for i := range testkit.Times(10, 40) {
		name := id("lost", i)
		ref := account.SessionRef{User: name, Session: name}
		registered := lossy.Register(ctx, User(name), Session(name, name))
		u, err := b.store(i).UserNamed(ctx, name)
		must(t, err)
		consistent(t, "register", registered, u != nil)
		if u == nil {
			continue
		}
		b.wantLive(t, ref, nil)

		_, rotated := rotate(t, lossy, ref, 0)
		s, _, err := b.store(i).Live(ctx, ref)
		must(t, err)
		consistent(t, "rotate", rotated, s.Generation == 1)

		ended := lossy.EndSession(ctx, ref, i%2 == 0)
		_, _, err = b.store(i).Live(ctx, ref)
		consistent(t, "end", ended, errors.Is(err, account.ErrRevoked))
	}
}

// consistent checks what a store says of a change against whether it happened.
func consistent(t *testing.T, verb string, err error, happened bool) {
	t.Helper()
	switch {
	case errors.Is(err, account.ErrUnknown):
	case errors.Is(err, account.ErrUnavailable) && happened:
		t.Errorf("%s says that nothing changed, and it did", verb)
	case err == nil && !happened:
		t.Errorf("%s is acknowledged and did not happen", verb)
	case err != nil && !errors.Is(err, account.ErrUnavailable):
		t.Errorf("%s: %v", verb, err)
	}
}

// testLostAnswersToRace: at most one of those that race with one token wins, and no two even if answers are lost.
func testLostAnswersToRace(t *testing.T, b Backend) {
	if b.Lossy == nil {
		t.Skip("this store has no engine whose answers could be lost")
	}
	lossy := b.Lossy(t)
	for round := range testkit.Times(3, 10) {
		ref := b.login(t, round, "kim", id("s", round))
		errs := b.race(8, func(i int, store account.Store) error {
			if i%2 == 0 {
				store = lossy
			}
			_, err := rotate(t, store, ref, 0)
			return err
		})
		if won, unknown := count(errs, nil), count(errs, account.ErrUnknown); won > 1 || won+unknown == 0 {
			t.Errorf("%d winners: %v", won, errs)
		}
	}
}
