package main

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"authhub/internal/edge"
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
	h.Hub, h.handler = l.root.hub.Load(), &labFront{edge, l}
	return h, sync.OnceFunc(func() { l.close(); stopHub() })
}

// labFront is the edge in front of a lab, which tests look into.
type labFront struct {
	http.Handler
	lab *lab
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

// requests returns the requests that the lab has seen.
func (h *testHub) requests(query ...string) (list []object) {
	h.t.Helper()
	for _, r := range h.get("/lab/requests" + strings.Join(query, "")).want(200).json()["requests"].([]any) {
		list = append(list, r.(object))
	}
	return list
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
	if w.Code != 503 || b.hub.Load().output.Path() != "" {
		t.Errorf("%d, folder %q", w.Code, b.hub.Load().output.Path())
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
