// Namespaces, the key, and what every route of the lab has in common.

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"authhub/internal/testkit"
)

func TestLabIsNotThereUnasked(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral")
	for _, path := range []string{"/lab", "/lab/clock", "/ns/a/api/authentication/me", "/ns/a/lab"} {
		h.get(path).Want(404, "not_found")
	}
	if strings.Contains(string(h.get("/api").Body), "/lab") {
		t.Error("the index lists the lab")
	}
}

func TestNamespacesNeverMeet(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	a, b := h.space("a"), h.space("b")
	pair := a.login("demo")
	a.me(pair.Access).Want(200)
	b.me(pair.Access).Want(401, "token_malformed")
	h.me(pair.Access).Want(401, "token_malformed")

	a.post(registerPath, object{"username": "only-in-a", "password": "a password"}).Want(201)
	b.post(loginPath, object{"username": "only-in-a", "password": "a password"}).Want(401, "invalid_credentials")

	a.advance(time.Hour)
	a.me(pair.Access).Want(401, "token_expired")
	if got := b.get("/lab").JSON()["time"].(object)["offset_ms"]; got != 0.0 {
		t.Errorf("the clock of b is %v ms off", got)
	}

	a.fault(object{"operation": "*", "status": 503})
	b.get(listingPath).Want(200)
	a.get(listingPath).Want(503, "injected")
	if got := b.get("/lab/requests").JSON()["requests"].([]any); len(got) != 3 {
		t.Errorf("b has seen %d requests, of 3", len(got))
	}

	a.post(runPath, nil).Want(200)
	a.get(listingPath + "/impact").Want(200)
	b.get(listingPath+"/impact").Want(404, "file_unavailable")
	h.get(listingPath+"/impact").Want(404, "file_unavailable")
}

func TestANamespaceKnowsItsAddress(t *testing.T) {
	t.Parallel()
	a := start(t, "-ephemeral", "-lab").space("a-1_B")
	if got := a.get("/lab").Text("base_url"); got != a.base {
		t.Error("base_url is", got)
	}
	var hrefs []string
	for _, o := range a.get("/api").JSON()["operations"].([]any) {
		hrefs = append(hrefs, o.(object)["method"].(string)+" "+o.(object)["href"].(string))
	}
	for _, want := range []string{"GET " + a.base + "/api", "PUT " + a.base + "/lab/clock", "DELETE " + a.base} {
		if !slices.Contains(hrefs, want) {
			t.Errorf("the index has no %s", want)
		}
	}
	answer := a.post(runPath, nil, "Prefer", "respond-async").Want(202)
	if got := answer.Header.Get("Location"); got != a.base+runPath {
		t.Error("Location is", got)
	}
}

func TestOnlySomeNamesMakeANamespace(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	for path, status := range map[string]int{
		"/ns/" + strings.Repeat("n", 64) + "/lab": 200,
		"/ns/" + strings.Repeat("n", 65) + "/lab": 404,
		"/ns": 200, "/ns/": 404, "/ns//lab": 404, "/ns/a.b/lab": 404, "/ns/%C3%A9/lab": 404,
		"/ns/slash%2Flab": 404, "/ns/%61/lab": 404, "/ns/a/../b/lab": 404, "/ns/a": 308, "/ns/a/": 200, "/ns/a/lab/": 404, "/ns/a/nothing": 404,
	} {
		if got := h.get(path); got.Status != status {
			t.Errorf("%s: %d, want %d", path, got.Status, status)
		}
	}
	for _, made := range h.get("/ns").List("namespaces") {
		if name := made["name"]; name != "a" && name != strings.Repeat("n", 64) {
			t.Errorf("a namespace %q was made", name)
		}
	}
	if got := h.put("/ns/a", nil).Want(405).Header.Get("Allow"); got != "DELETE, GET, HEAD" {
		t.Error("Allow of /ns/a:", got)
	}
}

