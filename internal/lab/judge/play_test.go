// Played clients: callers that try again, and the connections over which their requests come.

package judge

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// habit is what callers do: each sends the same request so many times, whatever the answer, with a pause before each
// try but the first.
type habit struct {
	callers, tries int
	pause          func(try int) time.Duration
	apart          time.Duration // between the first tries of two tabs
	conns          int           // that the client allows itself, a browser six; the others wait in its queue. 0: without bound
	fresh          bool          // each request over a new connection
	tabs           int           // programs that do so, each with connections of its own
}

// play returns the record of clients with this habit, where each answer is a failure and takes 5 ms. The machine of the
// clients is now and then held up.
func (h habit) play(random *rand.Rand, failure Exchange) (record []*Exchange, now Mark) {
	p := &player{random: random, failure: failure, now: noon}
	for tab := range max(1, h.tabs) {
		pool := &pool{player: p, bound: cmp.Or(h.conns, 1<<20), fresh: h.fresh}
		p.at(time.Duration(tab)*h.apart, func() { // in one task of the client
			for range h.callers {
				pool.call(h, 1)
			}
		})
	}
	for len(p.events) > 0 {
		next := p.events[0]
		p.events = p.events[1:]
		p.now = next.at
		next.do()
	}
	for i, e := range p.record {
		e.Seq = i + 1
	}
	p.now = p.now.Add(3 * time.Second)
	return p.record, Mark{Hub: p.now, Machine: p.now}
}

// player is a game under way: what is to happen, in order, and the record of what has.
type player struct {
	random  *rand.Rand
	failure Exchange
	now     time.Time
	held    time.Time // until when the client's machine is held up
	events  []event
	record  []*Exchange
	order   int
	conns   int64
}

type event struct {
	at time.Time
	do func()
}

// at has the client do something after a while and a little later than that, or when its machine goes on.
func (p *player) at(after time.Duration, do func()) {
	if p.random.IntN(50) == 0 {
		p.held = p.now.Add(time.Duration(p.random.IntN(25)) * time.Millisecond)
	}
	at := p.now.Add(after)
	if at.Before(p.held) {
		at = p.held
	}
	p.plan(at.Add(time.Duration(100+p.random.IntN(400))*time.Microsecond), do)
}

func (p *player) plan(at time.Time, do func()) {
	e := event{at, do}
	i, _ := slices.BinarySearchFunc(p.events, e, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), -1) })
	p.events = slices.Insert(p.events, i, e)
}

func (p *player) mark() Mark {
	p.order++
	return Mark{p.order, p.now, p.now}
}

// browser is how many connections a browser opens to one host.
const browser = 6

// pool is a client's connections.
type pool struct {
	*player
	bound, busy int
	fresh       bool
	idle        []*conn
	waiting     []func()
}

type conn struct {
	id     int64
	opened time.Time
}

// call sends a try over a connection when there is one, and the next ones after it.
func (p *pool) call(h habit, try int) {
	if p.busy == p.bound {
		p.waiting = append(p.waiting, func() { p.call(h, try) })
		return
	}
	p.busy++
	c := new(conn)
	if len(p.idle) > 0 && !p.fresh {
		c, p.idle = p.idle[len(p.idle)-1], p.idle[:len(p.idle)-1]
	} else {
		p.conns++
		c.id, c.opened = p.conns, p.now
	}
	p.at(0, func() { p.send(c, h, try) })
}

func (p *pool) send(c *conn, h habit, try int) {
	e := p.failure
	e.Browser = p.bound == browser
	e.Conn, e.Opened, e.Sent, e.Arrival = c.id, c.opened, p.now, p.mark()
	p.record = append(p.record, &e)
	p.plan(p.now.Add(5*time.Millisecond), func() {
		e.End = p.mark()
		p.at(0, func() { p.receive(c, h, try) })
	})
}

func (p *pool) receive(c *conn, h habit, try int) {
	p.busy--
	p.idle = append(p.idle, c)
	if try < h.tries {
		p.at(h.pause(try), func() { p.call(h, try+1) })
	}
	if len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		next()
	}
}

var unavailable = Exchange{Operation: "me", Method: "GET", Path: "/me", Session: "s", User: "demo", Token: &Token{State: "valid"}, Presented: 1,
	Current: Current{Pair: Pair{Lifetime: 15 * time.Minute, Issued: noon}}, Status: 503, Injected: true}

// rate plays a habit some times and returns how often it was told.
func (h habit) rate(n int) (told int) {
	return n - h.count(n, unavailable, "")
}

