// What stands before every operation: paths and methods, hosts, origins, headers, the log.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral")
	for _, path := range []string{"/api/", "/api/nothing", "/api/files/phase2/", "/api//files/phase2", "/api/files/phase2/../phase2", "/ns/a/api", "/lab", "/healthz/x"} {
		h.get(path).Want(404, "not_found")
	}
	for path, row := range map[string]struct{ refused, allow string }{
		registerPath:               {"GET", "POST"},
		loginPath:                  {"PUT", "POST"},
		mePath:                     {"POST", "GET, HEAD"},
		refreshPath:                {"HEAD", "POST"},
		logoutPath:                 {"DELETE", "POST"},
		listingPath:                {"POST", "GET, HEAD"},
		listingPath + "/barrier":   {"PATCH", "GET, HEAD"},
		listingPath + "/impact":    {"OPTIONS", "GET, HEAD"},
		listingPath + "/alertesph": {"BREW", "GET, HEAD"},
		runPath:                    {"PUT", "GET, HEAD, POST"},
		"/api":                     {"POST", "GET, HEAD"},
		"/healthz":                 {"POST", "GET, HEAD"},
		"/":                        {"POST", "GET, HEAD"},
	} {
		a := h.do(row.refused, path, nil).Want(405)
		if got := a.Header.Get("Allow"); got != row.allow {
			t.Errorf("%s: Allow %q, want %q", path, got, row.allow)
		}
		if row.refused != "HEAD" {
			a.Want(405, "method_not_allowed")
		}
	}
}

// TestEveryGetAnswersHead asks every GET of the index, and the page, for its head.
func TestEveryGetAnswersHead(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral")
	h.upload(fourReadings).Want(200)
	token := bearer(h.login("demo").Access)
	paths := []string{"/", "/web/app.js", "/openapi.json"}
	for _, o := range h.get("/api").Want(200).List("operations") {
		if path := strings.TrimPrefix(o["href"].(string), h.base); o["method"] == "GET" && !strings.Contains(path, "{") {
			paths = append(paths, path)
		}
	}
	if len(paths) < 10 {
		t.Errorf("only %v", paths)
	}
	for _, path := range paths {
		get, head := h.get(path, token...).Want(200), h.do("HEAD", path, nil, token...).Want(200)
		if len(head.Body) > 0 || head.Header.Get("Content-Length") != strconv.Itoa(len(get.Body)) {
			t.Errorf("%s: HEAD has %d bytes and Content-Length %s, GET has %d bytes", path, len(head.Body), head.Header.Get("Content-Length"), len(get.Body))
		}
	}
}

func TestIndexTellsAddressesAndTokens(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-base-url", "https://hub.example/test/", "-protect", "run")
	h.base = h.process.listening(t)
	tokens := map[string]any{}
	for _, o := range h.get("/api", "Host", "hub.example").Want(200).List("operations") {
		path, ok := strings.CutPrefix(o["href"].(string), "https://hub.example/test")
		if !ok {
			t.Errorf("href %v", o["href"])
		}
		tokens[o["method"].(string)+" "+path] = o["token"]
	}
	for operation, want := range map[string]string{"GET " + mePath: "access", "POST " + runPath: "access", "GET " + listingPath: "none", "POST " + loginPath: "none"} {
		if tokens[operation] != want {
			t.Errorf("%s wants the token %v, want %s", operation, tokens[operation], want)
		}
	}
}

// TestARefusedUploadGetsItsAnswer: many clients read nothing before they have sent all.
func TestARefusedUploadGetsItsAnswer(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-protect", "run")
	h.base = h.process.listening(t)
	const size = 5 << 20
	for _, head := range []string{fmt.Sprint("Content-Length: ", size), "Transfer-Encoding: chunked"} {
		c := testkit.Dial(t, h.addr())
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n%s\r\n\r\n", runPath, head)
		body := strings.Repeat("x", size)
		if head == "Transfer-Encoding: chunked" {
			body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body)
		}
		if _, err := io.WriteString(c, body); err != nil {
			t.Errorf("%s: %v", head, err)
		}
		if got := testkit.Statuses(c, 1); !slices.Equal(got, []int{401}) {
			t.Errorf("%s: %v", head, got)
		}
	}
}