func TestADeletedNamespaceIsForgotten(t *testing.T) {
	t.Parallel()
	folders := t.TempDir()
	h := startIn(t, []string{"TMPDIR=" + folders, "TMP=" + folders}, "-ephemeral", "-lab")
	h.delete("/ns/a").Want(404, "not_found")
	a := h.space("a")
	pair := a.login("demo")
	a.post(runPath, nil).Want(200)
	if names := testkit.List(t, folders); len(names) != 1 {
		t.Errorf("a namespace with files has the folders %v", names)
	}
	h.delete("/ns/a").Want(204)
	if names := testkit.List(t, folders); len(names) != 0 {
		t.Errorf("of a deleted namespace are left %v", names)
	}
	a.me(pair.Access).Want(401, "token_revoked") // a new one of the same name, without the sessions of the old
	a.get(listingPath+"/impact").Want(404, "file_unavailable")
}

func TestNamespaceWithAndWithoutASlash(t *testing.T) {
	t.Parallel()
	h := startIn(t, []string{"AUTHHUB_LAB_KEY=a key of the lab"}, "-ephemeral", "-lab")

	for path, location := range map[string]string{"/ns/a": "a/", "/ns/a?x=1": "a/?x=1"} {
		if got := h.get(path).Want(308); got.Header.Get("Location") != location {
			t.Errorf("%s: Location %q", path, got.Header.Get("Location"))
		}
	}
	key := bearer("a key of the lab")
	if got := h.get("/lab", key...).JSON()["counts"].(object)["namespaces"]; got != 0.0 {
		t.Errorf("a redirect has made %v namespaces", got)
	}
	h.get("/ns/a/").Want(200) // the page wants no key
	h.delete("/ns/a/").Want(401, "lab_key_required")
	h.do("DELETE", "/ns/a/", nil, key...).Want(204)
	h.do("DELETE", "/ns/a/", nil, key...).Want(404, "not_found")
}

func TestAHubThatStopsLeavesNoFolders(t *testing.T) {
	t.Parallel()
	folders := t.TempDir()
	h := startIn(t, []string{"TMPDIR=" + folders, "TMP=" + folders}, "-ephemeral", "-lab")
	for _, space := range []*hub{h, h.space("a"), h.space("b")} {
		space.post(runPath, nil).Want(200)
	}
	if names := testkit.List(t, folders); len(names) != 3 {
		t.Errorf("three hubs with files have the folders %v", names)
	}
	h.process.stop(t)
	if names := testkit.List(t, folders); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestAHubThatStopsEndsExpectations(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	a := h.space("a")
	c := testkit.Dial(t, h.addr())
	fmt.Fprintf(c, "POST /ns/a/lab/expect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n"+`{"operation":"me","within":"30s"}`)
	a.post("/lab/expect", object{"count": object{"exactly": 0}, "within": "100ms"}).Want(200) // time for the other to arrive
	begun := time.Now()
	if status := h.process.stop(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	got, err := io.ReadAll(c)
	if answer := string(got); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "is stopping") || time.Since(begun) > 5*time.Second {
		t.Errorf("the client that waited got %q, %v after %v", answer, err, time.Since(begun))
	}
}

func TestLabBeyondLoopbackWantsAKey(t *testing.T) {
	t.Parallel()
	for key, row := range map[string]struct {
		refused, warned bool
	}{"": {refused: true}, strings.Repeat(" ", 20): {refused: true}, "short": {warned: true}, "fifteen bytes..": {warned: true}, "sixteen bytes...": {}} {
		p := launchHub(t, []string{"AUTHHUB_LAB_KEY=" + key}, "-addr", "0.0.0.0:0", "-ephemeral", "-lab", "-log", "text")
		if row.refused {
			if status := p.mustEnd(t); status != 2 || p.stdout.String() != "" || !strings.Contains(p.stderr.String(), "AUTHHUB_LAB_KEY") || strings.Count(p.stderr.String(), "\n") != 1 {
				t.Errorf("key %q: exit status %d, %q", key, status, &p.stderr)
			}
			continue
		}
		p.mustBeReady(t)
		p.stop(t)
		if warned := strings.Contains(p.stderr.String(), "guessed"); warned != row.warned {
			t.Errorf("key %q: %s", key, &p.stderr)
		}
	}
}

// TestTenThousandNamespacesFit fills a hub with namespaces to the last and measures what they weigh.
func TestTenThousandNamespacesFit(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab", "-log", "off")
	h.get("/lab").Want(200)
	const most = 10_000
	c := testkit.Dial(t, h.addr())
	go func() { // on one connection, without waiting for answers: http.Client takes seconds for so many
		w := bufio.NewWriter(c)
		for n := range most {
			fmt.Fprintf(w, "GET /ns/n%d/healthz HTTP/1.1\r\nHost: %s\r\n\r\n", n, h.addr())
		}
		w.Flush()
	}()
	if got := testkit.Statuses(c, most); len(got) != most || slices.ContainsFunc(got, func(status int) bool { return status != 200 }) {
		t.Errorf("%d answers, not all 200", len(got))
	}
	h.get("/ns/one-more/lab").Want(507, "namespace_limit")
	h.get("/ns/n1/lab").Want(200)
	h.delete("/ns/n7").Want(204)
	h.get("/ns/one-more/lab").Want(200)
}

func TestLabRequestsNeedTheKey(t *testing.T) {
	t.Parallel()
	h := startIn(t, []string{"AUTHHUB_LAB_KEY=a key of the lab"}, "-ephemeral", "-lab")
	key := bearer("a key of the lab")
	for _, path := range []string{"/lab", "/lab/nothing", "/ns/a/lab", "/ns/a/lab/report"} {
		h.get(path).Want(401, "lab_key_required")
		h.get(path, bearer("another key")...).Want(401, "lab_key_required")
	}
	h.delete("/ns/a").Want(401, "lab_key_required")
	if got := h.get("/lab", key...).Want(200).JSON()["counts"].(object)["namespaces"]; got != 0.0 {
		t.Errorf("requests without the key have made %v namespaces", got)
	}
	h.space("a").login("demo")
	h.do("DELETE", "/ns/a", nil, key...).Want(204)
}

func TestLabPathsRefuseOtherMethods(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"HEAD", "/lab", 200, ""},
		{"POST", "/lab", 405, "GET, HEAD"},
		{"GET", "/lab/reset", 405, "POST"},
		{"POST", "/lab/clock", 405, "PUT"},
		{"POST", "/lab/snapshot", 405, "GET, HEAD, PUT"},
		{"PUT", "/lab/faults", 405, "DELETE, GET, HEAD, POST"},
		{"GET", "/lab/faults/f1", 405, "DELETE"},
		{"GET", "/lab/sessions/s/expire", 405, "POST"},
		{"GET", "/lab/sessions/s/nothing", 404, ""},
		{"GET", "/labs", 404, ""},
	} {
		got := h.do(tt.method, tt.path, nil)
		if got.Status != tt.status || got.Header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, Allow %q", tt.method, tt.path, got.Status, got.Header.Get("Allow"))
		}
	}
}