// count plays a habit some times and returns how often the rules told are these.
func (h habit) count(n int, failure Exchange, rules string) (count int) {
	for i := range n {
		record, now := h.play(rand.New(rand.NewPCG(uint64(i), 7)), failure)
		var told []string
		for _, f := range Judge(record, now, nil).Findings {
			told = append(told, f.Rule)
		}
		if strings.Join(told, " ") == rules {
			count++
		}
	}
	return count
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// doubling pauses d, then twice as long each time.
func doubling(d time.Duration) func(int) time.Duration {
	return func(try int) time.Duration { return d << (try - 1) }
}

// between pauses for a random time, in milliseconds.
func between(least, most int) func(int) time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	return func(int) time.Duration { return time.Duration(least+random.IntN(most-least)) * time.Millisecond }
}

func (h habit) String() string {
	return fmt.Sprintf("%d tabs, %d callers, %d tries, pause %v, %v apart, %d connections, fresh %v", max(1, h.tabs), h.callers, h.tries, h.pause(1), h.apart, h.conns, h.fresh)
}

var plays = testkit.Times(2, 10)

// TestLoopsAreTold: whoever tries five times is told; in several tabs nearly always, since a hold-up of their machine
// may make their tries look like those of more callers.
func TestLoopsAreTold(t *testing.T) {
	t.Parallel()
	for _, tabs := range []int{1, 2, 3, 5, 6, 10} {
		for _, pause := range []time.Duration{0, 5, 15, 50, 90, 150, 400, 1500} {
			for _, tries := range []int{5, 8, 40, 100} {
				for _, fresh := range []bool{false, true} {
					if tabs > 1 && fresh && tries < 100 {
						continue // which of many new connections were whose is a guess
					}
					for _, apart := range []time.Duration{0, 4, 30} {
						h := habit{callers: 1, tries: tries, pause: always(pause * time.Millisecond), conns: 1, fresh: fresh, tabs: tabs, apart: apart * time.Millisecond}
						least := plays
						if tabs > 1 {
							least = plays * 7 / 10
						}
						if told := h.rate(plays); told < least {
							t.Errorf("told %d of %d times: %v", told, plays, h)
						}
					}
				}
			}
		}
	}
}

// TestCrowdsAreNotTold: many callers each of whom tries four times or fewer; nearly never, since a hold-up of their
// machine may show fewer callers side by side than there are.
func TestCrowdsAreNotTold(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{5, 8, 12, 20, 40} {
		for _, conns := range []int{0, 6} {
			for _, fresh := range []bool{false, true} {
				for _, h := range []habit{
					{tries: 1, pause: always(0)}, {tries: 2, pause: always(800 * time.Millisecond)}, {tries: 3, pause: always(150 * time.Millisecond)},
					{tries: 4, pause: between(100, 400)}, {tries: 3, pause: between(0, 300)}, {tries: 3, pause: between(0, 600)},
					{tries: 4, pause: always(0)}, {tries: 3, pause: always(20 * time.Millisecond)}, {tries: 4, pause: doubling(100 * time.Millisecond)},
				} {
					if fresh && callers*h.tries > 120 {
						continue // which of so many new connections were whose is a guess
					}
					h.callers, h.conns, h.fresh = callers, conns, fresh
					if told := h.rate(plays); told > plays/5 {
						t.Errorf("told %d of %d times: %v", told, plays, h)
					}
				}
			}
		}
	}
}

// TestRetryAfterOfManyCallers: callers who each wait as long as the answer asks, or give up, are not told. Those who
// each try again at once or soon are, over connections of their own.
func TestRetryAfterOfManyCallers(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Second, 30 * time.Second} {
		failure := unavailable
		failure.RetryAfter = wait
		waits, hurries := always(wait+20*time.Millisecond), always(100*time.Millisecond)
		for _, callers := range []int{1, 2, 5, 12, 40} {
			for _, fresh := range []bool{false, true} {
				for _, h := range []habit{{tries: 1, pause: waits}, {tries: 2, pause: waits}, {tries: 3, pause: waits},
					{conns: browser, tries: 1, pause: waits}, {conns: browser, tries: 2, pause: waits}, {conns: browser, tries: 3, pause: waits}} {
					h.callers, h.fresh = callers, fresh
					if silent := h.count(plays, failure, ""); silent < plays {
						t.Errorf("told %d of %d times: %v", plays-silent, plays, h)
					}
				}
				for _, h := range []habit{{tries: 2, pause: always(0)}, {tries: 2, pause: hurries}, {tries: 3, pause: hurries}} {
					h.callers, h.fresh = callers, fresh
					if told := h.count(plays, failure, "retry_after_ignored"); told < plays {
						t.Errorf("told %d of %d times: %v", told, plays, h)
					}
				}
			}
		}
	}
}
