package hubtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"authhub/hubtest"
)

// session is what a login answers with.
type session struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func logIn(t *testing.T, hub *hubtest.Hub) (s session) {
	t.Helper()
	resp, err := http.PostForm(hub.URL+"/api/authentication/login", url.Values{"username": {"demo"}, "password": {"demo-password"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || s.Access == "" {
		t.Fatalf("login: %s, %v", resp.Status, err)
	}
	return s
}

func me(t *testing.T, hub *hubtest.Hub, s session) int {
	t.Helper()
	req, _ := http.NewRequest("GET", hub.URL+"/api/authentication/me", nil)
	req.Header.Set("Authorization", "Bearer "+s.Access)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestEachStartIsAHubOfItsOwn(t *testing.T) {
	t.Parallel()
	one, other := hubtest.Start(t), hubtest.Start(t)
	s := logIn(t, one)
	if got := me(t, one, s); got != 200 {
		t.Errorf("at its own hub: %d", got)
	}
	if got := me(t, other, s); got != 401 {
		t.Errorf("at the other hub: %d", got)
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	s := logIn(t, hub)
	hub.Advance(16 * time.Minute)
	if got := me(t, hub, s); got != 401 {
		t.Errorf("an expired token: %d", got)
	}
	if f := hub.Findings(); len(f) != 1 || !strings.HasPrefix(f[0], "no_refresh_after_expiry: ") {
		t.Errorf("findings: %q", f)
	}
}

func TestFaultAndExpect(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	s := logIn(t, hub)
	hub.Fault(`{"operation":"me","status":503}`)
	if got := []int{me(t, hub, s), me(t, hub, s)}; !slices.Equal(got, []int{503, 200}) {
		t.Errorf("got %v", got)
	}
	hub.Expect(`{"operation":"me","count":{"exactly":2},"within":"50ms"}`)
	hub.NoFindings()
}

// The hub ends when its standard input closes, so nothing may collect this process's end of that pipe.
func TestTheHubOutlivesAGarbageCollection(t *testing.T) {
	hub := hubtest.Start(t)
	for range 3 {
		runtime.GC()
		logIn(t, hub)
	}
}

// TestHelper is the failing test that TestFailuresAreExplained runs; alone it does nothing.
func TestHelper(t *testing.T) {
	if os.Getenv("HUBTEST_FAIL") == "" {
		t.Skip("run by TestFailuresAreExplained")
	}
	hub := hubtest.Start(t)
	s := logIn(t, hub)
	hub.Advance(16 * time.Minute)
	me(t, hub, s)
	fmt.Println("namespace", hub.URL)
	hub.NoFindings()
}

// A failed test logs what the hub received, and the hub is gone when the test binary is.
func TestFailuresAreExplained(t *testing.T) {
	t.Parallel()
	failing := exec.Command(os.Args[0], "-test.run", "^TestHelper$", "-test.v")
	failing.Env = append(os.Environ(), "HUBTEST_FAIL=1")
	out, err := failing.CombinedOutput()
	if err == nil {
		t.Fatalf("it passes:\n%s", out)
	}
	for _, want := range []string{
		"#2 GET /api/authentication/me 401 token_expired expired access token",
		"no_refresh_after_expiry: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
	_, after, _ := strings.Cut(string(out), "namespace ")
	address, _, _ := strings.Cut(after, "\n")
	for deadline := time.Now().Add(10 * time.Second); ; {
		resp, err := http.Get(address + "/lab")
		if err != nil {
			return
		}
		resp.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("the hub outlives its test binary")
		}
	}
}
