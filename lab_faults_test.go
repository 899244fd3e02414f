package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fault queues a fault and returns its id.
func (h *testHub) fault(order object) string {
	h.t.Helper()
	return h.post("/lab/faults", order).want(201).str("id")
}

// left returns how many requests a fault will still take.
func (h *testHub) left(id string) any {
	h.t.Helper()
	for _, f := range h.get("/lab/faults").want(200).json()["faults"].([]any) {
		if f.(object)["id"] == id {
			return f.(object)["left"]
		}
	}
	h.t.Fatalf("no fault %s", id)
	return nil
}

func TestFaultsAreChecked(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	for body, field := range map[string]string{
		`{"status":503}`:                                                      "operation",
		`{"operation":"signin","status":503}`:                                 "operation",
		`{"operation":"me"}`:                                                  "status",
		`{"operation":"me","status":199}`:                                     "status",
		`{"operation":"me","status":"503"}`:                                   "status",
		`{"operation":"me","status":503,"times":-1}`:                          "times",
		`{"operation":"me","status":503,"skip":0.5}`:                          "skip",
		`{"operation":"me","status":503,"drop":"after"}`:                      "drop",
		`{"operation":"me","status":503,"malformed":true}`:                    "malformed",
		`{"operation":"me","drop":"before","malformed":true}`:                 "malformed",
		`{"operation":"me","drop":"after","truncate":1}`:                      "truncate",
		`{"operation":"me","malformed":false}`:                                "malformed",
		`{"operation":"me","drop":"during"}`:                                  "drop",
		`{"operation":"me","truncate":-1}`:                                    "truncate",
		`{"operation":"me","delay":"61s"}`:                                    "delay",
		`{"operation":"me","delay":2}`:                                        "delay",
		`{"operation":"me","hold":1}`:                                         "hold",
		`{"operation":"me","delay":"1s","within":"1s"}`:                       "within",
		`{"operation":"me","delay":"1s","headers":{"A":"b"}}`:                 "headers",
		`{"operation":"me","drop":"before","body":"b"}`:                       "body",
		`{"operation":"me","status":204,"body":"b"}`:                          "body",
		`{"operation":"me","status":503,"headers":{"A":1}}`:                   "headers",
		`{"operation":"me","status":503,"headers":{"A":"b\r\nSet-Cookie:c"}}`: "headers",
		`{"operation":"me","status":503,"headers":{"A B":"c"}}`:               "headers",
		`{"operation":"me","status":503,"headers":{"content-length":"1"}}`:    "headers",
		`{"operation":"me","status":503,"headers":"none"}`:                    "headers",
	} {
		got := h.post("/lab/faults", body, "Content-Type", "application/json").want(422, "invalid_field")
		if f := got.json()["errors"].([]any)[0].(object)["field"]; f != field {
			t.Errorf("%s: field %v, want %s", body, f, field)
		}
	}
}

