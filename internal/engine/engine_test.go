// The suite of every account.Store, with three stores on one backend.

package engine_test

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/account/accounttest"
	"authhub/internal/engine"
	"authhub/internal/engine/enginetest"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/etcd/wire"
	"authhub/internal/passwd"
)

var _ account.Store = (*engine.Store)(nil)

func config(t testing.TB, address string) engine.Config {
	return engine.Config{Address: address, Secret: []byte("0123456789abcdef0123456789abcdef"), Hasher: passwd.NewHasher(passwd.EphemeralRounds), Rand: rand.Reader,
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// patience is how long anything may take. A verb gives up after 7 seconds, a start and a turn after 10; the rest is for
// a machine that is busy with other tests.
const patience = 25 * time.Second

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open returns n stores on one backend at address, under a path of their own.
func open(t testing.TB, address string, n int) []*engine.Store {
	t.Helper()
	address += "/" + rand.Text()
	var stores []*engine.Store
	for range n {
		stores = append(stores, openAt(t, address))
	}
	return stores
}

func openAt(t testing.TB, address string, seeds ...*account.User) *engine.Store {
	t.Helper()
	c := config(t, address)
	c.Seeds = seeds
	s, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// backend is three hubs' stores on one cluster.
func backend(t *testing.T, address string, seeds []*account.User) accounttest.Backend {
	address += "/" + rand.Text()
	stores := func(t *testing.T) (all []account.Store) {
		for range 3 {
			all = append(all, openAt(t, address, seeds...))
		}
		return all
	}
	return accounttest.Backend{Stores: stores(t), Kill: stores, Lossy: func(t *testing.T) account.Store {
		return openAt(t, lossy(t, address), seeds...)
	}}
}

// lossy returns an address by which every third answer is lost on its way back.
func lossy(t *testing.T, address string) string {
	first, _, _ := strings.Cut(address, ",")
	target, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	var answers atomic.Int64
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path == wire.TxnPath && answers.Add(1)%3 == 0 {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL + address[strings.LastIndex(address, "/"):]
}

func TestConformanceOnFake(t *testing.T) {
	t.Parallel()
	accounttest.Run(t, func(t *testing.T, seeds []*account.User) accounttest.Backend {
		return backend(t, etcdtest.New(t, 2).Address(), seeds)
	})
}

func TestConformanceOnOneNode(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 1)
	accounttest.Run(t, func(t *testing.T, seeds []*account.User) accounttest.Backend {
		return backend(t, cluster.Address(), seeds)
	})
}

// newUser returns a user of that name, and newSession a session that begins at at.
func newUser(name string) *account.User {
	u := accounttest.User(name)
	u.ID = rand.Text()
	return u
}

func newSession(u *account.User, at time.Time) account.Session {
	s := accounttest.Session(u.ID, rand.Text())
	s.Created, s.Issued = at.UnixMilli(), at.UnixMilli()
	return s
}
