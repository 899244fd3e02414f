package account

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"authhub/internal/disk/disktest"
	"authhub/internal/passwd"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newUser returns a user of that name, who can't log in.
func newUser(id, username, email string) *User {
	return &User{ID: id, Username: username, Email: email, Role: "user", Created: start.UnixMilli(), Credential: someHash}
}

var someHash = func() passwd.Credential {
	c, err := passwd.ParseHash("$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43))
	if err != nil {
		panic(err)
	}
	return c
}()

// newSession returns a session that begins at now and is over a minute later.
func newSession(user, id string, now time.Time) Session {
	return Session{ID: id, User: user, Created: now.UnixMilli(), AccessTTL: 1_000, RefreshTTL: 60_000, Issued: now.UnixMilli()}
}

func mustOpen(t *testing.T, d *disktest.Disk, seeds ...*User) *Embedded {
	t.Helper()
	s, err := Open(d, "journal", seeds, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// must fails the test if a verb that has to succeed has not.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswersWaitForWhatTheyRestOn: while the record of a change is being synced, no other verb gives an answer that
// rests on that change.
func TestAnswersWaitForWhatTheyRestOn(t *testing.T) {
	t.Parallel()
	ref := SessionRef{"kim", "s"}
	end := func(ctx context.Context, s *Embedded) error { return s.EndSession(ctx, ref, false) }
	replay := func(ctx context.Context, s *Embedded) error {
		_, _, err := s.Rotate(ctx, ref, 0, start, ReusePolicy{})
		return err
	}
	register := func(ctx context.Context, s *Embedded) error {
		return s.Register(ctx, newUser("lee", "lee", ""), newSession("lee", "l", start))
	}
	login := func(ctx context.Context, s *Embedded) error {
		if u, _ := s.UserNamed(ctx, "lee"); u == nil {
			return ErrNoUser
		}
		return s.StartSession(ctx, newSession("lee", "l2", start))
	}
	for _, row := range []struct {
		name        string
		first, then func(context.Context, *Embedded) error
		want        error
	}{
		{"a second logout", end, end, nil},
		{"a second logout, everywhere", end, func(ctx context.Context, s *Embedded) error { return s.EndSession(ctx, ref, true) }, nil},
		{"a second replay", replay, replay, ErrReused},
		{"a refresh after a logout", end, replay, ErrRevoked},
		{"a login to the account just made", register, login, nil},
		{"the same pair again", func(ctx context.Context, s *Embedded) error {
			_, _, err := s.Rotate(ctx, ref, 1, start, ReusePolicy{})
			return err
		}, func(ctx context.Context, s *Embedded) error {
			_, _, err := s.Rotate(ctx, ref, 1, start, ReusePolicy{Grace: time.Minute})
			return err
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { answerAfterSync(t, row.first, row.then, row.want) })
		})
	}
}

// answerAfterSync fails unless then answers want, and only after the record of first is synced.
func answerAfterSync(t *testing.T, first, then func(context.Context, *Embedded) error, want error) {
	d := disktest.New("journal", nil)
	s := mustOpen(t, d)
	defer s.Close()
	must(t, s.Register(t.Context(), newUser("kim", "kim", ""), newSession("kim", "s", start)))
	_, _, err := s.Rotate(t.Context(), SessionRef{"kim", "s"}, 0, start, ReusePolicy{})
	must(t, err)

	synced := make(chan struct{})
	d.SetFault(func(op string) error {
		if op == "sync" {
			<-synced
		}
		return nil
	})
	go first(t.Context(), s)
	synctest.Wait()
	answered := false
	go func() {
		if err := then(t.Context(), s); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		answered = true
	}()
	synctest.Wait()
	if answered {
		t.Error("answered before what it rests on was on disk")
	}
	close(synced)
	synctest.Wait()
	if !answered {
		t.Error("not answered afterwards")
	}
}

// TestEndedStaysEnded: a session that was found over while the clock was ahead, and then logged out, is not alive
// after a restart with the clock back.
func TestEndedStaysEnded(t *testing.T) {
	t.Parallel()
	for name, logOut := range map[string]bool{"and is logged out": true, "and nothing else": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := disktest.New("journal", nil)
			s := mustOpen(t, d)
			must(t, s.Register(t.Context(), newUser("kim", "kim", ""), newSession("kim", "s", start)))
			must(t, s.Register(t.Context(), newUser("lee", "lee", ""), newSession("lee", "l", start)))
			ahead := start.Add(time.Hour)
			must(t, s.StartSession(t.Context(), newSession("kim", "later", ahead))) // drops what is over, of kim and of lee
			for _, ref := range []SessionRef{{"kim", "s"}, {"lee", "l"}} {
				if _, _, err := s.Live(t.Context(), ref); err != ErrRevoked {
					t.Errorf("%v lives on: %v", ref, err)
				}
				if logOut {
					must(t, s.EndSession(t.Context(), ref, false))
				}
			}

			again := mustOpen(t, d.AfterKill())
			for _, ref := range []SessionRef{{"kim", "s"}, {"lee", "l"}} {
				if _, _, err := again.Live(t.Context(), ref); err != ErrRevoked {
					t.Errorf("after a restart %v is alive: %v", ref, err)
				}
			}
			if _, _, err := again.Live(t.Context(), SessionRef{"kim", "later"}); err != nil {
				t.Error(err)
			}
			must(t, s.Close())
			must(t, again.Close())
		})
	}
}

