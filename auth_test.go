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
	"authhub/internal/testkit"
)

const (
	registerPath = "/api/authentication/register"
	loginPath    = "/api/authentication/login"
	mePath       = "/api/authentication/me"
	refreshPath  = "/api/authentication/refresh"
	logoutPath   = "/api/authentication/logout"
)

// TestALifeOfASession goes once through every operation on accounts; internal/e2e tells the rest from outside.
func TestALifeOfASession(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	first := h.post(registerPath, object{"username": "kim", "password": "correct horse"}).Want(201).Pair()
	h.post(registerPath, object{"username": "KIM", "password": "correct horse"}).Want(409, "username_taken")
	h.post(loginPath, object{"username": "kim", "password": "wrong horse"}).Want(401, "invalid_credentials")
	h.me(first.Access).Want(200)

	h.clock.Advance(15 * time.Minute)
	h.me(first.Access).Want(401, "token_expired")
	second := h.refreshWith(first.Refresh).Want(200).Pair()
	h.me(second.Access).Want(200)

	h.post(logoutPath, nil, bearerOf(second.Access)...).Want(204)
	h.me(second.Access).Want(401, "token_revoked")
	h.refreshWith(second.Refresh).Want(401, "token_revoked")

	stolen := h.post(loginPath, object{"username": "kim", "password": "correct horse"}).Want(200).Pair()
	third := h.refreshWith(stolen.Refresh).Want(200).Pair()
	h.refreshWith(stolen.Refresh).Want(401, "token_reused")
	h.me(third.Access).Want(401, "token_revoked")
}

func TestLogoutRefusesAQueryThatItWouldIgnore(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	pair := h.login("demo")
	for query, field := range map[string]string{"all": "all", "all=": "all", "ALL=true": "ALL", "all=yes": "all", "all=true&all=false": "all", "everywhere=1": "everywhere"} {
		refused := h.post(logoutPath+"?"+query, nil, bearerOf(pair.Access)...).Want(422, "invalid_field")
		if got := refused.JSON()["errors"].([]any)[0].(map[string]any)["field"]; got != field {
			t.Errorf("%s: field %v", query, got)
		}
	}
	h.me(pair.Access).Want(200)
	h.post(logoutPath+"?all=false", nil, bearerOf(pair.Access)...).Want(204)
}

func TestAPairGivenAgainSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.do("PUT", "/lab/refresh-policy", object{"reuse": "grace", "grace": "1h"}).Want(200)
	pair := h.login("demo")
	h.post(refreshPath, object{"refresh_token": pair.Refresh}).Want(200)
	for _, row := range []struct {
		advance       string
		left, refresh float64
	}{{"5m", 600, 604800 - 300}, {"11m", 0, 604800 - 960}} {
		h.do("PUT", "/lab/clock", object{"advance": row.advance}).Want(200)
		again := h.post(refreshPath, object{"refresh_token": pair.Refresh}).Want(200).JSON()
		if again["expires_in"] != row.left || again["refresh_expires_in"] != row.refresh {
			t.Errorf("after %s: %v and %v, want %v and %v", row.advance, again["expires_in"], again["refresh_expires_in"], row.left, row.refresh)
		}
	}
}

func BenchmarkMe(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	r := newBenchRequest(b, "GET", mePath, bearerOf(h.login("demo").Access)...)
	b.ReportAllocs()
	for b.Loop() {
		r.send(handler, http.StatusOK, "")
	}
}

func BenchmarkLogin(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	h.login("demo") // from here on the password is known
	r := newBenchRequest(b, "POST", loginPath, "Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		r.send(handler, http.StatusOK, `{"username":"demo","password":"demo-password"}`)
	}
}

func BenchmarkRefresh(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	token := h.login("demo").Refresh
	r := newBenchRequest(b, "POST", refreshPath, "Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		answer := r.send(handler, http.StatusOK, `{"refresh_token":"`+token+`"}`)
		token = member(answer, "refresh_token")
	}
}

// TestWhatNoAccountCanHaveIsNotHashed: what no account can have is refused before it costs a hash or is remembered.
func TestWhatNoAccountCanHaveIsNotHashed(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	hashed := false
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, n int) ([]byte, error) {
		hashed = true
		return derive(password, salt, n)
	}
	long := strings.Repeat("n", 30_000)
	h.post(registerPath, right(long)).Want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": "password-1", "email": long + "@a.test"}).Want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": "password-1", "name": long}).Want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": long}).Want(422, "invalid_field")
	if hashed {
		t.Error("a registration that can't be was hashed")
	}
}

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
	h.post(registerPath, right("registered")).Want(201)
	var rounds []int
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, n int) ([]byte, error) {
		rounds = append(rounds, n)
		return derive(password, salt, n)
	}
	var first *answer
	for _, guess := range guesses {
		rounds = nil
		a := h.post(loginPath, guess.body).Want(401, "invalid_credentials")
		if !slices.Equal(rounds, []int{passwd.EphemeralRounds}) {
			t.Errorf("%s: derivations of %v rounds, want one of %d", guess.what, rounds, passwd.EphemeralRounds)
		}
		if first == nil {
			first = a
		}
		if string(a.Body) != string(first.Body) || fmt.Sprint(a.Header) != fmt.Sprint(first.Header) {
			t.Errorf("%s: another answer than for %s\n%v %s\n%v %s", guess.what, guesses[0].what, a.Header, a.Body, first.Header, first.Body)
		}
	}
	h.post(loginPath, right("disabled")).Want(403, "account_disabled")
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
			counts[a.Status]++
		})
	}
	all.Wait()
	return counts
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
		h.post(loginPath, wrong).Want(401, "invalid_credentials")
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
	h.post(loginPath, wrong).Want(401, "invalid_credentials")
	h.post(loginPath, wrong).Want(429, "too_many_attempts")
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

// TestLoginsBeyondTheQueueAreToldToComeAgain: while more logins wait than the queue holds, as many hashes run as may,
// the surplus is told to come again, and everything else stays quick.
func TestLoginsBeyondTheQueueAreToldToComeAgain(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	demo := h.login("demo")
	const room, surplus = 1_000, 100 // hashes that run have a place, too
	slots := max(1, runtime.GOMAXPROCS(0)-1)
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
	answers := make(chan *answer, room+surplus)
	for i := range room + surplus {
		go func() {
			answers <- h.post(loginPath, guessAt(fmt.Sprintf("user-%d", i)))
		}()
	}
	for range surplus {
		if a := (<-answers).Want(503, "busy"); a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	h.me(demo.Access).Want(200)
	h.refreshWith(demo.Refresh).Want(200)
	close(release)
	for range room {
		(<-answers).Want(401, "invalid_credentials")
	}
	if got := most.Load(); got > int64(slots) {
		t.Errorf("%d hashes at once, want at most %d", got, slots)
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
	testkit.Eventually(t, "logins wait", func() bool { return h.hasher.Waiting() > 400 })
	var took []time.Duration
	for range 1_000 {
		start := time.Now()
		h.me(demo.Access).Want(200)
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