// TestARefusedUploadIsNotAskedFor: a client that asks first (RFC 9110 section 10.1.1) is answered before it sends
// anything.
func TestARefusedUploadIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for _, lab := range []string{"-lab=false", "-lab"} {
		h := start(t, "-ephemeral", "-protect", "run", lab)
		h.base = h.process.listening(t)
		c := testkit.Dial(t, h.addr())
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", runPath)
		if got := testkit.Statuses(c, 1); !slices.Equal(got, []int{401}) {
			t.Errorf("%s: %v", lab, got)
		}
	}
}

func TestAHubThatCanStoreIsHealthy(t *testing.T) {
	t.Parallel()
	if got := newHub(t).get("/healthz").Want(200).Text("status"); got != "ok" {
		t.Errorf("status %q", got)
	}
}

func TestForeignHostsAreRefusedOnLoopback(t *testing.T) {
	t.Parallel()
	loopback, wide := start(t, "-ephemeral", "-base-url", "http://hub.test"), start(t, "-ephemeral", "-addr", "0.0.0.0:0", "-log", "json")
	loopback.base = loopback.process.listening(t)
	for host, status := range map[string]int{
		"hub.test": 200, "localhost": 200, "LOCALHOST:80": 200, "a.localhost:8080": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:8080": 200, "localhost.": 200, "HUB.test:81": 200,
		"evil.test": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test": 403, "10.0.0.1": 403, "[::2]": 403, "0.0.0.0": 403,
	} {
		a := loopback.get("/healthz", "Host", host).Want(status)
		if status == 403 {
			a.Want(403, "forbidden_host")
		}
	}
	wide.get("/healthz", "Host", "10.0.0.1:8080").Want(200)
}

func TestCORS(t *testing.T) {
	t.Parallel()
	usual, listed, open := newHub(t), start(t, "-ephemeral", "-cors", "https://app.example, https://b.example"), start(t, "-ephemeral", "-cors", "*")
	for _, row := range []struct {
		name, origin string
		hub          *hub
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
			h, want := row.hub.of(t), ""
			if row.allowed {
				want = row.origin
			}
			a := h.get("/healthz", "Origin", row.origin)
			if row.allowed {
				a.Want(200)
			} else {
				a.Want(403, "forbidden_origin")
			}
			if got := a.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("allowed origin %q, want %q", got, want)
			}
			pre := h.do("OPTIONS", loginPath, nil, "Origin", row.origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,authorization")
			if got := pre.Header.Get("Access-Control-Allow-Origin"); got != want || row.allowed != (pre.Status == 204) {
				t.Errorf("preflight %d with origin %q", pre.Status, got)
			}
			if row.allowed && !strings.Contains(pre.Header.Get("Access-Control-Allow-Headers"), "authorization") {
				t.Errorf("preflight %v", pre.Header)
			}
			login := h.post(loginPath, "username=demo&password=demo-password", append(formType, "Origin", row.origin, "Sec-Fetch-Site", "cross-site")...)
			if row.allowed {
				login.Want(200)
			} else {
				login.Want(403, "forbidden_origin")
			}
			for _, header := range []http.Header{a.Header, pre.Header} {
				if header.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(strings.Join(header["Vary"], ","), "Origin") {
					t.Errorf("%v", header)
				}
			}
		})
	}
}

func TestTheHubsOwnPageMayUseIt(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	own := strings.TrimPrefix(h.process.base, "http://")
	h.post(runPath, nil, "Origin", "http://"+own, "Sec-Fetch-Site", "same-origin").Want(200)
	h.post(runPath, nil, "Sec-Fetch-Site", "cross-site").Want(403, "forbidden_origin")

	behind := start(t, "-ephemeral", "-base-url", "https://hub.example/test") // a proxy that does not pass the Host on
	behind.base = behind.process.listening(t)
	behind.post(runPath, nil, "Origin", "https://hub.example").Want(200)
	behind.post(runPath, nil, "Origin", "http://hub.example").Want(403, "forbidden_origin")
	behind.post(runPath, nil, "Origin", "https://hub.example:444").Want(403, "forbidden_origin")
}