func TestLabBodiesAreStrict(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	for _, tt := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"PUT", "/lab/clock", `{"advance":"16m","advnce":"1m"}`, 422, "advnce"},
		{"PUT", "/lab/clock", `{"Advance":"16m"}`, 422, "Advance"},
		{"PUT", "/lab/clock", `{"advance":960}`, 422, "advance"},
		{"PUT", "/lab/clock", `{"advance":"16 minutes"}`, 422, "advance"},
		{"PUT", "/lab/clock", `{"advance":"0s"}`, 422, "advance"},
		{"PUT", "/lab/clock", `{"advance":"2000000h"}`, 422, "advance"},
		{"PUT", "/lab/clock", `{"at":"yesterday"}`, 422, "at"},
		{"PUT", "/lab/clock", `{"at":"9999-01-01T00:00:00Z"}`, 422, "at"},
		{"PUT", "/lab/clock", `{"at":"2026-01-01T00:00:00Z","advance":"1m"}`, 422, "advance"},
		{"PUT", "/lab/clock", `{"frozen":"yes"}`, 422, "frozen"},
		{"PUT", "/lab/clock", `{}`, 422, "advance"},
		{"PUT", "/lab/clock", `[]`, 400, ""},
		{"PUT", "/lab/clock", `{"frozen":true}{}`, 400, ""},
		{"PUT", "/lab/clock", ``, 400, ""},
		{"POST", "/lab/reset", `{"to":"seeds"}`, 422, "to"},
		{"POST", "/lab/sessions/x/expire", `{"token":"id"}`, 422, "token"},
		{"POST", "/lab/sessions/x/revoke", `{"token":"access"}`, 422, "token"},
		{"PUT", "/lab/refresh-policy", `{}`, 422, "reuse"},
		{"PUT", "/lab/refresh-policy", `{"reuse":"lax"}`, 422, "reuse"},
		{"PUT", "/lab/refresh-policy", `{"reuse":"grace"}`, 422, "grace"},
		{"PUT", "/lab/refresh-policy", `{"reuse":"strict","grace":"1s"}`, 422, "grace"},
		{"PUT", "/lab/refresh-policy", `{"reuse":"grace","grace":"-1s"}`, 422, "grace"},
		{"DELETE", "/lab/faults", `{"id":"f1"}`, 422, "id"},
		{"DELETE", "/lab/faults/f1", `{"id":"f1"}`, 422, "id"},
		{"DELETE", "/lab/requests", `{"operation":"me"}`, 422, "operation"},
		{"DELETE", "/lab/users/demo", `{"sessions":true}`, 422, "sessions"},
		{"DELETE", "/lab/dialect", `{"name":"supabase"}`, 422, "name"},
		{"DELETE", "/ns/kept", `{"name":"other"}`, 422, "name"},
		{"POST", "/lab/tokens", `{}`, 422, "user"},
		{"POST", "/lab/tokens", `{"user":"nobody"}`, 422, "user"},
		{"POST", "/lab/tokens", `{"user":"demo","kind":"id"}`, 422, "kind"},
		{"POST", "/lab/tokens", `{"user":"demo","defect":"odd"}`, 422, "defect"},
		{"POST", "/lab/tokens", `{"user":"demo","claims":"none"}`, 422, "claims"},
		{"POST", "/lab/expect", `{"count":{}}`, 422, "count"},
		{"POST", "/lab/expect", `{"count":{"exactly":1,"at_least":1}}`, 422, "count"},
		{"POST", "/lab/expect", `{"count":{"about":1}}`, 422, "count.about"},
		{"POST", "/lab/expect", `{"count":{"exactly":-1}}`, 422, "count.exactly"},
		{"POST", "/lab/expect", `{"count":1}`, 422, "count"},
		{"POST", "/lab/expect", `{"within":"31s"}`, 422, "within"},
		{"POST", "/lab/expect", `{"operation":"signin"}`, 422, "operation"},
		{"POST", "/lab/expect", `{"status":"401"}`, 422, "status"},
	} {
		got := h.do(tt.method, tt.path, tt.body, "Content-Type", "application/json")
		fields := got.JSON()["errors"]
		if got.Status != tt.status || tt.field != "" && (fields == nil || fields.([]any)[0].(object)["field"] != tt.field) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, got.Status, got.Body)
		}
	}
}

