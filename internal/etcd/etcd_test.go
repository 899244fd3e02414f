// The client's story against the fake gateway: what is asked again, what is not, and what the errors promise.

package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/etcd"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/etcd/wire"
)

func dial(t *testing.T, address string) *etcd.Client { return dialLogging(t, address, t.Output()) }

func dialLogging(t *testing.T, address string, log io.Writer) *etcd.Client {
	t.Helper()
	c, _, err := etcd.Dial(address, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// within is a context for calls that are to end soon, one way or the other.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func put(key etcd.Key, value string) etcd.Txn {
	return etcd.Txn{If: []etcd.Cond{key.Absent()}, Then: []etcd.Op{key.Put([]byte(value), 0)}, Else: []etcd.Op{key.Get()}}
}

func TestDialReadsAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://n1:2379":                                  "http://n1:2379 at ",
		"http://n1:2379,http://n2:2379/authhub":           "http://n1:2379 http://n2:2379 at authhub",
		"http://n1:2379/a,http://n2:2379/a/":              "http://n1:2379 http://n2:2379 at a",
		"https://user:pass@n1:2379, https://n2:2379/a/b/": "https://n1:2379 https://n2:2379 at a/b",
	} {
		c, path, err := etcd.Dial(address, slog.New(slog.DiscardHandler))
		if err != nil || strings.Join(c.Nodes(), " ")+" at "+path != want {
			t.Errorf("Dial(%q) = %v, %q, %v; want %s", address, c, path, err, want)
		}
	}
	for _, address := range []string{"", "n1:2379", "ftp://n1:2379", "http://", "http://n1:2379,", "http://n1:2379?x=1", "http://n1:2379/a,http://n2:2379/b", "http://user:se%cret@n1"} {
		if _, _, err := etcd.Dial(address, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "se%cret") {
			t.Errorf("Dial(%q): %v", address, err)
		}
	}
}

func TestTransactionIsOneStep(t *testing.T) {
	t.Parallel()
	c := dial(t, etcdtest.New(t, 1).Address())
	ctx := t.Context()

	first, err := c.Do(ctx, put("/p/a", "1"))
	if err != nil || !first.Succeeded {
		t.Fatal(first, err)
	}
	second, err := c.Do(ctx, put("/p/a", "2"))
	if err != nil || second.Succeeded || string(second.Results[0].First().Value) != "1" {
		t.Fatal(second, err)
	}
	kv := second.Results[0].First()
	read, err := c.Do(ctx, etcd.Txn{Then: []etcd.Op{etcd.Key("/p/a").GetNewer(kv.ModRevision), etcd.Key("/p/a").GetNewer(kv.ModRevision - 1), etcd.Prefix("/p/").Count(), etcd.Key("/p/b").Get()}})
	if err != nil || read.Results[0].First() != nil || read.Results[0].Count != 1 || read.Results[1].First() == nil || read.Results[2].Count != 1 || read.Results[3].Count != 0 {
		t.Fatal(read, err)
	}
}

func TestLostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 2)
	c := dial(t, cluster.Address())
	cluster.FailNext(1, wire.TxnPath, etcdtest.Fault{Lost: true})

	out, err := c.Do(t.Context(), put("/p/a", "mine"))
	if err != nil || out.Succeeded || string(out.Results[0].First().Value) != "mine" {
		t.Fatalf("the repetition finds what the first try wrote; got %+v, %v", out, err)
	}
}

func TestSilentNodeIsLeftAfterOneTry(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 2)
	c := dial(t, cluster.Address())
	cluster.FailNext(1, wire.TxnPath, etcdtest.Fault{Silent: true})

	start := time.Now()
	if out, err := c.Do(t.Context(), put("/p/a", "1")); err != nil || !out.Succeeded {
		t.Fatal(out, err)
	}
	if took := time.Since(start); took < 1400*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestErrorsSayWhatIsKnown: after ErrUnavailable and a refusal nothing has changed, after ErrUnknown something may
