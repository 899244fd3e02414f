// Crashes: clients at work on a real hub in a real folder, SIGKILL at random instants, and after each restart the
// question whether everything that was acknowledged still holds.
//
// A client knows of each of its sessions what the hub has acknowledged and what was under way when the answer
// failed to come. What was under way may have happened or not; what was acknowledged must have happened.

package main

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

	"authhub/internal/phase2"
)

const (
	crashUsers   = 3 // seeds, each with clients of its own
	crashClients = 6 // that log in, refresh and log out
)

// TestCrashes kills a hub at work as often as AUTHHUB_CRASH_KILLS says, by default 100 times in CI and 8 times elsewhere.
func TestCrashes(t *testing.T) {
	kills := 8
	if os.Getenv("CI") != "" {
		kills = 100
	}
	if given, err := strconv.Atoi(os.Getenv("AUTHHUB_CRASH_KILLS")); err == nil {
		kills = given
	} else if testing.Short() {
		t.Skip("crashes take their time")
	}
	t.Parallel()

	c := &crashes{t: t, dir: filepath.Join(t.TempDir(), "state"), users: writeUsers(t, crashUsers), random: rand.New(rand.NewPCG(1, uint64(kills)))}
	for i := range crashClients {
		c.clients = append(c.clients, &crashClient{user: fmt.Sprintf("user%d", i%crashUsers), random: rand.New(rand.NewPCG(2, uint64(i)))})
	}
	for i := range kills {
		if c.live(i); t.Failed() {
			t.Fatalf("after kill %d of %d", i+1, kills)
		}
	}
	c.settle()
	t.Logf("%d kills, %d before the announcement; acknowledged: %d refreshes, %d logouts, %d logins, %d registrations, %d runs; %d journals",
		kills, c.early, c.sum(refreshed), c.sum(loggedOut), c.sum(loggedIn), len(c.registered), c.runs, len(c.journals))
	if kills >= 50 && (c.sum(refreshed) < 1_000 || c.sum(loggedOut) < 20 || c.runs < 20 || len(c.journals) < 3) {
		t.Errorf("too little was at stake for a proof")
	}
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
	early      int
}

type crashUser struct {
	name string
	pair pair
}

// live is one life: start, check what the earlier lives have left, work, kill. Every fifth is killed in its start.
func (c *crashes) live(life int) {
	p := startChild(c.t, "-dir", c.dir, "-users", c.users, "-log", "json")
	defer p.kill()
	if life%5 == 4 {
		time.AfterFunc(time.Duration(c.random.IntN(60))*time.Millisecond, func() { p.cmd.Process.Kill() })
		if <-p.ended; p.base == "" {
			c.early++
		}
		return
	}
	p.mustBeReady(c.t)
	if c.check(p); c.t.Failed() {
		return
	}
	time.AfterFunc(time.Duration(20+c.random.IntN(400))*time.Millisecond, func() { p.cmd.Process.Kill() })

	var atWork sync.WaitGroup
	for _, client := range c.clients {
		atWork.Go(func() { client.work(c.t, p) })
	}
	atWork.Go(func() { c.register(p, life) })
	atWork.Go(func() { c.run(p, life) })
	atWork.Wait()
}

// settle checks the end of the story with nobody at work, logins with the registered passwords included.
func (c *crashes) settle() {
	p := startChild(c.t, "-dir", c.dir, "-users", c.users)
	defer p.kill()
	p.mustBeReady(c.t)
	c.check(p)
	for i, u := range c.registered {
		p.mustAsk(c.t, "GET", mePath, "", u.pair.access).want(200)
		if i%10 == 0 {
			p.mustAsk(c.t, "POST", loginPath, credentials(u.name), "").want(200)
		}
	}
}

func credentials(name string) string {
	return `{"username":"` + name + `","password":"password-` + name + `"}`
}

func (p *child) mustAsk(t testing.TB, method, target, body, token string) *answer {
	t.Helper()
	a := p.ask(t, method, target, body, token)
	if a == nil {
		t.Fatalf("no answer to %s %s:\n%s", method, target, p.said())
	}
	return a
}

// register makes one account after the other.
func (c *crashes) register(p *child, life int) {
	for n := 0; ; n++ {
		u := crashUser{name: fmt.Sprintf("registered-%d-%d", life, n)}
		a := p.ask(c.t, "POST", registerPath, credentials(u.name), "")
		if a == nil {
			return
		}
		u.pair = a.want(201).pair()
		c.registered = append(c.registered, u)
	}
}

// run asks for one run after the other, each with readings of its own.
func (c *crashes) run(p *child, life int) {
	for n := 0; ; n++ {
		csv := fmt.Sprintf("%s\n2026-01-01T00:00:00Z,life%d,7.0\n2026-01-01T00:10:00Z,run%d,9.1\n", phase2.Header, life, n)
		c.candidate = fmt.Sprintf("%x", sha256.Sum256([]byte(csv)))
		a := p.ask(c.t, "POST", runPath, csv, "")
		if a == nil {
			return
		}
		a.want(200)
		c.latest, c.candidate = c.candidate, ""
		c.runs++
	}
}

