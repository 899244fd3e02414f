package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/disk"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/results"
)

// How cost grows with what a hub holds: BENCHMARKS.md has the figures, each table from one command
//
//	go test -run '^$' -bench Growth/users .
//
// MB is the heap that the growing thing takes, after a collection. How a run grows with its rows is bench/rows' to say.
func BenchmarkGrowth(b *testing.B) {
	for name, sizes := range map[string]struct {
		from, to int
		measure  func(b *testing.B, n int)
	}{
		"users":      {100, 100_000, growUsers},
		"sessions":   {1_000, 1_000_000, growSessions},
		"journal":    {1_000, 1_000_000, growJournal},
		"clients":    {1, 1_000, growClients},
		"file":       {10_000, 100_000_000, growFile},
		"namespaces": {1, 10_000, growNamespaces},
	} {
		b.Run(name, func(b *testing.B) {
			for n := sizes.from; n <= sizes.to; n *= 10 {
				b.Run(fmt.Sprint(n), func(b *testing.B) { sizes.measure(b, n) })
			}
		})
	}
}

// growUsers measures a login, with n users whose passwords are known or, from 20,000 on, mostly are not.
func growUsers(b *testing.B, n int) {
	before := liveMB()
	h := newTestHub(b)
	seeds := make([]*account.User, n)
	for i := range seeds {
		name := fmt.Sprintf("user-%06d", i)
		seeds[i] = &account.User{ID: name, Username: name, Email: name + "@example.test", Role: "user", Seed: true, Credential: passwd.Plain("a password of " + name)}
	}
	var err error
	if h.store, err = account.NewMemory(seeds); err != nil {
		b.Fatal(err)
	}
	held := liveMB() - before
	handler, r := benchEdge(h), newBenchRequest(b, "POST", "/api/authentication/login", "Content-Type", "application/json")
	for i := range min(n, 20_000) {
		name := seeds[i].Username
		r.send(handler, http.StatusOK, `{"username":"`+name+`","password":"a password of `+name+`"}`)
	}
	for b.Loop() {
		name := seeds[rand.IntN(n)].Username
		r.send(handler, http.StatusOK, `{"username":"`+name+`","password":"a password of `+name+`"}`)
	}
	b.ReportMetric(held, "MB")
}

// growSessions measures a refresh of any of n sessions, of which a user has a thousand.
func growSessions(b *testing.B, n int) {
	before := liveMB()
	h := newTestHub(b)
	refs := fillSessions(b, h.embedded(), n, h.now())
	held := liveMB() - before
	handler, r := benchEdge(h), newBenchRequest(b, "POST", "/api/authentication/refresh", "Content-Type", "application/json")
	for b.Loop() {
		s, u, err := h.store.Live(b.Context(), refs[rand.IntN(n)])
		if err != nil {
			b.Fatal(err)
		}
		r.send(handler, http.StatusOK, refreshOrder(h, &s, u))
	}
	b.ReportMetric(held, "MB")
}

// fillSessions starts n sessions and returns what finds them.
func fillSessions(b *testing.B, s *account.Embedded, n int, now time.Time) []account.SessionRef {
	hash := "$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	var users []account.UserRecord
	refs, sessions := make([]account.SessionRef, n), make([]account.Session, n)
	for i := range refs {
		name := fmt.Sprintf("user-%06d", i/1_000)
		if i%1_000 == 0 {
			users = append(users, account.UserRecord{ID: name, Username: name, Role: "user", Hash: hash})
		}
		sessions[i] = account.Session{ID: fmt.Sprintf("%022d", i), User: name, Created: now.UnixMilli(), AccessTTL: 900_000, RefreshTTL: 604_800_000, Issued: now.UnixMilli()}
		refs[i] = sessions[i].Ref()
	}
	if err := s.ReplaceAll(b.Context(), users, sessions); err != nil {
		b.Fatal(err)
	}
	return refs
}

