// The clock, the sessions, the refresh policy, reset and snapshots.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestAdvancesAtOnceAddUp(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { h.clock(object{"advance": "1m"}) })
	}
	all.Wait()
	if got := h.get("/lab").JSON()["time"].(object)["offset_ms"]; got != 50.0*60_000 {
		t.Errorf("50 minutes are %v ms", got)
	}
}

func TestEverythingFollowsTheClock(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.clock(object{"at": "2030-01-01T00:00:00Z", "frozen": true})
	pair := h.login("demo")
	if iat := payload(t, pair.Access)["iat"]; iat != 1893456000.0 {
		t.Errorf("iat %v", iat)
	}
	h.me(pair.Access).Want(200)
	h.clock(object{"advance": "15m"})
	h.me(pair.Access).Want(401, "token_expired")
	pair = h.refresh(pair.Refresh).Want(200).Pair()
	h.me(pair.Access).Want(200)
	h.clock(object{"advance": "168h"})
	h.refresh(pair.Refresh).Want(401, "token_expired")

	h.post(runPath, nil).Want(200)
	for _, entry := range h.entries() {
		if entry["last_modified"] != "2030-01-08T00:15:00.000Z" {
			t.Errorf("last_modified %v", entry["last_modified"])
		}
	}
	if got := h.get(runPath).Text("started_at"); got != "2030-01-08T00:15:00.000Z" {
		t.Errorf("the run started at %s", got)
	}

	for range 10 {
		h.post(loginPath, object{"username": "demo", "password": "wrong"}).Want(401)
	}
	h.post(loginPath, right("demo")).Want(429, "too_many_attempts")
	h.clock(object{"advance": "1m"})
	h.login("demo")
}

func TestTheLabShowsItsState(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab")
	h.login("demo")
	h.post("/lab/faults", object{"operation": "me", "status": 500}).Want(201)
	h.policy(object{"reuse": "grace", "grace": "90s"})
	h.space("a").get("/lab").Want(200)
	got := h.get("/lab").Want(200).JSON()
	counts, policy := fmt.Sprint(got["counts"]), fmt.Sprint(got["policy"])
	if counts != "map[faults:1 namespaces:1 requests:1 sessions:1 users:3]" || policy != "map[grace:1m30s reuse:grace]" {
		t.Error(counts, policy)
	}
	if len(got["faults"].([]any)) != 1 || got["namespace"] != nil || got["base_url"] != h.base {
		t.Error(got)
	}
}

func TestResetGoesBackToTheStart(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	pair := h.login("demo")
	h.post(registerPath, object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).Want(201)
	for range 10 {
		h.post(loginPath, object{"username": "demo", "password": "wrong"}).Want(401)
	}
	h.post(runPath, nil).Want(200)
	h.post("/lab/faults", object{"operation": "*", "status": 500, "times": 0}).Want(201)
	h.policy(object{"reuse": "allow"})
	h.clock(object{"advance": "1h", "frozen": true})

	h.post("/lab/reset", nil).Want(204)
	got := h.get("/lab").JSON()
	if c := fmt.Sprint(got["counts"]); c != "map[faults:0 requests:0 sessions:0 users:3]" {
		t.Error(c)
	}
	if got["time"].(object)["offset_ms"] != 0.0 || got["time"].(object)["frozen"] != false || got["policy"].(object)["reuse"] != "strict" {
		t.Error(got)
	}
	h.me(pair.Access).Want(401, "token_revoked")
	h.get(listingPath+"/impact").Want(404, "file_unavailable")
	h.get(runPath).Want(404, "no_run")
	h.login("demo") // nobody remembers the failures
	h.post(registerPath, object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).Want(201)
	if first := h.requests()[0]; first["seq"] != 1.0 {
		t.Errorf("the record goes on at %v", first["seq"])
	}
}

func TestExpireEndsTokensAndNotTheSession(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.clock(object{"frozen": true})
	first := h.login("demo")
	id := h.sessions()[0]["id"].(string)
	second := h.refresh(first.Refresh).Want(200).Pair()

	got := h.post("/lab/sessions/"+id+"/expire", nil).Want(200).JSON()
	if got["generation"] != 1.0 || got["access"].(object)["expired"] != true || got["refresh"].(object)["expired"] != false {
		t.Error(got)
	}
	if access := got["access"].(object); access["expiry"] != "2026-03-01T12:00:00.000Z" || got["expiry"] != "2026-03-08T12:00:00.000Z" {
		t.Error("what has expired says that it will:", got)
	}
	h.me(first.Access).Want(401, "token_expired")
	h.me(second.Access).Want(401, "token_expired")
	third := h.refresh(second.Refresh).Want(200).Pair()
	h.me(third.Access).Want(200)
	h.me(second.Access).Want(401, "token_expired")

	h.post("/lab/sessions/"+id+"/expire", object{"token": "refresh"}).Want(200)
	h.me(third.Access).Want(200)
	h.post("/lab/sessions/"+id+"/expire", nil).Want(200)
	if got := h.sessions()[0]; got["expiry"] != "2026-03-01T12:00:00.000Z" || got["refresh"].(object)["expiry"] != got["expiry"] {
		t.Error("of a session without a good token:", got)
	}
	h.refresh(second.Refresh).Want(401, "token_expired") // not reused: the session lives
	h.refresh(third.Refresh).Want(401, "token_expired")
	h.post("/lab/sessions/nobody/expire", nil).Want(404, "not_found")
}