// have.
func TestErrorsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault etcdtest.Fault
		want  error
	}{
		"no leader":          {etcdtest.Fault{Status: 503, Code: 14, Message: "etcdserver: no leader"}, etcd.ErrUnavailable},
		"too many":           {etcdtest.Fault{Status: 429, Code: 8, Message: "etcdserver: too many requests"}, etcd.ErrUnavailable},
		"timed out":          {etcdtest.Fault{Status: 503, Code: 14, Message: "etcdserver: request timed out"}, etcd.ErrUnknown},
		"gateway's time-out": {etcdtest.Fault{Status: 504, Code: 4, Message: "context deadline exceeded"}, etcd.ErrUnknown},
		"504, applied":       {etcdtest.Fault{Status: 504, Code: 4, Message: "context deadline exceeded", Applied: true}, etcd.ErrUnknown},
		"proxy's 502":        {etcdtest.Fault{Status: 502}, etcd.ErrUnknown},
		"lost":               {etcdtest.Fault{Lost: true}, etcd.ErrUnknown},
		"silent":             {etcdtest.Fault{Silent: true}, etcd.ErrUnknown},
		"no lease":           {etcdtest.Fault{Status: 404, Code: 5, Message: "etcdserver: requested lease not found"}, etcd.ErrNoLease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.New(t, 2)
			cluster.Fail(func(string) etcdtest.Fault { return row.fault })
			ctx, giveUp := context.WithCancel(t.Context())
			c, _, err := etcd.Dial(cluster.Address(), slog.New(onWarning{slog.DiscardHandler, giveUp}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Do(ctx, put("/p/a", "1")); !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

// onWarning is a log handler that calls a function at a warning, such as that a try has failed: then none is under way.
type onWarning struct {
	slog.Handler
	call func()
}

func (onWarning) Enabled(context.Context, slog.Level) bool { return true }

func (w onWarning) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		w.call()
	}
	return nil
}

func TestWithoutANodeNothingHasChanged(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := dial(t, gone.URL).Do(within(t, 300*time.Millisecond), put("/p/a", "1"))
	if !errors.Is(err, etcd.ErrUnavailable) || !strings.Contains(err.Error(), gone.URL) {
		t.Errorf("got %v", err)
	}
}

func TestRefusalsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for message, row := range map[string]struct{ status, code int }{
		"etcdserver: mvcc: database space exceeded": {429, 8},
		"etcdserver: permission denied":             {403, 7},
		"etcdserver: request is too large":          {400, 3},
		"404 Not Found":                             {404, 0}, // what a web server says that is no etcd
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.New(t, 1)
			cluster.Fail(func(string) etcdtest.Fault {
				return etcdtest.Fault{Status: row.status, Code: row.code, Message: message}
			})
			_, err := dial(t, cluster.Address()).Do(t.Context(), put("/p/a", "1"))
			var refused *etcd.RefusedError
			if !errors.As(err, &refused) || refused.Code != row.code || cluster.Requests(wire.TxnPath) != 1 {
				t.Errorf("got %v after %d requests", err, cluster.Requests(wire.TxnPath))
			}
		})
	}
}

// TestStrangerIsLeft: as long as another node may be an etcd, it is asked.
func TestStrangerIsLeft(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("Welcome")) }))
	defer stranger.Close()
	cluster := etcdtest.New(t, 1)
	c := dial(t, stranger.URL+","+cluster.Address())
	if out, err := c.Do(t.Context(), etcd.Txn{Then: []etcd.Op{etcd.Key("/p/a").Get()}}); err != nil || !out.Succeeded {
		t.Error(out, err)
	}

	cluster.Stop(0)
	ctx := within(t, 300*time.Millisecond)
	var refused *etcd.RefusedError
	if _, err := c.Do(ctx, put("/p/a", "1")); err == nil || errors.As(err, &refused) || ctx.Err() == nil {
		t.Errorf("one that may come back is not waited for: %v", err)
	}
}

