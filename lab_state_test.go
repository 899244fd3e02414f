package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clockTo turns the lab's clock.
func (h *testHub) clockTo(body object) *answer {
	h.t.Helper()
	return h.do("PUT", "/lab/clock", body).want(200)
}

// sessions returns the live sessions as the lab lists them.
func (h *testHub) sessions() (list []object) {
	h.t.Helper()
	for _, s := range h.get("/lab/sessions").want(200).json()["sessions"].([]any) {
		list = append(list, s.(object))
	}
	return list
}

func TestClock(t *testing.T) {
	t.Parallel()
	h := newTestLab(t) // its machine's clock stands at 2026-03-01T12:00:00Z
	for _, tt := range []struct {
		body   object
		now    string
		frozen bool
	}{
		{object{"advance": "16m"}, "2026-03-01T12:16:00.000Z", false},
		{object{"advance": "-1h"}, "2026-03-01T11:16:00.000Z", false},
		{object{"at": "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00.000Z", false},
		{object{"frozen": true}, "2026-01-01T00:00:00.000Z", true},
		{object{"advance": "1s"}, "2026-01-01T00:00:01.000Z", true},
		{object{"at": "2030-05-01T02:00:00.25+02:00"}, "2030-05-01T00:00:00.250Z", true},
		{object{"frozen": false, "advance": "750ms"}, "2030-05-01T00:00:01.000Z", false},
	} {
		got := h.clockTo(tt.body).json()
		if got["now"] != tt.now || got["frozen"] != tt.frozen || got["real"] != "2026-03-01T12:00:00.000Z" {
			t.Errorf("%v: %v", tt.body, got)
		}
	}
	h.clock.advance(time.Minute)
	if got := h.get("/lab").json()["time"].(object)["now"]; got != "2030-05-01T00:01:01.000Z" {
		t.Error("a minute later it is", got)
	}
	h.clockTo(object{"frozen": true})
	h.clock.advance(time.Minute)
	if got := h.get("/lab").json()["time"].(object)["now"]; got != "2030-05-01T00:01:01.000Z" {
		t.Error("frozen for a minute, it is", got)
	}
}

func TestAdvancesAtOnceAddUp(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { h.clockTo(object{"advance": "1m"}) })
	}
	all.Wait()
	if got := h.get("/lab").json()["time"].(object)["offset_ms"]; got != 50.0*60_000 {
		t.Errorf("50 minutes are %v ms", got)
	}
}

func TestEverythingFollowsTheClock(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.clockTo(object{"at": "2030-01-01T00:00:00Z", "frozen": true})
	pair := h.login("demo")
	if iat := payload(t, pair.access)["iat"]; iat != 1893456000.0 {
		t.Errorf("iat %v", iat)
	}
	h.me(pair.access).want(200)
	h.clockTo(object{"advance": "15m"})
	h.me(pair.access).want(401, "token_expired")
	pair = h.refreshWith(pair.refresh).want(200).pair()
	h.me(pair.access).want(200)
	h.clockTo(object{"advance": "168h"})
	h.refreshWith(pair.refresh).want(401, "token_expired")

	h.post("/api/run-ph-barrier-phase2", nil).want(200)
	for _, entry := range h.entries() {
		if entry["last_modified"] != "2030-01-08T00:15:00.000Z" {
			t.Errorf("last_modified %v", entry["last_modified"])
		}
	}
	if got := h.get("/api/run-ph-barrier-phase2").str("started_at"); got != "2030-01-08T00:15:00.000Z" {
		t.Errorf("the run started at %s", got)
	}

	for range maxFailures {
		h.post("/api/authentication/login", object{"username": "demo", "password": "wrong"}).want(401)
	}
	h.post("/api/authentication/login", object{"username": "demo", "password": "demo-password"}).want(429, "too_many_attempts")
	h.clockTo(object{"advance": "1m"})
	h.login("demo")
}

