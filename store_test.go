// What clients are told when the store fails: a disk under the embedded one, the engine of another one.

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/disk"
	"authhub/internal/disk/disktest"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
)

// newHubOn returns a hub whose journal is on d and whose keys are those of signer.
func newHubOn(t *testing.T, d *disktest.Disk, signer *jwt.Signer) *testHub {
	t.Helper()
	h := newTestHub(t)
	h.Hub.rand = rand.Reader // the next start must not give the same ids again
	s, err := account.Open(d, "/journal", mustSeeds(t), quietLog())
	if err != nil {
		t.Fatal(err)
	}
	own := h.Hub.store
	t.Cleanup(func() { s.Close(); h.Hub.store = own })
	h.Hub.store, h.Hub.log, h.Hub.signer = s, quietLog(), signer
	return h
}

func mustSigner(t testing.TB) *jwt.Signer {
	t.Helper()
	s, err := jwt.NewSigner([]byte(strings.Repeat("s", flags.MinSecret)), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFailedDisk: the first answer says what happened, the later ones that the store has failed; reading goes on;
// and after the restart everything that was acknowledged is there.
func TestFailedDisk(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		op     string
		cause  error
		status int
		code   string
	}{
		{"write", syscall.EIO, 503, "store_unavailable"},
		{"sync", syscall.EIO, 503, "store_unavailable"},
		{"write", syscall.ENOSPC, 507, "disk_full"},
		{"sync", syscall.ENOSPC, 507, "disk_full"},
		{"sync", syscall.EDQUOT, 507, "disk_full"},
	} {
		t.Run(row.op+" "+row.cause.Error(), func(t *testing.T) {
			t.Parallel()
			d := disktest.New("", nil)
			h := newHubOn(t, d, mustSigner(t))
			registered := h.post(registerPath, right("registered")).Want(201).Pair()
			spent := h.login("demo")
			current := h.refreshWith(spent.Refresh).Want(200).Pair()
			out := h.login("demo")
			h.post(logoutPath, nil, bearerOf(out.Access)...).Want(204)

			d.SetFault(func(op string) error {
				if op == row.op {
					return row.cause
				}
				return nil
			})
			h.post(registerPath, right("unlucky")).Want(row.status, row.code)
			h.post(registerPath, right("unlucky-too")).Want(503, "store_unavailable")
			h.post(loginPath, right("demo")).Want(503, "store_unavailable")
			h.refreshWith(current.Refresh).Want(503, "store_unavailable")
			h.post(logoutPath, nil, bearerOf(current.Access)...).Want(503, "store_unavailable")
			h.get("/healthz").Want(503, "store_unavailable")
			h.me(current.Access).Want(200)
			h.me(out.Access).Want(401, "token_revoked")
			h.post(loginPath, guessAt("demo")).Want(401, "invalid_credentials")
			h.get(listingPath).Want(200)
			h.runOn(fourReadings).Want(200)
			d.SetFault(nil)
			h.post(loginPath, right("demo")).Want(503, "store_unavailable") // until restart

			for name, left := range map[string]*disktest.Disk{"a kill": d.AfterKill(), "a power cut": d.AfterPowerCut(disktest.Survival{})} {
				next := newHubOn(t, left, h.signer)
				next.get("/healthz").Want(200)
				next.me(registered.Access).Want(200)
				next.me(current.Access).Want(200)
				next.me(out.Access).Want(401, "token_revoked")
				next.login("registered")
				next.refreshWith(current.Refresh).Want(200)
				if a := next.refreshWith(spent.Refresh); a.Status == 200 {
					t.Errorf("after %s a spent token works again", name)
				}
			}
		})
	}
}

// TestFailedDiskReachesAllWhoWait: of many writers at the moment of the fault none is told of a success that the
// next start doesn't know.
func TestFailedDiskReachesAllWhoWait(t *testing.T) {
	t.Parallel()
	d := disktest.New("", nil)
	h := newHubOn(t, d, mustSigner(t))
	syncing, failing := make(chan struct{}), false
	d.SetFault(func(op string) error {
		switch {
		case op != "sync":
			return nil
		case failing:
			return syscall.EIO
		}
		failing = true
		close(syncing) // what is written from now on is behind this sync
		return nil
	})
	var all sync.WaitGroup
	acknowledged := make(chan pair, 100)
	for i := range 100 {
		all.Go(func() {
			if i%2 == 1 {
				<-syncing
			}
			if a := h.post(registerPath, right(fmt.Sprintf("user-%d", i))); a.Status == 201 {
				acknowledged <- a.Pair()
			} else if a.Status != 503 {
				t.Errorf("status %d", a.Status)
			}
		})
	}
	all.Wait()
	close(acknowledged)
	next := newHubOn(t, d.AfterPowerCut(disktest.Survival{}), h.signer)
	n := 0
	for p := range acknowledged {
		next.me(p.Access).Want(200)
		n++
	}
	if n == 0 || n > 50 {
		t.Errorf("%d of 100 are acknowledged, and only the first sync succeeded, with 50 at most", n)
	}
}

// outage is a store whose engine does not answer.
type outage struct {
	account.Store
	err error
}

func (s outage) Register(context.Context, *account.User, account.Session) error { return s.err }
func (s outage) UserNamed(context.Context, string) (*account.User, error)       { return nil, s.err }
func (s outage) StartSession(context.Context, account.Session) error            { return s.err }
func (s outage) EndSession(context.Context, account.SessionRef, bool) error     { return s.err }
func (s outage) Ready(context.Context) error                                    { return s.err }
func (s outage) Live(context.Context, account.SessionRef) (account.Session, *account.User, error) {
	return account.Session{}, nil, s.err
}
func (s outage) Rotate(context.Context, account.SessionRef, int, time.Time, account.ReusePolicy) (account.Session, *account.User, error) {
	return account.Session{}, nil, s.err
}

// TestOutageOfTheStore: an engine that does not answer is a 503 that passes, never a wrong password, an ended session
// or a failed login.
func TestOutageOfTheStore(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	demo, sound := h.login("demo"), h.store
	for _, err := range []error{account.ErrUnavailable, account.ErrUnknown} {
		h.Hub.store = outage{sound, err}
		var answers []*answer
		for range 15 { // more than the throttle allows to fail
			answers = append(answers, h.post(loginPath, right("demo")), h.post(loginPath, guessAt("demo")))
		}
		answers = append(answers, h.me(demo.Access), h.refreshWith(demo.Refresh), h.post(logoutPath, nil, bearerOf(demo.Access)...),
			h.post(registerPath, right("newcomer")), h.get("/healthz"))
		for _, a := range answers {
			if a.Want(503, "store_unavailable"); a.Header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", a.Body)
			}
		}
		h.Hub.store = sound
		h.post(loginPath, right("demo")).Want(http.StatusOK)
		h.me(demo.Access).Want(http.StatusOK)
	}
	h.refreshWith(demo.Refresh).Want(http.StatusOK)
}

