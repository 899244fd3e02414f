// Go's clients in their plain life and in the refresh race, and the true verdict on each.

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-resty/resty/v2"
	"golang.org/x/oauth2"
)

const repeats = 10

// hub is a namespace of the hub at AUTHHUB_URL.
type hub struct {
	t    *testing.T
	base string
}

var serial atomic.Int64

func newHub(t *testing.T) *hub {
	t.Helper()
	base := os.Getenv("AUTHHUB_URL")
	if base == "" {
		t.Skip("AUTHHUB_URL is the base address of a hub with -lab; .ci/clients starts one")
	}
	h := &hub{t, fmt.Sprintf("%s/ns/go-%d", base, serial.Add(1))}
	t.Cleanup(func() { h.send("DELETE", "", "", nil) })
	return h
}

// send sends JSON to the hub and decodes the answer into v.
func (h *hub) send(method, path, body string, v any) {
	h.t.Helper()
	r, err := http.NewRequest(method, h.base+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode > 299 {
		h.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	if v != nil {
		if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *hub) advance(d string) { h.send("PUT", "/lab/clock", `{"advance":"`+d+`"}`, nil) }

// pair is what a login gives.
type pair struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (h *hub) login(members string) (p pair) {
	h.send("POST", "/api/authentication/login", `{"username":"demo","password":"demo-password"`+members+`}`, &p)
	return p
}

// race has five callers meet the end of the access token together.
func (h *hub) race(ask func() int) {
	h.advance("16m")
	h.send("POST", "/lab/faults", `{"operation":"me","hold":5}`, nil)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { ask() })
	}
	all.Wait()
}

// wantFindings fails the test unless the report has these rules, each with that many requests.
func (h *hub) wantFindings(want ...string) {
	h.t.Helper()
	h.advance("3s")
	var report struct {
		Findings []struct {
			Rule string
			Seqs []int
		}
	}
	h.send("GET", "/lab/report", "", &report)
	var got []string
	for _, f := range report.Findings {
		got = append(got, fmt.Sprint(f.Rule, " ", len(f.Seqs)))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("findings %q, want %q", got, want)
	}
}

// oauth2Client is golang.org/x/oauth2 with a token of the hub. It refreshes ten seconds ahead, by the machine's clock.
func oauth2Client(h *hub, expiry time.Time) func() int {
	p := h.login(`,"expires_in":12`)
	config := oauth2.Config{ClientID: "test", Endpoint: oauth2.Endpoint{TokenURL: h.base + "/api/authentication/refresh", AuthStyle: oauth2.AuthStyleInParams}}
	client := config.Client(context.Background(), &oauth2.Token{AccessToken: p.Access, RefreshToken: p.Refresh, Expiry: expiry})
	return func() int {
		resp, err := client.Get(h.base + "/api/authentication/me")
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
}

// restyClient is resty as its users set it up: a retry on a 401, and a hook that refreshes before it.
func restyClient(h *hub, together bool) func() int {
	p := h.login("")
	var mu, single sync.Mutex
	current := func() pair { mu.Lock(); defer mu.Unlock(); return p }
	client := resty.New().SetBaseURL(h.base)
	exchange := func(refresh string) {
		var next pair
		if resp, err := client.R().SetBody(map[string]string{"refresh_token": refresh}).SetResult(&next).Post("/api/authentication/refresh"); err == nil && resp.IsSuccess() {
			mu.Lock()
			p = next
			mu.Unlock()
		}
	}
	return func() int {
		used := current()
		ask := func() int {
			used = current()
			resp, err := client.R().SetAuthToken(used.Access).Get("/api/authentication/me")
			if err != nil {
				return 0
			}
			return resp.StatusCode()
		}
		if status := ask(); status != 401 {
			return status
		}
		if together {
			single.Lock()
			if current() == used {
				exchange(used.Refresh)
			}
			single.Unlock()
		} else {
			exchange(used.Refresh)
		}
		return ask()
	}
}

func TestClients(t *testing.T) {
	for name, story := range map[string]func(*hub){
		"x/oauth2, a plain life": func(h *hub) {
			ask := oauth2Client(h, time.Now().Add(time.Second)) // within the ten seconds
			for range 3 {
				ask()
			}
			h.wantFindings()
		},
		"x/oauth2, five callers": func(h *hub) {
			ask := oauth2Client(h, time.Now().Add(time.Second))
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { ask() })
			}
			all.Wait()
			h.wantFindings()
		},
		"x/oauth2, the clock turned behind its back": func(h *hub) {
			ask := oauth2Client(h, time.Now().Add(time.Hour))
			h.advance("16m")
			ask() // it knows no 401
			h.wantFindings("no_refresh_after_expiry 1")
		},
		"resty, a plain life": func(h *hub) {
			ask := restyClient(h, true)
			for range 3 {
				ask()
				h.advance("16m")
				ask()
			}
			h.wantFindings()
		},
		"resty, the race": func(h *hub) {
			h.race(restyClient(h, true))
			h.wantFindings()
		},
		"resty, the race of callers that each refresh": func(h *hub) {
			h.race(restyClient(h, false))
			h.wantFindings("two_refreshes 5")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range repeats {
				story(newHub(t))
			}
		})
	}
}