func TestFaultAnswers(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	for _, tt := range []struct {
		order       object
		contentType string
		body        string
	}{
		{object{"status": 503, "headers": object{"Retry-After": "7"}, "body": "try later"}, "text/plain; charset=utf-8", "try later"},
		{object{"status": 400, "body": object{"error": "<odd>"}}, "application/json", `{"error":"<odd>"}`},
		{object{"status": 502, "headers": object{"content-type": "text/html"}, "body": "<h1>Bad gateway</h1>"}, "text/html", "<h1>Bad gateway</h1>"},
		{object{"status": 204}, "", ""},
		{object{"malformed": true}, "application/json", `{"access_token":"eyJ`},
	} {
		tt.order["operation"] = "me"
		h.fault(tt.order)
		got := h.me("")
		if got.header.Get("Content-Type") != tt.contentType || string(got.body) != tt.body || tt.order["status"] != nil && got.status != tt.order["status"] {
			t.Errorf("%v: %d %q %q", tt.order, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
	h.fault(object{"operation": "me", "status": 401})
	h.me("").want(401, "injected")
	h.fault(object{"operation": "me", "status": 401, "body": object{"error": "invalid_token"}})
	if got := h.me("").want(401).header.Get("WWW-Authenticate"); got != `Bearer realm="authhub"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	h.fault(object{"operation": "me", "status": 401, "headers": object{"WWW-Authenticate": "Basic"}})
	if got := h.me("").header.Get("WWW-Authenticate"); got != "Basic" {
		t.Errorf("WWW-Authenticate %q", got)
	}
	h.fault(object{"operation": "me", "status": 429})
	h.me("").want(429, "injected")
	h.me("").want(401, "token_missing")
}

func TestFaultsMeetTheirRequests(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	one, other := h.login("demo"), h.login("demo")
	sid := payload(t, one.access)["sid"]

	id := h.fault(object{"operation": "me", "session": sid, "status": 500})
	h.me(other.access).want(200)
	h.get("/api/files/phase2", bearerOf(one.access)...).want(200)
	h.me(one.access).want(500)
	h.me(one.access).want(200)
	if left := h.left(id); left != 0.0 {
		t.Errorf("left %v", left)
	}

	h.fault(object{"operation": "refresh", "session": sid, "status": 500}) // known by the token in the body
	h.refreshWith(other.refresh).want(200)
	h.refreshWith(one.refresh).want(500)
	h.refreshWith(one.refresh).want(200)

	h.fault(object{"operation": "listing", "skip": 2, "times": 2, "status": 503})
	for i, want := range []int{200, 200, 503, 503, 200} {
		if got := h.get("/api/files/phase2"); got.status != want {
			t.Errorf("listing %d: %d, want %d", i+1, got.status, want)
		}
	}

	h.fault(object{"operation": "file", "status": 500})
	h.fault(object{"operation": "*", "status": 502})
	h.get("/api/files/phase2/impact").want(500)
	h.get("/api/files/phase2/impact").want(502)
	h.get("/api/files/phase2/impact").want(404, "file_unavailable")

	id = h.fault(object{"operation": "*", "status": 503, "times": 0})
	for _, path := range []string{"/api/authentication/me", "/api/files/phase2", "/api/run-ph-barrier-phase2", "/api", "/api/nothing"} {
		h.get(path).want(503, "injected")
	}
	h.get("/healthz").want(200)
	h.get("/").want(200)
	h.get("/authentication/me").want(404, "not_found")
	if left := h.left(id); left != nil {
		t.Errorf("left %v", left)
	}
	h.do("DELETE", "/lab/faults/"+id, nil).want(204)
	h.do("DELETE", "/lab/faults/"+id, nil).want(404, "not_found")
	h.get("/api/nothing").want(404, "not_found")
	h.do("DELETE", "/lab/faults", nil).want(204)
	if got := h.get("/lab/faults").json()["faults"].([]any); len(got) != 0 {
		t.Error(got)
	}
}

func TestFaultLimit(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.fault(object{"operation": "me", "status": 500})
	for range maxFaults - 1 {
		h.fault(object{"operation": "run", "status": 500})
	}
	h.post("/lab/faults", object{"operation": "run", "status": 500}).want(507, "fault_limit")
	h.me("").want(500)
	h.fault(object{"operation": "run", "status": 500}) // takes the place of the one that is spent
}

func TestTimesAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.fault(object{"operation": "listing", "times": 20, "status": 503})
	var all sync.WaitGroup
	hit := make(chan bool, 100)
	for range 100 {
		all.Go(func() { hit <- h.get("/api/files/phase2").status == 503 })
	}
	all.Wait()
	close(hit)
	n := 0
	for was := range hit {
		if was {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d of 20 were hit", n)
	}
}

// A client whose connection is cut sees neither status nor header.
func TestDrop(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	base := h.serve()
	pair := h.login("demo")
	refresh := func() error {
		answer, err := http.Post(base+"/api/authentication/refresh", "application/json", strings.NewReader(`{"refresh_token":"`+pair.refresh+`"}`))
		if err == nil {
			answer.Body.Close()
		}
		return err
	}

	h.fault(object{"operation": "refresh", "drop": "before"})
	if err := refresh(); !errors.Is(err, io.EOF) {
		t.Errorf("drop before: %v", err)
	}
	if got := h.sessions()[0]["generation"]; got != 0.0 {
		t.Errorf("the operation was done: generation %v", got)
	}

	h.fault(object{"operation": "refresh", "drop": "after"})
	if err := refresh(); !errors.Is(err, io.EOF) {
		t.Errorf("drop after: %v", err)
	}
	if got := h.sessions()[0]["generation"]; got != 1.0 {
		t.Errorf("the operation was not done: generation %v", got)
	}
	h.refreshWith(pair.refresh).want(401, "token_reused")

	got := h.requests("?operation=refresh")
	if got[0]["status"] != nil || got[0]["fault"] != "f1" || got[0]["duration_ms"] == nil || got[1]["status"] != nil || got[1]["fault"] != "f2" {
		t.Error(got)
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	base := h.serve()
	h.post("/api/run-ph-barrier-phase2", nil).want(200)
	whole := h.get("/api/files/phase2/impact").want(200).body
	for _, n := range []int{0, 1, 100, len(whole), len(whole) + 1} {
		h.fault(object{"operation": "file", "truncate": n})
		r, _ := http.NewRequest("GET", base+"/api/files/phase2/impact", nil)
		r.Header.Set("Accept-Encoding", "identity")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(n, err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 200 || answer.ContentLength != int64(len(whole)) || string(body) != string(whole[:min(n, len(whole))]) {
			t.Errorf("truncate %d: %d, %d bytes of %d", n, answer.StatusCode, len(body), answer.ContentLength)
		}
		if cut := errors.Is(err, io.ErrUnexpectedEOF); cut != (n < len(whole)) {
			t.Errorf("truncate %d: %v", n, err)
		}
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestLab(t)
		h.fault(object{"operation": "me", "delay": "2s", "status": 503})
		start := time.Now()
		h.clockTo(object{"frozen": true}) // a delay is real all the same
		h.me("").want(503)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// until sends a request that its client gives up on at the end of ctx.
func (h *testHub) until(ctx context.Context, method, path string) {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Host = "hub.test"
	h.handler.ServeHTTP(httptest.NewRecorder(), r)
}

func TestDelayEndsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestLab(t)
		h.fault(object{"operation": "run", "delay": "1m"})
		start := time.Now()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		h.until(ctx, "POST", "/api/run-ph-barrier-phase2")
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		h.get("/api/run-ph-barrier-phase2").want(404, "no_run") // nothing was done
	})
}

func TestDelayEndsWithItsFaultAndWithTheHub(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *testHub){
		"fault deleted":     func(h *testHub) { h.do("DELETE", "/ns/a/lab/faults/f1", nil).want(204) },
		"namespace deleted": func(h *testHub) { h.do("DELETE", "/ns/a", nil).want(204) },
		"hub stopped":       func(h *testHub) { h.handler.(*labFront).lab.close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTestLab(t)
				a := h.space("a")
				a.fault(object{"operation": "listing", "delay": "1m"})
				start := time.Now()
				time.AfterFunc(time.Second, func() { end(h) })
				a.get("/api/files/phase2").want(200)
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// The refresh race, every time: both requests are under way before either is served.
func TestHoldMakesTheRace(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	for i := range 50 {
		pair := h.login("demo")
		id := h.fault(object{"operation": "refresh", "hold": 2})
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- h.refreshWith(pair.refresh).status }()
		}
		if got := <-codes + <-codes; got != 200+401 {
			t.Fatalf("race %d: the statuses add up to %d", i, got)
		}
		if left := h.left(id); left != 0.0 {
			t.Fatalf("left %v", left)
		}
	}
}

// inParallel makes n calls at once. The group is done when all have ended.
func inParallel(n int, call func()) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for range n {
		all.Go(call)
	}
	return all
}

func TestHoldShowsWhoWaitsAndGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestLab(t)
		h.fault(object{"operation": "listing", "hold": 3, "within": "4s", "status": 503})
		start := time.Now()
		all := inParallel(2, func() { h.get("/api/files/phase2").want(503) })
		synctest.Wait()
		f := h.get("/lab/faults").json()["faults"].([]any)[0].(object)
		if f["waiting"] != 2.0 || f["left"] != 1.0 || f["hits"] != 2.0 {
			t.Error(f)
		}
		if got := h.requests(); len(got) != 2 || got[0]["status"] != nil || got[0]["duration_ms"] != nil {
			t.Error(got)
		}
		all.Wait()
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("gave up after %v", took)
		}
		h.get("/api/files/phase2").want(200) // the group was the only one
	})
}

func TestHoldGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestLab(t)
		h.fault(object{"operation": "listing", "hold": 2, "times": 2, "delay": "1s"})
		start := time.Now()
		inParallel(4, func() { h.get("/api/files/phase2").want(200) }).Wait()
		h.get("/api/files/phase2").want(200)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestHoldGoesOnWithoutAClientThatLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestLab(t)
		h.fault(object{"operation": "listing", "hold": 2})
		ctx, leave := context.WithCancel(t.Context())
		go h.until(ctx, "GET", "/api/files/phase2")
		synctest.Wait()
		leave()
		synctest.Wait()
		start := time.Now()
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				h.get("/api/files/phase2").want(200)
			})
		}
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v: the first was not held for the second", took)
		}
	})
}

func TestFaultsShowWhatWasOrdered(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	got := h.post("/lab/faults", object{"operation": "refresh", "hold": 2, "delay": "1500ms", "status": 503, "headers": object{"retry-after": "1"}, "body": object{"n": 1.50}}).want(201)
	want := `{"id":"f1","operation":"refresh","skip":0,"times":1,"delay":"1.5s","hold":2,"within":"5s","status":503,` +
		`"headers":{"retry-after":"1"},"body":{"n":1.5},"hits":0,"left":2,"waiting":0}` + "\n"
	if string(got.body) != want {
		t.Errorf("%s", got.body)
	}
	if list := h.get("/lab/faults").want(200).body; string(list) != fmt.Sprintf("{\"faults\":[%s]}\n", strings.TrimSpace(want)) {
		t.Errorf("%s", list)
	}
}

// A client is to see from the length that something is missing, however short the answer and whoever gives it.
func TestTruncatedAnswersKeepTheirLength(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	base := h.serve()
	for _, tt := range []struct {
		order object
		body  string // all of it; "" for the hub's own
	}{
		{object{"truncate": 10}, ""},
		{object{"truncate": 0}, ""},
		{object{"truncate": 4, "status": 502, "body": "<h1>Bad gateway</h1>"}, "<h1>Bad gateway</h1>"},
		{object{"truncate": 3, "malformed": true, "delay": "1ms"}, `{"access_token":"eyJ`},
	} {
		tt.order["operation"] = "listing"
		whole := tt.body
		if whole == "" {
			whole = string(h.get("/api/files/phase2").want(200).body)
		}
		h.fault(tt.order)
		answer, err := http.Get(base + "/api/files/phase2")
		if err != nil {
			t.Fatal(tt.order, err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || answer.ContentLength != int64(len(whole)) || string(body) != whole[:tt.order["truncate"].(int)] {
			t.Errorf("%v: %v, %q of %d bytes", tt.order, err, body, answer.ContentLength)
		}
	}
}

func TestAnEscapedSlashNamesNothing(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	pair := h.login("demo")
	h.post("/lab/faults", object{"operation": "listing", "status": 503, "times": 0}).want(201)
	h.do("DELETE", "/lab/faults/f1%2Fx", nil).want(404, "not_found")
	h.get(listingPath).want(503)
	h.post("/lab/sessions/"+h.sessions()[0]["id"].(string)+"%2Fx/revoke", nil).want(404, "not_found")
	h.me(pair.access).want(200)
	h.get("/web/nope%2Fapp.js").want(404, "not_found")
}
