// What clients see of several hubs on one cluster.

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/engine/enginetest"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/testkit"
)

// TestThreeHubsAreOne: who registers on one, logs in on the second and is logged out on the third; files and runs, too.
func TestThreeHubsAreOne(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 1)
	dir := t.TempDir()
	var hubs []*hub
	for range 3 {
		hubs = append(hubs, startHub(t, "-store", cluster.Address()+"/story", "-dir", dir))
	}
	a, b, c := hubs[0], hubs[1], hubs[2]

	registered := a.register("alice").want(t, 201, "")
	b.register("ALICE").want(t, 409, "username_taken")
	loggedIn := b.login("alice", "password-1").want(t, 200, "")
	b.login("alice", "wrong-password").want(t, 401, "invalid_credentials")
	c.login("demo", "demo-password").want(t, 200, "")
	refreshed := c.refresh(loggedIn.Refresh).want(t, 200, "")
	c.logout(refreshed.Access).want(t, 204, "")
	for _, h := range hubs {
		h.me(refreshed.Access).want(t, 401, "token_revoked")
		h.me(registered.Access).want(t, 200, "")
	}
	a.refresh(registered.Refresh).want(t, 200, "")
	b.refresh(registered.Refresh).want(t, 401, "token_reused")
	c.me(registered.Access).want(t, 401, "token_revoked")

	ask("GET", a.base+runPath, "", "").want(t, 404, "no_run")
	ask("GET", a.base+filesPath+"/barrier", "", "").want(t, 404, "file_unavailable")
	ask("POST", b.base+runPath, "", "").want(t, 200, "")
	var listings, barriers, records []string
	for _, h := range hubs {
		listings = append(listings, string(ask("GET", h.base+filesPath, "", "").want(t, 200, "").Body))
		barrier := ask("GET", h.base+filesPath+"/barrier", "", "").want(t, 200, "")
		barriers = append(barriers, barrier.Header.Get("Etag")+string(barrier.Body))
		records = append(records, sameMembers(t, ask("GET", h.base+runPath, "", "").want(t, 200, "").Body))
	}
	for i := range hubs {
		if listings[i] != listings[0] || barriers[i] != barriers[0] || records[i] != records[0] {
			t.Errorf("hub %d says something else than the first", i)
		}
	}
	if !strings.Contains(records[0], `"status":"succeeded"`) || !strings.Contains(listings[0], `"available":true`) {
		t.Errorf("%s\n%s", records[0], listings[0])
	}

	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "sets" {
		t.Errorf("-dir holds more than sets: %v, %v", entries, err)
	}
	health := ask("GET", a.base+"/healthz", "", "").want(t, 200, "")
	if !strings.Contains(string(health.Body), `"missing":[]`) {
		t.Errorf("%s", health.Body)
	}
}

// sameMembers returns a JSON object with its members in the order of their names.
func sameMembers(t testing.TB, body []byte) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	sorted, _ := json.Marshal(object)
	return string(sorted)
}

// TestRacesOverTwoHubs: of 64 refreshes with one token exactly one wins, whichever hubs they land on.
func TestRacesOverTwoHubs(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 1)
	hubs := []*hub{startQuickHub(t, "-store", cluster.Address(), "-dir", t.TempDir()), startQuickHub(t, "-store", cluster.Address(), "-dir", t.TempDir())}
	for range testkit.Times(3, 10) {
		pair := hubs[0].login("demo", "demo-password").want(t, 200, "")
		answers := make([]answer, 64)
		var racing sync.WaitGroup
		for i := range answers {
			racing.Go(func() { answers[i] = hubs[i%2].refresh(pair.Refresh) })
		}
		racing.Wait()
		winners := 0
		for _, a := range answers {
			switch {
			case a.Status == 200:
				winners++
			case a.Code != "token_reused":
				t.Errorf("%d %s", a.Status, a.Body)
			}
		}
		if winners != 1 {
			t.Errorf("%d winners", winners)
		}
		hubs[1].me(pair.Access).want(t, 401, "token_revoked")
	}
}