// growJournal measures a start with a journal of n live sessions.
func growJournal(b *testing.B, n int) {
	path, log := filepath.Join(b.TempDir(), "journal"), slog.New(slog.DiscardHandler)
	s, err := account.Open(disk.OS{}, path, nil, log)
	if err != nil {
		b.Fatal(err)
	}
	fillSessions(b, s, n, time.Now())
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	s = nil
	before, held := liveMB(), 0.0
	for b.Loop() {
		opened, err := account.Open(disk.OS{}, path, nil, log)
		if err != nil || opened.LiveRecords() < n {
			b.Fatal(opened.LiveRecords(), err)
		}
		if held == 0 {
			b.StopTimer()
			held = liveMB() - before
			b.StartTimer()
		}
		opened.Close()
	}
	b.ReportMetric(held, "MB")
	b.ReportMetric(float64(info.Size())/1e6, "file-MB")
}

// growClients measures refreshes on a folder by n clients at once: ns/op is the time between two answers.
func growClients(b *testing.B, n int) {
	h := newTestHub(b, "-dir", filepath.Join(b.TempDir(), "hub"))
	handler := benchEdge(h)
	refs := fillSessions(b, h.embedded(), n, h.now())
	var left atomic.Int64
	left.Store(int64(b.N))
	var clients sync.WaitGroup
	b.ResetTimer()
	for _, ref := range refs {
		clients.Go(func() {
			r := newBenchRequest(b, "POST", "/api/authentication/refresh", "Content-Type", "application/json")
			for left.Add(-1) >= 0 {
				s, u, _ := h.store.Live(b.Context(), ref)
				r.send(handler, http.StatusOK, refreshOrder(h, &s, u))
			}
		})
	}
	clients.Wait()
}

// growFile measures a GET of a file of n bytes.
func growFile(b *testing.B, n int) {
	h := newTestHub(b, "-dir", filepath.Join(b.TempDir(), "hub"))
	if err := os.WriteFile(filepath.Join(h.output.Path(), results.Barrier.Name()), make([]byte, n), 0o600); err != nil {
		b.Fatal(err)
	}
	handler, r := benchEdge(h), newBenchRequest(b, "GET", "/api/files/phase2/barrier")
	before := liveMB()
	r.send(handler, http.StatusOK, "")
	r.writer.body = nil // the benchmark keeps a buffer of its own
	held := liveMB() - before
	r.send(handler, http.StatusOK, "")
	b.SetBytes(int64(n))
	for b.Loop() {
		r.send(handler, http.StatusOK, "")
	}
	b.ReportMetric(held, "MB")
}

// growNamespaces measures GET me in any of n namespaces, in each of which somebody has logged in.
func growNamespaces(b *testing.B, n int) {
	before := liveMB()
	h := newTestLab(b)
	handler := h.handler
	login := newBenchRequest(b, "POST", "/", "Content-Type", "application/json")
	requests := make([]*benchRequest, n)
	for i := range requests {
		base := fmt.Sprintf("/ns/n%d/api/authentication/", i)
		login.request.URL.Path = base + "login"
		answer := login.send(handler, http.StatusOK, `{"username":"demo","password":"demo-password"}`)
		requests[i] = newBenchRequest(b, "GET", base+"me", bearerOf(member(answer, "access_token"))...)
	}
	held := liveMB() - before
	for b.Loop() {
		requests[rand.IntN(n)].send(handler, http.StatusOK, "")
	}
	b.ReportMetric(held, "MB")
}

// refreshOrder is the body that refreshes s.
func refreshOrder(h *testHub, s *account.Session, u *account.User) string {
	c := s.Claims(jwt.Refresh, u)
	return `{"refresh_token":"` + string(h.signer.Append(nil, &c)) + `"}`
}

func liveMB() float64 { return float64(heapInUse()) / 1e6 }

// heapInUse returns the bytes of what is reachable. It counts the whole process, so it is no test for parallel company.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
