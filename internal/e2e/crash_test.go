// Crashes: clients at work on a hub in a real folder, SIGKILL at random instants, and after each restart the
// question whether everything that was acknowledged still holds.
//
// A client knows of each of its sessions what the hub has acknowledged and what was under way when the answer
// failed to come. What was under way may have happened or not; what was acknowledged must have happened. Each session
// is ended twice at the same time, by two logouts or by two uses of a spent refresh token: either answer is an
// acknowledgement, also the one that finds the session ended by a change that is not on disk yet.

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/testkit"
)

const (
	crashUsers   = 3 // seeds, each with clients of its own
	crashClients = 8 // that log in, refresh and log out
	crashEndings = 2 // requests at once that end a session
)

// TestCrashes kills a hub at work as often as AUTHHUB_CRASH_KILLS says, by default 100 times in CI and 5 times
// elsewhere.
func TestCrashes(t *testing.T) {
	kills := testkit.Times(5, 100)
	if given, err := strconv.Atoi(os.Getenv("AUTHHUB_CRASH_KILLS")); err == nil {
		kills = given
	} else if testing.Short() {
		t.Skip("crashes take their time")
	}
	t.Parallel()

	c := &crashes{t: t, dir: filepath.Join(t.TempDir(), "state"), users: writeUsers(t, crashUsers), random: rand.New(rand.NewPCG(1, uint64(kills))), journals: map[string]bool{}}
	for i := range crashClients {
		c.clients = append(c.clients, &crashClient{user: fmt.Sprintf("user%d", i%crashUsers), random: rand.New(rand.NewPCG(2, uint64(i)))})
	}
	done := 0
	for ; done < kills || kills >= 50 && !c.hadStakes() && done < 5*kills; done++ { // on a slow machine a life achieves less
		if c.live(done); t.Failed() {
			t.Fatalf("after kill %d of %d", done+1, kills)
		}
	}
	c.settle()
	t.Logf("%d kills, %d before the announcement, %d while a run published; acknowledged: %d refreshes, %d logouts, %d reuses, %d logins, %d registrations, %d runs; %d journals",
		done, c.early, c.publishing, c.sum(refreshed), c.sum(loggedOut), c.sum(reused), c.sum(loggedIn), len(c.registered), c.runs, len(c.journals))
	if kills >= 50 && !c.hadStakes() {
		t.Errorf("too little was at stake for a proof")
	}
}

// hadStakes reports whether enough was acknowledged for a proof.
func (c *crashes) hadStakes() bool {
	return c.sum(refreshed) >= 1_000 && c.sum(loggedOut) >= 100 && c.sum(reused) >= 20 && c.runs >= 20 && len(c.journals) >= 3
}

// crashes is one folder and what its hubs have promised.
type crashes struct {
	t          *testing.T
	dir, users string
	random     *rand.Rand
	clients    []*crashClient
	registered []crashUser
	runs       int             // acknowledged
	latest     string          // the digest of the input of the latest acknowledged run
	candidate  string          // that of the run that was under way, if any
	journals   map[string]bool // their headers: a compaction makes a new one
	early      int             // kills before the announcement
	publishing int             // kills while a run put its files in place
}

type crashUser struct {
	name string
	pair pair
}

// launch starts a hub on the folder.
func (c *crashes) launch() *hub {
	p := launchHub(c.t, nil, "-dir", c.dir, "-users", c.users)
	return &hub{t: c.t, process: p, client: newClient("")}
}

// live is one life: start, check what the earlier lives have left, work, kill. Every fifth is killed in its start,
// and of the others every third while a run publishes.
func (c *crashes) live(life int) {
	h := c.launch()
	defer h.end()
	if life%5 == 4 {
		time.AfterFunc(time.Duration(c.random.IntN(60))*time.Millisecond, func() { h.process.cmd.Process.Kill() })
		if h.process.mustEnd(c.t); h.process.base == "" {
			c.early++
		}
		return
	}
	h.mustBeReady()
	if c.check(h); c.t.Failed() {
		return
	}
	killer := c.killLater
	if life%3 == 0 {
		killer = c.killPublishing
	}
	after := time.Duration(20+c.random.IntN(400)) * time.Millisecond

	var atWork sync.WaitGroup
	atWork.Go(func() { killer(h.process, after) })
	for _, client := range c.clients {
		atWork.Go(func() { client.work(h) })
	}
	atWork.Go(func() { c.register(h, life) })
	atWork.Go(func() { c.run(h, life) })
	atWork.Wait()
}