// TestSweepRemovesWhatIsOver: of users who never come back, too.
func TestSweepRemovesWhatIsOver(t *testing.T) {
	t.Parallel()
	s, err := NewMemory([]*User{newUser("kim", "kim", "")})
	must(t, err)
	for i := range 1_000 {
		name := "gone-" + strings.Repeat("x", i%50) + string(rune('a'+i/50))
		must(t, s.Register(t.Context(), newUser(name, name, ""), newSession(name, name, start)))
	}
	later := start.Add(time.Hour)
	for i := range 1_000 {
		must(t, s.StartSession(t.Context(), newSession("kim", "s"+string(rune(i)), later.Add(time.Duration(i)*time.Hour))))
	}
	if n := len(s.sessions); n > 50 {
		t.Errorf("%d sessions are left of 2,000, of which 1 is live", n)
	}
}

// TestNamesAreFolded: names that differ by case alone are one, in every alphabet.
func TestNamesAreFolded(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{
		{"sam@a.test", "SAM@A.TEST"}, {"ſam@a.test", "SAM@a.test"}, {"οδος@a.test", "ΟΔΟΣ@a.test"}, {"K@a.test", "k@a.test"},
		{"µ@a.test", "μ@a.test"}, {"ά@a.test", "Ά@a.test"}, {"İ@a.test", "İ@A.test"}, {"ⅷ@a.test", "Ⅷ@a.test"}, {"θ@a.test", "ϴ@a.test"},
	} {
		s, err := NewMemory(nil)
		must(t, err)
		must(t, s.Register(t.Context(), newUser("1", "first", names[0]), newSession("1", "1", start)))
		if err := s.Register(t.Context(), newUser("2", "second", names[1]), newSession("2", "2", start)); err != ErrEmailTaken {
			t.Errorf("%q beside %q: %v", names[1], names[0], err)
		}
		if u, _ := s.UserNamed(t.Context(), names[1]); u == nil || u.ID != "1" {
			t.Errorf("%q does not find %q", names[1], names[0])
		}
	}
	for _, names := range [][2]string{{"ı@a.test", "i@a.test"}, {"ß@a.test", "ss@a.test"}, {"e@a.test", "é@a.test"}} {
		if Fold(names[0]) == Fold(names[1]) {
			t.Errorf("%q and %q are one", names[0], names[1])
		}
	}
}

// TestAlikeUsersOfAnOlderJournal: two users whom an older hub let register stay, and each finds itself.
func TestAlikeUsersOfAnOlderJournal(t *testing.T) {
	t.Parallel()
	d := disktest.New("journal", nil)
	s := mustOpen(t, d)
	must(t, s.Register(t.Context(), newUser("1", "first", "ſam@a.test"), newSession("1", "1", start)))
	s.mu.Lock() // as an older hub did
	must(t, s.appendLocked(&event{User: newUser("2", "second", "SAM@a.test").Stored()}))
	s.mu.Unlock()
	must(t, s.Close())

	var warned strings.Builder
	s, err := Open(d, "journal", nil, slog.New(slog.NewTextHandler(&warned, nil)))
	must(t, err)
	if !strings.Contains(warned.String(), "user=second other=first") {
		t.Errorf("no warning: %s", warned.String())
	}
	for login, id := range map[string]string{"ſam@a.test": "1", "first": "1", "sam@a.test": "2", "SAM@A.test": "2", "second": "2"} {
		if u, _ := s.UserNamed(t.Context(), login); u == nil || u.ID != id {
			t.Errorf("%s finds %v, want user %s", login, u, id)
		}
	}
	must(t, s.StartSession(t.Context(), newSession("2", "2", start)))
	must(t, s.DeleteUser(t.Context(), "first"))
	if u, _ := s.UserNamed(t.Context(), "ſam@a.test"); u == nil || u.ID != "2" {
		t.Errorf("what one of them leaves is %v's", u)
	}
	if err := s.Register(t.Context(), newUser("3", "third", "sAm@a.test"), newSession("3", "3", start)); err != ErrEmailTaken {
		t.Errorf("a third of that name: %v", err)
	}
	must(t, s.Close())

	_, err = Open(d, "journal", []*User{newUser("seed", "SECOND", "")}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "-users") {
		t.Errorf("a seed of a user's very name: %v", err)
	}
}

// TestSessionsOfOthersAreNotFound: the user in a token has to be the session's.
func TestSessionsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	s, err := NewMemory([]*User{newUser("kim", "kim", ""), newUser("lee", "lee", "")})
	must(t, err)
	must(t, s.StartSession(t.Context(), newSession("kim", "s", start)))
	wrong := SessionRef{"lee", "s"}
	if _, _, err := s.Live(t.Context(), wrong); err != ErrRevoked {
		t.Error(err)
	}
	if _, _, err := s.Rotate(t.Context(), wrong, 0, start, ReusePolicy{}); err != ErrRevoked {
		t.Error(err)
	}
	must(t, s.EndSession(t.Context(), wrong, true))
	if _, _, err := s.Live(t.Context(), SessionRef{"kim", "s"}); err != nil {
		t.Error(err)
	}
}

// FuzzFold: folding twice is folding once, and what differs by case alone is one.
func FuzzFold(f *testing.F) {
	f.Add("ſam@Σ.ς", "SAM@σ.Σ")
	f.Add(string(rune(math.MaxInt32)), "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Fold(Fold(a)) != Fold(a) {
			t.Errorf("%q folds to %q and then to %q", a, Fold(a), Fold(Fold(a)))
		}
		if strings.EqualFold(a, b) && Fold(a) != Fold(b) {
			t.Errorf("%q and %q are equal but for case and fold to %q and %q", a, b, Fold(a), Fold(b))
		}
	})
}
