// The soak: mixed traffic for as long as AUTHHUB_SOAK says, with restarts, and what the hub holds meanwhile.
//
//	AUTHHUB_SOAK=10m go test -count=1 -timeout 30m -run TestSoak -v .

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/phase2"
)

const (
	soakLives   = 5 // processes, ended by SIGKILL and by SIGINT in turn
	soakClients = 8
)

// holdings are what a hub at rest holds. The resident memory is the process's own, the heap after a collection.
type holdings struct {
	goroutines, descriptors, residentKiB int
	heapKiB                              uint64
	journalBytes                         int64
}

func TestSoak(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("AUTHHUB_SOAK"))
	if err != nil {
		t.Skip("AUTHHUB_SOAK does not say for how long")
	}
	_, err = os.Stat("/proc/self/fd")
	require(t, err == nil, "/proc to look processes up in")
	dir, users := filepath.Join(t.TempDir(), "state"), writeUsers(t, soakClients)
	s := &soak{t: t, dir: dir}
	for life := range soakLives {
		p := startChild(t, "-dir", dir, "-users", users, "-log", "off", "-refresh-ttl", "20s")
		p.mustBeReady(t)
		s.traffic(p, span/soakLives/4) // what is allocated once is allocated now
		early := s.rest(p)
		s.traffic(p, span/soakLives*3/4)
		late := s.rest(p)
		t.Logf("life %d: %+v\n      then %+v", life+1, early, late)
		if late.goroutines > early.goroutines || late.descriptors > early.descriptors || late.heapKiB > early.heapKiB*3/2+4<<10 || late.residentKiB > early.residentKiB*2+32<<10 {
			t.Errorf("the hub holds ever more")
		}
		if life%2 == 0 {
			p.kill()
		} else {
			p.cmd.Process.Signal(os.Interrupt)
			<-p.ended
		}
	}
	h, _ := openLoggingHub(t, quietLog(), newTestClock(), "-dir", dir, "-users", users)
	journal, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	records, live := bytes.Count(journal, []byte("\n"))-1, h.store.LiveRecords()
	t.Logf("%d requests, %d cut off, %d answers of 5xx; journal: %d records for %d live users and sessions", s.requests.Load(), s.cut.Load(), s.failed.Load(), records, live)
	if records > 3*live+2000 { // fewer than 1,000 records are not compacted
		t.Errorf("the journal has outgrown what lives")
	}
	if s.failed.Load() > 0 {
		t.Errorf("%d answers of 5xx", s.failed.Load())
	}
	if left := mustList(t, filepath.Join(dir, "phase2")); len(left) != resultFiles {
		t.Errorf("left behind: %v", left)
	}
}

// soak is the traffic and its count.
type soak struct {
	t                     *testing.T
	dir                   string
	requests, cut, failed atomic.Int64
	names                 atomic.Int64
}

// traffic goes on for a while.
func (s *soak) traffic(p *child, span time.Duration) {
	ctx, stop := context.WithTimeout(s.t.Context(), span)
	defer stop()
	var all sync.WaitGroup
	for i := range soakClients {
		all.Go(func() {
			c := &soakClient{s, p, fmt.Sprintf("user%d", i), rand.New(rand.NewPCG(uint64(i), uint64(span))), pair{}}
			for ctx.Err() == nil {
				c.step()
			}
		})
	}
	all.Wait()
}

// soakClient does whatever comes to its mind.
type soakClient struct {
	*soak
	p      *child
	name   string
	random *rand.Rand
	pair   pair
}

func (c *soakClient) step() {
	switch n := c.random.IntN(100); {
	case c.pair.access == "" || n < 4:
		c.pair = c.count(c.p.ask(c.t, "POST", loginPath, credentials(c.name), "")).pair()
	case n < 30:
		if a := c.count(c.p.ask(c.t, "POST", refreshPath, "", c.pair.refresh)); a.status == 200 {
			c.pair = a.pair()
		} else {
			c.pair = pair{}
		}
	case n < 34:
		c.count(c.p.ask(c.t, "POST", logoutPath, "", c.pair.access))
		c.pair = pair{}
	case n < 60:
		c.count(c.p.ask(c.t, "GET", mePath, "", c.pair.access))
	case n < 62:
		c.count(c.p.ask(c.t, "POST", registerPath, credentials(fmt.Sprintf("soaked-%d", c.names.Add(1))), ""))
	case n < 66: // guesses at names that nobody has
		c.count(c.p.ask(c.t, "POST", loginPath, credentials(fmt.Sprintf("nobody-%d", c.random.IntN(1_000_000))), ""))
	case n < 70:
		c.count(c.p.ask(c.t, "POST", runPath, fmt.Sprintf("%s\n2026-01-01T00:00:00Z,%s,7.%d\n", phase2.Header, c.name, c.random.IntN(1_000)), ""))
	case n < 71:
		c.count(c.p.ask(c.t, "POST", runPath, "", ""))
	case n < 90:
		c.count(c.p.ask(c.t, "GET", resultFile(c.random.IntN(resultFiles)).endpoint(), "", ""))
	case n < 96:
		c.count(c.p.ask(c.t, "GET", listingPath, "", ""))
	default:
		c.leave()
	}
}

// leave asks for something and does not wait for the answer.
func (c *soakClient) leave() {
	ctx, stop := context.WithTimeout(c.t.Context(), time.Duration(c.random.IntN(3_000))*time.Microsecond)
	defer stop()
	r, _ := http.NewRequestWithContext(ctx, "POST", c.p.base+[]string{runPath, loginPath, registerPath}[c.random.IntN(3)], strings.NewReader(strings.Repeat("x", 20_000)))
	r.Header.Set("Content-Type", "text/csv")
	if a, err := c.p.client.Do(r); err == nil {
		a.Body.Close()
	}
	c.cut.Add(1)
}

func (c *soakClient) count(a *answer) *answer {
	if a == nil {
		c.t.Error("no answer")
		return &answer{t: c.t}
	}
	if c.requests.Add(1); a.status >= 500 && a.str("code") != "busy" {
		c.failed.Add(1)
	}
	return a
}

// rest waits until the hub has nothing to do and says what it holds then.
func (s *soak) rest(p *child) (least holdings) {
	p.client.CloseIdleConnections()
	eventually(s.t, "the hub is at rest", func() bool {
		now := s.measure(p)
		steady := now.goroutines == least.goroutines && now.descriptors == least.descriptors
		least = now
		return steady
	})
	return least
}

func (s *soak) measure(p *child) (h holdings) {
	said := strings.Count(p.said(), "holdings")
	fmt.Fprintln(p.stdin)
	eventually(s.t, "the hub says what it holds", func() bool { return strings.Count(p.said(), "holdings") > said })
	log := p.said()
	var bytes uint64
	fmt.Sscanf(log[strings.LastIndex(log, "holdings"):], "holdings %d %d", &h.goroutines, &bytes)
	h.heapKiB = bytes >> 10
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	h.descriptors = len(mustList(s.t, proc+"fd"))
	status := readFile(s.t, proc+"status")
	fmt.Sscanf(status[strings.Index(status, "VmRSS:"):], "VmRSS: %d", &h.residentKiB)
	if info, err := os.Stat(filepath.Join(s.dir, "journal")); err == nil {
		h.journalBytes = info.Size()
	}
	return h
}
