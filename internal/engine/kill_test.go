// The kill test: hubs, followers and leaders are killed under load, and what was acknowledged is there.

package engine_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/engine/enginetest"
	"authhub/internal/testkit"
)

// facts are what one client was told. A session of which an answer is missing is in none of them: a 503 or a broken
// connection may have been applied.
type facts struct {
	name, password string
	live           []answer // pairs that were given and not used since
	ended          []string // access tokens of sessions that were logged out
	names          []string // that were registered

	checked int
}

// fleet is several hubs on one cluster, under load.
type fleet struct {
	t       testing.TB
	cluster *enginetest.Cluster
	hubs    []*hub
	wrong   atomic.Int64 // answers that contradict what was acknowledged
	asked   atomic.Int64
	lastOK  atomic.Int64 // when a request was last answered, ns
	pause   atomic.Int64 // longest time without an answer, ns
}

func (f *fleet) contradicts(what string, a answer) {
	if f.wrong.Add(1) <= 10 {
		f.t.Errorf("%s: %d %s", what, a.Status, a.Body)
	}
}

// hears notes that a request was answered by a hub that knows, and reports whether it was.
func (f *fleet) hears(a answer) bool {
	f.asked.Add(1)
	if a.Status == 0 || a.Status == 503 {
		return false
	}
	now := time.Now().UnixNano()
	if before := f.lastOK.Swap(now); before != 0 && now-before > f.pause.Load() {
		f.pause.Store(now - before)
	}
	return true
}

// pause is the time between two requests of a client. Without it clients would take the processors from the hubs, most
// of all while a hub is down and refuses at once.
const pause = 5 * time.Millisecond

// load is one client, who does one thing after the other on any hub until done.
func (f *fleet) load(k *facts, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		switch what := mathrand.IntN(100); {
		case what == 0:
			if a := f.any().register(rand.Text()); f.says("register", a, 201) {
				k.names = append(k.names, a.User.Username)
				k.live = append(k.live, a)
			}
		case len(k.live) == 0 || len(k.live) < 20 && what < 15:
			if a := f.any().login(k.name, k.password); f.says("login", a, 200) {
				k.live = append(k.live, a)
			}
		case what < 35:
			if a := f.any().refresh(k.leave().Refresh); f.says("refresh", a, 200) {
				k.live = append(k.live, a)
			}
		case what < 50:
			f.logout(k)
		default:
			f.says("me", f.any().me(k.live[mathrand.IntN(len(k.live))].Access), 200)
		}
	}
}

// leave takes a pair from the live ones: what becomes of it is known only if there is an answer.
func (k *facts) leave() answer {
	i := mathrand.IntN(len(k.live))
	pair := k.live[i]
	k.live = append(k.live[:i], k.live[i+1:]...)
	return pair
}

// logout ends a session on one hub and asks any for it.
func (f *fleet) logout(k *facts) {
	pair := k.leave()
	if !f.says("logout", f.any().logout(pair.Access), 204) {
		return
	}
	k.ended = append(k.ended, pair.Access)
	f.says("me after logout", f.any().me(pair.Access), 401)
}

// says reports whether a hub that knows has answered, and with this status; another one contradicts what was
// acknowledged.
func (f *fleet) says(what string, a answer, status int) bool {
	if !f.hears(a) {
		return false
	}
	if a.Status != status {
		f.contradicts(what, a)
	}
	return a.Status == status
}

// check asks for every fact, on any hub.
func (f *fleet) check(k *facts) {
	f.cluster.Wait()
	for _, token := range k.ended {
		if a := f.any().me(token); a.Code != "token_revoked" {
			f.contradicts("a session that was logged out", a)
		}
		k.checked++
	}
	for _, name := range k.names {
		if a := f.any().register(name); a.Code != "username_taken" {
			f.contradicts("a name that was taken", a)
		}
		k.checked++
	}
	for _, pair := range k.live {
		if a := f.any().me(pair.Access); a.Status != 200 {
			f.contradicts("a session that was acknowledged", a)
		}
		next := f.any().refresh(pair.Refresh)
		if next.Status != 200 {
			f.contradicts("a refresh token that was acknowledged", next)
		}
		if a := f.any().refresh(pair.Refresh); a.Code != "token_reused" {
			f.contradicts("a refresh token that was spent", a)
		}
		if a := f.any().me(next.Access); a.Code != "token_revoked" {
			f.contradicts("a session that reuse has ended", a)
		}
		k.checked += 4
	}
}

