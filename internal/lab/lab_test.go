package lab

import (
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"
)

func TestDeletedNamespacesLeaveNothingInMemory(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	use := func() weak.Pointer[bench] {
		a := h.space("a")
		a.fault(object{"operation": "login", "delay": "1ms"})
		a.login("demo")
		a.post("/lab/reset", nil).Want(204)
		a.post("/api/run-ph-barrier-phase2", nil).Want(200)
		gone := weak.Make(h.bench("a"))
		h.do("DELETE", "/ns/a", nil).Want(204)
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

func TestNamespaceUnderADeletionLeavesNoFolder(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	b := h.bench("a")
	h.do("DELETE", "/ns/a", nil).Want(204)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/api/run-ph-barrier-phase2", strings.NewReader("time,station,ph\n"))
	r.Header.Set("Content-Type", "text/csv")
	b.hub.Load().Serve(w, r, nil)
	if w.Code != 503 || b.hub.Load().Folder.Path() != "" {
		t.Errorf("%d, folder %q", w.Code, b.hub.Load().Folder.Path())
	}
}

func TestOneNamespaceForAllWhoCreateIt(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	benches := make([]*bench, 16)
	var all sync.WaitGroup
	for i := range benches {
		all.Go(func() { benches[i] = h.bench("same") })
	}
	all.Wait()
	if len(slices.Compact(benches)) != 1 {
		t.Error("two got two namespaces of one name")
	}
}