func (c *crashes) killLater(p *process, after time.Duration) {
	time.AfterFunc(after, func() { p.cmd.Process.Kill() })
}

// killPublishing kills the hub at the first sight, after a while, of a folder of files that a run puts in place.
func (c *crashes) killPublishing(p *process, after time.Duration) {
	begun, sight := time.NewTimer(after), time.NewTicker(100*time.Microsecond)
	defer sight.Stop()
	<-begun.C
	for late := time.After(5 * time.Second); ; {
		select {
		case <-sight.C:
		case <-late:
			p.cmd.Process.Kill()
			return
		}
		entries, _ := os.ReadDir(filepath.Join(c.dir, "phase2"))
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
			p.cmd.Process.Kill()
			c.publishing++
			return
		}
	}
}

// mustBeReady waits for the announcement of a hub that was launched and not started.
func (h *hub) mustBeReady() {
	h.process.mustBeReady(h.t)
	h.base = h.process.base
}

// end kills the hub.
func (h *hub) end() {
	h.process.kill()
	h.client.CloseIdleConnections()
}

// settle checks the end of the story with nobody at work, logins with the registered passwords included.
func (c *crashes) settle() {
	h := c.launch()
	defer h.end()
	h.mustBeReady()
	c.check(h)
	for i, u := range c.registered {
		h.me(u.pair.Access).Want(200)
		if i%10 == 0 {
			h.post(loginPath, right(u.name)).Want(200)
		}
	}
}

// register makes one account after the other, until an answer fails to come.
func (c *crashes) register(h *hub, life int) {
	for n := 0; ; n++ {
		u := crashUser{name: fmt.Sprintf("registered-%d-%d", life, n)}
		a, err := h.try("POST", registerPath, right(u.name))
		if err != nil {
			return
		}
		u.pair = a.Want(201).Pair()
		c.registered = append(c.registered, u)
	}
}

// run asks for one run after the other, each with readings of its own, until an answer fails to come.
func (c *crashes) run(h *hub, life int) {
	for n := 0; ; n++ {
		csv := fmt.Sprintf("%s\n2026-01-01T00:00:00Z,life%d,7.0\n2026-01-01T00:10:00Z,run%d,9.1\n", csvHeader, life, n)
		c.candidate = fmt.Sprintf("%x", sha256.Sum256([]byte(csv)))
		a, err := h.try("POST", runPath, csv, csvType...)
		if err != nil {
			return
		}
		a.Want(200)
		c.latest, c.candidate = c.candidate, ""
		c.runs++
	}
}

// check asks a hub that nobody else uses for everything that was acknowledged.
func (c *crashes) check(h *hub) {
	c.checkFiles(h)
	for _, client := range c.clients {
		client.check(h)
	}
	for _, u := range c.registered[max(0, len(c.registered)-3):] {
		h.me(u.pair.Access).Want(200)
	}
	first, _, _ := strings.Cut(testkit.ReadFile(c.t, filepath.Join(c.dir, "journal")), "\n")
	c.journals[first] = true
}

// checkFiles: all three are there and of one run, the latest acknowledged or the one under way, and nothing else is
// left.
func (c *crashes) checkFiles(h *hub) {
	if c.latest == "" && c.candidate == "" {
		return
	}
	var sources []string
	for _, path := range filePaths {
		a := h.get(path)
		if c.latest == "" && a.Status == 404 {
			sources = append(sources, "")
			continue
		}
		var of struct {
			Parameters, Source json.RawMessage
		}
		if err := json.Unmarshal(a.Want(200).Body, &of); err != nil {
			c.t.Errorf("%s: %v", path, err)
		}
		sources = append(sources, string(of.Parameters)+string(of.Source))
	}
	if len(slices.Compact(slices.Clone(sources))) != 1 {
		c.t.Errorf("the files are of different runs:\n%s", strings.Join(sources, "\n"))
	}
	isLatest := c.latest != "" && strings.Contains(sources[0], c.latest)
	isCandidate := c.candidate != "" && strings.Contains(sources[0], c.candidate)
	if sources[0] != "" && !isLatest && !isCandidate {
		c.t.Errorf("the files are of %s, want %s or %s", sources[0], c.latest, c.candidate)
	}
	if isCandidate {
		c.latest = c.candidate
	}
	c.candidate = ""
	for _, entry := range testkit.List(c.t, filepath.Join(c.dir, "phase2")) {
		if strings.HasPrefix(entry, ".") {
			c.t.Errorf("%s is left over", entry)
		}
	}
}

