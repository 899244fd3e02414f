package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"authhub/internal/reply"
)

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	for _, path := range []string{"/api/", "/api/nothing", "/api/files/phase2/", "/api//files/phase2", "/api/files/phase2/../phase2", "/ns/a/api", "/lab", "/healthz/x"} {
		h.get(path).want(404, "not_found")
	}
	for path, row := range map[string]struct{ refused, allow string }{
		"/api/authentication/register": {"GET", "POST"},
		"/api/authentication/login":    {"PUT", "POST"},
		"/api/authentication/me":       {"POST", "GET, HEAD"},
		"/api/authentication/refresh":  {"HEAD", "POST"},
		"/api/authentication/logout":   {"DELETE", "POST"},
		"/api/files/phase2":            {"POST", "GET, HEAD"},
		"/api/files/phase2/barrier":    {"PATCH", "GET, HEAD"},
		"/api/files/phase2/impact":     {"OPTIONS", "GET, HEAD"},
		"/api/files/phase2/alertesph":  {"BREW", "GET, HEAD"},
		"/api/run-ph-barrier-phase2":   {"PUT", "GET, HEAD, POST"},
		"/api":                         {"POST", "GET, HEAD"},
		"/healthz":                     {"POST", "GET, HEAD"},
	} {
		if got := h.do(row.refused, path, nil).want(405, "method_not_allowed").header.Get("Allow"); got != row.allow {
			t.Errorf("%s: Allow %q, want %q", path, got, row.allow)
		}
	}
}

func TestEveryGetAnswersHead(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.runOn(fourReadings).want(200)
	token := bearerOf(h.login("demo").access)
	for pattern := range routes() {
		method, path, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
		if method != "GET" {
			continue
		}
		path = strings.Replace(path, "{file}", "app.js", 1)
		get, head := h.get(path, token...).want(200), h.do("HEAD", path, nil, token...).want(200)
		if got, want := head.header.Get("Content-Length"), get.header.Get("Content-Length"); got != want {
			t.Errorf("%s: Content-Length %s of HEAD, %s of GET", path, got, want)
		}
	}
}

// TestIndex holds the index and the routes against each other.
func TestIndex(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "-ephemeral", "-base-url", "https://hub.example/test/", "-protect", "run")
	body := h.get("/api").want(200).json()

	var listed []string
	for _, o := range body["operations"].([]any) {
		operation := o.(map[string]any)
		path, ok := strings.CutPrefix(operation["href"].(string), "https://hub.example/test")
		if !ok {
			t.Errorf("href %v", operation["href"])
		}
		listed = append(listed, operation["method"].(string)+" "+path)
		if path == runPath && operation["token"] != "access" || path == listingPath && operation["token"] != "none" {
			t.Errorf("%v", operation)
		}
	}
	var routed []string
	for pattern := range routes() {
		if !strings.HasPrefix(pattern, "GET /web/") { // the page's parts are no operations
			routed = append(routed, strings.TrimSuffix(pattern, "{$}"))
		}
	}
	slices.Sort(listed)
	slices.Sort(routed)
	if !slices.Equal(listed, routed) {
		t.Errorf("listed %v\nrouted %v", listed, routed)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	if got := h.get("/healthz").want(200).str("status"); got != "ok" {
		t.Errorf("status %q", got)
	}
}

