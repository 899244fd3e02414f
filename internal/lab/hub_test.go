package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/edge"
	"authhub/internal/jwt"
	"authhub/internal/phase2"
	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/results"
	"authhub/internal/runs"
	"authhub/internal/testkit"
)

// object is a JSON object, as tests write it.
type object = map[string]any

// testHub is a lab with small hubs behind it, called without a socket.
type testHub struct {
	t      testing.TB
	lab    *Lab
	clock  *testkit.Clock
	front  http.Handler
	prefix string
}

func newTestHub(t testing.TB) *testHub {
	t.Helper()
	h := &testHub{t: t, clock: testkit.NewClock()}
	seeds, err := account.ParseSeeds(strings.NewReader(`[{"username":"demo","password":"demo-password"}]`))
	if err != nil {
		t.Fatal(err)
	}
	store, err1 := account.NewMemory(seeds)
	secret := bytes.Repeat([]byte("s"), 32)
	signer, err2 := jwt.NewSigner(secret, "")
	folder := results.Temporary()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"POST /api/authentication/login": "login", "GET /api/authentication/me": "me", "GET /api/files/phase2": "listing", "POST /api/run-ph-barrier-phase2": "run", "GET /api/run-ph-barrier-phase2": "run"}
	h.lab = New(t.Context(), Host{
		Renew: renew, Answer: answerError, RenewDeadline: func(http.ResponseWriter) {}, Drain: func(http.ResponseWriter, *http.Request) {}, NewID: rand.Text,
		RefreshToken: func(_ http.ResponseWriter, r *http.Request) (string, error) { return request.Bearer(r) },
		Names:        names, Access: 15 * time.Minute, Refresh: 168 * time.Hour, Secret: secret, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, Parts{Base: "http://hub.test", Store: store, Signer: signer, Folder: folder, Now: h.clock.Now})
	h.front = edge.New(edge.Config{Next: h.lab, Loopback: true, BaseHost: "hub.test"})
	t.Cleanup(func() { h.lab.Close(); folder.Close() })
	return h
}

// smallHub does as much of a hub's work as these tests ask for.
type smallHub struct{ Parts }

func renew(p Parts) Parts {
	p.Runs = runs.New(p.Folder, p.Now, func(*runs.Run) {})
	hub := &smallHub{p}
	p.Serve = func(w http.ResponseWriter, r *http.Request, _ *dialect.Call) {
		if err := hub.serve(w, r); err != nil {
			answerError(w, r, err)
		}
	}
	return p
}

func (h *smallHub) serve(w http.ResponseWriter, r *http.Request) error {
	switch r.Method + " " + r.URL.Path {
	case "POST /api/authentication/login":
		u := h.Store.UserByLogin("demo")
		access, refresh := h.Lifetimes()
		s := u.NewSession(rand.Text(), h.Now(), access, refresh)
		if err := h.Store.StartSession(r.Context(), s); err != nil {
			return err
		}
		a, b := s.Claims(jwt.Access, u), s.Claims(jwt.Refresh, u)
		return reply.WriteJSON(w, 200, object{"access_token": string(h.Signer.Append(nil, &a)), "refresh_token": string(h.Signer.Append(nil, &b))})
	case "GET /api/authentication/me":
		token, err := request.Bearer(r)
		if err != nil {
			return err
		}
		c, err := h.Signer.Open(token)
		if err == nil {
			err = c.Check(jwt.Access, h.Now())
		}
		if err == nil {
			_, _, err = h.Store.Live(r.Context(), account.SessionRef{User: c.Subject, Session: c.Session})
		}
		if err != nil {
			return err
		}
		return reply.WriteJSON(w, 200, object{})
	case "GET /api/files/phase2":
		return reply.WriteJSON(w, 200, object{})
	case "POST /api/run-ph-barrier-phase2":
		return h.run(w)
	case "GET /api/run-ph-barrier-phase2":
		if h.Runs.Latest() == nil {
			return reply.Fail(404, "no_run", "")
		}
		return reply.WriteJSON(w, 200, object{})
	}
	return reply.Fail(404, "not_found", "")
}