func TestTheClientLogsInAgainWhenItsTokenEnds(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	cluster.Require("hub", "s3cret/@")
	address := strings.Replace(cluster.Address(), "//", "//hub:s3cret%2F%40@", 1)
	c := dial(t, address)

	var asking sync.WaitGroup
	var failed atomic.Pointer[error]
	both := func() {
		for range 16 {
			asking.Go(func() {
				if _, err := c.Do(t.Context(), put("/p/a", "1")); err != nil {
					failed.Store(&err)
				}
			})
		}
		asking.Wait()
	}
	both()
	cluster.EndTokens()
	both()
	if err := failed.Load(); err != nil {
		t.Error(*err)
	}
	if n := cluster.Requests(wire.AuthenticatePath); n != 2 {
		t.Errorf("%d logins, want one and one more after the token ended", n)
	}

	cluster.Fail(func(path string) etcdtest.Fault {
		if path == wire.AuthenticatePath {
			return etcdtest.Fault{}
		}
		return etcdtest.Fault{Status: 401, Code: 16, Message: "etcdserver: invalid auth token"}
	})
	if _, err := c.Do(t.Context(), put("/p/a", "1")); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a token that never helps: %v", err)
	}
}

func TestALoginThatEtcdRefusesSaysWhy(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	cluster.Require("hub", "secret")
	for address, want := range map[string]string{
		cluster.Address(): "write it into the address",
		strings.Replace(cluster.Address(), "//", "//hub:wrong@", 1): "invalid user ID or password",
	} {
		if _, err := dial(t, address).Do(t.Context(), put("/p/a", "1")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
	open := etcdtest.New(t, 1) // an etcd that asks for no login takes anybody
	if _, err := dial(t, strings.Replace(open.Address(), "//", "//hub:any@", 1)).Do(t.Context(), put("/p/a", "1")); err != nil {
		t.Error(err)
	}
}

func TestALeaseEndsWithItsKeys(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	c := dial(t, cluster.Address())
	id, err := c.Grant(t.Context(), 10*time.Second)
	if err != nil || id == 0 {
		t.Fatal(id, err)
	}
	if err := c.KeepAlive(t.Context(), id); err != nil {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), etcd.Txn{Then: []etcd.Op{etcd.Key("/p/a").Put(nil, id)}}); err != nil {
		t.Error(err)
	}
	cluster.EndLeases()
	if keys := cluster.Keys(); len(keys) != 0 {
		t.Error(keys)
	}
	if err := c.KeepAlive(t.Context(), id); !errors.Is(err, etcd.ErrNoLease) {
		t.Errorf("kept alive what has ended: %v", err)
	}
	if err := c.Revoke(t.Context(), id); err != nil {
		t.Errorf("revoked what has ended: %v", err)
	}
}

func TestMissingNodesAreNamedAndLogged(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 3)
	var said bytes.Buffer
	c := dialLogging(t, cluster.Address(), &said)
	cluster.Stop(1)
	for range 2 {
		if missing := c.Missing(t.Context()); len(missing) != 1 || missing[c.Nodes()[1]] == nil {
			t.Errorf("missing: %v", missing)
		}
	}
	cluster.Start(1)
	if missing := c.Missing(t.Context()); len(missing) != 0 {
		t.Errorf("missing: %v", missing)
	}
	if log := said.String(); strings.Count(log, "is missing") != 1 || strings.Count(log, "answers again") != 1 {
		t.Errorf("each change is logged once:\n%s", log)
	}
}

// TestQuestionThatIsGivenUpSaysNothingOfTheNode: a client may leave /healthz, and a hub may stop while it asks.
func TestQuestionThatIsGivenUpSaysNothingOfTheNode(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	var said bytes.Buffer
	c := dialLogging(t, cluster.Address(), &said)
	ctx, leave := context.WithCancel(t.Context())
	cluster.Hold(func(string) { leave() })
	if missing := c.Missing(ctx); len(missing) != 0 || said.Len() > 0 {
		t.Errorf("missing: %v, log: %s", missing, said.String())
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := dial(t, server.URL).Do(t.Context(), put("/p/a", "1")); err == nil || elsewhere.Load() != 0 {
		t.Errorf("got %v, and %d requests elsewhere: the password would go there, too", err, elsewhere.Load())
	}
}