func TestLabBodiesAreJSONOfABoundedSize(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	h.put("/lab/clock", "frozen=true", "Content-Type", "application/x-www-form-urlencoded").Want(415, "unsupported_media_type")
	h.put("/lab/clock", `{"frozen":true}`, "Content-Encoding", "gzip").Want(415, "unsupported_media_type")
	h.put("/lab/clock", `{"frozen":true}`).Want(200)
	h.put("/lab/clock", `{"advance":"`+strings.Repeat(" ", 64<<10)+`"}`, "Content-Type", "application/json").Want(413, "body_too_large")
}

func TestLabQueriesAreStrict(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	h.get("/ns/a/lab").Want(200)
	seen := 0
	for _, o := range h.get("/api").Want(200).List("operations") {
		path, within := strings.CutPrefix(o["href"].(string), h.base+"/lab")
		if !within || o["method"] == "GET" && path == "/requests" {
			continue
		}
		seen++
		h.do(o["method"].(string), "/lab"+strings.NewReplacer("{sid}", "s", "{id}", "f1").Replace(path)+"?usr=demo", nil).WantField("usr")
	}
	h.get("/lab/requests?usr=demo").WantField("usr")
	h.get("/lab/requests?state=open").Want(422, "invalid_field")
	h.get("/lab/requests?status=fine").Want(422, "invalid_field")
	h.get("/lab/requests?status=200&status=401").Want(422, "invalid_field")
	h.get("/lab/requests?operation=%zz").Want(422, "invalid_field")
	if seen < 15 {
		t.Errorf("only %d operations of the lab are listed", seen)
	}
	h.delete("/ns/a?force=true").Want(422, "invalid_field")
	h.delete("/ns/a").Want(204)
	h.delete("/lab?x=1").Want(405)
}
