package accounttest

import (
	"math/rand/v2"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/testkit"
)

// testSessions: what was put in comes out, and only for its user.
func testSessions(t *testing.T, b Backend) {
	s := Session("kim", "s")
	must(t, b.store(0).StartSession(t.Context(), s))
	for i := range b.Stores {
		got, u, err := b.store(i).Live(t.Context(), s.Ref())
		must(t, err)
		if got != s || u.Username != "kim" || u.Email != "kim@example.test" {
			t.Errorf("store %d has %+v of %+v", i, got, u)
		}
	}
	b.wantLive(t, account.SessionRef{User: "lee", Session: "s"}, account.ErrRevoked)
	b.wantLive(t, account.SessionRef{User: "kim", Session: "never"}, account.ErrRevoked)
	b.wantLive(t, account.SessionRef{}, account.ErrRevoked)
	_, err := rotate(t, b.store(1), account.SessionRef{User: "lee", Session: "s"}, 0)
	want(t, err, account.ErrRevoked)
	must(t, b.store(1).EndSession(t.Context(), account.SessionRef{User: "lee", Session: "s"}, true))
	b.wantLive(t, s.Ref(), nil)
	for _, store := range b.Stores {
		must(t, store.Ready(t.Context()))
	}
}

// testDisabled: the sessions of a disabled user are of no use.
func testDisabled(t *testing.T, b Backend) {
	ref := b.login(t, 0, "off", "s")
	b.wantLive(t, ref, account.ErrDisabled)
	_, err := rotate(t, b.store(1), ref, 0)
	want(t, err, account.ErrDisabled)
}

// testStaleLogout: a session that one store has ended is refused by every call that begins afterwards, on any store.
func testStaleLogout(t *testing.T, b Backend) {
	for i := range testkit.Times(10, 50) {
		ref := b.login(t, i, "kim", id("s", i))
		b.wantLive(t, ref, nil)
		must(t, b.store(i).EndSession(t.Context(), ref, false))
		b.wantLive(t, ref, account.ErrRevoked)
		must(t, b.store(i+1).EndSession(t.Context(), ref, false)) // a second time
		_, err := rotate(t, b.store(i+1), ref, 0)
		want(t, err, account.ErrRevoked)
	}
}

// testLogoutEverywhere ends all sessions of one user, and only with a live one's token.
func testLogoutEverywhere(t *testing.T, b Backend) {
	first, second, third := b.login(t, 0, "kim", "1"), b.login(t, 1, "kim", "2"), b.login(t, 2, "kim", "3")
	other := b.login(t, 0, "lee", "4")
	must(t, b.store(0).EndSession(t.Context(), first, false))
	must(t, b.store(1).EndSession(t.Context(), first, true)) // its token has no say any more
	b.wantLive(t, second, nil)
	must(t, b.store(1).EndSession(t.Context(), second, true))
	for _, ref := range []account.SessionRef{first, second, third} {
		b.wantLive(t, ref, account.ErrRevoked)
	}
	b.wantLive(t, other, nil)
	b.wantLive(t, b.login(t, 1, "kim", "5"), nil)
}

// testLogoutElsewhere ends all sessions of one user but one, and only with a live one's token.
func testLogoutElsewhere(t *testing.T, b Backend) {
	first, second, third := b.login(t, 0, "kim", "1"), b.login(t, 1, "kim", "2"), b.login(t, 2, "kim", "3")
	other := b.login(t, 0, "lee", "4")
	must(t, b.store(1).EndOthers(t.Context(), second))
	b.wantLive(t, first, account.ErrRevoked)
	b.wantLive(t, second, nil)
	b.wantLive(t, third, account.ErrRevoked)
	b.wantLive(t, other, nil)
	must(t, b.store(0).EndOthers(t.Context(), first)) // its token has no say any more
	b.wantLive(t, second, nil)
}

// testRotation: one generation after the other, on whichever store.
func testRotation(t *testing.T, b Backend) {
	ref := b.login(t, 0, "kim", "s")
	for generation := range 20 {
		s, err := rotate(t, b.store(rand.IntN(9)), ref, generation)
		must(t, err)
		if s.Issued != start.Add(time.Minute).UnixMilli() || s.Created != start.UnixMilli() {
			t.Errorf("issued %d, created %d", s.Issued, s.Created)
		}
		got, _, err := b.store(generation).Live(t.Context(), ref)
		must(t, err)
		if got != s {
			t.Errorf("rotated to %+v, live is %+v", s, got)
		}
	}
	_, err := rotate(t, b.store(0), ref, 21) // a token that was never issued
	want(t, err, account.ErrRevoked)
	b.wantLive(t, ref, nil)
}

// testRacingRotations: of refreshes that race with one token exactly one wins; the others are replays.
func testRacingRotations(t *testing.T, b Backend) {
	for round := range testkit.Times(3, 10) {
		const racers = 16
		ref := b.login(t, round, "kim", id("s", round))
		errs := b.race(racers, func(_ int, store account.Store) error {
			_, err := rotate(t, store, ref, 0)
			return err
		})
		if count(errs, nil) != 1 || count(errs, account.ErrReused) != racers-1 {
			t.Fatalf("%d winners: %v", count(errs, nil), errs)
		}
		b.wantLive(t, ref, account.ErrRevoked)
	}
}

// testReplay: a spent token ends the session, and every spent token of it is told so.
func testReplay(t *testing.T, b Backend) {
	ref, other := b.login(t, 0, "kim", "s"), b.login(t, 0, "kim", "other")
	for generation := range 3 {
		_, err := rotate(t, b.store(generation), ref, generation)
		must(t, err)
	}
	for _, generation := range []int{1, 1, 0, 2} {
		for i := range b.Stores {
			_, err := rotate(t, b.store(i), ref, generation)
			want(t, err, account.ErrReused)
		}
		b.wantLive(t, ref, account.ErrRevoked)
	}
	_, err := rotate(t, b.store(0), ref, 3) // the current one was never spent
	want(t, err, account.ErrRevoked)
	b.wantLive(t, other, nil)
}

// testCap: a user has a thousand sessions at most, and the oldest make room.
func testCap(t *testing.T, b Backend) {
	const most, surplus = 1_000, 20
	refs := make([]account.SessionRef, most)
	for _, err := range b.race(8, func(i int, store account.Store) error {
		for n := i; n < most; n += 8 {
			s := Session("kim", id("s", n))
			s.Created += int64(n)
			if err := store.StartSession(t.Context(), s); err != nil {
				return err
			}
			refs[n] = s.Ref()
		}
		return nil
	}) {
		must(t, err)
	}
	b.login(t, 0, "lee", "l")
	for _, err := range b.race(surplus, func(i int, store account.Store) error {
		s := Session("kim", id("surplus", i))
		s.Created += int64(most + i)
		return store.StartSession(t.Context(), s)
	}) {
		must(t, err)
	}
	live := 0
	for n, ref := range refs {
		switch _, _, err := b.store(n).Live(t.Context(), ref); {
		case err == nil:
			live++
		case n >= 8*surplus: // those of the first logins, which raced
			t.Errorf("%v has ended, and is not of the oldest", ref)
		}
	}
	if live != most-surplus {
		t.Errorf("%d of the first %d live beside %d more", live, most, surplus)
	}
	for i := range surplus {
		b.wantLive(t, account.SessionRef{User: "kim", Session: id("surplus", i)}, nil)
	}
	b.wantLive(t, account.SessionRef{User: "lee", Session: "l"}, nil)
}