func TestRevokeEndsOneSession(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	one, other := h.login("demo"), h.login("demo")
	id := sid(t, one.Access)
	h.post("/lab/sessions/"+id+"/revoke", nil).Want(204)
	h.me(one.Access).Want(401, "token_revoked")
	h.refresh(one.Refresh).Want(401, "token_revoked")
	h.me(other.Access).Want(200)
	h.post("/lab/sessions/"+id+"/revoke", nil).Want(404, "not_found")
}

func TestLiveSessionsAreListed(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.login("demo")
	h.advance(time.Minute)
	h.refresh(h.login("admin").Refresh).Want(200)
	got := h.sessions()
	if len(got) != 2 || got[0]["user"] != "demo" || got[1]["user"] != "admin" || got[1]["generation"] != 1.0 {
		t.Fatal(got)
	}
	if got[1]["created"] != "2026-03-01T12:01:00.000Z" || got[1]["expiry"] != "2026-03-08T12:01:00.000Z" ||
		fmt.Sprint(got[1]["access"]) != "map[expired:false expiry:2026-03-01T12:16:00.000Z]" {
		t.Error(got[1])
	}
}

func TestEachPolicyTreatsSpentTokensItsWay(t *testing.T) {
	t.Parallel()
	policy := func(t *testing.T, body object) (*hub, pair, pair) {
		h := newStillHub(t)
		h.clock(object{"frozen": true})
		h.policy(body)
		first := h.login("demo")
		return h, first, h.refresh(first.Refresh).Want(200).Pair()
	}
	t.Run("strict", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "strict"})
		h.refresh(first.Refresh).Want(401, "token_reused")
		h.me(second.Access).Want(401, "token_revoked")
	})
	t.Run("grace gives the same pair again", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "grace", "grace": "10s"})
		h.clock(object{"advance": "9999ms"})
		if again := h.refresh(first.Refresh).Want(200).Pair(); again != second {
			t.Error("another pair")
		}
		h.me(second.Access).Want(200)
		h.refresh(second.Refresh).Want(200)
		h.refresh(first.Refresh).Want(401, "token_reused") // two rotations back
	})
	t.Run("grace gives the same pair again, for a token that had stayed without rotation", func(t *testing.T) {
		h, first, second := policy(t, object{"rotation": false})
		if second.Refresh != first.Refresh {
			t.Error("rotated")
		}
		h.policy(object{"reuse": "grace", "grace": "10s", "rotation": true})
		third := h.refresh(first.Refresh).Want(200).Pair()
		if again := h.refresh(first.Refresh).Want(200).Pair(); again != third {
			t.Error("another pair")
		}
		h.me(third.Access).Want(200)
	})
	t.Run("grace ends", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "grace", "grace": "10s"})
		h.clock(object{"advance": "10s"})
		h.refresh(first.Refresh).Want(401, "token_reused")
		h.me(second.Access).Want(401, "token_revoked")
	})
	t.Run("allow", func(t *testing.T) {
		h, first, second := policy(t, object{"reuse": "allow"})
		third := h.refresh(first.Refresh).Want(200).Pair()
		if third == second {
			t.Error("the same pair")
		}
		h.me(second.Access).Want(200)
		h.me(third.Access).Want(200)
	})
}