func (c *crashes) sum(of int) (n int) {
	for _, client := range c.clients {
		n += client.done[of]
	}
	return n
}

// What a client has had acknowledged, to count.
const (
	loggedIn = iota
	refreshed
	loggedOut
	reused
)

// crashClient holds one session after the other.
type crashClient struct {
	user   string
	random *rand.Rand
	done   [4]int

	session  *crashSession   // alive; nil: log in
	finished []*crashSession // not to be checked again once they have been
}

// crashSession is a session as its client knows it.
type crashSession struct {
	current    pair
	spent      string // the refresh token before; "": none
	reused     bool   // a spent token of it has been used again
	refreshing bool   // under way when the answer failed to come
	ending     bool   // likewise
}

// work goes on until an answer fails to come.
func (c *crashClient) work(h *hub) {
	for goesOn := true; goesOn && !h.t.Failed(); {
		switch n := c.random.IntN(100); {
		case c.session == nil:
			goesOn = c.login(h)
		case n < 15:
			goesOn = c.endTwice(h, loggedOut, func() (*answer, error) {
				return h.try("POST", logoutPath, nil, bearer(c.session.current.Access)...)
			})
		case n < 20 && c.session.spent != "":
			c.session.reused = true
			goesOn = c.endTwice(h, reused, func() (*answer, error) {
				return h.try("POST", refreshPath, object{"refresh_token": c.session.spent})
			})
		default:
			goesOn = c.refresh(h)
		}
	}
}

func (c *crashClient) login(h *hub) (answered bool) {
	a, err := h.try("POST", loginPath, right(c.user))
	if err != nil {
		return false
	}
	c.session = &crashSession{current: a.Want(200).Pair()}
	c.done[loggedIn]++
	return true
}

func (c *crashClient) refresh(h *hub) (answered bool) {
	s := c.session
	s.refreshing = true
	a, err := h.try("POST", refreshPath, object{"refresh_token": s.current.Refresh})
	if err != nil {
		return false
	}
	s.refreshing = false
	s.spent, s.current = s.current.Refresh, a.Want(200).Pair()
	c.done[refreshed]++
	return true
}

// endTwice ends the session by two requests at once. One answer is enough for it to have ended.
func (c *crashClient) endTwice(h *hub, how int, request func() (*answer, error)) (answered bool) {
	c.session.ending = true
	status := map[int]int{loggedOut: 204, reused: 401}[how]
	acknowledged := make(chan bool, crashEndings)
	for range crashEndings {
		go func() {
			a, err := request()
			if err == nil && a.Status != status {
				h.t.Errorf("the end of a session was answered %d: %s", a.Status, a.Body)
			}
			acknowledged <- err == nil
		}()
	}
	answers := 0
	for range crashEndings {
		if <-acknowledged {
			answers++
		}
	}
	if answers > 0 {
		c.session.ending = false
		c.finished, c.session = append(c.finished, c.session), nil
		c.done[how]++
	}
	return answers == crashEndings
}

// check holds the hub to what this client was told. It spends the sessions it looks at more closely.
func (c *crashClient) check(h *hub) {
	for _, s := range c.finished {
		h.me(s.current.Access).Want(401, "token_revoked")
		a := h.refresh(s.current.Refresh).Want(401)
		if code := a.Text("code"); code != "token_revoked" && (code != "token_reused" || !s.reused) {
			h.t.Errorf("refresh in a session that has ended: %s", code)
		}
	}
	c.finished = c.finished[max(0, len(c.finished)-3):] // these are looked at once more, after further crashes

	s := c.session
	if s == nil {
		return
	}
	me := h.me(s.current.Access)
	if s.ending {
		if me.Status != 200 && me.Text("code") != "token_revoked" {
			h.t.Errorf("me after an unanswered logout: %d %s", me.Status, me.Text("code"))
		}
		c.session = nil
		return
	}
	me.Want(200)
	if s.refreshing {
		c.resume(h)
	}
}

// resume tries the token of the refresh that got no answer: it is spent or it isn't, and then works exactly once.
func (c *crashClient) resume(h *hub) {
	s := c.session
	s.refreshing = false
	a := h.refresh(s.current.Refresh)
	if a.Status == 200 {
		s.spent, s.current = s.current.Refresh, a.Pair()
		return
	}
	a.Want(401, "token_reused")
	s.reused = true
	c.finished, c.session = append(c.finished, s), nil
}
