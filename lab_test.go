package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"authhub/internal/edge"
	"authhub/internal/reply"
)

// object is a JSON object, as tests write it.
type object = map[string]any

// newTestLab returns a hub behind its lab and its edge. Hub is the root, clock the machine's clock.
func newTestLab(t testing.TB, flags ...string) *testHub {
	t.Helper()
	h, stop := openTestLab(t, newTestClock(), flags...)
	t.Cleanup(stop)
	return h
}

func openTestLab(t testing.TB, clock *testClock, flags ...string) (*testHub, func()) {
	t.Helper()
	if len(flags) == 0 {
		flags = []string{"-ephemeral"}
	}
	h, stopHub := openTestHub(t, clock, append(flags, "-lab")...)
	l := newLab(t.Context(), h.Hub)
	edge := edge.New(edge.Config{Next: l, Loopback: true, BaseHost: "hub.test"})
	h.Hub, h.handler = l.root.hub.Load(), &labFront{edge, described(t, edge), l}
	return h, sync.OnceFunc(func() { l.close(); stopHub() })
}

// labFront holds the lab's own answers against openapi.json; those of the hub's operations may be faults.
type labFront struct {
	plain, described http.Handler
	lab              *lab
}

var labPath = regexp.MustCompile(`^(/ns/[^/]+)?/lab(/|$)|^/ns/[^/]+$`)

func (f *labFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if labPath.MatchString(r.URL.Path) {
		f.described.ServeHTTP(w, r)
		return
	}
	f.plain.ServeHTTP(w, r)
}

// space is the same hub as seen from under /ns/NAME.
func (h *testHub) space(name string) *testHub {
	inner := *h
	inner.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/ns/" + name + r.URL.Path
		h.handler.ServeHTTP(w, r)
	})
	return &inner
}

// serve puts h behind a socket, for what a recorder can't show. It returns the base URL.
func (h *testHub) serve() string {
	server := httptest.NewServer(h.handler)
	h.t.Cleanup(server.Close)
	return server.URL
}

// requests returns the requests that the lab has seen.
func (h *testHub) requests(query ...string) (list []object) {
	h.t.Helper()
	for _, r := range h.get("/lab/requests" + strings.Join(query, "")).want(200).json()["requests"].([]any) {
		list = append(list, r.(object))
	}
	return list
}

func TestLabIsNotThereUnasked(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	for _, path := range []string{"/lab", "/lab/clock", "/ns/a/api/authentication/me", "/ns/a/lab"} {
		h.get(path).want(404, "not_found")
	}
	if strings.Contains(string(h.get("/api").body), "/lab") {
		t.Error("the index lists the lab")
	}
}

func TestNamespacesNeverMeet(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	a, b := h.space("a"), h.space("b")
	pair := a.login("demo")
	a.me(pair.access).want(200)
	b.me(pair.access).want(401, "token_malformed")
	h.me(pair.access).want(401, "token_malformed")

	a.post("/api/authentication/register", object{"username": "only-in-a", "password": "a password"}).want(201)
	b.post("/api/authentication/login", object{"username": "only-in-a", "password": "a password"}).want(401, "invalid_credentials")

	a.do("PUT", "/lab/clock", object{"advance": "1h"}).want(200)
	a.me(pair.access).want(401, "token_expired")
	if got := b.get("/lab").json()["time"].(object)["offset_ms"]; got != 0.0 {
		t.Errorf("the clock of b is %v ms off", got)
	}

	a.post("/lab/faults", object{"operation": "*", "status": 503}).want(201)
	b.get("/api/files/phase2").want(200)
	a.get("/api/files/phase2").want(503, "injected")
	if got := b.get("/lab/requests").json()["requests"].([]any); len(got) != 3 {
		t.Errorf("b has seen %d requests, of 3", len(got))
	}

	a.post("/api/run-ph-barrier-phase2", nil).want(200)
	a.get("/api/files/phase2/impact").want(200)
	b.get("/api/files/phase2/impact").want(404, "file_unavailable")
	h.get("/api/files/phase2/impact").want(404, "file_unavailable")
}

func TestNamespaceBases(t *testing.T) {
	t.Parallel()
	a := newTestLab(t).space("a-1_B")
	if got := a.get("/lab").str("base_url"); got != "http://hub.test/ns/a-1_B" {
		t.Error("base_url is", got)
	}
	var hrefs []string
	for _, o := range a.get("/api").json()["operations"].([]any) {
		hrefs = append(hrefs, o.(object)["method"].(string)+" "+o.(object)["href"].(string))
	}
	for _, want := range []string{"GET http://hub.test/ns/a-1_B/api", "PUT http://hub.test/ns/a-1_B/lab/clock", "DELETE http://hub.test/ns/a-1_B"} {
		if !slices.Contains(hrefs, want) {
			t.Errorf("the index has no %s", want)
		}
	}
	answer := a.post("/api/run-ph-barrier-phase2", nil, "Prefer", "respond-async").want(202)
	if got := answer.header.Get("Location"); got != "http://hub.test/ns/a-1_B/api/run-ph-barrier-phase2" {
		t.Error("Location is", got)
	}
}

