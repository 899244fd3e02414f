// What clients are told when the store fails: a disk under the embedded one, the engine of another one.

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/disk/disktest"
	"authhub/internal/flags"
	"authhub/internal/jwt"
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
			registered := h.post(registerPath, right("registered")).want(201).pair()
			spent := h.login("demo")
			current := h.refreshWith(spent.refresh).want(200).pair()
			out := h.login("demo")
			h.post(logoutPath, nil, bearerOf(out.access)...).want(204)

			d.SetFault(func(op string) error {
				if op == row.op {
					return row.cause
				}
				return nil
			})
			h.post(registerPath, right("unlucky")).want(row.status, row.code)
			h.post(registerPath, right("unlucky-too")).want(503, "store_unavailable")
			h.post(loginPath, right("demo")).want(503, "store_unavailable")
			h.refreshWith(current.refresh).want(503, "store_unavailable")
			h.post(logoutPath, nil, bearerOf(current.access)...).want(503, "store_unavailable")
			h.get("/healthz").want(503, "store_unavailable")
			h.me(current.access).want(200)
			h.me(out.access).want(401, "token_revoked")
			h.post(loginPath, guessAt("demo")).want(401, "invalid_credentials")
			h.get(listingPath).want(200)
			h.runOn(fourReadings).want(200)
			d.SetFault(nil)
			h.post(loginPath, right("demo")).want(503, "store_unavailable") // until restart

			for name, left := range map[string]*disktest.Disk{"a kill": d.AfterKill(), "a power cut": d.AfterPowerCut(disktest.Survival{})} {
				next := newHubOn(t, left, h.signer)
				next.get("/healthz").want(200)
				next.me(registered.access).want(200)
				next.me(current.access).want(200)
				next.me(out.access).want(401, "token_revoked")
				next.login("registered")
				next.refreshWith(current.refresh).want(200)
				if a := next.refreshWith(spent.refresh); a.status == 200 {
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
	syncs := 0
	d.SetFault(func(op string) error {
		if op == "sync" {
			if syncs++; syncs > 5 {
				return syscall.EIO
			}
		}
		return nil
	})
	var all sync.WaitGroup
	acknowledged := make(chan pair, 100)
	for i := range 100 {
		all.Go(func() {
			if a := h.post(registerPath, right(fmt.Sprintf("user-%d", i))); a.status == 201 {
				acknowledged <- a.pair()
			} else if a.status != 503 {
				t.Errorf("status %d", a.status)
			}
		})
	}
	all.Wait()
	close(acknowledged)
	next := newHubOn(t, d.AfterPowerCut(disktest.Survival{}), h.signer)
	n := 0
	for p := range acknowledged {
		next.me(p.access).want(200)
		n++
	}
	t.Logf("%d of 100 acknowledged before the fault", n)
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

// TestOutageOfTheStore: an engine that does not answer is a 503 that passes, never a wrong password, an ended session or a
// failed login.
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
		answers = append(answers, h.me(demo.access), h.refreshWith(demo.refresh), h.post(logoutPath, nil, bearerOf(demo.access)...),
			h.post(registerPath, right("newcomer")), h.get("/healthz"))
		for _, a := range answers {
			if a.want(503, "store_unavailable"); a.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", a.body)
			}
		}
		h.Hub.store = sound
		h.post(loginPath, right("demo")).want(http.StatusOK)
		h.me(demo.access).want(http.StatusOK)
	}
	h.refreshWith(demo.refresh).want(http.StatusOK)
}
