// Faulty clients: logging out, failing, waiting, and in the worlds that the lab makes.

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

var faultyElsewhere = []behaviour{
	{"a token after logout", []string{"token_after_logout[logout*1 me*2]"}, quiet, func(w *world) {
		c := w.login()
		c.logout()
		c.me()
		c.me()
	}},
	{"a wrong password over connections that a suite uses for other namespaces", []string{"repeated_failure[login*6]"}, quiet, func(w *world) {
		elsewhere := &world{hub: newHub(w.t)}
		shared := elsewhere.login().tokens
		var suite []*tab
		for range 3 {
			c := elsewhere.newTab(shared).over(1)
			c.me()
			c.w = w
			suite = append(suite, c)
			time.Sleep(110 * time.Millisecond) // connections that are opened together are of one client anyway
		}
		for i := range 6 {
			suite[i%3].send("POST", loginPath, wrong("demo"), "")
			w.advance(time.Second)
		}
	}},
	{"a refresh after logout", []string{"token_after_logout[logout*1 refresh*1]"}, quiet, func(w *world) {
		c := w.login()
		c.logout()
		c.refresh()
	}},
	{"a poll of another tab after logout", []string{"token_after_logout[logout*1 me*3]"}, quiet, func(w *world) {
		c := w.login()
		other := w.newTab(c.tokens)
		other.me()
		c.logout()
		for range 3 {
			w.advance(10 * time.Second)
			other.me()
		}
	}},
	{"the dead session of a logout everywhere is used on", []string{"token_after_logout[logout*1 me*2]"}, quiet, func(w *world) {
		one, other := w.login(), w.login()
		access, _ := one.tokens.get()
		one.send("POST", logoutPath+"?all=true", nil, access)
		for range 3 {
			other.me()
			w.advance(10 * time.Second)
		}
	}},
	{"the refresh token sent to me", []string{"wrong_token_type[me*2]"}, quiet, func(w *world) {
		c := w.login()
		_, refresh := c.tokens.get()
		c.meWith(refresh)
		c.meWith(refresh)
	}},
	{"the access token sent to refresh", []string{"wrong_token_type[refresh*1]"}, quiet, func(w *world) {
		c := w.login()
		access, _ := c.tokens.get()
		c.refreshWith(access)
	}},
	{"a loop on an injected 503", []string{"repeated_failure[me*7]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		for range 7 {
			c.me()
		}
	}},
	{"a loop on an injected 503, each try at another address", []string{"repeated_failure[me*7]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		for i := range 7 {
			c.send("GET", fmt.Sprint(mePath, "?try=", i), nil, c.tokens.access)
		}
	}},
	{"a loop on an injected 503, over one file after the other", []string{"repeated_failure[file*6]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "file", "status": 503, "times": 0})
		for range 2 {
			for _, path := range filePaths {
				c.send("GET", path, nil, c.tokens.access)
			}
		}
	}},
	{"a loop over new connections", []string{"repeated_failure[me*6]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		c.client.Transport.(*http.Transport).DisableKeepAlives = true
		c.login("demo")
		w.fault(object{"operation": "me", "status": 500, "times": 0})
		for range 6 {
			c.me()
		}
	}},
	{"a loop over connections that are cut", []string{"repeated_failure[me*6]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		c.client.Transport.(*http.Transport).DisableKeepAlives = true
		c.login("demo")
		w.fault(object{"operation": "me", "drop": "before", "times": 0})
		for range 6 {
			c.me()
			w.advance(200 * time.Millisecond) // within 100 ms a library may repeat by itself
		}
	}},
	{"five times the same wrong password", []string{"repeated_failure[login*5]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		for i := range 5 {
			c.send("POST", fmt.Sprint(loginPath, "?try=", i), wrong("demo"), "")
		}
	}},
	{"a loop with a dead refresh token", []string{"repeated_failure[refresh*6]"}, quiet, func(w *world) {
		c := w.login()
		_, token := c.tokens.get()
		w.advance(8 * 24 * time.Hour)
		for i := range 6 {
			c.send("POST", refreshPath, object{"refresh_token": token, "try": i}, "")
		}
	}},
	{"a loop with no token", []string{"repeated_failure[me*5]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		for range 5 {
			c.meWith("")
		}
	}},
	{"a loop with the word undefined", []string{"repeated_failure[me*5]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		for range 5 {
			c.meWith("undefined")
		}
	}},
	{"a poll goes on with the expired token", []string{"no_refresh_after_expiry[me*4]"}, quiet, func(w *world) {
		c := w.login()
		w.drain()
		for range 4 {
			c.me()
			w.advance(10 * time.Second)
		}
	}},
	{"no refresh after token_expired", []string{"no_refresh_after_expiry[me*1]"}, quiet, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		c.send("GET", listingPath, nil, "")
	}},
	{"no refresh after token_expired, and the report at once", []string{"no_refresh_after_expiry[me*1]"}, quiet, func(w *world) {
		w.early = true
		c := w.login()
		w.drain()
		c.me()
	}},
	{"no refresh after an injected token_expired", []string{"no_refresh_after_expiry[me*1]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 401, "body": object{"code": "token_expired"}})
		c.me()
	}},
	{"Retry-After is ignored", []string{"retry_after_ignored[me*2]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "30"}})
		c.me()
		w.advance(20 * time.Second)
		c.me()
	}},
	{"Retry-After of a refresh is ignored", []string{"retry_after_ignored[refresh*2]"}, nil, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "status": 503, "headers": object{"Retry-After": "30"}})
		c.refresh()
		c.refresh()
	}},
	{"Retry-After as a date is ignored", []string{"retry_after_ignored[listing*2]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		date := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
		w.fault(object{"operation": "listing", "status": 503, "headers": object{"Retry-After": date}})
		c.send("GET", listingPath, nil, "")
		c.send("GET", listingPath, nil, "")
	}},
	{"the upload of one file, again sooner than Retry-After asked", []string{"retry_after_ignored[run*2]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		w.fault(object{"operation": "run", "status": 503, "headers": object{"Retry-After": "30"}})
		c.send("POST", runPath, fourReadings, "")
		c.send("POST", runPath, fourReadings, "")
	}},
	{"a token after logout, over a connection that a refused upload took long over", []string{"token_after_logout[logout*1 me*1]"}, quiet, func(w *world) {
		c, conn := w.login(), w.dial()
		defer conn.Close()
		w.fault(object{"operation": "run", "status": 503, "times": 2})
		for range 2 { // the second one would be cut if the hub took the client for gone
			if status := w.trickle(conn, "POST", runPath, "", slices.Repeat([]time.Duration{400 * time.Millisecond}, 4)...); status != 503 {
				w.t.Errorf("an upload over a slow line got %d, want 503", status)
			}
		}
		c.logout()
		time.Sleep(120 * time.Millisecond)
		w.trickle(conn, "GET", mePath, c.tokens.access)
	}},
	{"a loop with one file, which a fault answers and then the hub", []string{"repeated_failure[run*6]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		w.fault(object{"operation": "run", "status": 503, "times": 2})
		w.fault(object{"operation": "run", "drop": "before"})
		for range 6 {
			c.send("POST", runPath, fmt.Sprintf("no readings%100000d", 1), "")
			w.advance(time.Second)
		}
	}},
	{"one wrong password, in a page that jsdom shows", []string{"repeated_failure[login*6]"}, quiet, func(w *world) {
		for range 6 {
			c := w.newTab(nil) // a connection for each, which it keeps
			c.agent = "Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) jsdom/24.1.3"
			c.login("demo", object{"password": "wrong"})
			time.Sleep(120 * time.Millisecond) // a page opens several within 100 ms
		}
	}},
	{"a token in the address", []string{"token_in_address[listing*4 me*1]"}, quiet, func(w *world) {
		c := w.login()
		c.send("GET", listingPath+"?"+c.tokens.access, nil, "")
		c.send("GET", listingPath+"?page=2;token="+c.tokens.refresh, nil, "")
		c.send("GET", listingPath+"?access_token="+c.tokens.access, nil, "")
		c.send("GET", listingPath+"?next=/page%3Faccess_token%3D"+c.tokens.access, nil, "")
		c.send("GET", mePath+"?x="+c.tokens.access, nil, "")
	}},
	{"a sound ordered refresh token, twice", []string{"two_refreshes[refresh*2]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		token := w.post("/lab/tokens", object{"user": "demo", "kind": "refresh"}).Want(201).Text("token")
		c.refreshWith(token)
		c.refreshWith(token)
	}},
	{"a sound ordered access token after logout", []string{"token_after_logout[logout*1 me*1]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		token := w.post("/lab/tokens", object{"user": "demo"}).Want(201).Text("token")
		c.send("POST", logoutPath, nil, token)
		c.meWith(token)
	}},
	{"an ordered token with a role, after logout", []string{"token_after_logout[logout*1 me*1]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		token := w.post("/lab/tokens", object{"user": "demo", "claims": object{"role": "admin", "tenant": "acme"}}).Want(201).Text("token")
		c.send("POST", logoutPath, nil, token)
		c.meWith(token)
	}},
	{"a caller that waits twice as long as asked, and one that does not", []string{"retry_after_ignored[me*2]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 429, "headers": object{"Retry-After": "1"}})
		c.me()
		c.me()
		w.advance(2 * time.Second)
		c.me()
	}},
	{"a client that is wrong in two ways", []string{"wrong_token_type[me*1]", "token_in_address[listing*1]"}, quiet, func(w *world) {
		c := w.login()
		_, refresh := c.tokens.get()
		c.meWith(refresh)
		c.send("GET", listingPath+"?token="+refresh, nil, "")
	}},
	{"the frozen clock of a test, and every caller refreshes", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		w.clock(object{"at": "2026-03-01T12:00:00Z", "frozen": true})
		c := w.login()
		race(w)
		callers(5, func(int) { c.naive() })
	}},
	{"a frozen clock that is set to what it shows, between two refreshes with one token", []string{"two_refreshes[refresh*2]"}, nil, func(w *world) {
		c := w.login()
		_, refresh := c.tokens.get()
		w.clock(object{"frozen": true})
		c.refreshWith(refresh)
		w.clock(object{"at": w.get("/lab").JSON()["time"].(object)["now"]})
		c.refreshWith(refresh)
	}},
	{"six tries with the expired token before the refresh", []string{"repeated_failure[me*6]"}, nil, func(w *world) {
		c := w.login()
		w.drain()
		for range 6 {
			c.me()
		}
		c.refresh()
		c.me()
	}},
	{"a loop of the old token after the refresh", []string{"repeated_failure[me*6]"}, nil, func(w *world) {
		c := w.login()
		old, _ := c.tokens.get()
		w.drain()
		c.me()
		c.refresh()
		for range 5 {
			c.meWith(old)
		}
	}},
	{"two users, one of whom has a faulty client", []string{"two_refreshes[refresh*3]"}, nil, func(w *world) {
		one, other := w.login(), w.loginAs("admin")
		_, token := other.tokens.get()
		w.drain()
		w.fault(object{"operation": "refresh", "session": sid(w.t, other.tokens.access), "hold": 3})
		callers(4, func(i int) {
			if i == 0 {
				one.sound()
			} else {
				other.refreshWith(token)
			}
		})
	}},
	{"two sessions, each raced", []string{"two_refreshes[refresh*2]", "two_refreshes[refresh*2]"}, nil, func(w *world) {
		for range 2 {
			c := w.login()
			_, token := c.tokens.get()
			w.drain()
			w.fault(object{"operation": "refresh", "hold": 2})
			callers(2, func(int) { c.refreshWith(token) })
		}
	}},
	{"a poll for a missing file", []string{"repeated_failure[file*6]"}, nil, func(w *world) {
		c := w.newTab(nil)
		for range 6 {
			c.send("GET", filePaths[0], nil, "")
		}
	}},
	{"every caller refreshes, and logs out when that fails", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(int) {
			access, refresh := c.tokens.get()
			if c.meWith(access) != 401 {
				return
			}
			if c.refreshWith(refresh) == 200 {
				c.me()
			} else {
				c.logout()
			}
		})
	}},
	{"a token after a logout that a fault answered", []string{"token_after_logout[logout*1 me*1]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "logout", "status": 204})
		c.logout()
		c.me()
	}},
	{"no rotation: a refresh before every request", []string{"refresh_without_need[refresh*4]"}, quiet, func(w *world) {
		w.policy(object{"rotation": false})
		c := w.login()
		for range 4 {
			c.refresh()
			c.me()
		}
	}},
	{"a loop on a disabled account", []string{"repeated_failure[me*6]"}, nil, func(w *world) {
		c := w.login()
		w.put("/lab/users/demo", object{"disabled": true}).Want(200)
		for range 6 {
			c.me()
		}
	}},
	{"the oauth2 dialect: every caller refreshes", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		w.put("/lab/dialect", object{"name": "oauth2"}).Want(200)
		c := w.login()
		race(w)
		w.fault(object{"operation": "refresh", "hold": 5})
		callers(5, func(int) {
			if c.me() == 401 {
				c.grant()
			}
		})
	}},
	{"the oauth2 dialect: the new refresh token is not stored", []string{"spent_refresh_token[refresh*2]"}, quiet, func(w *world) {
		w.put("/lab/dialect", object{"name": "oauth2"}).Want(200)
		c := w.login()
		access, old := c.tokens.get()
		for range 2 {
			w.drain()
			c.meWith(access)
			c.tokens.set("", old)
			if c.grant() == 200 {
				access, _ = c.tokens.get()
				c.me()
			}
		}
	}},
	{"another client is sent out by a logout of the other sessions, and goes on", []string{"token_after_logout[logout*1 me*2]"}, quiet, func(w *world) {
		one, other := w.login(), w.login()
		one.send("POST", logoutPath+"?others=true", nil, one.tokens.access)
		for range 3 {
			other.me()
			w.advance(10 * time.Second)
		}
		one.me()
	}},
}
