// What the store makes of answers that are lost, late or errors: a verb ends as if nothing had happened, or says that
// the engine is away, and nothing that was acknowledged depends on which.

package engine_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/engine"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/etcd/wire"
)

// TestLostAnswers: each verb, with each of its transactions failing once in each way, has the outcome it has without.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	timedOut := etcdtest.Fault{Status: 504, Code: wire.CodeDeadlineExceeded, Message: "context deadline exceeded"}
	applied := timedOut
	applied.Applied = true
	for name, fault := range map[string]etcdtest.Fault{
		"lost after it was applied": {Lost: true},
		"504":                       timedOut,
		"504 after it was applied":  applied,
		"no leader":                 {Status: 503, Code: wire.CodeUnavailable, Message: "etcdserver: no leader"},
	} {
		for nth := range 5 {
			t.Run(fmt.Sprint(name, nth), func(t *testing.T) {
				t.Parallel()
				story(t, fault, nth)
			})
		}
	}
}

// story tells what each verb does when its transaction number nth meets fault.
func story(t *testing.T, fault etcdtest.Fault, nth int) {
	cluster := etcdtest.New(t, 2)
	stores := open(t, cluster.Address(), 2)
	a, b := stores[0], stores[1]
	meet := func() {
		left := nth
		cluster.Fail(func(path string) etcdtest.Fault {
			left--
			if path == wire.TxnPath && left == -1 {
				return fault
			}
			return etcdtest.Fault{}
		})
	}
	ctx := t.Context()
	want := func(verb string, got, want error) {
		t.Helper()
		cluster.Fail(nil)
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", verb, got, want)
		}
		meet()
	}
	meet()
	u := newUser("alice")
	first := newSession(u, now)
	want("Register", a.Register(ctx, u, first), nil)
	want("Register again", b.Register(ctx, newUser("alice"), first), account.ErrUsernameTaken)
	found, err := b.UserNamed(ctx, "alice")
	want("UserNamed", err, nil)
	if found == nil || found.ID != u.ID {
		t.Fatalf("UserNamed: %+v", found)
	}
	second := newSession(u, now)
	want("StartSession", b.StartSession(ctx, second), nil)
	_, _, err = b.Live(ctx, second.Ref())
	want("Live", err, nil)
	for generation := range 3 {
		next, _, err := a.Rotate(ctx, first.Ref(), generation, now, account.ReusePolicy{})
		want("Rotate", err, nil)
		if next.Generation != generation+1 {
			t.Errorf("Rotate from %d gives %d", generation, next.Generation)
		}
	}
	for range 2 {
		_, _, err = b.Rotate(ctx, first.Ref(), 1, now, account.ReusePolicy{})
		want("Rotate with a spent token", err, account.ErrReused)
	}
	_, _, err = a.Live(ctx, first.Ref())
	want("Live after reuse", err, account.ErrRevoked)
	for range 2 {
		want("EndSession", a.EndSession(ctx, second.Ref(), true), nil)
	}
	_, _, err = b.Live(ctx, second.Ref())
	want("Live after logout", err, account.ErrRevoked)
}

// TestOutagePassesByItself: without a majority every verb says so after 7 s, no verb says that a user or a session is
// not there, and when the cluster is back the store is, too.
func TestOutagePassesByItself(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 2)
	s := open(t, cluster.Address(), 1)[0]
	ctx := t.Context()
	u := newUser("alice")
	one := newSession(u, now)
	if err := s.Register(ctx, u, one); err != nil {
		t.Fatal(err)
	}
	s.UserNamed(ctx, "alice")

	cluster.Stop(0)
	cluster.Stop(1)
	var asking sync.WaitGroup
	for name, verb := range map[string]func() error{
		"Register":     func() error { return s.Register(ctx, newUser("bob"), one) },
		"StartSession": func() error { return s.StartSession(ctx, one) },
		"EndSession":   func() error { return s.EndSession(ctx, one.Ref(), false) },
		"Ready":        func() error { return s.Ready(ctx) },
		"UserNamed":    func() error { _, err := s.UserNamed(ctx, "alice"); return err },
		"nobody named": func() error { _, err := s.UserNamed(ctx, "nobody"); return err },
		"Live":         func() error { _, _, err := s.Live(ctx, one.Ref()); return err },
		"Rotate": func() error {
			_, _, err := s.Rotate(ctx, one.Ref(), 0, now, account.ReusePolicy{})
			return err
		},
	} {
		asking.Go(func() {
			start := time.Now()
			err := verb()
			if !errors.Is(err, account.ErrUnavailable) && !errors.Is(err, account.ErrUnknown) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took > patience {
				t.Errorf("%s took %v", name, took)
			}
		})
	}
	asking.Wait()
	if missing, err := s.Health(ctx); len(missing) != 2 || err == nil {
		t.Errorf("missing: %v, %v", missing, err)
	}

	cluster.Start(1)
	if _, _, err := s.Live(ctx, one.Ref()); err != nil && !errors.Is(err, account.ErrRevoked) { // EndSession may have happened
		t.Error(err)
	}
	if err := s.Ready(ctx); err != nil {
		t.Error(err)
	}
}

