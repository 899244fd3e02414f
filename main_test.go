package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"authhub/internal/account"
	"authhub/internal/edge"
	"authhub/internal/flags"
	"authhub/internal/passwd"
	"authhub/internal/testkit"
)

// TestMain lets tests wait beside each other: patience and slowness take real seconds.
func TestMain(m *testing.M) {
	testkit.WaitTogether(4)
	os.Exit(m.Run())
}

// object is a JSON object, as tests write it.
type object = map[string]any

// testHub is a hub behind its edge, called without a socket.
type testHub struct {
	*Hub
	t       testing.TB
	clock   *testkit.Clock
	handler http.Handler
	remote  string // address that requests come from
}

// newTestHub returns an ephemeral hub with a clock of its own, or the hub that these flags ask for.
func newTestHub(t testing.TB, flags ...string) *testHub {
	t.Helper()
	if len(flags) == 0 {
		flags = []string{"-ephemeral"}
	}
	h, stop := openTestHub(t, testkit.NewClock(), flags...)
	t.Cleanup(stop)
	return h
}

// openTestHub is newTestHub for tests that stop the hub themselves, or start it again on the same folder.
func openTestHub(t testing.TB, clock *testkit.Clock, flags ...string) (*testHub, func()) {
	t.Helper()
	return openLoggingHub(t, testLog(t), clock, flags...)
}

// openLoggingHub is openTestHub for tests in which the hub has reason to log errors.
func openLoggingHub(t testing.TB, log *slog.Logger, clock *testkit.Clock, flags ...string) (*testHub, func()) {
	t.Helper()
	o, err := newProgram(flags)
	if err != nil {
		t.Fatal(err)
	}
	o.now, o.rand = clock.Now, testRand()
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

// answer and pair are what a hub answers.
type (
	answer = testkit.Answer
	pair   = testkit.Pair
)

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
	return &answer{T: h.t, Status: w.Code, Header: w.Result().Header, Body: w.Body.Bytes()}
}

func (h *testHub) get(target string, options ...string) *answer {
	h.t.Helper()
	return h.do("GET", target, nil, options...)
}

func (h *testHub) post(target string, body any, options ...string) *answer {
	h.t.Helper()
	return h.do("POST", target, body, options...)
}

func (h *testHub) login(name string) pair {
	h.t.Helper()
	return h.post(loginPath, right(name)).Want(200).Pair()
}

func (h *testHub) me(token string) *answer {
	h.t.Helper()
	return h.get(mePath, bearerOf(token)...)
}

func (h *testHub) refreshWith(token string) *answer {
	h.t.Helper()
	return h.post(refreshPath, object{"refresh_token": token})
}

func bearerOf(token string) []string { return []string{"Authorization", "Bearer " + token} }

// quietLog is for tests in which the hub has reason to log errors.
func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// FuzzHeaders: tokens, origins, hosts, preferences and paths.
func FuzzHeaders(f *testing.F) {
	h, demo := newFuzzHub(f)
	for _, v := range []string{"Bearer " + demo.Access, "bearer  " + demo.Refresh, "Bearer", "Bearer ", "Basic eDp5", "Bearer a.b.c", "Bearer " + strings.Repeat(".", 9_000), "respond-async;x, wait=1"} {
		f.Add(v, "http://localhost:1", "/api/authentication/me")
		f.Add(v, "null", "/api/../etc/passwd")
		f.Add(v, "http://[::1%25x]:1", "//api")
	}
	f.Fuzz(func(t *testing.T, value, origin, path string) {
		h.t = t
		for _, method := range []string{"GET", "POST", "OPTIONS", "DELETE", "CONNECT"} {
			r := httptest.NewRequest(method, "/", nil)
			for _, name := range []string{"Authorization", "Prefer", "Access-Control-Request-Headers"} {
				r.Header.Set(name, value)
			}
			r.Header.Set("Origin", origin)
			r.URL = &url.URL{Path: path}
			a := h.mustStand(t, r)
			if allowed := a.Header.Get("Access-Control-Allow-Origin"); allowed != "" && !strings.Contains(strings.ToLower(allowed), "localhost") && !strings.Contains(allowed, "127.") && !strings.Contains(allowed, "::") {
				t.Errorf("origin %q may read", allowed)
			}
			h.clear(t)
		}
	})
}

var postRoutes = []string{registerPath, loginPath, refreshPath, logoutPath, runPath}

