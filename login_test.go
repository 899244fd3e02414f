// Guessing at passwords: equal answers after equal work, the throttle, and the gate in front of the hashes.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"authhub/internal/passwd"
)

// guesses are logins that fail, one for each thing that can be wrong.
var guesses = []struct {
	what string
	body map[string]string
}{
	{"unknown user", map[string]string{"username": "nobody", "password": "guess-guess"}},
	{"unknown e-mail address", map[string]string{"email": "nobody@example.test", "password": "guess-guess"}},
	{"name longer than any", map[string]string{"username": strings.Repeat("n", 300), "password": "guess-guess"}},
	{"wrong password of a seed", guessAt("demo")},
	{"wrong password at an e-mail address", map[string]string{"email": "demo@example.test", "password": "guess-guess"}},
	{"wrong password of a registered user", guessAt("registered")},
	{"wrong password of a disabled user", guessAt("disabled")},
	{"password of somebody else", map[string]string{"username": "demo", "password": "admin-password"}},
}

func guessAt(username string) map[string]string {
	return map[string]string{"username": username, "password": "guess-guess"}
}

// right is the login of a demo account.
func right(username string) map[string]string {
	return map[string]string{"username": username, "password": username + "-password"}
}

// TestLoginTellsNothing: whatever is wrong, one derivation of the same number of rounds, and the same answer.
func TestLoginTellsNothing(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.post(registerPath, right("registered")).want(201)
	var rounds []int
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, n int) ([]byte, error) {
		rounds = append(rounds, n)
		return derive(password, salt, n)
	}
	var first *answer
	for _, guess := range guesses {
		rounds = nil
		a := h.post(loginPath, guess.body).want(401, "invalid_credentials")
		if !slices.Equal(rounds, []int{passwd.EphemeralRounds}) {
			t.Errorf("%s: derivations of %v rounds, want one of %d", guess.what, rounds, passwd.EphemeralRounds)
		}
		if first == nil {
			first = a
		}
		if string(a.body) != string(first.body) || fmt.Sprint(a.header) != fmt.Sprint(first.header) {
			t.Errorf("%s: another answer than for %s\n%v %s\n%v %s", guess.what, guesses[0].what, a.header, a.body, first.header, first.body)
		}
	}
	h.post(loginPath, right("disabled")).want(403, "account_disabled")
}

// TestLoginTakesEquallyLong measures: by the rank-sum test of Mann and Whitney the times of guesses at a user that
// there is and at one that there isn't come from one distribution.
func TestLoginTakesEquallyLong(t *testing.T) {
	h := newTestHub(t)
	h.hasher = passwd.NewHasher(500)
	const samples = 300
	type sample struct {
		took   time.Duration
		exists bool
	}
	var all []sample
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 2 * samples {
		exists := i%2 == random.IntN(2)
		name := fmt.Sprintf("user-%d", i)
		if exists {
			name = "demo"
		}
		r := loginRequest(guessAt(name))
		r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)
		w := httptest.NewRecorder()
		start := time.Now()
		h.handler.ServeHTTP(w, r)
		all = append(all, sample{time.Since(start), exists})
		if w.Code != 401 {
			t.Fatal(w.Code, w.Body)
		}
	}
	median := func(exists bool) time.Duration {
		some := slices.DeleteFunc(slices.Clone(all), func(s sample) bool { return s.exists != exists })
		return some[len(some)/2].took
	}
	slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(a.took, b.took) })
	ranks, n := 0.0, 0.0
	for i, s := range all {
		if s.exists {
			ranks, n = ranks+float64(i+1), n+1
		}
	}
	m := float64(len(all)) - n
	z := (ranks - n*(n+m+1)/2) / math.Sqrt(n*m*(n+m+1)/12)
	t.Logf("median %v for a user, %v for nobody; z = %.2f", median(true), median(false), z)
	if math.Abs(z) > 5 {
		t.Errorf("the times tell users from others: z = %.2f", z)
	}
}

// loginRequest is a request that a test sends with a context or from an address of its own.
func loginRequest(form map[string]string) *http.Request {
	body, _ := json.Marshal(form)
	r := httptest.NewRequest("POST", loginPath, bytes.NewReader(body))
	r.Host = "hub.test"
	r.Header.Set("Content-Type", "application/json")
	return r
}

// from returns the same hub for a client at another address.
func (h *testHub) from(remote string) *testHub {
	other := *h
	other.remote = remote
	return &other
}