func (f *fleet) any() *hub { return f.hubs[mathrand.IntN(len(f.hubs))] }

// runs is a client who lets hubs run and looks at what they have published, until done.
func (f *fleet) runs(done <-chan struct{}) {
	published := false
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-time.After(time.Second):
		}
		run := ask("POST", fmt.Sprintf("%s%s?interval=%dm", f.any().base, runPath, 1+i%60), "", "")
		if run.Status != 200 && run.Status != 503 && run.Status != 0 {
			f.contradicts("run", run)
		}
		published = published || run.Status == 200
		if a := ask("GET", f.any().base+filesPath+"/impact", "", ""); a.Status != 200 && a.Status != 503 && a.Status != 0 && published {
			f.contradicts("file", a)
		}
	}
}

// sameFiles checks that all hubs have one set of files and one latest run.
func (f *fleet) sameFiles() {
	for _, path := range []string{filesPath, filesPath + "/barrier", filesPath + "/impact", filesPath + "/alertesph", runPath} {
		first := ask("GET", f.hubs[0].base+path, "", "")
		for _, h := range f.hubs {
			if a := ask("GET", h.base+path, "", ""); a.Status != 200 || sameMembers(f.t, a.Body) != sameMembers(f.t, first.Body) {
				f.contradicts(path+" differs between hubs", a)
			}
		}
	}
}

// killOne kills a hub, a follower or the leader, waits a little and starts it again.
func (f *fleet) killOne(round int, down time.Duration) {
	victim := f.cluster.Leader()
	switch round % 3 {
	case 0:
		h := f.hubs[round%len(f.hubs)]
		h.kill()
		<-time.After(down)
		if err := h.start(); err != nil {
			f.t.Errorf("hub: %v\n%s", err, h.log())
		}
		return
	case 1:
		victim = (max(victim, 0) + 1) % 3
	}
	f.cluster.Kill(max(victim, 0))
	<-time.After(down)
	f.cluster.Restart(max(victim, 0))
}

// TestKill kills one process a round: hub, follower and leader in turn. AUTHHUB_KILL_ROUNDS says how many rounds; a
// hundred take four minutes.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for ten seconds")
	}
	t.Parallel()
	rounds, err := strconv.Atoi(os.Getenv("AUTHHUB_KILL_ROUNDS"))
	if err != nil {
		rounds = testkit.Times(3, 6)
	}
	f := &fleet{t: t, cluster: enginetest.Start(t, 3)}
	var known []*facts
	passwords := map[string]string{}
	for i := range 4 {
		k := &facts{name: fmt.Sprint("client", i), password: rand.Text()}
		known = append(known, k)
		passwords[k.name] = k.password
	}
	dir, users := t.TempDir(), usersFile(t, passwords)
	for range 3 {
		f.hubs = append(f.hubs, startHub(t, "-store", f.cluster.Address(), "-dir", dir, "-users", users))
	}

	done := make(chan struct{})
	var clients sync.WaitGroup
	for _, k := range known {
		clients.Go(func() { f.load(k, done) })
	}
	clients.Go(func() { f.runs(done) })
	for round := range rounds {
		<-time.After(time.Second)
		f.killOne(round, time.Second)
	}
	<-time.After(time.Second)
	close(done)
	clients.Wait()

	testkit.Eventually(t, "a hub runs", func() bool { return ask("POST", f.any().base+runPath, "", "").Status == 200 })
	f.sameFiles()
	checked := 0
	for _, k := range known {
		f.check(k)
		checked += k.checked
	}
	t.Logf("%d rounds, %d requests, longest time without an answer %v, %d facts checked, %d wrong",
		rounds, f.asked.Load(), time.Duration(f.pause.Load()).Round(time.Millisecond), checked, f.wrong.Load())
	if checked == 0 {
		t.Error("nothing was acknowledged")
	}
}
