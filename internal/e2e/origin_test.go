// What a page on the network may make a browser do to a hub on loopback: nothing.

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

// TestForeignPagesChangeNothing: no request that a browser sends for a foreign page without asking first (Fetch
// standard, CORS-safelisted methods and content types) does anything, and no answer may be read by the page.
func TestForeignPagesChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	demo := h.login("demo")
	for _, from := range [][]string{
		{"Origin", "https://evil.test"}, {"Origin", "null"}, {"Origin", "http://localhost.evil.test"}, {"Origin", "http://127.0.0.1.evil.test"}, {"Origin", "https://127.0.0.1:443@evil.test"},
		{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.test", "Sec-Fetch-Site", "same-site"},
		{"Origin", "", "Sec-Fetch-Site", "cross-site"}, {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
	} {
		for _, contentType := range []string{"text/plain", "text/plain; x=application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json", "text/csv", ""} {
			for path, body := range map[string]string{
				registerPath: "username=planted&password=password-1", loginPath: "username=demo&password=demo-password", refreshPath: "refresh_token=" + demo.Refresh, logoutPath: "", runPath: "",
			} {
				headers := append([]string{"Content-Type", contentType, "Authorization", "Bearer " + demo.Access}, from...)
				a := h.post(path, body, headers...).Want(403, "forbidden_origin")
				if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" {
					t.Errorf("%v: %s may read", from, got)
				}
			}
		}
	}
	h.post(loginPath, object{"username": "planted", "password": "password-1"}).Want(401, "invalid_credentials")
	h.get(runPath).Want(404, "no_run")
	if n := len(h.sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	h.me(demo.Access).Want(200)
	h.refresh(demo.Refresh).Want(200)
}

// TestOriginsAreNotReflected: only origins as browsers write them (RFC 6454 section 6.2), and only those of this
// machine.
func TestOriginsAreNotReflected(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, origin := range []string{
		"http://localhost", "https://localhost:8443", "http://127.0.0.1:3000", "http://127.1.2.3", "http://[::1]:3000", "http://[::1]", "http://app.localhost:5173",
	} {
		if got := h.get("/healthz", "Origin", origin).Want(200).Header.Get("Access-Control-Allow-Origin"); got != origin {
			t.Errorf("%s: %q", origin, got)
		}
	}
	for _, origin := range []string{
		"https://evil.test", "null", "http://localhost.evil.test", "http://127.0.0.1.evil.test", "http://evil.test#localhost", "http://evil.test?localhost", "http://evil.test/localhost", "http://evil.test\\localhost",
		"http://localhost@evil.test", "http://localhost:80@evil.test", "http://evil.test@localhost", "http://localhost/", "http://localhost#", "http://localhost?", "http://localhost/evil.test",
		"HTTP://localhost", "http://localhost evil.test", "http://localhost,https://evil.test", "http://localhost https://evil.test", "ftp://localhost", "file://localhost", "file://", "chrome-extension://localhost",
		"http://notlocalhost", "http://local.host", "http://localhost%2eevil.test", "http://xn--localhost", "http://0.0.0.0", "http://0", "http://2130706433", "http://127.1", "http://0x7f.0.0.1", "http://10.0.0.1",
		"http://169.254.169.254", "http://[::2]", "http://[::ffff:10.0.0.1]", "http:localhost", "//localhost", "localhost", "*", "http://*", "http://*.localhost.evil.test", "javascript:localhost", "http://",
	} {
		a := h.get("/healthz", "Origin", origin)
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%q may read: %q", origin, got)
		}
		if !slices.Contains(strings.Split(a.Header.Get("Vary"), ", "), "Origin") {
			t.Errorf("%q: Vary %q", origin, a.Header.Get("Vary"))
		}
		pre := h.do("OPTIONS", loginPath, nil, "Origin", origin, "Access-Control-Request-Method", "POST").Want(403, "forbidden_origin")
		if strings.Contains(fmt.Sprint(pre.Header), "Access-Control-Allow") {
			t.Errorf("%q: preflight %v", origin, pre.Header)
		}
	}
}