func TestNamespaceNames(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	for path, status := range map[string]int{
		"/ns/" + strings.Repeat("n", 64) + "/lab": 200,
		"/ns/" + strings.Repeat("n", 65) + "/lab": 404,
		"/ns": 404, "/ns/": 404, "/ns//lab": 404, "/ns/a.b/lab": 404, "/ns/%C3%A9/lab": 404,
		"/ns/a%2Flab": 404, "/ns/%61/lab": 404, "/ns/a/../b/lab": 404, "/ns/a": 308, "/ns/a/": 200, "/ns/a/lab/": 404, "/ns/a/nothing": 404,
	} {
		if got := h.get(path); got.status != status {
			t.Errorf("%s: %d, want %d", path, got.status, status)
		}
	}
	if got := h.do("PUT", "/ns/a", nil).want(405).header.Get("Allow"); got != "DELETE, GET, HEAD" {
		t.Error("Allow of /ns/a:", got)
	}
}

func TestDeleteNamespace(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.do("DELETE", "/ns/a", nil).want(404, "not_found")
	a := h.space("a")
	pair := a.login("demo")
	a.post("/api/run-ph-barrier-phase2", nil).want(200)
	folder := h.lab(t, "a").hub.Load().output.path
	h.do("DELETE", "/ns/a", nil).want(204)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder of a deleted namespace: %v", err)
	}
	a.me(pair.access).want(401, "token_revoked") // a new one of the same name, without the sessions of the old
	a.get("/api/files/phase2/impact").want(404, "file_unavailable")
}

func TestNamespaceWithAndWithoutASlash(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.settings.labKey = "a key of the lab"

	for path, location := range map[string]string{"/ns/a": "a/", "/ns/a?x=1": "a/?x=1"} {
		if got := h.get(path).want(308); got.header.Get("Location") != location {
			t.Errorf("%s: Location %q", path, got.header.Get("Location"))
		}
	}
	key := bearerOf(h.settings.labKey)
	if got := h.get("/lab", key...).json()["counts"].(object)["namespaces"]; got != 0.0 {
		t.Errorf("a redirect has made %v namespaces", got)
	}
	h.get("/ns/a/").want(200) // the page wants no key
	h.do("DELETE", "/ns/a/", nil).want(401, "lab_key_required")
	h.do("DELETE", "/ns/a/", nil, key...).want(204)
	h.do("DELETE", "/ns/a/", nil, key...).want(404, "not_found")
}

func TestDeletedNamespacesLeaveNothingInMemory(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	use := func() weak.Pointer[bench] {
		a := h.space("a")
		a.fault(object{"operation": "login", "delay": "1ms"})
		a.login("demo")
		a.post("/lab/reset", nil).want(204)
		a.post("/api/run-ph-barrier-phase2", nil).want(200)
		gone := weak.Make(h.lab(t, "a"))
		h.do("DELETE", "/ns/a", nil).want(204)
		return gone
	}
	gone := use()
	for range 100 {
		if runtime.GC(); gone.Value() == nil {
			return
		}
	}
	t.Error("somebody still holds the bench")
}

// lab returns the bench of a namespace.
func (h *testHub) lab(t testing.TB, name string) *bench {
	t.Helper()
	b, err := h.handler.(*labFront).lab.bench(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNamespaceUnderADeletionLeavesNoFolder(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	b := h.lab(t, "a")
	h.do("DELETE", "/ns/a", nil).want(204)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/api/run-ph-barrier-phase2", strings.NewReader("time,station,ph\n"))
	r.Header.Set("Content-Type", "text/csv")
	b.hub.Load().ServeHTTP(w, r)
	if w.Code != 503 || b.hub.Load().output.path != "" {
		t.Errorf("%d, folder %q", w.Code, b.hub.Load().output.path)
	}
}

func TestClosingTheLabEndsEverything(t *testing.T) {
	t.Parallel()
	h, stop := openTestLab(t, newTestClock())
	var folders []string
	for _, name := range []string{"", "a", "b"} {
		if name != "" {
			h.space(name).post("/api/run-ph-barrier-phase2", nil).want(200)
		} else {
			h.post("/api/run-ph-barrier-phase2", nil).want(200)
		}
		folders = append(folders, h.lab(t, name).hub.Load().output.path)
	}
	stop()
	for _, folder := range folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	h.get("/ns/c/api").want(503, "busy")
}

func TestLabOfAProcess(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "-ephemeral", "-lab", "-log", "off")
	get := func(path string) string { return string(p.call(t, 200, "GET", path, "", "", "").body) }
	if !strings.Contains(get("/ns/a/lab"), p.base+"/ns/a") || !strings.Contains(get("/api"), p.base+"/lab/report") {
		t.Error("the addresses are not those of this hub")
	}
	waiting := make(chan int)
	go func() {
		answer, err := http.Post(p.base+"/ns/a/lab/expect", "application/json", strings.NewReader(`{"operation":"me","within":"30s"}`))
		if err != nil {
			t.Error(err)
			close(waiting)
			return
		}
		answer.Body.Close()
		waiting <- answer.StatusCode
	}()
	p.call(t, 200, "POST", "/ns/a/lab/expect", "application/json", `{"count":{"exactly":0},"within":"100ms"}`, "") // time for the other to arrive
	start := time.Now()
	if status := p.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if status := <-waiting; status != 503 || time.Since(start) > shutdownTimeout {
		t.Errorf("whoever waited got %d after %v", status, time.Since(start))
	}
}

func TestLabBeyondLoopbackWantsAKey(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	status := cli(t.Context(), []string{"-addr", "0.0.0.0:0", "-ephemeral", "-lab"}, strings.NewReader(""), &stdout, &stderr)
	if status != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "AUTHHUB_LAB_KEY") {
		t.Errorf("exit status %d, %q, %q", status, &stdout, &stderr)
	}
}

