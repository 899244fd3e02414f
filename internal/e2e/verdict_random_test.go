// Sound and naive clients in worlds of chance: whatever the hub, its clock and its faults do to sound ones, there is
// nothing to find; and whatever naive ones do when their callers race, it is the race that is found, once, with all
// its refreshes.

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/testkit"
)

func TestSoundClientsAreFoundCleanInAnyWorld(t *testing.T) {
	t.Parallel()
	inWorlds(t, func(s *soundWorld) []string {
		s.play()
		return nil
	})
}

func TestNaiveClientsAreFoundRacingInAnyWorld(t *testing.T) {
	t.Parallel()
	inWorlds(t, func(s *soundWorld) []string {
		s.openTabs(1)
		s.signIn("")
		n := 2 + s.rand.IntN(7)
		s.race(n)
		return []string{fmt.Sprintf("two_refreshes[refresh*%d]", n)}
	})
}

// inWorlds plays a story in worlds of chance. The story returns what there is to find.
func inWorlds(t *testing.T, story func(*soundWorld) []string) {
	worlds := testkit.Times(6, 24)
	if n, err := strconv.Atoi(os.Getenv("AUTHHUB_WORLDS")); err == nil {
		worlds = n
	}
	first := rand.Uint64()
	held := watchMachine(t)
	room := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i := range worlds {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			differs := held.unlessHeldUp(func() string {
				s := &soundWorld{world: &world{hub: newHub(t)}, rand: rand.New(rand.NewPCG(first, uint64(i)))}
				s.faulty = true
				want := story(s)
				findings, _ := s.verdict()
				if fmt.Sprint(findings) == fmt.Sprint(want) {
					return ""
				}
				return fmt.Sprintf("world %d of seed %d: %v, want %v\n%s\n%s", i, first, findings, want, strings.Join(s.story, "\n"), spellRequests(s.world))
			})
			if differs != "" {
				t.Error(differs)
			}
		})
	}
	all.Wait()
}

// soundWorld is a world in which one user has some tabs that share their tokens.
type soundWorld struct {
	*world
	rand    *rand.Rand
	story   []string
	tokens  tokens
	renewal sync.Mutex // of all tabs
	tabs    []*tab
	waits   bool // until the end of this work: a refresh was answered with Retry-After
}

func (s *soundWorld) play() {
	if s.chance(2) {
		s.does("policy", func() {
			s.policy(s.pick(object{"reuse": "grace", "grace": "10s"}, object{"reuse": "allow"}, object{"rotation": false}))
		})
	}
	s.openTabs(1 + s.rand.IntN(3))
	s.signIn("")
	for range 3 + s.rand.IntN(6) {
		s.event()
		s.work()
	}
	if s.chance(2) {
		s.tabs[0].logout()
	}
}

func (s *soundWorld) openTabs(n int) {
	for range n {
		t := s.newTab(&s.tokens)
		transport := t.client.Transport.(*http.Transport)
		transport.DisableKeepAlives = s.chance(4)
		transport.MaxConnsPerHost = s.rand.IntN(3) * 4 // over one or two alone, a crowd whose refresh fails looks like a loop
		s.tabs = append(s.tabs, t)
	}
}

// race has so many callers meet the end of the access token, each of which refreshes for itself. What the losers do
// then is up to them.
func (s *soundWorld) race(n int) {
	t := s.tabs[0]
	access, refresh := s.tokens.get()
	s.does("race", s.drain)
	for range s.rand.IntN(3) {
		order := object{"operation": []string{"me", "refresh"}[s.rand.IntN(2)], "delay": fmt.Sprint(1+s.rand.IntN(200), "ms"), "skip": s.rand.IntN(4), "times": 1 + s.rand.IntN(3)}
		s.does(fmt.Sprint(order), func() { s.fault(order) })
	}
	after := s.rand.IntN(5)
	s.story = append(s.story, fmt.Sprint("losers ", after))
	callers(n, func(int) {
		if t.meWith(access) != 401 {
			return
		}
		if t.refreshWith(refresh) == 200 {
			t.me()
			return
		}
		switch after {
		case 1:
			t.meWith(access)
		case 2:
			t.me()
		case 3:
			t.logout()
		case 4:
			t.login("demo")
			t.me()
		}
	})
}