// How cost grows with what a hub holds: BENCHMARKS.md has the figures, each table from one command
//
//	go test -run '^$' -bench Growth/users .
//
// MB is the heap that the growing thing takes, after a collection. How a run grows with its rows is bench/rows' to say.
func BenchmarkGrowth(b *testing.B) {
	for name, sizes := range map[string]struct {
		from, to int
		measure  func(b *testing.B, n int)
	}{
		"users":      {100, 100_000, growUsers},
		"sessions":   {1_000, 1_000_000, growSessions},
		"journal":    {1_000, 1_000_000, growJournal},
		"clients":    {1, 1_000, growClients},
		"file":       {10_000, 100_000_000, growFile},
		"namespaces": {1, 10_000, growNamespaces},
	} {
		b.Run(name, func(b *testing.B) {
			for n := sizes.from; n <= sizes.to; n *= 10 {
				b.Run(fmt.Sprint(n), func(b *testing.B) { sizes.measure(b, n) })
			}
		})
	}
}

// growUsers measures a login, with n users whose passwords are known or, from 20,000 on, mostly are not.
func growUsers(b *testing.B, n int) {
	before := liveMB()
	h := newTestHub(b)
	seeds := make([]*account.User, n)
	for i := range seeds {
		name := fmt.Sprintf("user-%06d", i)
		seeds[i] = &account.User{ID: name, Username: name, Email: name + "@example.test", Role: "user", Seed: true, Credential: passwd.Plain("a password of " + name)}
	}
	var err error
	if h.store, err = account.NewMemory(seeds); err != nil {
		b.Fatal(err)
	}
	held := liveMB() - before
	handler, r := benchEdge(h), newBenchRequest(b, "POST", loginPath, "Content-Type", "application/json")
	for i := range min(n, 20_000) {
		name := seeds[i].Username
		r.send(handler, http.StatusOK, `{"username":"`+name+`","password":"a password of `+name+`"}`)
	}
	for b.Loop() {
		name := seeds[mathrand.IntN(n)].Username
		r.send(handler, http.StatusOK, `{"username":"`+name+`","password":"a password of `+name+`"}`)
	}
	b.ReportMetric(held, "MB")
}

// growSessions measures a refresh of any of n sessions, of which a user has a thousand.
func growSessions(b *testing.B, n int) {
	before := liveMB()
	h := newTestHub(b)
	refs := fillSessions(b, h.embedded(), n, h.now())
	held := liveMB() - before
	handler, r := benchEdge(h), newBenchRequest(b, "POST", refreshPath, "Content-Type", "application/json")
	for b.Loop() {
		s, u, err := h.store.Live(b.Context(), refs[mathrand.IntN(n)])
		if err != nil {
			b.Fatal(err)
		}
		r.send(handler, http.StatusOK, refreshOrder(h, &s, u))
	}
	b.ReportMetric(held, "MB")
}

