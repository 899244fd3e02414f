// The record of requests, what is expected of it, and tokens to order.

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

func TestTheRecordShowsEachRequest(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	sid := h.visit()
	h.wantRecorded(sid)

	first := h.requests()[0]
	if first["at"] != "2026-03-01T12:00:00.000Z" || first["path"] != loginPath || first["duration_ms"] == nil {
		t.Error(first)
	}
	for filter, n := range map[string]int{"?operation=me": 5, "?user=demo": 6, "?user=user-demo": 6, "?user=NEWCOMER": 1, "?session=" + sid: 6,
		"?status=401": 5, "?after=11": 4, "?operation=other": 4, "?operation=me&status=200": 1, "?code=token_missing": 1, "?code=nosuch": 0, "?user=nobody": 0} {
		if got := len(h.requests(filter)); got != n {
			t.Errorf("%s: %d requests, want %d", filter, got, n)
		}
	}
	h.delete("/lab/requests").Want(204)
	h.get("/api").Want(200)
	if got := h.requests(); len(got) != 1 || got[0]["seq"] != 16.0 {
		t.Error(got)
	}
}

// visit sends requests of every kind and returns the session of demo.
func (h *hub) visit() (session string) {
	h.t.Helper()
	pair := h.login("demo")
	h.me(pair.Access).Want(200)
	h.me("undefined").Want(401)
	h.get(mePath).Want(401, "token_missing")
	h.me(pair.Refresh).Want(401, "token_wrong_type")
	next := h.refresh(pair.Refresh).Want(200).Pair()
	h.refresh(pair.Refresh).Want(401, "token_reused")
	h.me(next.Access).Want(401, "token_revoked")
	h.post(registerPath, object{"username": "newcomer", "password": "a password"}).Want(201)
	h.get(loginPath).Want(405)
	h.get(listingPath + "/impact").Want(404)
	h.post(runPath, nil).Want(200)
	h.get("/api/nothing").Want(404)
	h.get("/healthz").Want(200)
	h.get("/lab").Want(200)
	h.get("/").Want(200)
	h.get("/web/style.css")
	h.get("/openapi.json").Want(200)
	h.post("/authentication/login", object{"username": "demo"}).Want(404) // a wrong base address
	h.get("/?access_token=" + next.Access)
	return sid(h.t, pair.Access)
}