func TestSessionsAreSweptByTheClock(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.login("demo")
	h.clockTo(object{"advance": "168h"})
	if got := h.sessions(); len(got) != 0 {
		t.Errorf("%d sessions live", len(got))
	}
	h.login("demo")
	if _, sessions := h.store.contents(); len(sessions) != 1 {
		t.Errorf("the store holds %d sessions", len(sessions))
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.login("demo")
	h.post("/lab/faults", object{"operation": "me", "status": 500}).want(201)
	h.do("PUT", "/lab/refresh-policy", object{"reuse": "grace", "grace": "90s"}).want(200)
	h.space("a").get("/lab").want(200)
	got := h.get("/lab").want(200).json()
	counts, policy := fmt.Sprint(got["counts"]), fmt.Sprint(got["policy"])
	if counts != "map[faults:1 namespaces:1 requests:1 sessions:1 users:3]" || policy != "map[grace:1m30s reuse:grace]" {
		t.Error(counts, policy)
	}
	if len(got["faults"].([]any)) != 1 || got["namespace"] != nil || got["base_url"] != "http://hub.test" {
		t.Error(got)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	pair := h.login("demo")
	h.post("/api/authentication/register", object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).want(201)
	for range maxFailures {
		h.post("/api/authentication/login", object{"username": "demo", "password": "wrong"}).want(401)
	}
	h.post("/api/run-ph-barrier-phase2", nil).want(200)
	h.post("/lab/faults", object{"operation": "*", "status": 500, "times": 0}).want(201)
	h.do("PUT", "/lab/refresh-policy", object{"reuse": "allow"}).want(200)
	h.clockTo(object{"advance": "1h", "frozen": true})

	h.post("/lab/reset", nil).want(204)
	got := h.get("/lab").json()
	if c := fmt.Sprint(got["counts"]); c != "map[faults:0 namespaces:0 requests:0 sessions:0 users:3]" {
		t.Error(c)
	}
	if got["time"].(object)["offset_ms"] != 0.0 || got["time"].(object)["frozen"] != false || got["policy"].(object)["reuse"] != "strict" {
		t.Error(got)
	}
	h.me(pair.access).want(401, "token_revoked")
	h.get("/api/files/phase2/impact").want(404, "file_unavailable")
	h.get("/api/run-ph-barrier-phase2").want(404, "no_run")
	h.login("demo") // nobody remembers the failures
	h.post("/api/authentication/register", object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).want(201)
	if first := h.requests()[0]; first["seq"] != 1.0 {
		t.Errorf("the record goes on at %v", first["seq"])
	}
}

func TestExpireSession(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.clockTo(object{"frozen": true})
	first := h.login("demo")
	id := h.sessions()[0]["id"].(string)
	second := h.refreshWith(first.refresh).want(200).pair()

	got := h.post("/lab/sessions/"+id+"/expire", nil).want(200).json()
	if got["generation"] != 1.0 || got["access"].(object)["expired"] != true || got["refresh"].(object)["expired"] != false {
		t.Error(got)
	}
	h.clock.advance(time.Minute) // the hub's stands
	if access := got["access"].(object); access["expiry"] != "2026-03-01T12:00:00.000Z" || got["expiry"] != "2026-03-08T12:00:00.000Z" {
		t.Error("what has expired says that it will:", got)
	}
	h.me(first.access).want(401, "token_expired")
	h.me(second.access).want(401, "token_expired")
	third := h.refreshWith(second.refresh).want(200).pair()
	h.me(third.access).want(200)
	h.me(second.access).want(401, "token_expired")

	h.post("/lab/sessions/"+id+"/expire", object{"token": "refresh"}).want(200)
	h.me(third.access).want(200)
	h.post("/lab/sessions/"+id+"/expire", nil).want(200)
	if got := h.sessions()[0]; got["expiry"] != "2026-03-01T12:00:00.000Z" || got["refresh"].(object)["expiry"] != got["expiry"] {
		t.Error("of a session without a good token:", got)
	}
	h.refreshWith(second.refresh).want(401, "token_expired") // not reused: the session lives
	h.refreshWith(third.refresh).want(401, "token_expired")
	h.post("/lab/sessions/nobody/expire", nil).want(404, "not_found")
}

func TestRevokeSession(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	one, other := h.login("demo"), h.login("demo")
	id := payload(t, one.access)["sid"].(string)
	h.post("/lab/sessions/"+id+"/revoke", nil).want(204)
	h.me(one.access).want(401, "token_revoked")
	h.refreshWith(one.refresh).want(401, "token_revoked")
	h.me(other.access).want(200)
	h.post("/lab/sessions/"+id+"/revoke", nil).want(404, "not_found")
}

func TestSessionList(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.login("demo")
	h.clock.advance(time.Minute)
	h.refreshWith(h.login("admin").refresh).want(200)
	got := h.sessions()
	if len(got) != 2 || got[0]["user"] != "demo" || got[1]["user"] != "admin" || got[1]["generation"] != 1.0 {
		t.Fatal(got)
	}
	if got[1]["created"] != "2026-03-01T12:01:00.000Z" || got[1]["expiry"] != "2026-03-08T12:01:00.000Z" ||
		fmt.Sprint(got[1]["access"]) != "map[expired:false expiry:2026-03-01T12:16:00.000Z]" {
		t.Error(got[1])
	}
}

func TestRefreshPolicies(t *testing.T) {
	t.Parallel()
	policy := func(t *testing.T, body object) (*testHub, pair, pair) {
		h := newTestLab(t)
		h.clockTo(object{"frozen": true})
		h.do("PUT", "/lab/refresh-policy", body).want(200)
		first := h.login("demo")
		return h, first, h.refreshWith(first.refresh).want(200).pair()
	}
	t.Run("strict", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "strict"})
		h.refreshWith(first.refresh).want(401, "token_reused")
		h.me(second.access).want(401, "token_revoked")
	})
	t.Run("grace gives the same pair again", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "grace", "grace": "10s"})
		h.clockTo(object{"advance": "9999ms"})
		if again := h.refreshWith(first.refresh).want(200).pair(); again != second {
			t.Error("another pair")
		}
		h.me(second.access).want(200)
		h.refreshWith(second.refresh).want(200)
		h.refreshWith(first.refresh).want(401, "token_reused") // two rotations back
	})
	t.Run("grace ends", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "grace", "grace": "10s"})
		h.clockTo(object{"advance": "10s"})
		h.refreshWith(first.refresh).want(401, "token_reused")
		h.me(second.access).want(401, "token_revoked")
	})
	t.Run("allow", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "allow"})
		third := h.refreshWith(first.refresh).want(200).pair()
		if third == second {
			t.Error("the same pair")
		}
		h.me(second.access).want(200)
		h.me(third.access).want(200)
	})
}

