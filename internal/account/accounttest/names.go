package accounttest

import (
	"testing"

	"authhub/internal/account"
)

// testNames: a user name or e-mail address is taken once, in any case, as either.
func testNames(t *testing.T, b Backend) {
	ctx := t.Context()
	must(t, b.store(0).Register(ctx, User("max"), Session("max", "first")))
	b.wantLive(t, account.SessionRef{User: "max", Session: "first"}, nil)
	for login, id := range map[string]string{
		"max": "max", "MAX": "max", "max@example.test": "max", "Max@Example.Test": "max", "kim": "kim", "KIM@example.test": "kim",
		"nobody": "", "": "", "ma": "", "max@example": "", "max\x00": "", "max/": "",
	} {
		b.wantUser(t, login, id)
	}
	for i, row := range []struct {
		username, email string
		want            error
	}{
		{"MAX", "", account.ErrUsernameTaken},
		{"Kim", "new@example.test", account.ErrUsernameTaken},
		{"new", "MAX@example.test", account.ErrEmailTaken},
		{"new", "ſam@example.test", nil},
		{"newer", "SAM@example.test", account.ErrEmailTaken},
		{"newer", "kim", account.ErrEmailTaken},
		{"lee@example.test", "", account.ErrUsernameTaken},
		{"lee@example.test", "lee@example.test", account.ErrEmailTaken},
	} {
		u := User(id("u", i))
		u.Username, u.Email = row.username, row.email
		want(t, b.store(i).Register(ctx, u, Session(u.ID, u.ID)), row.want)
		if row.want != nil {
			b.wantLive(t, account.SessionRef{User: u.ID, Session: u.ID}, account.ErrRevoked)
		}
	}
	b.wantUser(t, "newer", "") // what a refused registration wanted besides stays free
	want(t, b.store(1).StartSession(ctx, Session("nobody", "s")), account.ErrNoUser)
}

// testRacingNames: of registrations that race for a name exactly one wins, and the others leave nothing.
func testRacingNames(t *testing.T, b Backend) {
	const racers = 16
	for round := range 5 {
		errs := b.race(racers, func(i int, store account.Store) error {
			u := User(id("racer", round*racers+i))
			if i%2 == 0 {
				u.Username = id("name", round)
			} else {
				u.Email = id("NAME", round)
			}
			return store.Register(t.Context(), u, Session(u.ID, u.ID))
		})
		if won, lost := count(errs, nil), count(errs, account.ErrUsernameTaken)+count(errs, account.ErrEmailTaken); won != 1 || lost != racers-1 {
			t.Fatalf("%d winners: %v", won, errs)
		}
		for i, err := range errs {
			racer := id("racer", round*racers+i)
			var live error
			owner := racer
			if err != nil {
				live, owner = account.ErrRevoked, ""
			}
			b.wantLive(t, account.SessionRef{User: racer, Session: racer}, live)
			if i%2 == 0 {
				b.wantUser(t, racer+"@example.test", owner)
			} else {
				b.wantUser(t, racer, owner)
			}
		}
	}
}