// fillSessions starts n sessions and returns what finds them.
func fillSessions(b *testing.B, s *account.Embedded, n int, now time.Time) []account.SessionRef {
	hash := "$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	var users []account.UserRecord
	refs, sessions := make([]account.SessionRef, n), make([]account.Session, n)
	for i := range refs {
		name := fmt.Sprintf("user-%06d", i/1_000)
		if i%1_000 == 0 {
			users = append(users, account.UserRecord{ID: name, Username: name, Role: "user", Hash: hash})
		}
		sessions[i] = account.Session{ID: fmt.Sprintf("%022d", i), User: name, Created: now.UnixMilli(), AccessTTL: 900_000, RefreshTTL: 604_800_000, Issued: now.UnixMilli()}
		refs[i] = sessions[i].Ref()
	}
	if err := s.ReplaceAll(b.Context(), users, sessions); err != nil {
		b.Fatal(err)
	}
	return refs
}

// growJournal measures a start with a journal of n live sessions.
func growJournal(b *testing.B, n int) {
	path, log := filepath.Join(b.TempDir(), "journal"), slog.New(slog.DiscardHandler)
	s, err := account.Open(disk.OS{}, path, nil, log)
	if err != nil {
		b.Fatal(err)
	}
	fillSessions(b, s, n, time.Now())
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	s = nil
	before, held := liveMB(), 0.0
	for b.Loop() {
		opened, err := account.Open(disk.OS{}, path, nil, log)
		if err != nil || opened.LiveRecords() < n {
			b.Fatal(opened.LiveRecords(), err)
		}
		if held == 0 {
			b.StopTimer()
			held = liveMB() - before
			b.StartTimer()
		}
		opened.Close()
	}
	b.ReportMetric(held, "MB")
	b.ReportMetric(float64(info.Size())/1e6, "file-MB")
}

// growClients measures refreshes on a folder by n clients at once: ns/op is the time between two answers.
func growClients(b *testing.B, n int) {
	h := newTestHub(b, "-dir", filepath.Join(b.TempDir(), "hub"))
	handler := benchEdge(h)
	refs := fillSessions(b, h.embedded(), n, h.now())
	var left atomic.Int64
	left.Store(int64(b.N))
	var clients sync.WaitGroup
	b.ResetTimer()
	for _, ref := range refs {
		clients.Go(func() {
			r := newBenchRequest(b, "POST", refreshPath, "Content-Type", "application/json")
			for left.Add(-1) >= 0 {
				s, u, _ := h.store.Live(b.Context(), ref)
				r.send(handler, http.StatusOK, refreshOrder(h, &s, u))
			}
		})
	}
	clients.Wait()
}

// refreshOrder is the body that refreshes s.
func refreshOrder(h *testHub, s *account.Session, u *account.User) string {
	c := s.Claims(jwt.Refresh, u)
	return `{"refresh_token":"` + string(h.signer.Append(nil, &c)) + `"}`
}

// TestUserLimit fills a store to the last user and measures what they hold.
func TestUserLimit(t *testing.T) {
	h := newTestHub(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const maxUsers = 100_000
	hash := "$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	longest := strings.Repeat("n", 58) // with six digits the longest user name there is
	var users []account.UserRecord
	var sessions []account.Session
	for i := h.embedded().CountUsers(); i < maxUsers; i++ {
		u := account.UserRecord{ID: fmt.Sprintf("%022d", i), Username: fmt.Sprintf("%s%06d", longest, i), Role: "user", Hash: hash}
		users, sessions = append(users, u), append(sessions, account.Session{ID: u.ID, User: u.ID, RefreshTTL: 1 << 50})
	}
	if err := h.embedded().ReplaceAll(t.Context(), users, sessions); err != nil {
		t.Fatal(err)
	}
	users, sessions = nil, nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapInuse - before.HeapInuse) / maxUsers
	t.Logf("%d users with a session each hold %d bytes each", maxUsers, each)
	if each > 3_000 {
		t.Errorf("%d bytes a user", each)
	}

	h.post(registerPath, right("one-too-many")).Want(507, "user_limit")
	h.post(registerPath, right("demo")).Want(409, "username_taken")
	h.login("demo")
}

// A description may name every code that an operation answers with.
func TestDialectsKnowEveryCode(t *testing.T) {
	t.Parallel()
	for _, s := range sentinels {
		if !slices.Contains(dialect.Codes, s.answer.Code) {
			t.Errorf("%v is answered with %s, which no description can name", s.err, s.answer.Code)
		}
	}
}
