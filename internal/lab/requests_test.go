package lab

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"authhub/internal/lab/record"
)

func TestRecordIsARing(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	l := &h.bench("").requests
	for range record.MaxRequests + 3 {
		r := new(record.Request)
		l.Begin(r)
		l.End(r, func() {})
	}

	got := h.get("/lab/requests").Want(200).JSON()
	list := got["requests"].([]any)
	if len(list) != record.MaxRequests || list[0].(object)["seq"] != 4.0 || list[record.MaxRequests-1].(object)["seq"] != 10_003.0 || got["overwritten"] != 3.0 {
		t.Error(len(list), list[0], got["overwritten"])
	}
}

// expectation asks for what is expected and gives the outcome as the lab answers it.
func (h *testHub) expectation(body object) *answer {
	h.t.Helper()
	return h.post("/lab/expect", body)
}

func TestExpectHoldsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		start := time.Now()
		h.login("demo")
		got := h.expectation(object{"operation": "login", "user": "demo"}).Want(200).JSON()
		if got["found"] != 1.0 || len(got["requests"].([]any)) != 1 {
			t.Error(got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestExpectWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		start := time.Now()
		pair := h.login("demo")
		time.AfterFunc(time.Second, func() { h.me(pair.Access) })
		time.AfterFunc(2*time.Second, func() { h.me(pair.Refresh) })
		h.expectation(object{"operation": "me", "status": 401, "within": "30s"}).Want(200)
		if took := time.Since(start); took != 2*time.Second+overlap {
			t.Errorf("took %v", took)
		}
	})
}

func TestExpectWatchesTheWholeTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		count    object
		calls    int // one a second
		status   int
		duration time.Duration
	}{
		{object{"exactly": 0}, 0, 200, 10 * time.Second},
		{object{"exactly": 0}, 1, 409, time.Second},
		{object{"exactly": 2}, 2, 200, 10 * time.Second},
		{object{"exactly": 2}, 3, 409, 3 * time.Second},
		{object{"exactly": 2}, 1, 409, 10 * time.Second},
		{object{"at_most": 1}, 0, 200, 10 * time.Second},
		{object{"at_most": 1}, 2, 409, 2 * time.Second},
		{object{"at_least": 0}, 0, 200, 0},
		{object{"at_least": 2}, 2, 200, 2 * time.Second},
		{object{"at_least": 2}, 1, 409, 10 * time.Second},
		{object{"at_most": 10000}, 1, 200, 10 * time.Second},
	} {
		t.Run(fmt.Sprint(tt.count, tt.calls), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTestHub(t)
				for i := range tt.calls {
					time.AfterFunc(time.Duration(i+1)*time.Second, func() { h.get("/api/files/phase2") })
				}
				start := time.Now()
				h.expectation(object{"operation": "listing", "count": tt.count, "within": "10s"}).Want(tt.status)
				if took := time.Since(start); took != tt.duration {
					t.Errorf("took %v, want %v", took, tt.duration)
				}
			})
		})
	}
}

func TestExpectAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		h.get("/api/files/phase2")
		time.AfterFunc(time.Second, func() { h.get("/api/files/phase2") })
		got := h.expectation(object{"operation": "listing", "after": 1}).Want(200).JSON()
		if got["requests"].([]any)[0].(object)["seq"] != 2.0 {
			t.Error(got)
		}
	})
}

func TestExpectEndsWithTheClientAndTheHub(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		start := time.Now()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r := httptest.NewRequestWithContext(ctx, "POST", "/lab/expect", strings.NewReader(`{"operation":"me","within":"30s"}`))
		r.Host, r.Header = "hub.test", http.Header{"Content-Type": {"application/json"}}
		h.front.ServeHTTP(httptest.NewRecorder(), r)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		time.AfterFunc(time.Second, func() { h.do("DELETE", "/ns/a", nil).Want(204) })
		got := h.space("a").expectation(object{"operation": "me", "within": "30s"}).Want(404, "not_found")
		if !strings.Contains(got.Text("detail"), "deleted") {
			t.Errorf("%s", got.Body)
		}
		time.AfterFunc(time.Second, h.lab.Close)
		h.expectation(object{"operation": "me", "within": "30s"}).Want(503, "busy")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestExpectGoesOnAcrossAReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		h.get("/api/files/phase2").Want(200)
		time.AfterFunc(time.Second, func() { h.post("/lab/reset", nil).Want(204) })
		time.AfterFunc(2*time.Second, func() { h.get("/api/files/phase2").Want(200) })
		h.expectation(object{"operation": "listing", "count": object{"exactly": 1}}).Want(200)
	})
}
