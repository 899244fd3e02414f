// Starts: what hubs of one store must have in common, and one clear line for what is wrong.

package engine_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/engine"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/passwd"
)

// seed returns the user of -users that change makes of demo.
func seed(change func(*account.User)) []*account.User {
	u := &account.User{ID: "user-demo", Username: "demo", Role: "user", Seed: true, Credential: passwd.Plain("demo-password")}
	change(u)
	return []*account.User{u}
}

// startedBefore returns a cluster that a hub with the seed demo has used, where alice has registered, and its config.
func startedBefore(t *testing.T) (*etcdtest.Cluster, engine.Config) {
	t.Helper()
	cluster := etcdtest.New(t, 1)
	c := config(t, cluster.Address()+"/"+rand.Text())
	c.Seeds = seed(func(*account.User) {})
	s, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	u := newUser("alice")
	if err := s.Register(t.Context(), u, newSession(u, now)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	return cluster, c
}

// wantStart fails unless a start with c succeeds, or says want in one line without a password.
func wantStart(t *testing.T, c engine.Config, want string) {
	t.Helper()
	s, err := engine.Open(t.Context(), c)
	if err == nil {
		s.Close()
	}
	if want == "" && err == nil {
		return
	}
	if want == "" || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestHubsMustAgree: on the secret, and on the users of -users but their hashes.
func TestHubsMustAgree(t *testing.T) {
	t.Parallel()
	another := func(change func(*account.User)) func(*engine.Config) {
		return func(c *engine.Config) { c.Seeds = seed(change) }
	}
	onemore := func(name string) func(*engine.Config) {
		return func(c *engine.Config) {
			c.Seeds = append(c.Seeds, seed(func(u *account.User) { u.ID, u.Username = "x", name })...)
		}
	}
	for name, row := range map[string]struct {
		change func(*engine.Config)
		want   string
	}{
		"the same":         {func(*engine.Config) {}, ""},
		"another secret":   {func(c *engine.Config) { c.Secret = []byte("another secret of 32 bytes, or so") }, "AUTHHUB_SECRET"},
		"another password": {another(func(u *account.User) { u.Credential = passwd.Plain("x") }), `"demo" of -users`},
		"another role":     {another(func(u *account.User) { u.Role = "admin" }), `"demo" of -users`},
		"now disabled":     {another(func(u *account.User) { u.Disabled = true }), `"demo" of -users`},
		"another id":       {another(func(u *account.User) { u.ID = "x" }), `"demo" of -users`},
		"a seed is gone":   {func(c *engine.Config) { c.Seeds = nil }, `"user-demo"`},
		"a seed is new":    {onemore("new"), ""},
		"a user has it":    {onemore("Alice"), `"Alice" of -users`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := startedBefore(t)
			row.change(&c)
			wantStart(t, c, row.want)
		})
	}
}

// TestStartSaysWhatIsWrong with etcd.
func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	failing := func(f etcdtest.Fault) func(*etcdtest.Cluster, *engine.Config) {
		return func(cluster *etcdtest.Cluster, _ *engine.Config) {
			cluster.Fail(func(string) etcdtest.Fault { return f })
		}
	}
	for name, row := range map[string]struct {
		change func(*etcdtest.Cluster, *engine.Config)
		want   string
	}{
		"wrong address": {func(_ *etcdtest.Cluster, c *engine.Config) { c.Address = "127.0.0.1:1" }, "http://n1:2379"},
		"no password":   {func(f *etcdtest.Cluster, _ *engine.Config) { f.Require("hub", "right") }, "USER:PASSWORD@"},
		"wrong password": {func(f *etcdtest.Cluster, c *engine.Config) {
			f.Require("hub", "right")
			c.Address = strings.Replace(c.Address, "//", "//hub:wr0ng@", 1)
		}, "invalid user ID or password"},
		"full":               {failing(etcdtest.Fault{Status: 429, Code: 8, Message: "etcdserver: mvcc: database space exceeded"}), "database space exceeded"},
		"another web server": {failing(etcdtest.Fault{Status: 404}), "as no etcd does"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, c := startedBefore(t)
			row.change(cluster, &c)
			wantStart(t, c, row.want)
		})
	}
}

// TestStartWaitsForEtcd: a hub that is started before its cluster waits for it.
func TestStartWaitsForEtcd(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	cluster.Stop(0)
	time.AfterFunc(time.Second, func() { cluster.Start(0) })
	s, err := engine.Open(t.Context(), config(t, cluster.Address()))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()

	cluster.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // as ten seconds would end it
	defer cancel()
	if _, err := engine.Open(ctx, config(t, cluster.Address())); err == nil || !strings.Contains(err.Error(), "are the addresses right") {
		t.Errorf("got %v", err)
	}
}

// TestHubsStartAtOnce: seeds and secret are put there once.
func TestHubsStartAtOnce(t *testing.T) {
	t.Parallel()
	address := etcdtest.New(t, 1).Address()
	var starting sync.WaitGroup
	for range 8 {
		starting.Go(func() {
			c := config(t, address)
			c.Seeds = []*account.User{{ID: "user-demo", Username: "demo", Email: "demo@example.com", Role: "user", Seed: true, Credential: passwd.Plain("x")}}
			s, err := engine.Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if u, err := s.UserNamed(t.Context(), "demo"); err != nil || u == nil || u.Credential.Password() != "x" {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
	starting.Wait()
}
