// Everything at once: clients that do whatever comes to their minds, in namespaces that others reset, snapshot and
// delete meanwhile.

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// TestEverythingAtOnce: whatever meets whatever, the hub answers, and never with a 500. Built with the race detector
// it is the test that shows the hub most of its own concurrency.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab", "-log", "json", "-log-level", "warn")
	h.faulty = true
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := &chaotic{hub: h, random: rand.New(rand.NewPCG(uint64(i), 1))}
			for range 300 {
				c.step()
			}
		})
	}
	all.Wait()
	h.get("/healthz").Want(200)
	if status := h.process.stop(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// chaotic is one of the clients.
type chaotic struct {
	*hub
	random   *rand.Rand
	pair     pair
	snapshot string
}

// step sends one request, to the root or one of four namespaces.
func (c *chaotic) step() {
	steps := []func(space string){
		c.stepLogin, c.stepLogin, c.stepSession, c.stepSession, c.stepSession, c.stepFiles, c.stepUsers, c.stepSnapshot, c.stepState, c.stepFault,
	}
	space := one(c, "", "/ns/a", "/ns/b", "/ns/c", "/ns/d")
	steps[c.random.IntN(len(steps))](space)
}

// one returns one of several values.
func one[T any](c *chaotic, values ...T) T { return values[c.random.IntN(len(values))] }

// ask sends a request, whose answer may be cut off by a fault.
func (c *chaotic) ask(method, target string, body any, options ...string) *answer {
	a, err := c.try(method, target, body, options...)
	if err != nil {
		return nil
	}
	if a.Status >= 500 && a.Text("code") != "busy" && a.Text("code") != "injected" {
		c.t.Errorf("%s %s: %d %s", method, target, a.Status, a.Body)
	}
	return a
}

func (c *chaotic) stepLogin(space string) {
	name := one(c, "demo", "admin", "u-1", "u-2")
	a := c.ask("POST", space+one(c, loginPath, loginPath, registerPath), right(name))
	if a != nil && (a.Status == 200 || a.Status == 201) && strings.Contains(string(a.Body), `"refresh_token"`) {
		c.pair = a.Pair()
	}
}

func (c *chaotic) stepSession(space string) {
	switch c.random.IntN(4) {
	case 0:
		c.ask("GET", space+mePath, nil, bearer(c.pair.Access)...)
	case 1:
		if a := c.ask("POST", space+refreshPath, object{"refresh_token": c.pair.Refresh}); a != nil && a.Status == 200 && strings.Contains(string(a.Body), `"refresh_token"`) {
			c.pair = a.Pair()
		}
	case 2:
		c.ask("POST", space+logoutPath+one(c, "", "?all=true"), nil, bearer(c.pair.Access)...)
	case 3:
		if c.pair.Access != "" {
			c.ask("POST", space+"/lab/sessions/"+sid(c.t, c.pair.Access)+one(c, "/expire", "/revoke"), nil)
		}
	}
}

func (c *chaotic) stepFiles(space string) {
	if c.random.IntN(2) == 0 {
		c.ask("GET", space+one(c, append(filePaths, listingPath, runPath)...), nil, "Accept-Encoding", one(c, "gzip", "identity"))
		return
	}
	readings := fmt.Sprintf("%s\n2025-01-01T00:00:00Z,s%d,7\n", csvHeader, c.random.IntN(5))
	c.ask("POST", space+runPath+one(c, "", "?low=7"), readings, "Content-Type", "text/csv", "Prefer", one(c, "respond-async", "wait=1"))
}

func (c *chaotic) stepUsers(space string) {
	path := space + "/lab/users/" + one(c, "demo", "admin", "u-1", "u-2")
	if c.random.IntN(6) == 0 {
		c.ask("DELETE", path, nil)
		return
	}
	c.ask("PUT", path, one(c, object{"disabled": true}, object{"disabled": false}, object{"role": "admin"}, object{"password": "password-1"}, object{"email": "one@example.test"}))
}

func (c *chaotic) stepSnapshot(space string) {
	switch c.random.IntN(4) {
	case 0:
		if a := c.ask("GET", space+"/lab/snapshot", nil); a != nil && a.Status == 200 {
			c.snapshot = string(a.Body)
		}
	case 1:
		c.ask("PUT", space+"/lab/snapshot", c.snapshot, jsonType...)
	case 2:
		c.ask("POST", space+"/lab/reset", nil)
	case 3:
		if space != "" {
			c.ask("DELETE", space, nil)
		}
	}
}

func (c *chaotic) stepState(space string) {
	switch c.random.IntN(5) {
	case 0:
		c.ask("PUT", space+"/lab/clock", one(c, object{"advance": "10m"}, object{"advance": "-10m"}, object{"frozen": true}, object{"frozen": false}))
	case 1:
		c.ask("PUT", space+"/lab/refresh-policy", one(c, object{"reuse": "allow"}, object{"reuse": "grace", "grace": "1s"}, object{"rotation": false}, object{"reuse": "strict"}))
	case 2:
		c.ask("PUT", space+"/lab/lifetimes", object{"access": one(c, "1s", "15m")})
	case 3:
		c.ask("PUT", space+"/lab/dialect", object{"name": one(c, "oauth2", "supabase", "cookie")})
		c.ask("DELETE", space+"/lab/dialect", nil)
	case 4:
		c.ask("GET", space+one(c, "/lab", "/lab/report", "/lab/requests", "/lab/sessions", "/lab/users", "/api"), nil)
		c.ask("GET", "/ns", nil)
	}
}

func (c *chaotic) stepFault(space string) {
	if c.random.IntN(2) == 0 {
		c.ask("POST", space+"/lab/expect", object{"operation": "me", "within": "10ms"})
		return
	}
	c.ask("POST", space+"/lab/faults", one(c, object{"operation": "*", "status": 503}, object{"operation": "refresh", "hold": 2, "within": "20ms"},
		object{"operation": "me", "delay": "10ms", "drop": "after"}, object{"operation": "login", "truncate": 3}, object{"operation": "file", "malformed": true}))
}
