package main

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Each of many namespaces lives through the same story at once; any trace of another one fails it.
func TestManyNamespacesUnderLoad(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() { liveAlone(h.space(fmt.Sprint("n", i)), i) })
	}
	all.Wait()
}

// liveAlone fails the test if the namespace of s holds anything but what it puts there itself.
func liveAlone(s *testHub, i int) {
	name := fmt.Sprint("user-of-", i)
	s.post("/api/authentication/register", object{"username": name, "password": "a password"}).want(201)
	pair := s.login("demo")
	s.do("PUT", "/lab/clock", object{"advance": fmt.Sprintf("%dm", i+1)}).want(200)
	if i%2 == 0 {
		s.post("/lab/faults", object{"operation": "me", "status": 500 + i%90}).want(201)
		s.me(pair.access).want(500+i%90, "injected")
	}
	refreshed := s.refreshWith(pair.refresh).want(200).pair()
	s.me(refreshed.access).want(200)
	if i%3 == 0 {
		s.refreshWith(pair.refresh).want(401, "token_reused")
	}

	state := s.get("/lab").want(200).json()
	counts := state["counts"].(object)
	sessions, requests := 2, 4
	if i%3 == 0 {
		sessions, requests = sessions-1, requests+1
	}
	if i%2 == 0 {
		requests++
	}
	if want := (object{"users": 4.0, "sessions": float64(sessions), "requests": float64(requests), "faults": float64((i + 1) % 2)}); !maps.Equal(counts, want) {
		s.t.Errorf("namespace %d counts %v, want %v", i, counts, want)
	}
	if got := state["time"].(object)["offset_ms"]; got != float64((i+1)*60_000) {
		s.t.Errorf("namespace %d is %v ms off", i, got)
	}
}

func BenchmarkCreateNamespace(b *testing.B) {
	h := newTestLab(b)
	l := h.handler.(*labFront).lab
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.newNamespace("name"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResetNamespace(b *testing.B) {
	s := newTestLab(b).space("name")
	for b.Loop() {
		s.post("/lab/reset", nil).want(204)
	}
}

func BenchmarkResetAfterUse(b *testing.B) {
	s := newTestLab(b).space("name")
	for b.Loop() {
		b.StopTimer()
		for range 10 {
			s.me(s.login("demo").access)
		}
		b.StartTimer()
		s.post("/lab/reset", nil).want(204)
	}
}

// FuzzLab sends anything at all to the lab's routes: never a 5xx, never a panic.
func FuzzLab(f *testing.F) {
	routes := patternsOf(labTable())
	for i := range routes {
		f.Add(i, `{"operation":"me","status":503,"headers":{"Retry-After":"1"},"body":{"a":1},"times":2}`)
		f.Add(i, `{"advance":"16m","frozen":true}`)
		f.Add(i, `{"user":"demo","kind":"refresh","defect":"tampered","claims":{"sub":"x","nbf":1,"a":{"b":[null]}}}`)
		f.Add(i, `{"operation":"me","count":{"at_most":0},"within":"1ms"}`)
		f.Add(i, `{"version":1,"time":{"offset_ms":1},"policy":{"reuse":"grace","grace":"1s"},"faults":[{"operation":"*","delay":"1s"}],"users":[],"sessions":[],"files":{"modified":"2026-01-01T00:00:00Z","barrier":"e30K","impact":"","alertesph":""}}`)
	}
	h := newTestLab(f)
	f.Fuzz(func(t *testing.T, route int, body string) {
		method, path, _ := strings.Cut(routes[(route%len(routes)+len(routes))%len(routes)], " ")
		if strings.Contains(body, "within") && !strings.Contains(body, "ms") {
			return // not to wait for seconds
		}
		s := h.space("fuzzed")
		s.t = t
		got := s.do(method, strings.NewReplacer("{sid}", "s", "{id}", "f1").Replace(path), body, "Content-Type", "application/json")
		if got.status >= 500 {
			t.Errorf("%s %s %q: %d %s", method, path, body, got.status, got.body)
		}
		s.post("/lab/reset", nil).want(204)
	})
}

// What 10,000 idle namespaces weigh: go test -run TestNamespaceWeight -v
func TestNamespaceWeight(t *testing.T) {
	h := newTestLab(t)
	before := heapInUse()
	for i := range maxNamespaces {
		h.lab(t, fmt.Sprint("n", i))
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