// wantRecorded holds the record against what visit has sent.
func (h *hub) wantRecorded(sid string) {
	h.t.Helper()
	var lines []string
	var newcomer string
	for _, r := range h.requests() {
		token := "-"
		if tk, ok := r["token"].(object); ok {
			token = fmt.Sprintf("%v/%v/%v", tk["kind"], tk["generation"], tk["state"])
		}
		if r["user"] == "newcomer" {
			newcomer = r["session"].(string)
		}
		who := strings.NewReplacer(sid, "S", "<nil>", "-").Replace(fmt.Sprint(r["user"], " ", r["session"]))
		lines = append(lines, strings.ReplaceAll(fmt.Sprintf("%v %v %v %v %v %v %s", r["seq"], r["operation"], r["method"], r["status"], r["code"], who, token), "<nil>", "-"))
	}
	want := strings.ReplaceAll(`1 login POST 200 - demo S -
2 me GET 200 - demo S access/0/valid
3 me GET 401 token_malformed - - -/-/malformed
4 me GET 401 token_missing - - -
5 me GET 401 token_wrong_type demo S refresh/0/wrong_type
6 refresh POST 200 - demo S refresh/0/valid
7 refresh POST 401 token_reused demo S refresh/0/spent
8 me GET 401 token_revoked demo S access/1/revoked
9 register POST 201 - newcomer N -
10 other GET 405 method_not_allowed - - -
11 file GET 404 file_unavailable - - -
12 run POST 200 - - - -
13 other GET 404 not_found - - -
14 other POST 404 not_found - - -
15 other GET 200 - - - -`, "N", newcomer)
	if got := strings.Join(lines, "\n"); got != want {
		h.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheRecordTellsTheStatesOfTokens(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for _, defect := range []string{"none", "expired", "not_yet_valid", "wrong_key", "alg_none", "wrong_type", "truncated", "tampered", "revoked"} {
		got := h.order(object{"user": "demo", "defect": defect})
		h.me(got.Text("token"))
	}
	var states []string
	for _, r := range h.requests() {
		states = append(states, r["token"].(object)["state"].(string))
	}
	if got := strings.Join(states, " "); got != "valid expired not_yet_valid malformed malformed wrong_type malformed malformed revoked" {
		t.Error(got)
	}
}

func TestRecordKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	pair := h.login("demo")
	h.get("/api/" + pair.Access).Want(404)
	h.get("/api/authentication/me?access_token=" + pair.Access)
	h.refresh(pair.Refresh)
	h.post(loginPath, object{"username": "demo", "password": "a wrong password"}).Want(401)
	everything := string(h.get("/lab/requests").Body) + string(h.get("/lab/report").Body) + string(h.get("/lab").Body) + string(h.get("/lab/sessions").Body)
	for _, secret := range []string{pair.Access, pair.Refresh, pair.Access[len(pair.Access)-20:], pair.Access[60:100], "demo-password", "a wrong password"} {
		if strings.Contains(everything, secret) {
			t.Errorf("%q is in what the lab tells", secret)
		}
	}
}

func TestBodiesReachTheHubAsTheyWere(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	large := `{"username":"demo","password":"demo-password","filler":"` + strings.Repeat("x", 64<<10-100) + `"}`
	h.post(loginPath, large, "Content-Type", "application/json").Want(200)
	h.post(loginPath, large+strings.Repeat(" ", 200), "Content-Type", "application/json").Want(413)
	c := testkit.Dial(t, h.addr())
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"username\":", strings.TrimPrefix(h.base, h.process.base)+loginPath)
	c.CloseWrite()
	if got := testkit.Statuses(c, 1); !slices.Equal(got, []int{400}) {
		t.Errorf("a body that breaks off: %v", got)
	}
	h.post(refreshPath, "refreshToken="+h.login("demo").Refresh, "Content-Type", "application/x-www-form-urlencoded").Want(200)
	h.post(refreshPath, nil, bearer(h.login("demo").Refresh)...).Want(200)
	got := h.requests("?operation=refresh")
	if len(got) != 2 || got[0]["user"] != "demo" || got[1]["token"].(object)["kind"] != "refresh" {
		t.Error(got)
	}
}

func TestExpectAnswersWithItsRequests(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.login("demo")
	got := h.post("/lab/expect", object{"operation": "login", "user": "demo"}).Want(200)
	if got.JSON()["found"] != 1.0 || got.List("requests")[0]["status"] != 200.0 {
		t.Errorf("%s", got.Body)
	}
	h.post("/lab/expect", object{"operation": "me", "count": object{"exactly": 0}, "within": "10ms"}).Want(200)
	h.post("/lab/expect", object{"operation": "login", "count": object{"at_most": 1}, "within": "10ms"}).Want(200)
}

// TestExpectWaits: the answer comes with the request that was waited for.
func TestExpectWaits(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.get(listingPath)
	met := make(chan *answer)
	go func() {
		met <- h.post("/lab/expect", object{"operation": "me", "status": 401, "after": 1, "within": "30s"})
	}()
	for h.get(listingPath); ; h.me("x") { // until it has been seen, whenever the other began
		select {
		case a := <-met:
			if a.Want(200).List("requests")[0]["operation"] != "me" {
				t.Errorf("%s", a.Body)
			}
			return
		default:
		}
	}
}

func TestAnUnmetExpectationSaysWhatCameNear(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	pair := h.login("demo")
	h.get(listingPath)
	h.me(pair.Access)
	h.refresh(pair.Refresh)
	h.refresh(pair.Refresh).Want(401)
	got := h.post("/lab/expect", object{"operation": "me", "status": 401, "user": "demo", "count": object{"exactly": 1}, "within": "20ms"}).Want(409, "expectation_failed").JSON()
	expected, _ := json.Marshal(got["expected"])
	if string(expected) != `{"count":{"exactly":1},"operation":"me","status":401,"user":"demo","within":"20ms"}` {
		t.Errorf("%s", expected)
	}
	nearest := got["nearest"].([]any)
	if got["found"] != 0.0 || len(nearest) != 1 || fmt.Sprint(nearest[0].(object)["differs"]) != "[status]" || nearest[0].(object)["request"].(object)["seq"] != 3.0 {
		t.Error(got)
	}
	if got["detail"] != "Expected exactly 1 me with status 401 of demo within 20ms, found 0." {
		t.Error(got["detail"])
	}
}

