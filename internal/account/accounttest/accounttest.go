// Package accounttest is what account.Store promises, as a test suite that every store has to pass.
package accounttest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/passwd"
)

// Backend is one state and the stores on it.
type Backend struct {
	// Stores are those of several hubs that share the state; of a state that only one hub can have, that one's.
	Stores []account.Store
	// Kill ends all stores as a kill of their hubs does, and returns new ones on the same state. It is nil if the state
	// ends with the hub.
	Kill func(t *testing.T) []account.Store
	// Lossy returns one more store on the same state, which loses a part of the answers that it gets from its engine
	// after the change was made. It is nil if there is no engine.
	Lossy func(t *testing.T) account.Store
}

// Run tests the stores that open returns. Each call of open makes a new state with these seeds, and sees to its end.
func Run(t *testing.T, open func(t *testing.T, seeds []*account.User) Backend) {
	for name, test := range map[string]func(*testing.T, Backend){
		"Names":             testNames,
		"RacingNames":       testRacingNames,
		"Sessions":          testSessions,
		"Disabled":          testDisabled,
		"StaleLogout":       testStaleLogout,
		"LogoutEverywhere":  testLogoutEverywhere,
		"LogoutElsewhere":   testLogoutElsewhere,
		"Rotation":          testRotation,
		"RacingRotations":   testRacingRotations,
		"Replay":            testReplay,
		"Cap":               testCap,
		"Kill":              testKill,
		"LostAnswers":       testLostAnswers,
		"LostAnswersToRace": testLostAnswersToRace,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, seeds())) })
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func seeds() []*account.User {
	kim, lee, off := User("kim"), User("lee"), User("off")
	kim.Seed, lee.Seed, off.Seed, off.Disabled = true, true, true, true
	return []*account.User{kim, lee, off}
}

// User returns a user with this id and user name and an e-mail address made of it. Nobody can log in as that user.
func User(name string) *account.User {
	c, err := passwd.ParseHash("$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43))
	if err != nil {
		panic(err)
	}
	return &account.User{ID: name, Username: name, Email: name + "@example.test", Role: "user", Created: start.UnixMilli(), Credential: c}
}

// Session returns a session that begins with the tests.
func Session(user, id string) account.Session {
	ms := start.UnixMilli()
	return account.Session{ID: id, User: user, Created: ms, AccessTTL: 15 * 60_000, RefreshTTL: 7 * 24 * 3_600_000, Issued: ms}
}

// store returns the i-th store, counting round and round.
func (b *Backend) store(i int) account.Store { return b.Stores[i%len(b.Stores)] }

// login starts a session by the i-th store.
func (b *Backend) login(t *testing.T, i int, user, id string) account.SessionRef {
	t.Helper()
	s := Session(user, id)
	must(t, b.store(i).StartSession(t.Context(), s))
	return s.Ref()
}

// wantLive checks with every store what becomes of a session.
func (b *Backend) wantLive(t *testing.T, ref account.SessionRef, want error) {
	t.Helper()
	for i, store := range b.Stores {
		s, u, err := store.Live(t.Context(), ref)
		if !errors.Is(err, want) {
			t.Fatalf("session %v on store %d: error %v, want %v", ref, i, err, want)
		}
		if err == nil && (s.Ref() != ref || u == nil || u.ID != ref.User) {
			t.Fatalf("session %v on store %d is %+v of %+v", ref, i, s, u)
		}
	}
}

// wantUser checks with every store whose name that is; "" is nobody's.
func (b *Backend) wantUser(t *testing.T, login, id string) {
	t.Helper()
	for i, store := range b.Stores {
		u, err := store.UserNamed(t.Context(), login)
		must(t, err)
		if (u == nil) != (id == "") || u != nil && u.ID != id {
			t.Errorf("%q is %+v on store %d, want %q", login, u, i, id)
		}
	}
}

func rotate(t *testing.T, store account.Store, ref account.SessionRef, generation int) (account.Session, error) {
	s, u, err := store.Rotate(t.Context(), ref, generation, start.Add(time.Minute), account.ReusePolicy{})
	if err == nil && (u == nil || u.ID != ref.User || s.Ref() != ref || s.Generation != generation+1) {
		t.Errorf("%v rotates from %d to %+v of %+v", ref, generation, s, u)
	}
	return s, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// race calls f with n stores at once and returns the errors.
func (b *Backend) race(n int, f func(i int, store account.Store) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i, b.store(i)) })
	}
	all.Wait()
	return errs
}

func count(errs []error, of error) (n int) {
	for _, err := range errs {
		if errors.Is(err, of) || err == of {
			n++
		}
	}
	return n
}

// id returns an id that no other call with another what or i returns.
func id(what string, i int) string { return fmt.Sprintf("%s-%d", what, i) }