// TestReadsShareTransactions: what waits together is asked for together.
func TestReadsShareTransactions(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	s := open(t, cluster.Address(), 1)[0]
	u := newUser("alice")
	one := newSession(u, now)
	if err := s.Register(t.Context(), u, one); err != nil {
		t.Fatal(err)
	}
	before := cluster.Requests(wire.TxnPath)
	release, held := make(chan struct{}), make(chan struct{}, 2)
	cluster.Hold(func(string) { held <- struct{}{}; <-release })
	var asking sync.WaitGroup
	ask := func() {
		asking.Go(func() {
			if _, _, err := s.Live(t.Context(), one.Ref()); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 { // these two go out, and the others have to wait
		ask()
		<-held
	}
	for range 100 {
		ask()
	}
	for s.Waiting() < 100 {
		<-time.After(time.Millisecond)
	}
	cluster.Hold(nil)
	close(release)
	asking.Wait()
	if n := cluster.Requests(wire.TxnPath) - before; n != 4 { // 120 operations are 60 calls
		t.Errorf("102 calls cost %d transactions, want 4", n)
	}
}

// TestLeasesThatAreGone: sessions go with their leases, and the next ones get new leases.
func TestLeasesThatAreGone(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	stores := open(t, cluster.Address(), 2)
	u := newUser("alice")
	one, two := newSession(u, now), newSession(u, now)
	if err := stores[0].Register(t.Context(), u, one); err != nil {
		t.Fatal(err)
	}
	if n := cluster.Requests(wire.GrantPath); n != 1 {
		t.Errorf("%d leases, want 1", n)
	}
	cluster.EndLeases()
	if _, _, err := stores[1].Live(t.Context(), one.Ref()); !errors.Is(err, account.ErrRevoked) {
		t.Errorf("a session whose lease has ended: %v", err)
	}
	for _, s := range stores {
		if err := s.StartSession(t.Context(), two); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := stores[0].Rotate(t.Context(), two.Ref(), 0, now, account.ReusePolicy{}); err != nil {
		t.Error(err)
	}
}

// TestClockThatJumps: whatever a hub's clock did before, a session's lease lives as long as the session may.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	c := config(t, cluster.Address())
	now := now
	c.Now = func() time.Time { return now }
	s, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u := newUser("alice")
	if err := s.Register(t.Context(), u, newSession(u, now)); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{0, 3 * 24 * time.Hour, -3 * 24 * time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		now = now.Add(jump)
		one := newSession(u, now)
		if err := s.StartSession(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		wanted, lives := time.Duration(one.RefreshTTL)*time.Millisecond, cluster.Lives("/authhub/1/s/"+u.ID+"/"+one.ID)
		if lives < wanted || lives > wanted+time.Hour {
			t.Errorf("after a jump by %v the session's key lives for %v", jump, lives)
		}
	}
}

// TestProxyThatKnowsNoStreams: a proxy that passes on one whole answer at a time is enough, since nothing is watched.
func TestProxyThatKnowsNoStreams(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	target, _ := url.Parse(cluster.Address())
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	defer proxy.Close()
	s := open(t, proxy.URL, 1)[0]
	if err := s.Register(t.Context(), newUser("alice"), newSession(newUser("alice"), now)); err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