// TestImagesOfAllowedPages: a browser sends no Origin for an image or a frame, but names the page in Referer. The page
// at localhost is of another site than the hub at 127.0.0.1.
func TestImagesOfAllowedPages(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for referer, status := range map[string]int{
		"http://localhost:5173/": 200, "http://127.0.0.1:5173/gallery?n=1": 200, "": 403, "https://app.example/": 403,
		"http://localhost.evil.test/": 403, "localhost:5173": 403, "http://user@localhost@evil.test/": 403, "http://[": 403,
	} {
		for _, dest := range []string{"image", "iframe"} {
			if got := h.get(listingPath, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", dest, "Referer", referer).Status; got != status {
				t.Errorf("%s of a page at %q: %d, want %d", dest, referer, got, status)
			}
		}
	}
	h.get(listingPath, "Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site", "Referer", "http://localhost:5173/").Want(403, "forbidden_origin")
}

func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.upload(fourReadings).Want(200)
	etag := h.get(listingPath + "/impact").Header.Get("ETag")
	for name, a := range map[string]*answer{
		"200": h.get("/api"), "204": h.logout(h.login("demo").Access), "304": h.get(listingPath+"/impact", "If-None-Match", etag),
		"401": h.get(mePath), "403": h.get("/api", "Host", "evil.test"), "404": h.get("/x"), "405": h.do("PUT", "/api", nil), "page": h.get("/"),
		"preflight": h.do("OPTIONS", loginPath, nil, "Origin", "http://localhost:1", "Access-Control-Request-Method", "POST"),
	} {
		if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, a.Header)
		}
		policy := a.Header.Get("Content-Security-Policy")
		if name != "page" && policy != "default-src 'none'; frame-ancestors 'none'" || name == "page" && !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", name, policy)
		}
		if name == "page" && (a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Referrer-Policy") != "no-referrer") {
			t.Errorf("%s: %v", name, a.Header)
		}
	}
}

func TestTheLogHasALineARequestAndNoSecrets(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral")
	p := h.login("demo")
	h.me(p.Access).Want(200)
	h.get(mePath + "?token=" + p.Access).Want(401)
	h.get(mePath + "/" + p.Access).Want(404)
	h.get("/a%20b%0Ac").Want(404)
	h.process.stop(t)

	var lines []object
	for text := range strings.Lines(h.process.stderr.String()) {
		var line object
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line["method"] != nil {
			lines = append(lines, line)
		}
	}
	if len(lines) != 5 || lines[1]["method"] != "GET" || lines[1]["path"] != mePath || lines[1]["status"] != 200.0 {
		t.Errorf("%v", lines)
	}
	for _, secret := range []string{p.Access, p.Refresh, "demo-password"} {
		if strings.Contains(h.process.stderr.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// TestTheLogSaysWhyARequestWasRefused: its code, and the namespace, the user and the fault where there are some. What
// the page and the lab ask is not worth a line. A foreign request meets no namespace.
func TestTheLogSaysWhyARequestWasRefused(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	h.post(loginPath, wrong("demo")).Want(401)
	a := h.space("a")
	demo := a.login("demo")
	a.me("x").Want(401)
	id := a.fault(object{"operation": "me", "status": 503})
	a.me(demo.Access).Want(503)
	a.get("/api", "Origin", "https://evil.test").Want(403)
	for _, quiet := range []string{"/", "/web/app.js", "/lab", "/ns", "/healthz"} {
		h.get(quiet).Want(200)
	}
	h.process.stop(t)

	var lines []string
	for text := range strings.Lines(h.process.stderr.String()) {
		var line object
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line["msg"] == "request" {
			lines = append(lines, fmt.Sprint(line["level"], line["status"], line["code"], line["ns"], line["user"], line["fault"]))
		}
	}
	want := []string{
		fmt.Sprint("INFO", 401.0, "invalid_credentials", nil, "demo", nil),
		fmt.Sprint("INFO", 200.0, nil, nil, nil, nil),
		fmt.Sprint("INFO", 401.0, "token_malformed", "a", nil, nil),
		fmt.Sprint("INFO", 503.0, "injected", "a", "demo", id),
		fmt.Sprint("WARN", 403.0, "forbidden_origin", nil, nil, nil),
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant %q", lines, want)
	}
}
