// The soak: mixed traffic for as long as AUTHHUB_SOAK says, with restarts, and what the hub holds meanwhile.
//
//	AUTHHUB_SOAK=10m go test -count=1 -timeout 30m -run TestSoak -v ./internal/e2e

package e2e

import (
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
	"authhub/internal/testkit"
)

const (
	soakLives   = 5 // processes, ended by SIGKILL and by SIGINT in turn
	soakClients = 8
)

// holdings are what a hub at rest holds.
type holdings struct{ descriptors, residentKiB int }

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
		h := start(t, "-dir", dir, "-users", users, "-log", "off", "-refresh-ttl", "20s")
		s.traffic(h, span/soakLives/4) // what is allocated once is allocated now
		early := s.rest(h)
		s.traffic(h, span/soakLives*3/4)
		late := s.rest(h)
		t.Logf("life %d: %+v, then %+v", life+1, early, late)
		if late.descriptors > early.descriptors || late.residentKiB > early.residentKiB*2+32<<10 {
			t.Errorf("the hub holds ever more")
		}
		if life%2 == 0 {
			h.process.kill()
		} else {
			h.process.stop(t)
		}
	}
	counts := start(t, "-dir", dir, "-users", users, "-lab").get("/lab").Want(200).JSON()["counts"].(object)
	records, live := strings.Count(testkit.ReadFile(t, filepath.Join(dir, "journal")), "\n"), counts["users"].(float64)+counts["sessions"].(float64)
	t.Logf("%d requests, %d cut off, %d answers of 5xx; journal: %d records for %v live users and sessions", s.requests.Load(), s.cut.Load(), s.failed.Load(), records, live)
	if float64(records) > 3*live+2_000 {
		t.Errorf("the journal has outgrown what lives")
	}
	if s.failed.Load() > 0 {
		t.Errorf("%d answers of 5xx", s.failed.Load())
	}
	if left := testkit.List(t, filepath.Join(dir, "phase2")); len(left) != 3 {
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
func (s *soak) traffic(h *hub, span time.Duration) {
	ctx, stop := context.WithTimeout(s.t.Context(), span)
	defer stop()
	var all sync.WaitGroup
	for i := range soakClients {
		all.Go(func() {
			c := &soakClient{s, h, fmt.Sprintf("user%d", i), rand.New(rand.NewPCG(uint64(i), uint64(span))), pair{}}
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
	h      *hub
	name   string
	random *rand.Rand
	pair   pair
}

func (c *soakClient) step() {
	switch n := c.random.IntN(100); {
	case c.pair.Access == "" || n < 4:
		c.pair = c.count(c.h.try("POST", loginPath, right(c.name))).Pair()
	case n < 30:
		if a := c.count(c.h.try("POST", refreshPath, nil, bearer(c.pair.Refresh)...)); a.Status == 200 {
			c.pair = a.Pair()
		} else {
			c.pair = pair{}
		}
	case n < 34:
		c.count(c.h.try("POST", logoutPath, nil, bearer(c.pair.Access)...))
		c.pair = pair{}
	case n < 60:
		c.count(c.h.try("GET", mePath, nil, bearer(c.pair.Access)...))
	case n < 62:
		c.count(c.h.try("POST", registerPath, right(fmt.Sprintf("soaked-%d", c.names.Add(1)))))
	case n < 66: // guesses at names that nobody has
		c.count(c.h.try("POST", loginPath, right(fmt.Sprintf("nobody-%d", c.random.IntN(1_000_000)))))
	case n < 70:
		c.count(c.h.try("POST", runPath, fmt.Sprintf("%s\n2026-01-01T00:00:00Z,%s,7.%d\n", phase2.Header, c.name, c.random.IntN(1_000)), csvType...))
	case n < 71:
		c.count(c.h.try("POST", runPath, nil))
	case n < 90:
		c.count(c.h.try("GET", filePaths[c.random.IntN(len(filePaths))], nil))
	case n < 96:
		c.count(c.h.try("GET", listingPath, nil))
	default:
		c.leave()
	}
}

// leave asks for something and does not wait for the answer.
func (c *soakClient) leave() {
	ctx, stop := context.WithTimeout(c.t.Context(), time.Duration(c.random.IntN(3_000))*time.Microsecond)
	defer stop()
	r, _ := http.NewRequestWithContext(ctx, "POST", c.h.base+[]string{runPath, loginPath, registerPath}[c.random.IntN(3)], strings.NewReader(strings.Repeat("x", 20_000)))
	r.Header.Set("Content-Type", "text/csv")
	if a, err := c.h.client.Do(r); err == nil {
		a.Body.Close()
	}
	c.cut.Add(1)
}

func (c *soakClient) count(a *answer, err error) *answer {
	if err != nil {
		c.t.Error(err)
		return &answer{T: c.t}
	}
	if c.requests.Add(1); a.Status >= 500 && a.Text("code") != "busy" {
		c.failed.Add(1)
	}
	return a
}

// rest waits until the hub has nothing to do and says what it holds then.
func (s *soak) rest(h *hub) (least holdings) {
	h.client.CloseIdleConnections()
	testkit.Eventually(s.t, "the hub is at rest", func() bool {
		var now holdings
		now.descriptors, now.residentKiB = h.process.holdings(s.t)
		steady := now.descriptors == least.descriptors
		least = now
		return steady
	})
	return least
}