// TestRebinding: names that somebody else can point at this machine are not its names.
func TestRebinding(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	port := h.addr()[strings.LastIndexByte(h.addr(), ':'):]
	for host, want := range map[string]int{
		"127.0.0.1" + port: 200, "localhost" + port: 200, "LOCALHOST" + port: 200, "localhost." + port: 200, "[::1]" + port: 200, "127.0.0.2" + port: 200, "localhost": 200, "hub.localhost" + port: 200,
		"evil.test" + port: 403, "evil.test": 403, "localhost.evil.test" + port: 403, "127.0.0.1.evil.test": 403, "127.0.0.1.nip.io" + port: 403, "evillocalhost" + port: 403, "localhost.evil.test.": 403, "10.0.0.1" + port: 403,
		"0.0.0.0" + port: 403, "[::]" + port: 403, "0" + port: 403, "2130706433" + port: 403, "0x7f000001" + port: 403, "127.1" + port: 403, "192.168.0.1" + port: 403, "[::ffff:10.0.0.1]" + port: 403,
		"localhost:80:80": 403, "localhost%00.evil.test": 403, "": 403, ".": 403, ":80": 403, ".localhost.evil.test": 403, "127.0.0.1@evil.test": 400, "evil.test#localhost": 400, "localhost/evil.test": 400,
	} {
		for _, target := range []string{"/healthz", listingPath, "/api"} {
			c := testkit.Dial(t, h.addr())
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nConnection: close\r\n\r\n", target, host)
			if got := testkit.Statuses(c, 1); !slices.Equal(got, []int{want}) {
				t.Errorf("Host %q: %v, want %d", host, got, want)
			}
		}
	}
}

// TestNoSecretIsLogged tells a story full of secrets in the wrong places and reads the log.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		h := start(t, "-ephemeral", "-lab", "-log", format)
		h.faulty = true // the oddest requests are not described
		const password = "a-secret-password-of-some-length"
		p := h.post(registerPath, "username=loggee&password="+password, formType...).Want(201).Pair()
		for _, secret := range []string{p.Access, p.Refresh, password} {
			h.tellEverywhere(secret, p)
		}
		h.logout(p.Refresh).Want(204)
		h.process.stop(t)
		log := h.process.stderr.String()
		if !strings.Contains(log, registerPath) {
			t.Errorf("there is no log:\n%s", log)
		}
		for _, secret := range []string{p.Access, p.Refresh, password, p.Access[len(p.Access)-43:][:20], p.Refresh[len(p.Refresh)-43:][:20]} {
			if i := strings.Index(log, secret); i >= 0 {
				t.Errorf("the log holds %.20s…:\n%s", secret, log[max(0, i-200):i+20])
			}
		}
	}
}

// tellEverywhere puts a secret into each part of a request.
func (h *hub) tellEverywhere(secret string, p pair) {
	h.t.Helper()
	for _, target := range []string{
		mePath + "?access_token=" + secret, mePath + "?low=%25zz&x=" + secret, "/" + secret, "/web/" + secret, "/api/" + secret + "/" + secret,
		listingPath + "/" + secret, "/ns/" + secret[:20] + "/" + secret, "/lab/" + secret, "/lab/requests?user=" + secret,
	} {
		h.get(target)
	}
	h.post(runPath+"?low="+secret, secret, csvType...)
	h.post(runPath, secret, "Content-Type", secret)
	h.post(loginPath, "username="+secret+"&password="+secret, formType...)
	h.post(loginPath, secret, jsonType...)
	h.post(refreshPath, "refresh_token="+secret, formType...)
	h.post(refreshPath, "", bearer(secret+"x")...)
	h.get(mePath, "Authorization", secret, "Cookie", secret, "User-Agent", secret, "Referer", "http://x/"+secret, "Origin", "http://"+secret, "X-Forwarded-For", secret)
	h.post(logoutPath+"?all="+secret, "", bearer(p.Access)...)
	h.get("/healthz", "Host", secret)
	c := testkit.Dial(h.t, h.addr())
	fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", h.addr(), secret) // no field at all
	testkit.Statuses(c, 1)
}
