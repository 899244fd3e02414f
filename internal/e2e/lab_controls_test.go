package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// namespaceNamed returns the line of a namespace in GET /ns, or nil, and its place in the list.
func (h *hub) namespaceNamed(name string) (object, int) {
	h.t.Helper()
	for i, line := range h.get("/ns").Want(200).List("namespaces") {
		if line["name"] == name {
			return line, i
		}
	}
	return nil, -1
}

func TestNamespacesAreListedTheLatestFirst(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	for _, name := range []string{"first", "second", "silent"} {
		h.space(name).get("/lab").Want(200) // looking makes a namespace, and is no request
	}
	h.space("first").login("demo")
	p := h.space("second").login("demo")
	for range 6 {
		h.space("second").me(p.Refresh).Want(401)
	}
	if line, at := h.namespaceNamed("second"); at != 0 || line["requests"] != 7.0 || line["findings"] == 0.0 || line["page"] != h.base+"/ns/second/" {
		t.Errorf("%d: %v", at, line)
	}
	if line, at := h.namespaceNamed("silent"); at != 2 || line["requests"] != 0.0 || line["last_request_at"] != nil || line["created_at"] == nil || line["findings"] != 0.0 {
		t.Errorf("%d: %v", at, line)
	}
	h.space("first").get(listingPath).Want(200)
	if _, at := h.namespaceNamed("first"); at != 0 {
		t.Errorf("the latest is at %d", at)
	}
	h.delete("/ns/first").Want(204)
	if line, _ := h.namespaceNamed("first"); line != nil {
		t.Errorf("%v", line)
	}
	h.get("/ns?x=1").Want(422, "invalid_field")
	h.post("/ns", nil).Want(405, "method_not_allowed")
	h.space("second").get("/ns").Want(404, "not_found")
}

func TestUsersAreMadeAndChangedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	p := h.login("demo")

	h.put("/lab/users/demo", object{"disabled": true, "role": "admin", "name": "D"}).Want(200)
	h.me(p.Access).Want(403, "account_disabled")
	h.refresh(p.Refresh).Want(403, "account_disabled")
	h.post(loginPath, right("demo")).Want(403, "account_disabled")
	h.put("/lab/users/DEMO", object{"disabled": false}).Want(200)
	if me := h.me(p.Access).Want(200); me.Text("role") != "admin" || me.Text("name") != "D" {
		t.Errorf("%s", me.Body)
	}
	p = h.refresh(p.Refresh).Want(200).Pair()

	h.put("/lab/users/demo", object{"password": "another password"}).Want(200)
	h.me(p.Access).Want(401, "token_revoked")
	h.post(loginPath, right("demo")).Want(401, "invalid_credentials")
	h.post(loginPath, object{"username": "demo", "password": "another password"}).Want(200)

	made := h.put("/lab/users/kim", object{"password": "kim-password", "email": "kim@x.test"}).Want(201)
	if made.Text("username") != "kim" || made.Text("role") != "user" || made.JSON()["disabled"] != false || strings.Contains(string(made.Body), "password") {
		t.Errorf("%s", made.Body)
	}
	kim := h.login("kim")
	h.put("/lab/users/kim", object{"email": ""}).Want(200)
	h.post(loginPath, object{"email": "kim@x.test", "password": "kim-password"}).Want(401)
	h.delete("/lab/users/kim").Want(204)
	h.me(kim.Access).Want(401, "token_revoked")
	h.delete("/lab/users/kim").Want(404, "not_found")
	h.get("/lab/users/kim").Want(404, "not_found")
	h.delete("/lab/users/admin").Want(204)
	if users := h.get("/lab/users").Want(200).List("users"); len(users) != 2 || users[0]["username"] != "demo" || users[1]["disabled"] != true {
		t.Errorf("%v", users)
	}

	taken := h.get("/lab/snapshot").Want(200)
	h.post("/lab/reset", nil).Want(204)
	h.login("demo")
	h.login("admin")
	h.put("/lab/snapshot", string(taken.Body), jsonType...).Want(204)
	h.post(loginPath, right("admin")).Want(401)
	h.post(loginPath, object{"username": "demo", "password": "another password"}).Want(200)
}

