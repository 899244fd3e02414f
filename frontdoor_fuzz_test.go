// Fuzz tests through the front door: whatever comes in, the answer is never a 5xx and never a panic.

package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"authhub/internal/account"
	"authhub/internal/flags"
	"authhub/internal/passwd"
	"authhub/internal/phase2"
	"authhub/internal/results"
)

// newFuzzHub returns a hub with results to ask for, and a token pair.
func newFuzzHub(f *testing.F) (*testHub, pair) {
	h := newTestHub(f)
	h.runOn(fourReadings).want(200)
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
	return &answer{t, w.Code, w.Header(), w.Body.Bytes()}
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
		`{"refresh_token":"` + demo.refresh + `","refreshToken":7}`,
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
		if a := h.mustStand(t, r); strings.HasPrefix(a.header.Get("Content-Type"), "application/") && !utf8.Valid(a.body) {
			t.Errorf("an answer that is not UTF-8: %q", a.body)
		}
	})
}

// FuzzQueries: parameters of runs and of logout.
func FuzzQueries(f *testing.F) {
	h, _ := newFuzzHub(f)
	for _, q := range []string{
		"low=6.5&high=8.5&interval=1h&max_gap=1h", "low=-1e9&high=1e999999999", "low=NaN&high=+Inf", "interval=2562047h47m16.854775807s", "max_gap=2562047h47m16s",
		"max_gap=1ns", "interval=1ns", "interval=-1h", "low=%zz", "low=7;high=8", "low=7&low=8", "all=true", "all=%00", "all=2", strings.Repeat("a&", 5_000), "low=" + strings.Repeat("0", 5_000),
		"low=0.0005&high=13.9994", "low=1e-999999999999", "interval=1e3h", "interval=1h0m0.0000001s",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		h.t = t
		for _, target := range []string{runPath, logoutPath} {
			r := httptest.NewRequest("POST", target, strings.NewReader(fourReadings))
			r.Header.Set("Content-Type", "text/csv")
			if target == logoutPath {
				r.Header.Set("Authorization", "Bearer "+h.login("demo").access)
			}
			r.URL.RawQuery = query
			h.mustStand(t, r)
			h.clear(t)
		}
	})
}

// FuzzServing: ranges, conditions and codings to the files, which must come out as the bytes asked for.
func FuzzServing(f *testing.F) {
	h, _ := newFuzzHub(f)
	whole := string(h.get(listingPath + "/impact").want(200).body)
	etag := h.get(listingPath + "/impact").header.Get("ETag")
	for _, r := range []string{
		"bytes=0-0", "bytes=-1", "bytes=5-", "bytes=0-,0-,0-", "bytes=9223372036854775807-", "bytes=-9223372036854775808", "bytes=1-0", "bytes= 1 - 2 ", "lines=1-2", "bytes=0-0,2-3",
		"bytes=" + strings.Repeat("0-1,", 1_000),
	} {
		f.Add(r, etag, "", "gzip;q=0.5, *;q=x")
		f.Add(r, `W/"x", *`, "Thu, 01 Jan 1970 00:00:00 GMT", "x-gzip")
	}
	f.Fuzz(func(t *testing.T, ranges, match, since, coding string) {
		h.t = t
		for i, endpoint := range []string{"/impact", "/barrier", "/alertesph"} {
			for _, method := range []string{"GET", "HEAD"} {
				r := httptest.NewRequest(method, listingPath+endpoint, nil)
				for name, value := range map[string]string{"Range": ranges, "Accept-Encoding": coding,
					[]string{"If-None-Match", "If-Match", "If-Range"}[i]: match, []string{"If-Modified-Since", "If-Unmodified-Since", "If-Range"}[i]: since} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
				a := h.mustStand(t, r)
				if method == "HEAD" && a.status < 400 && len(a.body) > 0 {
					t.Errorf("HEAD has a body: %q", a.body)
				}
				if a.status == 200 && method == "GET" && i == 0 && a.header.Get("Content-Encoding") == "" && string(a.body) != whole {
					t.Errorf("another file than asked for: %q", a.body)
				}
			}
		}
	})
}

// FuzzUploads: whatever is sent as readings, the run succeeds or says what is wrong, and leaves nothing behind.
func FuzzUploads(f *testing.F) {
	h, _ := newFuzzHub(f)
	for _, csv := range []string{fourReadings, "", phase2.Header, phase2.Header + "\n", "\ufeff" + phase2.Header + "\r\n2025-01-01T00:00:00Z,a,7\r", phase2.Header + "\n0000-01-01T00:00:00Z,a,7\n9999-12-31T23:59:59Z,a,13.999\n",
		phase2.Header + "\n2025-01-01T00:00:00.999999999999+23:59,\"a\"\"\n\",1e1\n", phase2.Header + "\n\"", "time;station;ph\n1;2;3\n"} {
		f.Add(csv, "low=6.5&high=8.5&interval=1m&max_gap=1s")
		f.Add(csv, "interval=24h")
	}
	f.Fuzz(func(t *testing.T, csv, query string) {
		h.t = t
		r := httptest.NewRequest("POST", runPath, strings.NewReader(csv))
		r.Header.Set("Content-Type", "text/csv; charset=UTF-8")
		r.URL.RawQuery = query
		h.mustStand(t, r)
		if names := mustList(t, h.output.Path()); len(names) != results.Count {
			t.Errorf("left behind: %v", names)
		}
	})
}

// FuzzHeaders: tokens, origins, hosts, preferences and paths.
func FuzzHeaders(f *testing.F) {
	h, demo := newFuzzHub(f)
	for _, v := range []string{"Bearer " + demo.access, "bearer  " + demo.refresh, "Bearer", "Bearer ", "Basic eDp5", "Bearer a.b.c", "Bearer " + strings.Repeat(".", 9_000), "respond-async;x, wait=1"} {
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
			if allowed := a.header.Get("Access-Control-Allow-Origin"); allowed != "" && !strings.Contains(strings.ToLower(allowed), "localhost") && !strings.Contains(allowed, "127.") && !strings.Contains(allowed, "::") {
				t.Errorf("origin %q may read", allowed)
			}
			h.clear(t)
		}
	})
}