// burst sends n of the same login at once and counts the answers by status.
func (h *testHub) burst(n int, login map[string]string) map[int]int {
	var mu sync.Mutex
	counts := map[int]int{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			a := h.post(loginPath, login)
			mu.Lock()
			defer mu.Unlock()
			counts[a.status]++
		})
	}
	all.Wait()
	return counts
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	var tries atomic.Int64
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, n int) ([]byte, error) {
		tries.Add(1)
		return derive(password, salt, n)
	}

	for round := range 2 {
		tries.Store(0)
		if got := h.burst(100, guessAt("demo")); got[401] != 10 || got[429] != 90 || tries.Load() != 10 {
			t.Errorf("round %d: 100 guesses at once: %v after %d tries, want 10 tries", round, got, tries.Load())
		}
		h.clock.advance(10 * time.Second)
		refused := h.post(loginPath, right("demo")).want(429, "too_many_attempts")
		if got := refused.header.Get("Retry-After"); got != "50" {
			t.Errorf("Retry-After %s ten seconds later, want 50", got)
		}
		h.from("127.0.0.1:2000").post(loginPath, map[string]string{"username": "DEMO", "password": "demo-password"}).want(429)
		h.from("10.0.0.2:1000").post(loginPath, right("demo")).want(200)
		h.post(loginPath, right("admin")).want(200)
		h.clock.advance(50*time.Second - time.Millisecond)
		h.post(loginPath, right("demo")).want(429)
		h.clock.advance(time.Millisecond)
	}
	h.post(loginPath, right("demo")).want(200)
}

// TestThrottleCountsWhatIsUnderWay: of guesses that are all sent before the first has come to an end, ten are tried.
func TestThrottleCountsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		got := make(chan map[int]int)
		h.whileGateIsFull(func() {
			go func() { got <- h.burst(100, guessAt("demo")) }()
			synctest.Wait()
			if n := h.hasher.Waiting(); n != 10 {
				t.Errorf("%d guesses under way, want 10", n)
			}
		})
		if counts := <-got; counts[401] != 10 || counts[429] != 90 {
			t.Errorf("%v", counts)
		}
	})
}

// TestThrottleForgivesNothing: an attempt that comes to no decision, because its client leaves, clears no failures.
func TestThrottleForgivesNothing(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	wrong := guessAt("demo")
	for range 9 {
		h.post(loginPath, wrong).want(401, "invalid_credentials")
	}
	h.whileGateIsFull(func() {
		gone, leave := context.WithCancel(t.Context())
		leave()
		r := loginRequest(wrong).WithContext(gone)
		r.RemoteAddr = h.remote
		w := httptest.NewRecorder()
		if h.handler.ServeHTTP(w, r); w.Code != 503 {
			t.Errorf("an answer without a decision: %d", w.Code)
		}
	})
	h.post(loginPath, wrong).want(401, "invalid_credentials")
	h.post(loginPath, wrong).want(429, "too_many_attempts")
}

// TestValidLoginsAreNotThrottled: who knows the password may log in as often at once as it likes.
func TestValidLoginsAreNotThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub(t)
		got := make(chan map[int]int)
		h.whileGateIsFull(func() {
			go func() { got <- h.burst(50, right("demo")) }()
			synctest.Wait()
		})
		if counts := <-got; counts[200] != 50 {
			t.Errorf("50 valid logins at once: %v", counts)
		}
	})
}

// whileGateIsFull calls do while no hash ends.
func (h *testHub) whileGateIsFull(do func()) {
	release := make(chan struct{})
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, rounds int) ([]byte, error) {
		<-release
		return derive(password, salt, rounds)
	}
	do()
	close(release)
}

// TestHashGate: while more logins wait than the queue holds, as many hashes run as may, the surplus is told to
// come again, and everything else stays quick.
func TestHashGate(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	demo := h.login("demo")
	const surplus = 100
	var running, most atomic.Int64
	release := make(chan struct{})
	h.hasher.KDF = func(string, []byte, int) ([]byte, error) {
		defer running.Add(-1)
		for n := running.Add(1); ; {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		<-release
		return make([]byte, 32), nil
	}
	answers := make(chan *answer, 1_000+surplus)
	for i := range 1_000 + surplus {
		go func() {
			answers <- h.post(loginPath, guessAt(fmt.Sprintf("user-%d", i)))
		}()
	}
	for range surplus {
		if a := (<-answers).want(503, "busy"); a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	h.me(demo.access).want(200)
	h.refreshWith(demo.refresh).want(200)
	close(release)
	for range 1_000 {
		(<-answers).want(401, "invalid_credentials")
	}
	if got, limit := most.Load(), max(1, runtime.GOMAXPROCS(0)-1); got > int64(limit) {
		t.Errorf("%d hashes at once, want at most %d", got, limit)
	}
}

// TestQuickWhileLoginsWait measures me while 500 logins hash for real.
func TestQuickWhileLoginsWait(t *testing.T) {
	h := newTestHub(t)
	demo := h.login("demo")
	h.hasher = passwd.NewHasher(100_000)
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for i := range 500 {
		waiting.Go(func() {
			r := loginRequest(guessAt(fmt.Sprintf("user-%d", i)))
			h.handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		})
	}
	eventually(t, "logins wait", func() bool { return h.hasher.Waiting() > 400 })
	var took []time.Duration
	for range 1_000 {
		start := time.Now()
		h.me(demo.access).want(200)
		took = append(took, time.Since(start))
	}
	leave()
	waiting.Wait()
	slices.Sort(took)
	t.Logf("me while 500 logins wait: median %v, p99 %v, worst %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	if p99 := took[len(took)*99/100]; p99 > 250*time.Millisecond {
		t.Errorf("p99 of me is %v", p99)
	}
}
