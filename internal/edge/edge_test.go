package edge

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"authhub/internal/reply"
)

// lines is a log that a test can read.
type lines struct{ bytes.Buffer }

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// last returns the latest line.
func (l *lines) last(t *testing.T) (line map[string]any) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	if err := json.Unmarshal([]byte(all[len(all)-1]), &line); err != nil {
		t.Fatalf("%v: %s", err, l)
	}
	return line
}

// ask sends a request to an edge whose base URL is http://hub.test; options are pairs of header name and value.
func ask(e http.Handler, method, target string, options ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "hub.test"
	for i := 0; i < len(options); i += 2 {
		if r.Header.Set(options[i], options[i+1]); options[i] == "Host" {
			r.Host = options[i+1]
		}
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestAPanicIsA500(t *testing.T) {
	t.Parallel()
	var alarms lines
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a defect") })
	w := ask(New(Config{Next: panics, Loopback: true, BaseHost: "hub.test", Panics: alarms.logger()}), "GET", "/api") // without a line a request
	var body reply.Error
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 || body.Code != "internal" || strings.Contains(w.Body.String(), "defect") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if alarms.last(t)["cause"] != "a defect" {
		t.Errorf("log %s", &alarms)
	}
}

func TestAPanicBehindTheFirstBytesAppendsNothing(t *testing.T) {
	t.Parallel()
	var alarms lines
	half := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"half":`)
		http.NewResponseController(w).Flush()
		panic("a defect")
	})
	server := httptest.NewServer(New(Config{Next: half, Loopback: true, Panics: alarms.logger()}))
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	server.Close()
	if string(body) != `{"half":` || err == nil {
		t.Errorf("the client has %q, %v", body, err)
	}
	if alarms.last(t)["cause"] != "a defect" {
		t.Errorf("log %s", &alarms)
	}
}

func TestForeignOriginsAreRefusedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	served := 0
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
	usual := New(Config{Next: next, Loopback: true, BaseHost: "hub.test"})
	open := New(Config{Next: next, Loopback: true, BaseHost: "hub.test", Origins: []string{"*"}})
	for _, row := range []struct {
		name, method string
		hub          http.Handler
		headers      []string
		refused      bool
	}{
		{"no browser", "GET", usual, nil, false},
		{"foreign GET", "GET", usual, []string{"Origin", "https://evil.test"}, true},
		{"foreign HEAD", "HEAD", usual, []string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}, true},
		{"foreign POST", "POST", usual, []string{"Origin", "https://evil.test"}, true},
		{"null", "GET", usual, []string{"Origin", "null"}, true},
		{"image or script of a foreign page", "GET", usual, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, true},
		{"followed link", "GET", usual, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"frame in a foreign page", "GET", usual, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true},
		{"foreign form", "POST", usual, []string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, true},
		{"foreign preflight", "OPTIONS", usual, []string{"Origin", "https://evil.test"}, true},
		{"loopback page", "GET", usual, []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "cross-site"}, false},
		{"image of a page on another port", "GET", usual, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, false},
		{"own page", "GET", usual, []string{"Origin", "http://hub.test", "Sec-Fetch-Site", "same-origin"}, false},
		{"own page of an older browser", "POST", usual, []string{"Origin", "http://hub.test"}, false},
		{"typed address", "GET", usual, []string{"Sec-Fetch-Site", "none"}, false},
		{"anybody", "GET", open, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, false},
		{"anybody with Origin", "GET", open, []string{"Origin", "https://evil.test"}, false},
	} {
		before := served
		w := ask(row.hub, row.method, "/api", row.headers...)
		if refused := w.Code == 403 && strings.Contains(w.Body.String(), "forbidden_origin"); refused != row.refused || (served > before) == row.refused {
			t.Errorf("%s: %d, served %v", row.name, w.Code, served > before)
		}
	}
}

func TestTheLineOfARefusedRequestSaysWhy(t *testing.T) {
	t.Parallel()
	var log lines
	hub := New(Config{Loopback: true, BaseHost: "hub.test", Log: log.logger(), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply.Note(w, "user", "demo")
		if r.URL.Path == "/api" {
			reply.Write(w, reply.Fail(401, "token_expired", ""))
		}
		if r.URL.Path == "/dialect" {
			reply.Note(w, "code", "token_expired")
			reply.WriteBody(w, 200, []byte("{}"))
		}
	})})
	ask(hub, "GET", "/dialect")
	if line := log.last(t); line["code"] != "token_expired" || line["user"] != "demo" || line["status"] != 200.0 {
		t.Errorf("%v", line)
	}
	ask(hub, "GET", "/api")
	if line := log.last(t); line["code"] != "token_expired" || line["user"] != "demo" || line["level"] != "INFO" {
		t.Errorf("%v", line)
	}
	ask(hub, "GET", "/api", "Origin", "https://evil.test")
	if line := log.last(t); line["level"] != "WARN" || line["code"] != "forbidden_origin" || line["remedy"] != "start the hub with -cors https://evil.test" {
		t.Errorf("%v", line)
	}
	for host, remedy := range map[string]string{"hub.example:8080": "http://hub.example:8080", "secret": "URL"} {
		ask(hub, "GET", "/", "Host", host)
		if line := log.last(t); line["level"] != "WARN" || line["code"] != "forbidden_host" || line["remedy"] != "start the hub with -base-url "+remedy {
			t.Errorf("%v", line)
		}
	}
	for path, level := range map[string]string{"/": "DEBUG", "/web/app.js": "DEBUG", "/lab/faults": "DEBUG", "/ns/a/lab": "DEBUG", "/ns/a/": "DEBUG", "/ns": "DEBUG",
		"/healthz": "DEBUG", "/openapi.json": "DEBUG", "/api/files/phase2": "INFO", "/ns/a/api": "INFO", "/ns/a/labour": "INFO"} {
		ask(hub, "GET", path)
		if line := log.last(t); line["level"] != level || line["user"] != nil && path != "/ns/a/api" {
			t.Errorf("%s: %v", path, line)
		}
	}
	secret := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLWRlbW8ifQ.c2lnbmF0dXJl"
	for _, path := range []string{"/web/" + secret, "/" + secret, "/api/" + secret + "/x", "/lab/faults/" + secret, "/ns/a/web/" + secret} {
		ask(hub, "GET", path)
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is logged whole", path)
		}
	}
}

func TestARequestThatIsCutHasItsLine(t *testing.T) {
	t.Parallel()
	var log lines
	hub := New(Config{Loopback: true, BaseHost: "hub.test", Log: log.logger(), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply.Note(w, "fault", "f1")
		panic(http.ErrAbortHandler)
	})})
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the connection is not cut")
			}
		}()
		ask(hub, "GET", "/api")
	}()
	if line := log.last(t); line["fault"] != "f1" || line["status"] != 0.0 {
		t.Errorf("%v", line)
	}
}

func TestWhatACacheMayKeepVariesByOrigin(t *testing.T) {
	t.Parallel()
	hub := New(Config{Loopback: true, BaseHost: "hub.test", Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/web/app.js" {
			w.Header().Set("Cache-Control", "no-cache")
			io.WriteString(w, "page")
			return
		}
		reply.WriteBody(w, 200, []byte("{}"))
	})})
	for _, row := range []struct{ path, origin, want string }{
		{"/web/app.js", "", "Origin"},
		{"/web/app.js", "http://localhost:3000", "Origin"},
		{"/api", "", ""},
		{"/api", "http://localhost:3000", "Origin"},
		{"/api", "https://evil.test", "Origin"},
	} {
		var headers []string
		if row.origin != "" {
			headers = []string{"Origin", row.origin}
		}
		if got := ask(hub, "GET", row.path, headers...).Header().Get("Vary"); got != row.want {
			t.Errorf("%s from %q: Vary %q, want %q", row.path, row.origin, got, row.want)
		}
	}
}