func TestExpectSeesWhoIsHeld(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	id := h.fault(object{"operation": "listing", "hold": 3})
	all := inParallel(2, func() { h.get(listingPath).Want(200) })
	h.post("/lab/expect", object{"operation": "listing", "count": object{"at_least": 2}, "within": "20s"}).Want(200)
	f := h.get("/lab/faults").Want(200).List("faults")[0]
	if f["waiting"] != 2.0 || f["left"] != 1.0 || f["hits"] != 2.0 {
		t.Error(f)
	}
	h.delete("/lab/faults/" + id).Want(204)
	all.Wait()
}

func TestOrderedTokensHaveTheirDefect(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for defect, want := range map[string]struct {
		status int
		code   string
	}{
		"none": {200, ""}, "expired": {401, "token_expired"}, "not_yet_valid": {401, "token_malformed"}, "wrong_key": {401, "token_malformed"},
		"alg_none": {401, "token_malformed"}, "wrong_type": {401, "token_wrong_type"}, "truncated": {401, "token_malformed"},
		"tampered": {401, "token_malformed"}, "revoked": {401, "token_revoked"},
	} {
		for _, kind := range []string{"access", "refresh"} {
			got := h.order(object{"user": "demo", "kind": kind, "defect": defect})
			present := h.me
			if kind == "refresh" {
				present = h.refresh
			}
			answer := present(got.Text("token"))
			if answer.Status != want.status || want.code != "" && answer.Text("code") != want.code {
				t.Errorf("%s %s: %d %s", kind, defect, answer.Status, answer.Body)
			}
			if got.Text("kind") != kind || got.Text("defect") != defect || got.Text("user") != "demo" || got.Text("session") == "" {
				t.Errorf("%s", got.Body)
			}
			if parts := strings.Split(got.Text("token"), "."); len(parts) != 3 {
				t.Errorf("%s %s: not three parts: %s", kind, defect, got.Text("token"))
			}
		}
	}
	early := h.order(object{"user": "user-demo", "defect": "not_yet_valid"}).Text("token")
	h.clock(object{"advance": "1h"})
	h.me(early).Want(200)
}

func TestOrderedClaimsAreAddedOrReplaced(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	got := h.order(object{"user": "demo", "claims": object{"role": "admin", "tenant": object{"id": 7}, "aud": []string{"a", "b"}}})
	h.me(got.Text("token")).Want(200)
	c := payload(t, got.Text("token"))
	if c["role"] != "admin" || fmt.Sprint(c["tenant"]) != "map[id:7]" || fmt.Sprint(c["aud"]) != "[a b]" || c["username"] != "demo" {
		t.Error(c)
	}
	tampered := h.order(object{"user": "demo", "defect": "tampered"})
	if sub := payload(t, tampered.Text("token"))["sub"]; sub == "user-demo" || tampered.JSON()["claims"].(object)["sub"] != sub {
		t.Errorf("tampered: %s", tampered.Body)
	}
	claims, _ := json.Marshal(got.JSON()["claims"])
	if shown, _ := json.Marshal(c); string(claims) != string(shown) {
		t.Errorf("claims %s of %s", claims, shown)
	}
	for name, claims := range map[string]object{
		"token_expired":   {"exp": noon.Unix()},
		"token_malformed": {"iss": "somebody else"},
		"token_revoked":   {"sid": "another", "jti": "another.0a"},
	} {
		token := h.order(object{"user": "demo", "claims": claims}).Text("token")
		h.me(token).Want(401, name)
	}
	for claim, status := range map[string]int{"exp": 200, "iat": 200, "nbf": 401} { // a language's own clock is finer than a token's
		fine := float64(noon.Unix()) + 60.123456789
		token := h.order(object{"user": "demo", "claims": object{claim: fine}}).Text("token")
		if got := payload(t, token)[claim]; got != math.Round(fine*1000)/1000 {
			t.Errorf("%s %v, ordered %v", claim, got, fine)
		}
		h.me(token).Want(status)
	}
	h.me(h.order(object{"user": "demo", "claims": object{"exp": 1e300}}).Text("token")).Want(401, "token_malformed")
	without := h.order(object{"user": "demo", "claims": object{"exp": nil}}).Text("token")
	if _, ok := payload(t, without)["exp"]; ok {
		t.Error("exp is there")
	}
}
