// Loads and floods: more of everything than a hub takes. Who is refused is told why.

package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"authhub/internal/testkit"
)

// Each of many namespaces lives through the same story at once; any trace of another one fails it.
func TestManyNamespacesUnderLoad(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 200 {
		h := newHub(t)
		all.Go(func() { liveAlone(h, i) })
	}
	all.Wait()
}

// liveAlone fails the test if the namespace of s holds anything but what it puts there itself.
func liveAlone(s *hub, i int) {
	name := fmt.Sprint("user-of-", i)
	s.post(registerPath, object{"username": name, "password": "a password"}).Want(201)
	pair := s.login("demo")
	s.do("PUT", "/lab/clock", object{"advance": fmt.Sprintf("%dm", i+1)}).Want(200)
	if i%2 == 0 {
		s.fault(object{"operation": "me", "status": 500 + i%90})
		s.me(pair.Access).Want(500+i%90, "injected")
	}
	refreshed := s.refresh(pair.Refresh).Want(200).Pair()
	s.me(refreshed.Access).Want(200)
	if i%3 == 0 {
		s.refresh(pair.Refresh).Want(401, "token_reused")
	}

	state := s.get("/lab").Want(200).JSON()
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

// TestSessionFlood: one user's logins hold a bounded number of sessions, the oldest make room.
func TestSessionFlood(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	oldest, second, admin := h.login("demo"), h.login("demo"), h.login("admin")
	for range 1_000 - 2 {
		h.login("demo")
	}
	h.me(oldest.Access).Want(200)
	h.login("demo")
	h.me(oldest.Access).Want(401, "token_revoked")
	h.refresh(oldest.Refresh).Want(401, "token_revoked")
	h.me(second.Access).Want(200)
	h.me(admin.Access).Want(200)
	if n := len(h.sessions()); n != 1_000+1 {
		t.Errorf("%d sessions", n)
	}
}

// TestUploadFlood: bodies that wait on the disk have a number that they don't exceed.
func TestUploadFlood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	half := len(fourReadings) / 2
	var uploads []*bufio.ReadWriter
	for range 32 {
		c := testkit.Dial(t, h.addr())
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", runPath, len(fourReadings))
		upload := bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
		if line, err := upload.ReadString('\n'); !strings.Contains(line, "100") { // the hub has begun to read
			t.Fatal(line, err)
		}
		upload.ReadString('\n')
		upload.WriteString(fourReadings[:half])
		upload.Flush()
		uploads = append(uploads, upload)
	}
	h.upload(fourReadings).Want(503, "busy")
	h.post(runPath, nil).Want(200) // without a body there is room
	for _, upload := range uploads {
		upload.WriteString(fourReadings[half:])
		upload.Flush()
		resp, err := http.ReadResponse(upload.Reader, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("an upload that was let in: %v, %v", resp, err)
		}
	}
	h.upload(fourReadings).Want(200)
	if names := testkit.List(t, filepath.Join(dir, "phase2")); len(names) != 3 {
		t.Errorf("left behind: %v", names)
	}
}

// TestQueriesThatCannotBeRead are refused, not read as far as they go.
func TestQueriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	demo := h.login("demo")
	for _, query := range []string{"?low=7;high=8", "?low=%zz", "?all=true;x", "?all=%"} {
		h.post(runPath+query, nil).Want(422, "invalid_field")
		h.post(logoutPath+query, nil, bearer(demo.Access)...).Want(422, "invalid_field")
	}
	h.me(demo.Access).Want(200)
}

// TestNamespacesTakeTurnsAtLogins: while one namespace has hundreds of guesses waiting, a guess in another one waits
// for a few of them, not for all.
func TestNamespacesTakeTurnsAtLogins(t *testing.T) {
	t.Parallel()
	const flood = 200
	h := start(t, "-lab", "-dir", t.TempDir()) // hashes of the full 600,000 rounds
	greedy, modest := h.space("greedy"), h.space("modest")
	var sent, answered atomic.Int64
	inParallel(flood, func() {
		name := fmt.Sprint("user", sent.Add(1))
		if a, err := greedy.try("POST", loginPath, wrong(name)); err == nil && a.Status == http.StatusUnauthorized {
			answered.Add(1) // on a busy machine others are told that they have waited for too long
		}
	})
	testkit.Eventually(t, "the first of the flood are answered", func() bool { return sent.Load() == flood && answered.Load() > 2 })
	before := answered.Load()
	modest.post(loginPath, wrong("demo")).Want(401, "invalid_credentials")
	if served := answered.Load() - before; served > flood/4 {
		t.Errorf("%d of the flood were served before the other namespace's one", served)
	}
	h.process.kill()
}