func TestForeignHosts(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	for host, status := range map[string]int{
		"hub.test": 200, "localhost": 200, "LOCALHOST:80": 200, "a.localhost:8080": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:8080": 200, "localhost.": 200, "HUB.test:81": 200,
		"": 403, "evil.test": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test": 403, "10.0.0.1": 403, "[::2]": 403, "0.0.0.0": 403,
	} {
		a := h.get("/healthz", "Host", host).want(status)
		if status == 403 {
			a.want(403, "forbidden_host")
		}
	}
	wide := newEdge(h.Hub, false, "hub.test", nil, nil)
	r := httptest.NewRequest("GET", "/healthz", nil)
	r.Host = "10.0.0.1:8080"
	w := httptest.NewRecorder()
	if wide.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("bound wider: %d", w.Code)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	usual := newTestHub(t)
	listed := newTestHub(t, "-ephemeral", "-cors", "https://app.example, https://b.example")
	open := newTestHub(t, "-ephemeral", "-cors", "*")
	for _, row := range []struct {
		name, origin string
		hub          *testHub
		allowed      bool
	}{
		{"loopback name", "http://localhost:5173", usual, true},
		{"loopback address", "https://127.0.0.1:3000", usual, true},
		{"loopback IPv6", "http://[::1]:3000", usual, true},
		{"foreign", "https://app.example", usual, false},
		{"null", "null", usual, false},
		{"loopback in a name", "http://localhost.evil.test", usual, false},
		{"user information", "http://localhost@evil.test", usual, false},
		{"other scheme", "file://localhost", usual, false},
		{"listed", "https://app.example", listed, true},
		{"listed second", "https://b.example", listed, true},
		{"other port", "https://app.example:444", listed, false},
		{"loopback besides", "http://localhost:5173", listed, true},
		{"anyone", "https://anything.example", open, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			want := ""
			if row.allowed {
				want = row.origin
			}
			a := row.hub.get("/healthz", "Origin", row.origin).want(200)
			if got := a.header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("allowed origin %q, want %q", got, want)
			}
			pre := row.hub.do("OPTIONS", loginPath, nil, "Origin", row.origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,authorization")
			if got := pre.header.Get("Access-Control-Allow-Origin"); got != want || row.allowed != (pre.status == 204) {
				t.Errorf("preflight %d with origin %q", pre.status, got)
			}
			if row.allowed && !strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "authorization") {
				t.Errorf("preflight %v", pre.header)
			}
			status := map[bool]int{true: 200, false: 403}[row.allowed]
			row.hub.post(loginPath, "username=demo&password=demo-password", append(formType, "Origin", row.origin, "Sec-Fetch-Site", "cross-site")...).want(status)
			for _, answer := range []http.Header{a.header, pre.header} {
				if answer.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(strings.Join(answer["Vary"], ","), "Origin") {
					t.Errorf("%v", answer)
				}
			}
		})
	}
	usual.post(runPath, nil, "Origin", "http://hub.test", "Sec-Fetch-Site", "same-origin").want(200)
	usual.post(runPath, nil, "Sec-Fetch-Site", "cross-site").want(403, "forbidden_origin")
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.runOn(fourReadings).want(200)
	etag := h.get(listingPath + "/impact").header.Get("ETag")
	for name, a := range map[string]*answer{
		"200": h.get("/api"), "204": h.post(logoutPath, nil, bearerOf(h.login("demo").access)...), "304": h.get(listingPath+"/impact", "If-None-Match", etag),
		"401": h.get("/api/authentication/me"), "403": h.get("/api", "Host", "evil.test"), "404": h.get("/x"), "405": h.do("PUT", "/api", nil),
		"preflight": h.do("OPTIONS", loginPath, nil, "Origin", "http://localhost:1", "Access-Control-Request-Method", "POST"),
	} {
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := a.header.Get(header); got != want {
				t.Errorf("%s: %s %q", name, header, got)
			}
		}
	}
}

func TestAPanicIsA500(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a defect") })
	edge := newEdge(panics, true, "hub.test", nil, slog.New(slog.NewJSONHandler(&log, nil)))
	r := httptest.NewRequest("GET", "/api", nil)
	r.Host = "hub.test"
	w := httptest.NewRecorder()
	edge.ServeHTTP(w, r)

	var body reply.Error
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 || body.Code != "internal" || strings.Contains(w.Body.String(), "defect") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "a defect") {
		t.Errorf("log %s", &log)
	}
}

func TestTheLogHasALineARequestAndNoSecrets(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	var log bytes.Buffer
	h.handler = newEdge(h.Hub, true, "hub.test", nil, slog.New(slog.NewJSONHandler(&log, nil)))
	p := h.login("demo")
	h.me(p.access).want(200)
	h.get("/api/authentication/me?token=" + p.access).want(401)
	h.get("/api/authentication/me/" + p.access).want(404)
	h.get("/" + url.PathEscape("a b\nc")).want(404)

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 5 {
		t.Errorf("%d lines:\n%s", len(lines), &log)
	}
	for _, secret := range []string{p.access, p.refresh, "demo-password"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil || line["method"] != "GET" || line["path"] != "/api/authentication/me" || line["status"] != 200.0 {
		t.Errorf("%v: %s", err, lines[1])
	}
}

func TestThePageOfTheBaseURLMayUseItsHub(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	o := &options{baseURL: "https://hub.example/test"}
	h.handler = o.newServer(h.Hub, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, slog.New(slog.DiscardHandler), nil).Handler
	for origin, status := range map[string]int{"https://hub.example": 200, "http://hub.example": 403, "https://hub.example:444": 403} {
		h.post(runPath, nil, "Host", "127.0.0.1:8080", "Origin", origin).want(status) // a proxy that does not pass the Host on
	}
}