func TestUserOrdersAreStrict(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, row := range []struct {
		name, field string
		body        any
	}{
		{"demo", "nick", object{"nick": "d"}}, {"demo", "username", object{"username": "d"}}, {"demo", "disabled", object{"disabled": "yes"}}, {"demo", "role", object{"role": "root"}},
		{"demo", "email", object{"email": "x"}}, {"demo", "password", object{"password": "short"}}, {"demo", "name", object{"name": strings.Repeat("n", 257)}},
		{"kim", "password", object{}}, {"k", "username", object{"password": "kim-password"}}, {"a%2Fb", "username", object{"password": "kim-password"}},
	} {
		h.put("/lab/users/"+row.name, row.body).Want(422, "invalid_field").WantField(row.field)
	}
	h.put("/lab/users/demo", object{"email": "admin@example.test"}).Want(409, "email_taken")
	h.put("/lab/users/demo", object{}).Want(200)
	if users := h.get("/lab/users").Want(200).List("users"); len(users) != 3 {
		t.Errorf("%v", users)
	}
}

func TestLifetimesHoldForNewSessions(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.put("/lab/lifetimes", object{"access": "2s", "refresh": "1h"}).Want(200)
	a := h.post(loginPath, right("demo")).Want(200)
	if a.JSON()["expires_in"] != 2.0 || a.JSON()["refresh_expires_in"] != 3600.0 {
		t.Errorf("%s", a.Body)
	}
	h.advance(2 * time.Second)
	h.me(a.Pair().Access).Want(401, "token_expired")
	h.put("/lab/lifetimes", object{"access": "1m"}).Want(200)
	taken := h.get("/lab/snapshot").Want(200)
	h.post("/lab/reset", nil).Want(204)
	if got := h.post(loginPath, right("demo")).JSON()["expires_in"]; got != 900.0 {
		t.Errorf("after a reset %v", got)
	}
	h.put("/lab/snapshot", string(taken.Body), jsonType...).Want(204)
	if got := h.get("/lab").JSON()["lifetimes"]; fmt.Sprint(got) != "map[access:1m refresh:1h]" {
		t.Errorf("%v", got)
	}
	for field, body := range map[string]object{"access": {"access": 2}, "refresh": {"refresh": "-1s"}, "ttl": {"ttl": "1s"}} {
		h.put("/lab/lifetimes", body).Want(422, "invalid_field").WantField(field)
	}
	h.put("/lab/lifetimes", object{}).Want(422, "invalid_field")
}

func TestAFixedRefreshTokenStaysTheSame(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.policy(object{"rotation": false})
	p := h.login("demo")
	for range 3 {
		h.advance(time.Minute)
		next := h.refresh(p.Refresh).Want(200)
		if next.Pair().Refresh != p.Refresh || next.Pair().Access == p.Access || next.JSON()["expires_in"] != 900.0 {
			t.Errorf("%s", next.Body)
		}
		h.me(next.Pair().Access).Want(200)
	}
	if got := h.get("/lab").JSON()["policy"].(object)["rotation"]; got != false {
		t.Errorf("rotation %v", got)
	}
	if got := h.refresh(p.Refresh).JSON()["refresh_expires_in"]; got != 7*24*3600.0-180 {
		t.Errorf("of a token that stays %v seconds are left", got)
	}
	taken := h.get("/lab/snapshot").Want(200)
	h.policy(object{"reuse": "strict"})
	next := h.refresh(p.Refresh).Want(200).Pair()
	h.refresh(p.Refresh).Want(401, "token_reused")
	h.me(next.Access).Want(401, "token_revoked")

	h.put("/lab/snapshot", string(taken.Body), jsonType...).Want(204)
	h.refresh(p.Refresh).Want(200)
	h.refresh(p.Refresh).Want(200)
	if findings := h.get("/lab/report?within=1ms").Want(200).List("findings"); len(findings) != 0 {
		t.Errorf("%v", findings)
	}
	for field, body := range map[string]object{"rotation": {"rotation": "no"}, "reuse": {"rotation": false, "reuse": "allow"}} {
		h.put("/lab/refresh-policy", body).Want(422, "invalid_field").WantField(field)
	}
}

// A dialect comes with its rotation. What a test says of it comes before that, and the answer is what is in force.
func TestAPolicyComesBeforeTheDialects(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "simplejwt")
	exchange := func(token string) *answer {
		return h.post("/api/token/refresh/", object{"refresh": token})
	}
	for _, said := range []object{{"reuse": "strict"}, {"reuse": "grace", "grace": "10s"}} {
		if got := h.put("/lab/refresh-policy", said).Want(200).JSON(); got["rotation"] != false {
			t.Errorf("%v, and the dialect has no rotation: %v", said, got)
		}
	}
	token := h.login("demo").Refresh
	exchange(token).Want(200)
	if next := exchange(token).Want(200).Text("refresh"); next != "" {
		t.Errorf("without rotation the answer has the refresh token %q", next)
	}

	if got := h.put("/lab/refresh-policy", object{"rotation": true}).Want(200).JSON(); got["rotation"] != nil {
		t.Errorf("with rotation: %v", got)
	}
	taken := string(h.get("/lab/snapshot").Want(200).Body)
	for range 2 {
		next := exchange(token).Want(200).Text("refresh")
		exchange(next).Want(200)
		exchange(token).WantBody(401, `{"detail":"Token is invalid","code":"token_not_valid"}`)
		h.post("/lab/reset", nil).Want(204)
		h.put("/lab/snapshot", taken, jsonType...).Want(204)
	}
}

