package lab

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fault queues a fault and returns its id.
func (h *testHub) fault(order object) string {
	h.t.Helper()
	return h.post("/lab/faults", order).Want(201).Text("id")
}

func TestADelayIsOfRealTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		h.fault(object{"operation": "me", "delay": "2s", "status": 503})
		start := time.Now()
		h.clockTo(object{"frozen": true}) // a delay is real all the same
		h.me("").Want(503)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// until sends a request that its client gives up on at the end of ctx. It may get an answer, or its connection is cut.
func (h *testHub) until(ctx context.Context, method, path string) {
	defer func() {
		if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
			panic(cause)
		}
	}()
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Host = "hub.test"
	h.front.ServeHTTP(httptest.NewRecorder(), r)
}

func TestDelayEndsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		h.fault(object{"operation": "run", "delay": "1m"})
		start := time.Now()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		h.until(ctx, "POST", "/api/run-ph-barrier-phase2")
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		h.get("/api/run-ph-barrier-phase2").Want(404, "no_run") // nothing was done
	})
}

func TestDelayEndsWithItsFaultAndWithTheHub(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *testHub){
		"fault deleted":     func(h *testHub) { h.do("DELETE", "/ns/a/lab/faults/f1", nil).Want(204) },
		"namespace deleted": func(h *testHub) { h.do("DELETE", "/ns/a", nil).Want(204) },
		"hub stopped":       func(h *testHub) { h.lab.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTestHub(t)
				a := h.space("a")
				a.fault(object{"operation": "listing", "delay": "1m"})
				start := time.Now()
				time.AfterFunc(time.Second, func() { end(h) })
				a.get("/api/files/phase2").Want(200)
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
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
		h := newTestHub(t)
		h.fault(object{"operation": "listing", "hold": 3, "within": "4s", "status": 503})
		start := time.Now()
		all := inParallel(2, func() { h.get("/api/files/phase2").Want(503) })
		synctest.Wait()
		f := h.get("/lab/faults").JSON()["faults"].([]any)[0].(object)
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
		h.get("/api/files/phase2").Want(200) // the group was the only one
	})
}

func TestHoldGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		h.fault(object{"operation": "listing", "hold": 2, "times": 2, "delay": "1s"})
		start := time.Now()
		inParallel(4, func() { h.get("/api/files/phase2").Want(200) }).Wait()
		h.get("/api/files/phase2").Want(200)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestHoldGoesOnWithoutAClientThatLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
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
				h.get("/api/files/phase2").Want(200)
			})
		}
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v: the first was not held for the second", took)
		}
	})
}

func TestAnEscapedSlashNamesNothing(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	pair := h.login("demo")
	h.post("/lab/faults", object{"operation": "listing", "status": 503, "times": 0}).Want(201)
	h.do("DELETE", "/lab/faults/f1%2Fx", nil).Want(404, "not_found")
	h.get("/api/files/phase2").Want(503)
	h.post("/lab/sessions/"+h.sessions()[0]["id"].(string)+"%2Fx/revoke", nil).Want(404, "not_found")
	h.me(pair.Access).Want(200)
}