// FuzzBodies: JSON, forms and anything else that a Content-Type may announce, to every POST.
func FuzzBodies(f *testing.F) {
	h, demo := newFuzzHub(f)
	for i, body := range []string{
		`{"username":"fuzzer","password":"password-1","email":"a@b.test","name":"A"}`,
		`{"username":"demo","password":"demo-password","expires_in":1e999,"refresh_expires_in":-0}`,
		`{"username":"demo","password":"demo-password","expires_in":"NaN","refresh_expires_in":"Inf"}`,
		`{"username":"demo","password":"demo-password","expires_in":1e-320,"refresh_expires_in":0x1p-2}`,
		`{"username":"demo","username":null,"password":["\ud800"]}`,
		`{"email":"\"a b\"@c.test","password":"password-1"}`,
		`{"refresh_token":"` + demo.Refresh + `","refreshToken":7}`,
		strings.Repeat(`{"a":`, 5_000) + `1` + strings.Repeat(`}`, 5_000),
		`username=demo&password=demo-password&expires_in=5&expires_in=x`, `username=%ff&password=%zz;x`, "\ufeff{}", `null`, `[]`, "",
	} {
		for kind := range 3 {
			f.Add(uint8(i), uint8(kind), "", body)
		}
	}
	f.Fuzz(func(t *testing.T, route, kind uint8, contentType, body string) {
		h.t = t
		h.clear(t)
		r := httptest.NewRequest("POST", postRoutes[int(route)%len(postRoutes)], strings.NewReader(body))
		switch kind % 4 {
		case 0:
			r.Header.Set("Content-Type", "application/json")
		case 1:
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		case 2:
			r.Header.Set("Content-Type", contentType)
		}
		if a := h.mustStand(t, r); strings.HasPrefix(a.Header.Get("Content-Type"), "application/") && !utf8.Valid(a.Body) {
			t.Errorf("an answer that is not UTF-8: %q", a.Body)
		}
	})
}

// newFuzzHub returns a hub with results to ask for, and a token pair.
func newFuzzHub(f *testing.F) (*testHub, pair) {
	h := newTestHub(f)
	h.runOn(fourReadings).Want(200)
	return h, h.login("demo")
}

// mustStand sends a request made by hand and fails the test if it is the hub that failed.
func (h *testHub) mustStand(t *testing.T, r *http.Request) *answer {
	t.Helper()
	r.Host, r.RemoteAddr = "hub.test", h.remote
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if w.Code >= 500 || w.Code < 200 {
		t.Errorf("%s %s %v: %d %s", r.Method, r.URL, r.Header, w.Code, w.Body)
	}
	ofServeContent := w.Code == http.StatusPreconditionFailed || w.Code == http.StatusRequestedRangeNotSatisfiable
	if w.Code >= 400 && !ofServeContent && w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %s: %d in the shape %s", r.Method, r.URL, w.Code, w.Header())
	}
	return &answer{T: t, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// clear keeps a long fuzzing run from meeting the limits that other tests are about.
func (h *testHub) clear(t *testing.T) {
	h.throttle = passwd.NewThrottle()
	if h.embedded().LiveRecords() > 1_000 {
		var err error
		if h.store, err = account.NewMemory(mustSeeds(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustSeeds(t testing.TB) []*account.User {
	t.Helper()
	seeds, err := (&program{settings: settings{Options: new(flags.Options)}}).readUsers()
	if err != nil {
		t.Fatal(err)
	}
	return seeds
}

// member returns a member of a session body without the cost of parsing it.
func member(body []byte, name string) string {
	_, rest, _ := bytes.Cut(body, []byte(`"`+name+`":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// benchEdge is the front door of h without what holds the answers of other tests against openapi.json.
func benchEdge(h *testHub) http.Handler {
	return edge.New(edge.Config{Next: h.Hub, Loopback: true, BaseHost: "hub.test"})
}

// benchRequest is a request that is sent again and again.
type benchRequest struct {
	b       *testing.B
	request *http.Request
	writer  benchWriter
}

func newBenchRequest(b *testing.B, method, path string, header ...string) *benchRequest {
	r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:40000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return &benchRequest{b: b, request: r}
}

// send returns the body of the answer, which is valid until the next send.
func (r *benchRequest) send(h http.Handler, status int, body string) []byte {
	r.request.Body, r.request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.writer = benchWriter{header: make(http.Header), body: r.writer.body[:0]}
	h.ServeHTTP(&r.writer, r.request)
	if r.writer.status != status {
		r.b.Fatalf("%d %s", r.writer.status, r.writer.body)
	}
	return r.writer.body
}

// benchWriter keeps the body in a buffer that is used again.
type benchWriter struct {
	header http.Header
	status int
	body   []byte
}

func (w *benchWriter) Header() http.Header { return w.header }

func (w *benchWriter) WriteHeader(status int) { w.status = status }

func (w *benchWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

// growNamespaces measures GET me in any of n namespaces, in each of which somebody has logged in.
func growNamespaces(b *testing.B, n int) {
	before := liveMB()
	h := newTestLab(b)
	handler := h.handler
	login := newBenchRequest(b, "POST", "/", "Content-Type", "application/json")
	requests := make([]*benchRequest, n)
	for i := range requests {
		base := fmt.Sprintf("/ns/n%d/api/authentication/", i)
		login.request.URL.Path = base + "login"
		answer := login.send(handler, http.StatusOK, `{"username":"demo","password":"demo-password"}`)
		requests[i] = newBenchRequest(b, "GET", base+"me", bearerOf(member(answer, "access_token"))...)
	}
	held := liveMB() - before
	for b.Loop() {
		requests[rand.IntN(n)].send(handler, http.StatusOK, "")
	}
	b.ReportMetric(held, "MB")
}

func liveMB() float64 { return float64(heapInUse()) / 1e6 }

// heapInUse returns the bytes of what is reachable. It counts the whole process, so it is no test for parallel company.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