// TestLogoutIsNeverStale: after a logout on one hub is acknowledged, me on the other refuses, every time.
func TestLogoutIsNeverStale(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 1)
	dir := t.TempDir()
	hubs := []*hub{startQuickHub(t, "-store", cluster.Address(), "-dir", dir), startQuickHub(t, "-store", cluster.Address(), "-dir", dir)}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for i := range testkit.Times(5, 25) {
				pair := hubs[i%2].login("demo", "demo-password")
				if a := hubs[(i+1)%2].me(pair.Access); a.Status != 200 {
					t.Errorf("me after login: %d %s", a.Status, a.Body)
				}
				hubs[i%2].logout(pair.Access)
				if a := hubs[(i+1)%2].me(pair.Access); a.Code != "token_revoked" {
					t.Errorf("me after logout: %d %s", a.Status, a.Body)
				}
			}
		})
	}
	clients.Wait()
}

// TestStartIsRefused: one clear line, with the right exit status, for each way in which -store can't work.
func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	secret := []string{testSecret}
	const nobody = "http://127.0.0.1:1" // a free port may be another test's by the time the hub asks
	silent := etcdtest.New(t, 1)
	silent.Stop(0)
	private := etcdtest.New(t, 1)
	private.Require("hub", "right")
	taken := etcdtest.New(t, 1)
	startHub(t, "-store", taken.Address(), "-dir", t.TempDir())
	full := enginetest.Start(t, 1, "--quota-backend-bytes", "1")

	for name, row := range map[string]struct {
		env    []string
		args   string
		status int
		want   string
	}{
		"with -lab":          {secret, "-lab -store http://127.0.0.1:1", 2, "-lab changes those of one hub"},
		"with -ephemeral":    {secret, "-ephemeral -store http://127.0.0.1:1", 2, "-ephemeral keeps nothing"},
		"without a secret":   {[]string{"AUTHHUB_SECRET="}, "-store http://127.0.0.1:1", 2, "set AUTHHUB_SECRET"},
		"no address":         {secret, "-store 127.0.0.1:2379", 2, "http://n1:2379"},
		"-import alone":      {secret, "-import x", 2, "-store"},
		"nobody there":       {secret, "-store " + nobody, 1, nobody},
		"no majority":        {secret, "-store " + silent.Address(), 1, "most of its nodes"},
		"no password":        {secret, "-store " + private.Address(), 1, "USER:PASSWORD"},
		"wrong password":     {secret, "-store " + strings.Replace(private.Address(), "//", "//hub:wr0ng@", 1), 1, "invalid user ID or password"},
		"another secret":     {[]string{"AUTHHUB_SECRET=" + strings.Repeat("x", 32)}, "-store " + taken.Address(), 1, "AUTHHUB_SECRET"},
		"other users":        {secret, "-store " + taken.Address() + " -users " + testkit.WriteFile(t, "users.json", `[{"username":"demo","password":"password-1"}]`), 1, "-users"},
		"a full etcd":        {secret, "-store " + full.Address(), 1, "database space exceeded"},
		"nothing to move in": {secret, "-store " + taken.Address() + " -import " + t.TempDir(), 1, "-import"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			args := strings.Fields(row.args)
			if !strings.Contains(row.args, "-ephemeral") {
				args = append(args, "-dir", t.TempDir())
			}
			status, said := failStart(t, row.env, args...)
			if status != row.status || !strings.Contains(said, row.want) || strings.Contains(said, "\n") || strings.Contains(said, "wr0ng") {
				t.Errorf("status %d: %s; want %d and %s", status, said, row.status, row.want)
			}
			if took := time.Since(start); took > patience {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestOutageAsClientsSeeIt: without etcd 503 with Retry-After and nothing else, for which no user is throttled; the
// hub needs no restart. /healthz and the log name the node.
func TestOutageAsClientsSeeIt(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	h := startQuickHub(t, "-store", cluster.Address(), "-dir", t.TempDir())
	pair := h.login("demo", "demo-password").want(t, 200, "")

	cluster.Stop(0)
	var asking sync.WaitGroup
	for name, verb := range map[string]func() answer{
		"me":       func() answer { return h.me(pair.Access) },
		"refresh":  func() answer { return h.refresh(pair.Refresh) },
		"register": func() answer { return h.register("bob") },
		"listing":  func() answer { return ask("GET", h.base+"/api/files/phase2", "", "") },
		"file":     func() answer { return ask("GET", h.base+"/api/files/phase2/impact", "", "") },
		"run":      func() answer { return ask("POST", h.base+"/api/run-ph-barrier-phase2", "", "") },
		"health":   func() answer { return ask("GET", h.base+"/healthz", "", "") },
	} {
		asking.Go(func() {
			start := time.Now()
			a := verb()
			if name == "health" && !strings.Contains(string(a.Body), cluster.Address()) {
				t.Errorf("health does not name the node: %s", a.Body)
			}
			if a.Status != 503 || a.Code != "store_unavailable" || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s %v", name, a.Status, a.Body, a.Header)
			}
			if took := time.Since(start); took > patience {
				t.Errorf("%s took %v", name, took)
			}
		})
	}
	for range 20 { // more than a user may fail
		asking.Go(func() { h.login("demo", "demo-password").wantLater(t, 503, "store_unavailable") })
		asking.Go(func() { h.login("demo", "wrong").wantLater(t, 503, "store_unavailable") })
	}
	asking.Wait()

	cluster.Start(0)
	h.login("demo", "demo-password").want(t, 200, "")
	h.kill()
	if log := h.log(); !strings.Contains(log, "etcd node is missing") || !strings.Contains(log, cluster.Address()) {
		t.Errorf("the log does not name the node:\n%s", log)
	}
}

// wantLater is want for goroutines of a test.
func (a answer) wantLater(t testing.TB, status int, code string) {
	t.Helper()
	if a.Status != status || a.Code != code {
		t.Errorf("got %d %s %s, want %d %s", a.Status, a.Code, a.Body, status, code)
	}
}

// TestHealthNamesTheMissingNode: one of three nodes is no outage.
func TestHealthNamesTheMissingNode(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 3)
	h := startQuickHub(t, "-store", cluster.Address(), "-dir", t.TempDir())
	cluster.Kill(1)
	killed := time.Now()
	health := ask("GET", h.base+"/healthz", "", "")
	for health.Status == 503 && time.Since(killed) < patience { // it may have led, and the others may not have a leader yet
		health = ask("GET", h.base+"/healthz", "", "")
	}
	health.want(t, 200, "")
	if want := fmt.Sprintf(`"missing":[%q]`, cluster.Node(1)); !strings.Contains(string(health.Body), want) {
		t.Errorf("%s, want %s", health.Body, want)
	}
}

// TestAJournalMovesIn: users and sessions of a single hub are there for many, and the hub's tokens hold.
func TestAJournalMovesIn(t *testing.T) {
	t.Parallel()
	cluster, dir := enginetest.Start(t, 1), t.TempDir()
	users := usersFile(t, map[string]string{"demo": "demo-password"})
	single := startHub(t, "-dir", dir, "-users", users)
	alice := single.register("alice").want(t, 201, "")
	out := single.register("bob").want(t, 201, "")
	demo := single.login("demo", "demo-password").want(t, 200, "")
	single.logout(out.Access).want(t, 204, "")

	store := cluster.Address() + "/moved"
	if status, said := failStart(t, []string{testSecret}, "-store", store, "-import", dir, "-users", users); status != 1 || !strings.Contains(said, dir) {
		t.Errorf("a folder in use: %d %s", status, said)
	}
	single.kill()
	for range 2 { // a second time changes nothing
		if status, said := failStart(t, []string{testSecret}, "-store", store, "-import", dir, "-users", users); status != 0 {
			t.Fatalf("%d %s", status, said)
		}
	}

	h := startHub(t, "-store", store, "-dir", t.TempDir(), "-users", users)
	h.me(alice.Access).want(t, 200, "")
	h.me(demo.Access).want(t, 200, "")
	h.me(out.Access).want(t, 401, "token_revoked")
	h.refresh(alice.Refresh).want(t, 200, "")
	h.login("alice", "password-1").want(t, 200, "")
	h.register("alice").want(t, 409, "username_taken")

	single = startHub(t, "-dir", dir, "-users", users) // the folder is as it was; and now it is another one
	single.register("carol").want(t, 201, "")
	single.kill()
	if status, said := failStart(t, []string{testSecret}, "-store", store, "-import", dir, "-users", users); status != 1 || !strings.Contains(said, "not the content") {
		t.Errorf("a folder that has changed: %d %s", status, said)
	}
}