const readings = "time,station,ph\n2026-01-01T00:00:00Z,a,7\n2026-01-01T01:00:00Z,a,7\n2026-01-01T02:00:00Z,a,9\n2026-01-01T03:00:00Z,a,7\n"

// usual are the parameters of a run.
var usual = phase2.Parameters{Low: 6500, High: 8500, Interval: time.Hour, MaxGap: time.Hour}

func (h *smallHub) run(w http.ResponseWriter) error {
	started, err := h.Runs.Start(rand.Text(), usual, runs.Input{Name: "test", Key: "test", Open: func() (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader(readings)), int64(len(readings)), nil
	}})
	if err != nil {
		return err
	}
	<-started.Done()
	if err := started.State().Err; err != nil {
		return err
	}
	return reply.WriteJSON(w, 200, object{})
}

// answerError is the place where these hubs' errors become answers.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	if cause := context.Cause(r.Context()); cause != nil {
		err = cause
	}
	switch {
	case errors.Is(err, account.ErrReplaced):
		err = reply.Fail(503, "busy", "The hub was reset.")
	case errors.Is(err, runs.ErrBusy), errors.Is(err, results.ErrClosed):
		err = reply.Fail(503, "busy", "")
	case errors.Is(err, jwt.ErrWrongType), errors.Is(err, jwt.ErrMalformed), errors.Is(err, account.ErrRevoked):
		err = reply.Fail(401, "token_malformed", "")
	}
	reply.Write(w, err)
}

// held is a run that goes on when release is closed.
type held struct {
	*runs.Run
	release chan struct{}
}

// holdRuns starts a run on the root hub that waits for its readings.
func (h *testHub) holdRuns() held {
	h.t.Helper()
	opened, release := make(chan struct{}), make(chan struct{})
	run, err := h.lab.Runs().Start("held", usual, runs.Input{Name: "held", Key: "held", Open: func() (io.ReadCloser, int64, error) {
		close(opened)
		<-release
		return io.NopCloser(strings.NewReader(readings)), int64(len(readings)), nil
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	<-opened
	return held{run, release}
}

// bench returns the bench of a namespace.
func (h *testHub) bench(name string) *bench {
	h.t.Helper()
	b, err := h.lab.bench(name)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// space is the same lab as seen from under /ns/NAME.
func (h *testHub) space(name string) *testHub {
	inner := *h
	inner.prefix = "/ns/" + name
	return &inner
}

// answer and pair are what a hub answers.
type (
	answer = testkit.Answer
	pair   = testkit.Pair
)

// do sends a request. body is sent as JSON unless it is a string, which is sent as it is; options are pairs of header
// name and value.
func (h *testHub) do(method, path string, body any, options ...string) *answer {
	h.t.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		line, _ := json.Marshal(body)
		text = string(line)
		options = append(options, "Content-Type", "application/json")
	}
	r := httptest.NewRequest(method, h.prefix+path, strings.NewReader(text))
	r.Host = "hub.test"
	for i := 0; i < len(options); i += 2 {
		r.Header.Set(options[i], options[i+1])
	}
	w := httptest.NewRecorder()
	h.front.ServeHTTP(w, r)
	return &answer{T: h.t, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

func (h *testHub) get(path string) *answer            { h.t.Helper(); return h.do("GET", path, nil) }
func (h *testHub) post(path string, body any) *answer { h.t.Helper(); return h.do("POST", path, body) }

func (h *testHub) me(token string) *answer {
	h.t.Helper()
	return h.do("GET", "/api/authentication/me", nil, "Authorization", "Bearer "+token)
}

func (h *testHub) login(user string) pair {
	h.t.Helper()
	return h.post("/api/authentication/login", object{"username": user, "password": user + "-password"}).Want(200).Pair()
}

// requests returns the requests that the lab has seen.
func (h *testHub) requests(query ...string) []object {
	h.t.Helper()
	return h.get("/lab/requests" + strings.Join(query, "")).Want(200).List("requests")
}
