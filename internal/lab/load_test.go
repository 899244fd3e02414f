package lab

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func BenchmarkCreateNamespace(b *testing.B) {
	h := newTestHub(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.lab.newNamespace("name"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResetNamespace(b *testing.B) {
	s := newTestHub(b).space("name")
	for b.Loop() {
		s.post("/lab/reset", nil).Want(204)
	}
}

func BenchmarkResetAfterUse(b *testing.B) {
	s := newTestHub(b).space("name")
	for b.Loop() {
		b.StopTimer()
		for range 10 {
			s.me(s.login("demo").Access)
		}
		b.StartTimer()
		s.post("/lab/reset", nil).Want(204)
	}
}

// FuzzLab sends anything at all to the lab's routes: never a 5xx, never a panic.
func FuzzLab(f *testing.F) {
	var routes []string
	for _, o := range labTable().Operations {
		routes = append(routes, o.Method+" "+o.Path)
	}
	for i := range routes {
		f.Add(i, `{"operation":"me","status":503,"headers":{"Retry-After":"1"},"body":{"a":1},"times":2}`)
		f.Add(i, `{"advance":"16m","frozen":true}`)
		f.Add(i, `{"user":"demo","kind":"refresh","defect":"tampered","claims":{"sub":"x","nbf":1,"a":{"b":[null]}}}`)
		f.Add(i, `{"operation":"me","count":{"at_most":0},"within":"1ms"}`)
		f.Add(i, `{"version":1,"time":{"offset_ms":1},"policy":{"reuse":"grace","grace":"1s"},"faults":[{"operation":"*","delay":"1s"}],"users":[],"sessions":[],"files":{"modified":"2026-01-01T00:00:00Z","barrier":"e30K","impact":"","alertesph":""}}`)
	}
	h := newTestHub(f)
	f.Fuzz(func(t *testing.T, route int, body string) {
		method, path, _ := strings.Cut(routes[(route%len(routes)+len(routes))%len(routes)], " ")
		if strings.Contains(body, "within") && !strings.Contains(body, "ms") {
			return // not to wait for seconds
		}
		s := h.space("fuzzed")
		s.t = t
		got := s.do(method, strings.NewReplacer("{sid}", "s", "{id}", "f1").Replace(path), body, "Content-Type", "application/json")
		if got.Status >= 500 {
			t.Errorf("%s %s %q: %d %s", method, path, body, got.Status, got.Body)
		}
		s.post("/lab/reset", nil).Want(204)
	})
}

// What 10,000 idle namespaces weigh: go test -run TestNamespaceWeight -v
func TestNamespaceWeight(t *testing.T) {
	h := newTestHub(t)
	before := heapInUse()
	for i := range maxNamespaces {
		h.bench(fmt.Sprint("n", i))
	}
	each := float64(heapInUse()-before) / maxNamespaces
	t.Logf("%.0f bytes each", each)
	if each > 8<<10 {
		t.Errorf("%.0f bytes each", each)
	}
}

// heapInUse returns the bytes of what is reachable. It counts the whole process, so it is no test for parallel company.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestTheRecordKeepsNoRequestLine: what the record keeps of a request are copies, not parts of its long request line.
func TestTheRecordKeepsNoRequestLine(t *testing.T) {
	h := newTestHub(t)
	long := strings.Repeat("x", 16<<10)
	before := heapInUse()
	for range 20 { // errors take their time
		inParallel(25, func() {
			h.get("/api/files/phase2?" + long).Want(200)
			h.get("/api/nothing?" + long).Want(404)
		}).Wait()
	}
	if held := int64(heapInUse()) - int64(before); held > 4<<20 {
		t.Errorf("1,000 requests hold %d bytes", held)
	}
}