func TestANamespaceByItsHost(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	host := []string{"Host", "by-host.localhost:1"}
	p := h.post(loginPath, right("demo"), host...).Want(200).Pair()
	h.space("by-host").me(p.Access).Want(200)
	h.me(p.Access).Want(401, "token_malformed")
	h.get(mePath, append(host, bearer(p.Access)...)...).Want(200)
	if got := h.get("/lab", host...).Want(200).Text("namespace"); got != "by-host" {
		t.Errorf("namespace %q", got)
	}
	if got := h.get("/", host...).Want(200); !strings.Contains(string(got.Body), "<!doctype html>") {
		t.Errorf("%.40s", got.Body)
	}
	h.get("/healthz", "Host", "localhost:1").Want(200)
	if _, at := h.namespaceNamed("by-host"); at != 0 {
		t.Error("it is not listed")
	}

	named := start(t, "-ephemeral", "-lab", "-base-url", "http://hub.localhost:8080")
	named.base = named.process.listening(t)
	if got := named.get("/lab", "Host", "hub.localhost:8080").Want(200).JSON()["namespace"]; got != nil {
		t.Errorf("the root hub's own name is the namespace %v", got)
	}
}

// TestLookingOnTouchesNothing opens pages and the lab, and comes from foreign pages, while everything fails.
func TestLookingOnTouchesNothing(t *testing.T) {
	t.Parallel()
	root := start(t, "-ephemeral", "-lab")
	h := root.space("a")
	id := h.fault(object{"operation": "*", "status": 503, "times": 0})
	for _, path := range []string{"/", "/?tab=lab", "/web/app.js", "/lab", "/lab/report?within=1ms", "/openapi.json", "/favicon.ico", "/healthz", "/.well-known/appspecific/com.chrome.devtools.json"} {
		if a := h.get(path, "Sec-Fetch-Site", "none"); a.Status == 503 {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	root.get("/ns").Want(200)
	for range 3 {
		h.get(listingPath, "Origin", "https://evil.test").Want(403, "forbidden_origin")
		h.get(listingPath, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors").Want(403, "forbidden_origin")
		h.get("/lab", "Origin", "https://evil.test").Want(403, "forbidden_origin")
		root.space("made-by-a-stranger").get("/api", "Origin", "https://evil.test").Want(403, "forbidden_origin")
	}
	if got := h.requests(); len(got) != 0 {
		t.Errorf("the record has %v", got)
	}
	if f := h.get("/lab/faults").List("faults")[0]; f["id"] != id || f["hits"] != 0.0 {
		t.Errorf("the fault has hit: %v", f)
	}
	if line, _ := root.namespaceNamed("made-by-a-stranger"); line != nil {
		t.Errorf("%v", line)
	}
	h.faulty = true
	h.get("/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").Want(200) // a link was followed
	h.get(listingPath).Want(503)
}

func TestAnExpectationThatFailsSaysWhatOf(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.get(listingPath).Want(200)
	p := h.login("demo")
	for range 3 {
		h.refresh(p.Access).Want(401)
	}
	for detail, body := range map[string]object{
		"Expected exactly 1 refresh within 200ms, found 3 (requests 3 to 5).":                {"operation": "refresh", "count": object{"exactly": 1}, "within": "200ms"},
		"Expected at least 2 login within 1ms, found 1 (request 2).":                         {"operation": "login", "count": object{"at_least": 2}, "within": "1ms"},
		"Expected at least 1 me with status 401 of admin within 1ms, found 0.":               {"operation": "me", "status": 401, "user": "admin", "within": "1ms"},
		"Expected at most 1 request within 1ms, found 5 (requests 1 to 5).":                  {"count": object{"at_most": 1}, "within": "1ms"},
		"Expected exactly 9 requests with status 200 within 1ms, found 2 (requests 1 to 2).": {"status": 200, "count": object{"exactly": 9}, "within": "1ms"},
		"Expected exactly 0 refresh after request 3 within 1ms, found 2 (requests 4 to 5).":  {"operation": "refresh", "after": 3, "count": object{"exactly": 0}, "within": "1ms"},
	} {
		if got := h.post("/lab/expect", body).Want(http.StatusConflict, "expectation_failed").Text("detail"); got != detail {
			t.Errorf("%s\nwant %s", got, detail)
		}
	}
}
