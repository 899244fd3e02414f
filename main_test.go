package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/edge"
	"authhub/internal/passwd"
)

// object is a JSON object, as tests write it.
type object = map[string]any

// testClock is a clock that stands until a test moves it.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock {
	return &testClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *testClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testHub is a hub behind its edge, called without a socket.
type testHub struct {
	*Hub
	t       testing.TB
	clock   *testClock
	handler http.Handler
	remote  string // address that requests come from
}

// newTestHub returns an ephemeral hub with a clock of its own, or the hub that these flags ask for.
func newTestHub(t testing.TB, flags ...string) *testHub {
	t.Helper()
	if len(flags) == 0 {
		flags = []string{"-ephemeral"}
	}
	h, stop := openTestHub(t, newTestClock(), flags...)
	t.Cleanup(stop)
	return h
}

// openTestHub is newTestHub for tests that stop the hub themselves, or start it again on the same folder.
func openTestHub(t testing.TB, clock *testClock, flags ...string) (*testHub, func()) {
	t.Helper()
	return openLoggingHub(t, testLog(t), clock, flags...)
}

// openLoggingHub is openTestHub for tests in which the hub has reason to log errors.
func openLoggingHub(t testing.TB, log *slog.Logger, clock *testClock, flags ...string) (*testHub, func()) {
	t.Helper()
	o, err := newProgram(flags)
	if err != nil {
		t.Fatal(err)
	}
	o.now, o.rand = clock.time, testRand()
	o.rounds = passwd.EphemeralRounds // the race detector makes the full number take seconds
	if o.BaseURL == "" {
		o.BaseURL = "http://hub.test"
	}
	hub, stop, err := openHub(t.Context(), o, log)
	if err != nil {
		t.Fatal(err)
	}
	edge := edge.New(edge.Config{Next: hub, Loopback: true, BaseHost: "hub.test", Origins: o.CORS})
	return &testHub{Hub: hub, t: t, clock: clock, handler: edge, remote: "127.0.0.1:40000"}, sync.OnceFunc(stop)
}

// newTestLab returns a hub whose handler is its lab.
func newTestLab(t testing.TB) *testHub {
	t.Helper()
	h := newTestHub(t, "-ephemeral", "-lab")
	lab := openLab(t.Context(), h.Hub)
	t.Cleanup(lab.Close)
	h.handler = edge.New(edge.Config{Next: lab, Loopback: true, BaseHost: "hub.test"})
	return h
}

// testRand returns reproducible randomness that may be read by many at once.
func testRand() io.Reader {
	return &lockedReader{reader: rand.NewChaCha8([32]byte([]byte("a seed of thirty-two bytes, fixed")[:32]))}
}

type lockedReader struct {
	mu     sync.Mutex
	reader io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reader.Read(p)
}

// testLog returns a logger that fails the test on an error: what is logged as one is a defect of the hub.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(&failingHandler{slog.NewTextHandler(io.Discard, nil), t})
}

type failingHandler struct {
	slog.Handler
	t testing.TB
}

func (h *failingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		var attrs []string
		r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a.String()); return true })
		h.t.Errorf("logged: %s %s", r.Message, strings.Join(attrs, " "))
	}
	return nil
}

// answer is an answer, its body read.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request. body is sent as JSON unless it is a string, which is sent as it is; options are pairs of
// header name and value.
func (h *testHub) do(method, target string, body any, options ...string) *answer {
	h.t.Helper()
	var reader io.Reader
	header := http.Header{}
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			h.t.Fatal(err)
		}
		reader, header = bytes.NewReader(data), http.Header{"Content-Type": {"application/json"}}
	}
	r := httptest.NewRequest(method, target, reader)
	r.Host, r.RemoteAddr, r.Header = "hub.test", h.remote, header
	for i := 0; i < len(options); i += 2 {
		if options[i] == "Host" {
			r.Host = options[i+1]
			continue
		}
		r.Header.Add(options[i], options[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return &answer{h.t, w.Code, w.Result().Header, w.Body.Bytes()}
}

func (h *testHub) get(target string, options ...string) *answer {
	h.t.Helper()
	return h.do("GET", target, nil, options...)
}

func (h *testHub) post(target string, body any, options ...string) *answer {
	h.t.Helper()
	return h.do("POST", target, body, options...)
}

// want fails the test unless the answer has this status and, where one is given, this problem code.
func (a *answer) want(status int, code ...string) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if len(code) == 0 {
		return a
	}
	if got := a.str("code"); got != code[0] {
		a.t.Fatalf("code %q, want %q: %s", got, code[0], a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("Content-Type %q of a problem", got)
	}
	if status == http.StatusUnauthorized && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
		a.t.Errorf("WWW-Authenticate %q", a.header.Get("WWW-Authenticate"))
	}
	return a
}

// json returns the body decoded.
func (a *answer) json() map[string]any {
	a.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func (a *answer) str(member string) string {
	a.t.Helper()
	s, _ := a.json()[member].(string)
	return s
}

// pair is what login and refresh give.
type pair struct{ access, refresh string }

func (a *answer) pair() pair { return pair{a.str("access_token"), a.str("refresh_token")} }

func (h *testHub) login(name string) pair {
	h.t.Helper()
	return h.post("/api/authentication/login", map[string]any{"username": name, "password": name + "-password"}).want(200).pair()
}

func (h *testHub) me(token string) *answer {
	h.t.Helper()
	return h.get("/api/authentication/me", bearerOf(token)...)
}

func (h *testHub) refreshWith(token string) *answer {
	h.t.Helper()
	return h.post("/api/authentication/refresh", map[string]string{"refresh_token": token})
}

func bearerOf(token string) []string { return []string{"Authorization", "Bearer " + token} }

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhoeverOutlastsTheGraceIsCutOff(t *testing.T) {
	t.Parallel()
	arrived, stuck := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-stuck })}
	go server.Serve(listener)
	ended := make(chan error, 1)
	go func() {
		_, err := http.Get("http://" + listener.Addr().String())
		ended <- err
	}()
	<-arrived
	shutDown(server, 10*time.Millisecond)
	if err := <-ended; err == nil {
		t.Error("the request was answered")
	}
}