func TestLabBeyondLoopbackWarnsOfAKeyThatCanBeGuessed(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{strings.Repeat(" ", 20): false, "short": true, "fifteen bytes..": true, "sixteen bytes...": false} {
		o, err := parseFlags([]string{"-addr", "0.0.0.0:0", "-ephemeral", "-lab"})
		if err != nil {
			t.Fatal(err)
		}
		o.labKey = key
		var stderr bytes.Buffer
		ended, end := context.WithCancel(t.Context())
		end()
		err = serve(ended, o, strings.NewReader(""), io.Discard, &stderr)
		refused := strings.TrimSpace(key) == ""
		if warned := strings.Contains(stderr.String(), "guessed"); warned != want || errors.Is(err, errMisuse) != refused || err != nil && !refused {
			t.Errorf("key %q: %v, %s", key, err, &stderr)
		}
	}
}

func TestOneNamespaceForAllWhoCreateIt(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	benches := make([]*bench, 16)
	var all sync.WaitGroup
	for i := range benches {
		all.Go(func() { benches[i] = h.lab(t, "same") })
	}
	all.Wait()
	if len(slices.Compact(benches)) != 1 {
		t.Error("two got two namespaces of one name")
	}
}

func TestNamespaceLimit(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	for i := range maxNamespaces {
		h.lab(t, fmt.Sprint("n", i))
	}
	h.get("/ns/one-more/lab").want(507, "namespace_limit")
	h.get("/ns/n0/lab").want(200)
	h.do("DELETE", "/ns/n7", nil).want(204)
	h.get("/ns/one-more/lab").want(200)
}

func TestLabKey(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.Hub.settings.labKey = "a key of the lab"
	key := bearerOf("a key of the lab")
	for _, path := range []string{"/lab", "/lab/nothing", "/ns/a/lab", "/ns/a/lab/report"} {
		h.get(path).want(401, "lab_key_required")
		h.get(path, bearerOf("another key")...).want(401, "lab_key_required")
	}
	h.do("DELETE", "/ns/a", nil).want(401, "lab_key_required")
	if got := h.get("/lab", key...).want(200).json()["counts"].(object)["namespaces"]; got != 0.0 {
		t.Errorf("requests without the key have made %v namespaces", got)
	}
	h.space("a").login("demo")
	h.do("DELETE", "/ns/a", nil, key...).want(204)
}

func TestLabMethods(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
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
		if got.status != tt.status || got.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, Allow %q", tt.method, tt.path, got.status, got.header.Get("Allow"))
		}
	}
}

func TestLabBodiesAreStrict(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
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
		fields := got.json()["errors"]
		if got.status != tt.status || tt.field != "" && (fields == nil || fields.([]any)[0].(object)["field"] != tt.field) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, got.status, got.body)
		}
	}
	h.do("PUT", "/lab/clock", "frozen=true", "Content-Type", "application/x-www-form-urlencoded").want(415, "unsupported_media_type")
	h.do("PUT", "/lab/clock", `{"frozen":true}`, "Content-Encoding", "gzip").want(415, "unsupported_media_type")
	h.do("PUT", "/lab/clock", `{"frozen":true}`).want(200)
	h.do("PUT", "/lab/clock", `{"advance":"`+strings.Repeat(" ", reply.MaxBody)+`"}`, "Content-Type", "application/json").want(413, "body_too_large")
	h.get("/lab/requests?state=open").want(422, "invalid_field")
	h.get("/lab/requests?status=fine").want(422, "invalid_field")
	h.get("/lab/requests?status=200&status=401").want(422, "invalid_field")
	h.get("/lab/requests?operation=%zz").want(422, "invalid_field")
}

func TestLabQueriesAreStrict(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.get("/ns/a/lab").want(200)
	for _, pattern := range patternsOf(labTable()) {
		method, path, _ := strings.Cut(strings.NewReplacer("{sid}", "s", "{id}", "f1").Replace(pattern), " ")
		got := h.do(method, path+"?usr=demo", nil).want(422, "invalid_field")
		if field := got.json()["errors"].([]any)[0].(object)["field"]; field != "usr" {
			t.Errorf("%s: field %v", pattern, field)
		}
	}
	h.do("DELETE", "/ns/a?force=true", nil).want(422, "invalid_field")
	h.do("DELETE", "/ns/a", nil).want(204)
	h.do("DELETE", "/lab?x=1", nil).want(405)
}