func TestSnapshotIsPutBackExactly(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.faulty = true
	h.clock(object{"at": "2030-01-01T00:00:00Z", "frozen": true})
	h.post(registerPath, object{"username": "newcomer", "email": "n@example.com", "password": "a password"}).Want(201)
	before := h.refresh(h.login("demo").Refresh).Want(200).Pair()
	h.post(runPath, nil).Want(200)
	impact, entries := h.get(listingPath+"/impact").Want(200), fmt.Sprint(h.entries())
	h.policy(object{"reuse": "grace", "grace": "5s"})
	h.post("/lab/faults", object{"operation": "login", "status": 503, "times": 3, "skip": 1, "headers": object{"Retry-After": "2"}, "body": object{"a": []int{1}}}).Want(201)
	h.login("demo")
	taken := h.get("/lab/snapshot").Want(200)

	h.clock(object{"advance": "1h", "frozen": false})
	h.post(registerPath, object{"username": "later", "password": "a password"}).Want(201)
	after := h.refresh(before.Refresh).Want(200).Pair()
	h.post("/lab/faults", object{"operation": "*", "status": 500}).Want(201)
	h.post("/api/run-ph-barrier-phase2?high=8", nil).Want(500)
	h.post("/api/run-ph-barrier-phase2?high=8", nil).Want(200)

	h.put("/lab/snapshot", string(taken.Body), "Content-Type", "application/json").Want(204)
	if again := h.get("/lab/snapshot").Want(200); !bytes.Equal(again.Body, taken.Body) {
		t.Errorf("put back is\n%s\nof\n%s", again.Body, taken.Body)
	}
	if len(h.requests()) != 0 {
		t.Error("the record is not empty")
	}
	h.me(after.Access).Want(401, "token_revoked")
	h.me(before.Access).Want(200)
	if got := h.get(listingPath + "/impact"); !bytes.Equal(got.Body, impact.Body) || got.Header.Get("ETag") != impact.Header.Get("ETag") || fmt.Sprint(h.entries()) != entries {
		t.Error("the files are not what they were")
	}
	newcomer := object{"username": "newcomer", "password": "a password"}
	if got := h.post(loginPath, newcomer).Want(503); got.Header.Get("Retry-After") != "2" || string(got.Body) != `{"a":[1]}` {
		t.Error("the fault has become", got.Header, string(got.Body))
	}
	h.delete("/lab/faults").Want(204)
	h.post(loginPath, newcomer).Want(200)
	h.post(loginPath, object{"username": "later", "password": "a password"}).Want(401)
	h.refresh(before.Refresh).Want(200)
}

func TestSnapshotIsCheckedBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	pair := h.login("demo")
	h.post(registerPath, object{"username": "newcomer", "password": "a password"}).Want(201)
	taken := h.get("/lab/snapshot").Want(200).Body
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
		{func(s object) { s["users"].([]any)[0].(object)["id"] = `a"b` }, "users.0"},
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
		got := h.put("/lab/snapshot", s).Want(422, "invalid_field")
		if field := got.JSON()["errors"].([]any)[0].(object)["field"]; tt.field != "" && field != tt.field {
			t.Errorf("field %v, want %s: %s", field, tt.field, got.Body)
		}
	}
	h.put("/lab/snapshot", `{"z":1,"version":[[1]],"faults":[[[1]]],"time":{"frozen_at":[{"a":1}]}}`, "Content-Type", "application/json").Want(422, "invalid_field")
	h.put("/lab/snapshot", `{"version":`, "Content-Type", "application/json").Want(400, "malformed_body")
	h.put("/lab/snapshot", string(taken)+"{}", "Content-Type", "application/json").Want(400, "malformed_body")
	h.me(pair.Access).Want(200)
}

func TestSnapshotInAnotherNamespace(t *testing.T) {
	t.Parallel()
	a, b := newHub(t), newHub(t)
	a.post(registerPath, object{"username": "newcomer", "password": "a password"}).Want(201)
	newcomer := object{"username": "newcomer", "password": "a password"}
	pair := a.post(loginPath, newcomer).Want(200).Pair()
	b.do("PUT", "/lab/snapshot", string(a.get("/lab/snapshot").Body), "Content-Type", "application/json").Want(204)
	b.post(loginPath, newcomer).Want(200)
	b.me(pair.Access).Want(401, "token_malformed")
}

// A snapshot of a namespace is a fixture to keep: tokens issued before it are good in the next process, too, if the
// secret is the same.
func TestSnapshotOfANamespaceOutlivesARestart(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0), "-lab"}
	h := start(t, flags...)
	pair := h.space("a").login("demo")
	taken := h.space("a").get("/lab/snapshot").Want(200)
	h.process.stop(t)

	h = start(t, flags...)
	h.space("a").me(pair.Access).Want(401, "token_revoked")
	h.space("a").put("/lab/snapshot", string(taken.Body)).Want(204)
	h.space("a").me(pair.Access).Want(200)
	h.space("b").me(pair.Access).Want(401, "token_malformed")
}

func TestLabOfADurableHubOutlivesARestart(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0), "-lab"}
	newcomer := object{"username": "newcomer", "password": "a password"}
	h := start(t, flags...)
	h.post(registerPath, newcomer).Want(201)
	pair := h.login("demo")
	h.post("/lab/sessions/"+sid(t, pair.Access)+"/expire", nil).Want(200)
	h.process.stop(t)

	h = start(t, flags...)
	h.me(pair.Access).Want(401, "token_expired")
	pair = h.refresh(pair.Refresh).Want(200).Pair()
	taken := h.get("/lab/snapshot").Want(200)
	h.post(runPath, nil).Want(200)
	h.post("/lab/reset", nil).Want(204)
	h.process.stop(t)

	h = start(t, flags...)
	h.me(pair.Access).Want(401, "token_revoked")
	h.post(loginPath, newcomer).Want(401)
	h.get(listingPath+"/impact").Want(404, "file_unavailable")
	h.put("/lab/snapshot", string(taken.Body), jsonType...).Want(204)
	h.process.kill()

	h = start(t, flags...)
	h.me(pair.Access).Want(200)
	h.post(loginPath, newcomer).Want(200)
}
