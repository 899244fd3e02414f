package lab

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"authhub/internal/account"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
	"authhub/internal/results"
	"authhub/internal/runs"
	"authhub/internal/testkit"
)

// clockTo turns the lab's clock.
func (h *testHub) clockTo(body object) *answer {
	h.t.Helper()
	return h.do("PUT", "/lab/clock", body).Want(200)
}

// sessions returns the live sessions as the lab lists them.
func (h *testHub) sessions() (list []object) {
	h.t.Helper()
	for _, s := range h.get("/lab/sessions").Want(200).JSON()["sessions"].([]any) {
		list = append(list, s.(object))
	}
	return list
}

func TestTheClockAdvancesStopsAndIsSet(t *testing.T) {
	t.Parallel()
	h := newTestHub(t) // its machine's clock stands at 2026-03-01T12:00:00Z
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
		got := h.clockTo(tt.body).JSON()
		if got["now"] != tt.now || got["frozen"] != tt.frozen || got["real"] != "2026-03-01T12:00:00.000Z" {
			t.Errorf("%v: %v", tt.body, got)
		}
	}
	h.clock.Advance(time.Minute)
	if got := h.get("/lab").JSON()["time"].(object)["now"]; got != "2030-05-01T00:01:01.000Z" {
		t.Error("a minute later it is", got)
	}
	h.clockTo(object{"frozen": true})
	h.clock.Advance(time.Minute)
	if got := h.get("/lab").JSON()["time"].(object)["now"]; got != "2030-05-01T00:01:01.000Z" {
		t.Error("frozen for a minute, it is", got)
	}
}

func TestSessionsAreSweptByTheClock(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.login("demo")
	h.clockTo(object{"advance": "168h"})
	if got := h.sessions(); len(got) != 0 {
		t.Errorf("%d sessions live", len(got))
	}
	h.login("demo")
	if _, sessions := h.bench("").hub.Load().Store.Contents(); len(sessions) != 1 {
		t.Errorf("the store holds %d sessions", len(sessions))
	}
}

func TestResetEndsARun(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	queue, held := h.lab.Runs(), h.holdRuns()
	reset := make(chan struct{})
	go func() {
		defer close(reset)
		h.post("/lab/reset", nil).Want(204)
	}()
	testkit.Eventually(t, "the queue is closed", func() bool {
		_, err := queue.Start("x", held.Parameters, held.Input)
		return errors.Is(err, runs.ErrBusy)
	})
	close(held.release)
	<-reset
	h.get("/api/run-ph-barrier-phase2").Want(404, "no_run")
	if entry := h.bench("").hub.Load().Folder.List()[results.Impact]; entry.Available {
		t.Error("the run has published after the reset")
	}
	h.post("/api/run-ph-barrier-phase2", nil).Want(200)
}

// Whoever came before a reset does nothing after it, wherever the two meet.
func TestResetRefusesWhoIsUnderWay(t *testing.T) {
	t.Parallel()
	snapshot := func(h *testHub) *answer {
		return h.do("PUT", "/lab/snapshot", string(h.get("/lab/snapshot").Body), "Content-Type", "application/json")
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
				h := newTestHub(t)
				h.fault(tt.order)
				late := make(chan *answer)
				go func() {
					late <- h.post("/api/authentication/login", object{"username": "demo", "password": "demo-password"})
				}()
				synctest.Wait()
				start := time.Now()
				tt.put(h).Want(204)
				got := (<-late).Want(503, "busy")
				if !strings.Contains(got.Text("detail"), "reset") || time.Since(start) != 0 {
					t.Errorf("%s, after %v", got.Body, time.Since(start))
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
	h := newTestHub(t)
	b := h.bench("")
	r := httptest.NewRequest("POST", "/api/run-ph-barrier-phase2", nil)
	hub, served, _, leave := b.arrive(r, &record.Request{Exchange: judge.Exchange{Operation: "login"}}, "", nil)
	h.post("/lab/reset", nil).Want(204)
	err := hub.Store.StartSession(served.Context(), hub.Store.UserByLogin("demo").NewSession("late", hub.Now(), time.Minute, time.Minute))
	leave()
	if !errors.Is(err, account.ErrReplaced) || len(h.sessions()) != 0 || len(b.underWay) != 0 {
		t.Errorf("%v, %d sessions, %d under way", err, len(h.sessions()), len(b.underWay))
	}
}