func TestSnapshotIsPutBackExactly(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.clockTo(object{"at": "2030-01-01T00:00:00Z", "frozen": true})
	h.post("/api/authentication/register", object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).want(201)
	before := h.refreshWith(h.login("demo").refresh).want(200).pair()
	h.post("/api/run-ph-barrier-phase2", nil).want(200)
	impact, entries := h.get("/api/files/phase2/impact").want(200), fmt.Sprint(h.entries())
	h.do("PUT", "/lab/refresh-policy", object{"reuse": "grace", "grace": "5s"}).want(200)
	h.post("/lab/faults", object{"operation": "login", "status": 503, "times": 3, "skip": 1, "headers": object{"Retry-After": "2"}, "body": object{"a": []int{1}}}).want(201)
	h.login("demo")
	taken := h.get("/lab/snapshot").want(200)

	h.clockTo(object{"advance": "1h", "frozen": false})
	h.post("/api/authentication/register", object{"username": "later", "password": "a password"}).want(201)
	after := h.refreshWith(before.refresh).want(200).pair()
	h.post("/lab/faults", object{"operation": "*", "status": 500}).want(201)
	h.post("/api/run-ph-barrier-phase2?high=8", nil).want(500)
	h.post("/api/run-ph-barrier-phase2?high=8", nil).want(200)

	h.do("PUT", "/lab/snapshot", string(taken.body), "Content-Type", "application/json").want(204)
	if again := h.get("/lab/snapshot").want(200); !bytes.Equal(again.body, taken.body) {
		t.Errorf("put back is\n%s\nof\n%s", again.body, taken.body)
	}
	if len(h.requests()) != 0 {
		t.Error("the record is not empty")
	}
	h.me(after.access).want(401, "token_revoked")
	h.me(before.access).want(200)
	if got := h.get("/api/files/phase2/impact"); !bytes.Equal(got.body, impact.body) || got.header.Get("ETag") != impact.header.Get("ETag") || fmt.Sprint(h.entries()) != entries {
		t.Error("the files are not what they were")
	}
	newcomer := object{"username": "newcomer", "password": "a password"}
	if got := h.post("/api/authentication/login", newcomer).want(503); got.header.Get("Retry-After") != "2" || string(got.body) != `{"a":[1]}` {
		t.Error("the fault has become", got.header, string(got.body))
	}
	h.do("DELETE", "/lab/faults", nil).want(204)
	h.post("/api/authentication/login", newcomer).want(200)
	h.post("/api/authentication/login", object{"username": "later", "password": "a password"}).want(401)
	h.refreshWith(before.refresh).want(200)
}

func TestSnapshotIsCheckedBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	pair := h.login("demo")
	h.post("/api/authentication/register", object{"username": "newcomer", "password": "a password"}).want(201)
	taken := h.get("/lab/snapshot").want(200).body
	for _, tt := range []struct {
		change func(s object)
		field  string
	}{
		{func(s object) { s["version"] = 2 }, "version"},
		{func(s object) { s["extra"] = 1 }, "extra"},
		{func(s object) { s["users"] = "all" }, "users"},
		{func(s object) { s["users"].([]any)[0].(object)["nick"] = "n" }, "nick"},
		{func(s object) { s["sessions"].([]any)[1].(object)["username"] = "n" }, "username"},
		{func(s object) { s["policy"].(object)["id"] = "n" }, "id"},
		{func(s object) { s["time"].(object)["offset"] = 1 }, "offset"},
		{func(s object) { s["files"] = object{"readings": ""} }, "readings"},
		{func(s object) { s["time"] = object{"offset_ms": 1e15} }, "time.offset_ms"},
		{func(s object) { s["time"] = object{"frozen_at": "0001-01-01T00:00:00Z"} }, "time.frozen_at"},
		{func(s object) { s["policy"] = object{"reuse": "grace"} }, "policy.grace"},
		{func(s object) { s["faults"] = []object{{"operation": "me"}} }, "faults.0.status"},
		{func(s object) { s["faults"] = []object{{"operation": "me", "status": 500, "odd": 1}} }, "faults.0.odd"},
		{func(s object) { s["users"].([]any)[0].(object)["username"] = "DEMO" }, "users.0"},
		{func(s object) { s["users"].([]any)[0].(object)["id"] = "user-demo" }, "users.0"},
		{func(s object) { s["users"].([]any)[0].(object)["hash"] = "secret" }, "users.0"},
		{func(s object) { s["users"].([]any)[0].(object)["role"] = "root" }, "users.0"},
		{func(s object) { s["sessions"].([]any)[0].(object)["user"] = "nobody" }, "sessions.0"},
		{func(s object) { s["sessions"].([]any)[0].(object)["id"] = `a"b` }, "sessions.0"},
		{func(s object) { s["sessions"].([]any)[0].(object)["gen"] = -1 }, "sessions.0"},
		{func(s object) { s["sessions"].([]any)[0].(object)["issued"] = 1e17 }, "sessions.0"},
		{func(s object) { s["sessions"].([]any)[0].(object)["access_ttl"] = 0 }, "sessions.0"},
		{func(s object) { s["sessions"] = append(s["sessions"].([]any), s["sessions"].([]any)[0]) }, "sessions.2"},
		{func(s object) { s["files"] = object{"modified": "2300-01-01T00:00:00Z"} }, "files.modified"},
		{func(s object) { s["files"] = object{"modified": 5} }, ""},
	} {
		var s object
		json.Unmarshal(taken, &s)
		tt.change(s)
		got := h.do("PUT", "/lab/snapshot", s).want(422, "invalid_field")
		if field := got.json()["errors"].([]any)[0].(object)["field"]; tt.field != "" && field != tt.field {
			t.Errorf("field %v, want %s: %s", field, tt.field, got.body)
		}
	}
	h.do("PUT", "/lab/snapshot", `{"z":1,"version":[[1]],"faults":[[[1]]],"time":{"frozen_at":[{"a":1}]}}`, "Content-Type", "application/json").want(422, "invalid_field")
	h.do("PUT", "/lab/snapshot", `{"version":`, "Content-Type", "application/json").want(400, "malformed_body")
	h.do("PUT", "/lab/snapshot", string(taken)+"{}", "Content-Type", "application/json").want(400, "malformed_body")
	h.me(pair.access).want(200)
}

func TestSnapshotInAnotherNamespace(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	a, b := h.space("a"), h.space("b")
	a.post("/api/authentication/register", object{"username": "newcomer", "password": "a password"}).want(201)
	newcomer := object{"username": "newcomer", "password": "a password"}
	pair := a.post("/api/authentication/login", newcomer).want(200).pair()
	b.do("PUT", "/lab/snapshot", string(a.get("/lab/snapshot").body), "Content-Type", "application/json").want(204)
	b.post("/api/authentication/login", newcomer).want(200)
	b.me(pair.access).want(401, "token_malformed")
}

// A snapshot of a namespace is a fixture to keep: tokens issued before it are good in the next process, too, if the
// secret is the same.
func TestSnapshotOfANamespaceOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newTestClock()
	h, stop := openTestLab(t, clock, "-dir", dir)
	pair := h.space("a").login("demo")
	taken := h.space("a").get("/lab/snapshot").want(200)
	stop()

	h, stop = openTestLab(t, clock, "-dir", dir)
	defer stop()
	h.space("a").me(pair.access).want(401, "token_revoked")
	h.space("a").do("PUT", "/lab/snapshot", string(taken.body)).want(204)
	h.space("a").me(pair.access).want(200)
	h.space("b").me(pair.access).want(401, "token_malformed")
}

func TestLabOfADurableHubOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newTestClock()
	restart := func() (*testHub, func()) { return openTestLab(t, clock, "-dir", dir) }

	h, stop := restart()
	h.hasher.rounds = ephemeralRounds
	newcomer := object{"username": "newcomer", "password": "a password"}
	h.post("/api/authentication/register", newcomer).want(201)
	pair := h.login("demo")
	h.post("/lab/sessions/"+payload(t, pair.access)["sid"].(string)+"/expire", nil).want(200)
	stop()

	h, stop = restart()
	h.me(pair.access).want(401, "token_expired")
	pair = h.refreshWith(pair.refresh).want(200).pair()
	taken := h.get("/lab/snapshot").want(200)
	h.post("/api/run-ph-barrier-phase2", nil).want(200)
	h.post("/lab/reset", nil).want(204)
	stop()

	h, stop = restart()
	h.me(pair.access).want(401, "token_revoked")
	h.post("/api/authentication/login", newcomer).want(401)
	h.get("/api/files/phase2/impact").want(404, "file_unavailable")
	h.do("PUT", "/lab/snapshot", string(taken.body), "Content-Type", "application/json").want(204)
	stop()

	h, stop = restart()
	defer stop()
	h.me(pair.access).want(200)
	h.post("/api/authentication/login", newcomer).want(200)
}

func TestResetEndsARun(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	held := holdRuns(h)
	reset := make(chan struct{})
	go func() {
		defer close(reset)
		h.post("/lab/reset", nil).want(204)
	}()
	<-held.runs.ctx.Done()
	held.release()
	<-reset
	h.get("/api/run-ph-barrier-phase2").want(404, "no_run")
	h.get("/api/files/phase2/impact").want(404, "file_unavailable")
	h.post("/api/run-ph-barrier-phase2", nil).want(200)
}

// Whoever came before a reset does nothing after it, wherever the two meet.
func TestResetRefusesWhoIsUnderWay(t *testing.T) {
	t.Parallel()
	snapshot := func(h *testHub) *answer {
		return h.do("PUT", "/lab/snapshot", string(h.get("/lab/snapshot").body), "Content-Type", "application/json")
	}
	for name, tt := range map[string]struct {
		order object
		put   func(h *testHub) *answer
	}{
		"delayed":             {object{"operation": "login", "delay": "1m"}, func(h *testHub) *answer { return h.post("/lab/reset", nil) }},
		"held":                {object{"operation": "login", "hold": 2}, func(h *testHub) *answer { return h.post("/lab/reset", nil) }},
		"before an answer":    {object{"operation": "login", "delay": "1m", "status": 200}, func(h *testHub) *answer { return h.post("/lab/reset", nil) }},
		"delayed, snapshot":   {object{"operation": "login", "delay": "1m"}, snapshot},
		"held, on a snapshot": {object{"operation": "login", "hold": 2}, snapshot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTestLab(t)
				h.fault(tt.order)
				late := make(chan *answer)
				go func() {
					late <- h.post("/api/authentication/login", object{"username": "demo", "password": "demo-password"})
				}()
				synctest.Wait()
				start := time.Now()
				tt.put(h).want(204)
				got := (<-late).want(503, "busy")
				if !strings.Contains(got.str("detail"), "reset") || time.Since(start) != 0 {
					t.Errorf("%s, after %v", got.body, time.Since(start))
				}
				if len(h.sessions()) != 0 || len(h.requests()) != 0 {
					t.Errorf("the new state has %v and %v", h.sessions(), h.requests())
				}
			})
		})
	}
}

func TestResetRefusesAnOldHubsChanges(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"-dir", t.TempDir()}} {
		h := newTestLab(t, flags...)
		b := h.lab(t, "")
		r := httptest.NewRequest("POST", "/api/run-ph-barrier-phase2", nil)
		hub, served, _, leave := b.arrive(r, &seenRequest{operation: "login"}, "")
		h.post("/lab/reset", nil).want(204)
		owner := hub.store.userNamed("demo")
		err := hub.store.startSession(served.Context(), hub.newSession(owner, hub.now(), time.Minute, time.Minute))
		leave()
		if !errors.Is(err, errReplaced) || len(h.sessions()) != 0 || len(b.underWay) != 0 {
			t.Errorf("%v, %d sessions, %d under way", err, len(h.sessions()), len(b.underWay))
		}
	}
}
