// Dialects with cookies from outside: what browsers send and get across origins.

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCookiesAcrossOrigins(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "cookie")
	page := []string{"Origin", "http://localhost:5173"}
	credentials := func(a *answer) string { return a.Header.Get("Access-Control-Allow-Credentials") }
	login := h.post(loginPath, object{"username": "demo", "password": "demo-password"}, page...).Want(200)
	if credentials(login) != "true" || login.Header.Get("Access-Control-Allow-Origin") != "http://localhost:5173" {
		t.Errorf("headers %v", login.Header)
	}
	preflight := h.do("OPTIONS", refreshPath, nil, append(page, "Access-Control-Request-Method", "POST")...)
	if preflight.Status != 204 || credentials(preflight) != "true" {
		t.Errorf("preflight %d %v", preflight.Status, preflight.Header)
	}
	if login.JSON()["refresh_token"] != nil {
		t.Error("the body has the refresh token")
	}
	line := login.Header.Get("Set-Cookie")
	cookie, _, _ := strings.Cut(line, ";")
	_, space, _ := strings.Cut(h.base, "/ns/")
	if !strings.Contains(line, "; Path=/ns/"+space+"/api/authentication; ") || !strings.Contains(line, "HttpOnly") {
		t.Errorf("cookie %s", line)
	}
	h.post(refreshPath, nil, "Cookie", cookie, "Origin", "https://evil.test").Want(403, "forbidden_origin")
	h.post(logoutPath, nil, "Cookie", cookie).Want(204)
	h.post(refreshPath, nil, "Cookie", cookie).Want(401, "token_revoked")

	h.delete("/lab/dialect").Want(204)
	if a := h.get("/api", page...); credentials(a) != "" {
		t.Error("credentials are allowed without a dialect with cookies")
	}
}

// Where every origin may ask, none gets credentials that is not named, and none may change something with a cookie.
func TestCookiesAndEveryOrigin(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-dialect", "cookie", "-cors", "*,https://app.test")
	h.faulty = true
	for origin, want := range map[string]string{"https://any.test": "", "https://app.test": "true"} {
		login := h.post(loginPath, object{"username": "demo", "password": "demo-password"}, "Origin", origin).Want(200)
		if got := login.Header.Get("Access-Control-Allow-Credentials"); got != want {
			t.Errorf("%s: credentials %q, want %q", origin, got, want)
		}
		cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
		status := map[string]int{"": 403, "true": 200}[want]
		h.post(refreshPath, nil, "Cookie", cookie, "Origin", origin).Want(status)
	}
}

func TestAPageKeepsItsSessionInACookie(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 800, 600, "light")
	h := start(t, "-ephemeral", "-lab", "-dialect", "cookie")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>app</title>")
	}))
	t.Cleanup(app.Close)
	local := func(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }
	b.open(local(app.URL))
	ask := func(path, body string) string {
		t.Helper()
		return b.js(`return fetch(arguments[0], {method: 'POST', credentials: 'include', headers: arguments[1] ? {'Content-Type': 'application/json'} : {},
			body: arguments[1] || undefined}).then(async (a) => a.status + ' ' + await a.text())`, local(h.base)+"/ns/page"+path, body).(string)
	}
	if got := ask(loginPath, `{"username":"demo","password":"demo-password"}`); !strings.HasPrefix(got, `200 {"access_token":"`) || strings.Contains(got, "refresh_token") {
		t.Fatal(got)
	}
	if got := b.js(`return document.cookie`); got != "" {
		t.Errorf("scripts see the cookie %s", got)
	}
	b.open(local(app.URL) + "/reloaded") // the access token is gone, the cookie is not
	if got := ask(refreshPath, ""); !strings.HasPrefix(got, `200 {"access_token":"`) {
		t.Error(got)
	}
	if got := ask(logoutPath, ""); got != "204 " {
		t.Error(got)
	}
	if got := ask(refreshPath, ""); !strings.Contains(got, "token_missing") {
		t.Errorf("after the logout: %s, want no cookie any more", got)
	}
	if found := h.space("page").get("/lab/report").Want(200).List("findings"); len(found) > 0 {
		t.Errorf("findings %v", found)
	}
}