func (s *soundWorld) chance(of int) bool { return s.rand.IntN(of) == 0 }

func (s *soundWorld) pick(of ...object) object { return of[s.rand.IntN(len(of))] }

func (s *soundWorld) does(what string, do func()) {
	s.story = append(s.story, what)
	do()
}

// event is something that happens to the clients.
func (s *soundWorld) event() {
	access, _ := s.tokens.get()
	switch s.rand.IntN(9) {
	case 0, 1, 2:
		s.does("16m", s.drain)
	case 3:
		s.does("1m", func() { s.advance(time.Minute) })
	case 4:
		s.does("expire", func() { s.post("/lab/sessions/"+sid(s.t, access)+"/expire", object{}) })
	case 5:
		s.does("revoke", func() { s.post("/lab/sessions/"+sid(s.t, access)+"/revoke", nil) })
	case 6:
		asks := object{"operation": "refresh", "status": 429, "headers": object{"Retry-After": "1"}}
		s.does("Retry-After", func() { s.fault(asks) })
	case 7:
		s.does("back", func() { s.advance(-10 * time.Minute) })
	}
	for range s.rand.IntN(3) {
		order := s.pick(object{"status": 503}, object{"status": 401}, object{"delay": "30ms"}, object{"drop": "before"}, object{"drop": "after"},
			object{"truncate": 10}, object{"malformed": true}, object{"hold": 2, "within": "50ms"}, object{"delay": "5s"})
		fault := object{"operation": []string{"me", "refresh", "login", "*"}[s.rand.IntN(4)], "skip": s.rand.IntN(2)}
		for name, value := range order {
			fault[name] = value
		}
		s.does(fmt.Sprint(fault), func() { s.fault(fault) })
	}
}

// work is what the tabs do at once, each for several callers.
func (s *soundWorld) work() {
	s.waits = false
	var all sync.WaitGroup
	n := 1 + s.rand.IntN(8)
	for _, t := range s.tabs {
		for range n {
			all.Go(func() { s.ask(t) })
		}
	}
	all.Wait()
	s.delete("/lab/faults")
	s.advance(2 * time.Second) // what Retry-After asks for
}

// ask is one request of a caller: a 401 is answered with one refresh for all, or else with a login.
func (s *soundWorld) ask(t *tab) {
	access, _ := s.tokens.get()
	if s.send(t, "GET", mePath, nil, access) != 401 {
		return
	}
	s.renewal.Lock()
	if now, _ := s.tokens.get(); now == access {
		s.renew(t)
	}
	s.renewal.Unlock()
	if now, _ := s.tokens.get(); now != access {
		s.send(t, "GET", mePath, nil, now)
	}
}

// renew refreshes, once more after a failure of the network, and logs in where the refresh token is refused.
func (s *soundWorld) renew(t *tab) {
	for i := 0; i < 2 && !s.waits; i++ {
		_, token := s.tokens.get()
		switch s.send(t, "POST", refreshPath, object{"refresh_token": token}, "") {
		case 200:
			return
		case 401:
			s.signIn(token)
			return
		case 429, 503:
			s.waits = true
		}
	}
}

// signIn logs in unless somebody has since that refresh token was in use.
func (s *soundWorld) signIn(old string) {
	if _, now := s.tokens.get(); now == old {
		s.send(s.tabs[0], "POST", loginPath, right("demo"), "")
	}
}

// send sends a request, gives it up after half a second, and stores the tokens of the answer.
func (s *soundWorld) send(t *tab, method, path string, body any, token string) int {
	ctx, giveUp := context.WithTimeout(s.t.Context(), 500*time.Millisecond)
	defer giveUp()
	status, answer := t.sendIn(ctx, method, path, body, token)
	if method == "POST" && status == 200 {
		if answer.Refresh == "" {
			return 0 // can't be read
		}
		s.tokens.set(answer.Access, answer.Refresh)
	}
	return status
}
