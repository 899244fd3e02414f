// Faults: what each does to the answers that it meets, and which it meets.

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestFaultsAreChecked(t *testing.T) {
	t.Parallel()
	h := newHub(t)
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
		got := h.post("/lab/faults", body, "Content-Type", "application/json").Want(422, "invalid_field")
		if f := got.JSON()["errors"].([]any)[0].(object)["field"]; f != field {
			t.Errorf("%s: field %v, want %s", body, f, field)
		}
	}
}

func TestAFaultAnswersInPlaceOfTheHub(t *testing.T) {
	t.Parallel()
	h := newHub(t)
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
		if got.Header.Get("Content-Type") != tt.contentType || string(got.Body) != tt.body || tt.order["status"] != nil && got.Status != tt.order["status"] {
			t.Errorf("%v: %d %q %q", tt.order, got.Status, got.Header.Get("Content-Type"), got.Body)
		}
	}
	h.fault(object{"operation": "me", "status": 401})
	h.me("").Want(401, "injected")
	h.fault(object{"operation": "me", "status": 401, "body": object{"error": "invalid_token"}})
	if got := h.me("").Want(401).Header.Get("WWW-Authenticate"); got != `Bearer realm="authhub"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	h.fault(object{"operation": "me", "status": 401, "headers": object{"WWW-Authenticate": "Basic"}})
	if got := h.me("").Header.Get("WWW-Authenticate"); got != "Basic" {
		t.Errorf("WWW-Authenticate %q", got)
	}
	h.fault(object{"operation": "me", "status": 429})
	h.me("").Want(429, "injected")
	h.me("").Want(401, "token_missing")
}

func TestFaultsMeetTheirRequests(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	one, other := h.login("demo"), h.login("demo")
	sid := sid(t, one.Access)

	id := h.fault(object{"operation": "me", "session": sid, "status": 500})
	h.me(other.Access).Want(200)
	h.get(listingPath, bearer(one.Access)...).Want(200)
	h.me(one.Access).Want(500)
	h.me(one.Access).Want(200)
	if left := h.left(id); left != 0.0 {
		t.Errorf("left %v", left)
	}

	h.fault(object{"operation": "refresh", "session": sid, "status": 500}) // known by the token in the body
	h.refresh(other.Refresh).Want(200)
	h.refresh(one.Refresh).Want(500)
	h.refresh(one.Refresh).Want(200)

	h.fault(object{"operation": "listing", "skip": 2, "times": 2, "status": 503})
	for i, want := range []int{200, 200, 503, 503, 200} {
		if got := h.get(listingPath); got.Status != want {
			t.Errorf("listing %d: %d, want %d", i+1, got.Status, want)
		}
	}

	h.fault(object{"operation": "file", "status": 500})
	h.fault(object{"operation": "*", "status": 502})
	h.get(listingPath + "/impact").Want(500)
	h.get(listingPath + "/impact").Want(502)
	h.get(listingPath+"/impact").Want(404, "file_unavailable")

	id = h.fault(object{"operation": "*", "status": 503, "times": 0})
	for _, path := range []string{mePath, listingPath, runPath, "/api", "/api/nothing"} {
		h.get(path).Want(503, "injected")
	}
	h.get("/healthz").Want(200)
	h.get("/").Want(200)
	h.get("/authentication/me").Want(404, "not_found")
	if left := h.left(id); left != nil {
		t.Errorf("left %v", left)
	}
	h.delete("/lab/faults/" + id).Want(204)
	h.delete("/lab/faults/"+id).Want(404, "not_found")
	h.get("/api/nothing").Want(404, "not_found")
	h.delete("/lab/faults").Want(204)
	if got := h.get("/lab/faults").JSON()["faults"].([]any); len(got) != 0 {
		t.Error(got)
	}
}

func TestAThousandUnspentFaultsFit(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fault(object{"operation": "me", "status": 500})
	for range 1_000 - 1 {
		h.fault(object{"operation": "run", "status": 500})
	}
	h.post("/lab/faults", object{"operation": "run", "status": 500}).Want(507, "fault_limit")
	h.me("").Want(500)
	h.fault(object{"operation": "run", "status": 500}) // takes the place of the one that is spent
}

func TestTimesAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fault(object{"operation": "listing", "times": 20, "status": 503})
	var all sync.WaitGroup
	hit := make(chan bool, 100)
	for range 100 {
		all.Go(func() { hit <- h.get(listingPath).Status == 503 })
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
func TestADropCutsBeforeOrAfterTheWork(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := h.base
	pair := h.login("demo")
	refresh := func() error {
		answer, err := http.Post(base+refreshPath, "application/json", strings.NewReader(`{"refresh_token":"`+pair.Refresh+`"}`))
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
	h.refresh(pair.Refresh).Want(401, "token_reused")

	got := h.requests("?operation=refresh")
	if got[0]["status"] != nil || got[0]["fault"] != "f1" || got[0]["duration_ms"] == nil || got[1]["status"] != nil || got[1]["fault"] != "f2" {
		t.Error(got)
	}
}

func TestATruncatedAnswerBreaksOff(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := h.base
	h.post(runPath, nil).Want(200)
	whole := h.get(listingPath + "/impact").Want(200).Body
	for _, n := range []int{0, 1, 100, len(whole), len(whole) + 1} {
		h.fault(object{"operation": "file", "truncate": n})
		r, _ := http.NewRequest("GET", base+listingPath+"/impact", nil)
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

// The refresh race, every time: both requests are under way before either is served.
func TestHoldMakesTheRace(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for i := range 50 {
		pair := h.login("demo")
		id := h.fault(object{"operation": "refresh", "hold": 2})
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- h.refresh(pair.Refresh).Status }()
		}
		if got := <-codes + <-codes; got != 200+401 {
			t.Fatalf("race %d: the statuses add up to %d", i, got)
		}
		if left := h.left(id); left != 0.0 {
			t.Fatalf("left %v", left)
		}
	}
}

func TestFaultsShowWhatWasOrdered(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	got := h.post("/lab/faults", object{"operation": "refresh", "hold": 2, "delay": "1500ms", "status": 503, "headers": object{"retry-after": "1"}, "body": object{"n": 1.50}}).Want(201)
	want := `{"id":"f1","operation":"refresh","skip":0,"times":1,"delay":"1.5s","hold":2,"within":"5s","status":503,` +
		`"headers":{"retry-after":"1"},"body":{"n":1.5},"hits":0,"left":2,"waiting":0}` + "\n"
	if string(got.Body) != want {
		t.Errorf("%s", got.Body)
	}
	if list := h.get("/lab/faults").Want(200).Body; string(list) != fmt.Sprintf("{\"faults\":[%s]}\n", strings.TrimSpace(want)) {
		t.Errorf("%s", list)
	}
}

// A client is to see from the length that something is missing, however short the answer and whoever gives it.
func TestTruncatedAnswersKeepTheirLength(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := h.base
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
			whole = string(h.get(listingPath).Want(200).Body)
		}
		h.fault(tt.order)
		answer, err := http.Get(base + listingPath)
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