// check asks a hub that nobody else uses for everything that was acknowledged.
func (c *crashes) check(p *child) {
	c.checkFiles(p)
	for _, client := range c.clients {
		client.check(c.t, p)
	}
	for _, u := range c.registered[max(0, len(c.registered)-3):] {
		p.mustAsk(c.t, "GET", mePath, "", u.pair.access).want(200)
	}
	first, _, _ := strings.Cut(readFile(c.t, filepath.Join(c.dir, "journal")), "\n")
	if c.journals == nil {
		c.journals = map[string]bool{}
	}
	c.journals[first] = true
}

// checkFiles: all three are there and of one run, the latest acknowledged or the one under way, and nothing else is left.
func (c *crashes) checkFiles(p *child) {
	if c.latest == "" && c.candidate == "" {
		return
	}
	var sources []string
	for file := range resultFile(resultFiles) {
		a := p.mustAsk(c.t, "GET", file.endpoint(), "", "")
		if c.latest == "" && a.status == 404 {
			sources = append(sources, "")
			continue
		}
		var of struct {
			Parameters, Source json.RawMessage
		}
		if err := json.Unmarshal(a.want(200).body, &of); err != nil {
			c.t.Errorf("%s: %v", file.name(), err)
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
	for _, entry := range mustList(c.t, filepath.Join(c.dir, "phase2")) {
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
)

// crashClient holds one session after the other.
type crashClient struct {
	user   string
	random *rand.Rand
	done   [3]int

	session  *crashSession   // alive; nil: log in
	finished []*crashSession // not to be checked again once they have been
}

// crashSession is a session as its client knows it.
type crashSession struct {
	current    pair
	spent      string // the refresh token before; "": none
	reused     bool   // current.refresh is spent as well, and has been used again
	refreshing bool   // under way when the answer failed to come
	leaving    bool   // likewise
}

// work goes on until an answer fails to come.
func (c *crashClient) work(t *testing.T, p *child) {
	for {
		if c.session == nil {
			a := p.ask(t, "POST", loginPath, credentials(c.user), "")
			if a == nil {
				return
			}
			c.session = &crashSession{current: a.want(200).pair()}
			c.done[loggedIn]++
		}
		s, ok := c.session, true
		if c.random.IntN(100) < 6 {
			ok = s.leave(t, p, c)
		} else {
			ok = s.refresh(t, p, c)
		}
		if !ok || t.Failed() {
			return
		}
	}
}

func (s *crashSession) refresh(t *testing.T, p *child, c *crashClient) bool {
	s.refreshing = true
	a := p.ask(t, "POST", refreshPath, "", s.current.refresh)
	if a == nil {
		return false
	}
	s.refreshing = false
	s.spent, s.current = s.current.refresh, a.want(200).pair()
	c.done[refreshed]++
	return true
}

func (s *crashSession) leave(t *testing.T, p *child, c *crashClient) bool {
	s.leaving = true
	a := p.ask(t, "POST", logoutPath, "", s.current.access)
	if a == nil {
		return false
	}
	a.want(204)
	s.leaving = false
	c.finished, c.session = append(c.finished, s), nil
	c.done[loggedOut]++
	return true
}

// check holds the hub to what this client was told. It spends the sessions it looks at more closely.
func (c *crashClient) check(t *testing.T, p *child) {
	for _, s := range c.finished {
		p.mustAsk(t, "GET", mePath, "", s.current.access).want(401, "token_revoked")
		a := p.mustAsk(t, "POST", refreshPath, "", s.current.refresh).want(401)
		if code := a.str("code"); code != "token_revoked" && (code != "token_reused" || !s.reused) {
			t.Errorf("refresh in a session that has ended: %s", code)
		}
	}
	c.finished = c.finished[max(0, len(c.finished)-3):] // these are looked at once more, after further crashes

	s := c.session
	if s == nil {
		return
	}
	me := p.mustAsk(t, "GET", mePath, "", s.current.access)
	if s.leaving {
		if me.status != 200 && me.str("code") != "token_revoked" {
			t.Errorf("me after an unanswered logout: %d %s", me.status, me.str("code"))
		}
		c.session = nil
		return
	}
	me.want(200)
	switch {
	case s.refreshing:
		c.resume(t, p)
	case s.spent != "" && c.random.IntN(4) == 0: // reuse of what was spent ends the session
		p.mustAsk(t, "POST", refreshPath, "", s.spent).want(401, "token_reused")
		p.mustAsk(t, "POST", refreshPath, "", s.current.refresh).want(401, "token_revoked")
		c.finished, c.session = append(c.finished, s), nil
	}
}

// resume tries the token of the refresh that got no answer: it is spent or it isn't, and then works exactly once.
func (c *crashClient) resume(t *testing.T, p *child) {
	s := c.session
	s.refreshing = false
	if a := p.mustAsk(t, "POST", refreshPath, "", s.current.refresh); a.status == 200 {
		s.spent, s.current = s.current.refresh, a.pair()
		return
	} else if a.str("code") != "token_reused" {
		t.Errorf("refresh after an unanswered one: %d %s", a.status, a.str("code"))
	}
	s.reused = true
	c.finished, c.session = append(c.finished, s), nil
}
