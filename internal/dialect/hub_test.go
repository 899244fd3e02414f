// The hub that stands behind the dialects of these tests, and how they ask it.

package dialect_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"authhub/internal/dialect"
)

var epoch = time.UnixMilli(1_767_225_600_500).UTC()

// token returns what has the form of a token of the hub.
func token(kind string) string {
	payload := `{"iss":"authhub","sub":"user-demo","iat":1767225600.5,"exp":1767226500.5,"kind":"` + kind + `"}`
	return "eyJh." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

const record = `{"id":"user-demo","username":"demo","email":"demo@example.test","name":"","role":"user","created_at":"2026-01-01T00:00:00.000Z"}`

// stubHub answers as the hub does for one user, and remembers the last request.
type stubHub struct {
	last *http.Request
	body string
}

func (h *stubHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.last, h.body = r, string(body)
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch r.Method + " " + r.URL.Path {
	case "POST /api/authentication/register":
		h.pair(w, http.StatusCreated)
	case "POST /api/authentication/login":
		if !strings.Contains(h.body, "demo-password") {
			h.problem(w, http.StatusUnauthorized, "invalid_credentials")
			return
		}
		h.pair(w, http.StatusOK)
	case "POST /api/authentication/refresh":
		if !strings.Contains(h.body, token("refresh")) {
			h.problem(w, http.StatusUnauthorized, "token_expired")
			return
		}
		h.pair(w, http.StatusOK)
	case "GET /api/authentication/me":
		h.guarded(w, bearer, func() { io.WriteString(w, record+"\n") })
	case "POST /api/authentication/logout":
		h.guarded(w, bearer, func() { w.WriteHeader(http.StatusNoContent) })
	default: // introspection
		h.guarded(w, bearer, func() {
			io.WriteString(w, `{"user":`+record+`,"claims":{"sub":"user-demo","exp":1767226500.5},"kind":"access"}`)
		})
	}
}

func (h *stubHub) guarded(w http.ResponseWriter, bearer string, serve func()) {
	switch bearer {
	case "":
		h.problem(w, http.StatusUnauthorized, "token_missing")
	case token("access"), token("refresh"):
		w.Header().Set("Content-Type", "application/json")
		serve()
	default:
		h.problem(w, http.StatusUnauthorized, "token_malformed")
	}
}

func (h *stubHub) pair(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1") // of the hub's own body, as longer ones have it
	w.WriteHeader(status)
	io.WriteString(w, `{"access_token":"`+token("access")+`","refresh_token":"`+token("refresh")+
		`","token_type":"Bearer","expires_in":900,"refresh_expires_in":604800,"user":`+record+"}\n")
}

func (h *stubHub) problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("WWW-Authenticate", `Bearer realm="authhub"`)
	w.Header().Set("Content-Length", "1")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": "Why."})
}

func (h *stubHub) host() dialect.Host {
	return dialect.Host{API: h, Introspect: h, Base: "http://hub.test/ns/a", Now: epoch,
		MaxAccess: 15 * time.Minute, MaxRefresh: time.Hour, NewID: func() string { return "id-1" }}
}

// ask sends a request through the dialect; nil if the dialect does not describe it.
func ask(t *testing.T, d *dialect.Dialect, h *stubHub, r *http.Request) (*httptest.ResponseRecorder, *dialect.Call) {
	t.Helper()
	w := httptest.NewRecorder()
	call := d.Read(w, r)
	if call == nil {
		return nil, nil
	}
	call.Serve(w, r, h.host())
	return w, call
}

// request makes a request of "METHOD /target", headers as "Name: value" lines, and a body whose type its form tells.
func request(on, body string, headers ...string) *http.Request {
	method, target, _ := strings.Cut(on, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func parse(t *testing.T, description string) *dialect.Dialect {
	t.Helper()
	d, err := dialect.Parse([]byte(description))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func builtin(t *testing.T, name string) *dialect.Dialect {
	t.Helper()
	description, ok := dialect.Builtin(name)
	if !ok {
		t.Fatalf("there is no dialect %q", name)
	}
	return parse(t, string(description))
}
