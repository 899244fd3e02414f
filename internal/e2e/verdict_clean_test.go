// Clean clients: no finding, whatever happens to them.

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var quiet = []string{} // no notes

// race is the refresh race of the README: five callers meet the end of the access token together.
func race(w *world) {
	w.drain()
	w.fault(object{"operation": "me", "hold": 5})
}

var cleanClients = []behaviour{
	{"a plain life", nil, quiet, func(w *world) {
		c := w.login()
		for range 5 {
			c.me()
			w.drain()
			c.sound()
		}
		c.logout()
		c.logout()
	}},
	{"one refresh for all callers", nil, quiet, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(int) { c.sound() })
	}},
	{"one refresh for all callers, expiry after expiry", nil, quiet, func(w *world) {
		c := w.login()
		for range 4 {
			race(w)
			callers(5, func(int) { c.sound() })
		}
	}},
	{"forty callers and one refresh, over few connections", nil, nil, func(w *world) {
		c := w.newTab(nil)
		c.client.Transport.(*http.Transport).MaxConnsPerHost = 3
		c.login("demo")
		w.drain()
		callers(40, func(int) { c.sound() })
	}},
	{"forty callers and one refresh, over new connections", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		callers(40, func(int) { c.sound() })
	}},
	{"two tabs that share a lock", nil, quiet, func(w *world) {
		one := w.login()
		w.drain()
		other := w.newTab(one.tokens)
		callers(6, func(i int) {
			t := one
			if i%2 == 1 {
				t = other
			}
			if access, _ := one.tokens.get(); t.meWith(access) == 401 && one.renew(access) == 200 {
				t.me()
			}
		})
	}},
	{"a late caller finds the new token there", nil, quiet, func(w *world) {
		c := w.login()
		old, _ := c.tokens.get()
		w.drain()
		c.sound()
		if c.meWith(old) == 401 {
			c.me()
		}
	}},
	{"four of five callers are left with their 401", nil, []string{"not_repeated[me*4 refresh*1]"}, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(i int) {
			if c.me() == 401 && i == 0 && c.refresh() == 200 {
				c.me()
			}
		})
	}},
	{"a timer refreshes a minute ahead", nil, quiet, func(w *world) {
		c := w.login()
		for range 5 {
			w.advance(14 * time.Minute)
			c.refresh()
			c.me()
		}
	}},
	{"a timer refreshes a minute ahead of a short life", nil, quiet, func(w *world) {
		c := w.login(object{"expires_in": 100})
		for range 5 {
			w.advance(40 * time.Second)
			c.refresh()
		}
	}},
	{"a timer refreshes at half time", nil, quiet, func(w *world) {
		c := w.login()
		for range 5 {
			w.advance(450 * time.Second)
			c.refresh()
		}
	}},
	{"a page loads and refreshes once", nil, []string{"early_refresh[refresh*1]"}, func(w *world) {
		c := w.login()
		w.advance(time.Minute)
		c.refresh()
		c.me()
	}},
	{"a page loads twice within a lifetime", nil, []string{"early_refresh[refresh*2]"}, func(w *world) {
		c := w.login()
		for range 2 {
			w.advance(time.Minute)
			c.refresh()
			c.me()
		}
	}},
	{"pages load far apart", nil, nil, func(w *world) {
		c := w.login()
		for range 6 {
			c.refresh()
			c.me()
			w.advance(8 * time.Minute)
		}
	}},
	{"a life of two seconds", nil, nil, func(w *world) {
		c := w.login(object{"expires_in": 2})
		for range 4 {
			w.advance(2100 * time.Millisecond)
			c.sound()
		}
		for range 4 {
			c.refresh()
		}
	}},
	{"the refresh answer is lost, and the old token is sent again", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "drop": "after"})
		c.refresh()
		c.refresh()
		c.login("demo")
		c.me()
	}},
	{"the refresh answer breaks off, and the old token is sent again", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		w.fault(object{"operation": "refresh", "truncate": 20})
		c.refresh()
		c.refresh()
		c.login("demo")
	}},
	{"the refresh answer is lost under grace", nil, quiet, func(w *world) {
		w.policy(object{"reuse": "grace", "grace": "10s"})
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "drop": "after"})
		c.refresh()
		c.refresh()
		c.me()
	}},
	{"the refresh never arrives, and is sent again", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "drop": "before", "times": 2})
		for c.refresh() != 200 {
		}
		c.me()
	}},
	{"the refresh meets a 503 that asks for patience", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "status": 503, "headers": object{"Retry-After": "3"}})
		c.refresh()
		w.advance(3 * time.Second)
		c.refresh()
		c.me()
	}},
	{"a refresh answer that can't be read is asked for again", nil, nil, func(w *world) {
		c := w.login()
		w.advance(10 * time.Minute)
		w.fault(object{"operation": "refresh", "malformed": true})
		c.send("POST", refreshPath, object{"refresh_token": c.tokens.refresh}, "")
		c.refresh()
		c.me()
	}},
	{"a slow refresh is given up and sent again", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "delay": "1s"})
		ctx, giveUp := context.WithTimeout(w.t.Context(), 50*time.Millisecond)
		defer giveUp()
		c.sendIn(ctx, "POST", refreshPath, object{"refresh_token": c.tokens.refresh}, "")
		time.Sleep(50 * time.Millisecond) // the hub learns that the client has gone
		c.refresh()
		c.me()
	}},
	{"racing callers under grace", nil, nil, func(w *world) {
		w.policy(object{"reuse": "grace", "grace": "10s"})
		c := w.login()
		race(w)
		callers(5, func(int) { c.naive() })
	}},
	{"racing callers where reuse is allowed", nil, nil, func(w *world) {
		w.policy(object{"reuse": "allow"})
		c := w.login()
		race(w)
		callers(5, func(int) { c.naive() })
	}},
	{"chained callers where reuse is allowed", nil, nil, func(w *world) {
		w.policy(object{"reuse": "allow"})
		c := w.login()
		race(w)
		callers(5, func(int) { c.chained() })
	}},
	{"the first refresh token for ever where reuse is allowed", nil, nil, func(w *world) {
		w.policy(object{"reuse": "allow"})
		c := w.login()
		_, first := c.tokens.get()
		for range 4 {
			w.drain()
			if c.me() == 401 {
				c.refreshWith(first)
				c.me()
			}
		}
	}},
	{"the policy changes between two refreshes with one token", nil, nil, func(w *world) {
		c := w.login()
		_, first := c.tokens.get()
		w.drain()
		c.refreshWith(first)
		w.policy(object{"reuse": "allow"})
		c.refreshWith(first)
	}},
	{"the clock is put back between two refreshes with one token", nil, nil, func(w *world) {
		c := w.login()
		_, first := c.tokens.get()
		w.advance(10 * time.Minute)
		c.refreshWith(first)
		w.advance(-5 * time.Minute)
		c.refreshWith(first)
	}},
	{"an injected 401 calls for a refresh", nil, nil, func(w *world) {
		c := w.login()
		for range 4 {
			w.fault(object{"operation": "me", "status": 401})
			c.sound()
		}
	}},
	{"the lab expires the access token, time and again", nil, quiet, func(w *world) {
		c := w.login()
		for range 4 {
			access, _ := c.tokens.get()
			w.post("/lab/sessions/"+sid(w.t, access)+"/expire", object{}).want(200)
			c.sound()
		}
	}},
	{"the lab revokes the session", nil, nil, func(w *world) {
		c := w.login()
		access, _ := c.tokens.get()
		w.post("/lab/sessions/"+sid(w.t, access)+"/revoke", nil).want(204)
		c.sound()
		c.login("demo")
		c.me()
	}},
	{"logout everywhere meets the other client", nil, quiet, func(w *world) {
		one, other := w.login(), w.login()
		access, _ := one.tokens.get()
		one.send("POST", logoutPath+"?all=true", nil, access)
		other.sound()
		other.login("demo")
		other.me()
	}},
	{"requests leave together with the logout", nil, quiet, func(w *world) {
		c := w.login()
		access, _ := c.tokens.get()
		w.fault(object{"operation": "*", "hold": 4})
		callers(4, func(i int) {
			if i == 0 {
				c.send("POST", logoutPath, nil, access)
			} else {
				c.meWith(access)
			}
		})
	}},
	{"the logout answer is lost", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "logout", "drop": "after"})
		c.logout()
		c.me()
	}},
	{"another user after logout", nil, quiet, func(w *world) {
		c := w.login()
		c.logout()
		c.login("admin")
		c.me()
		c.logout()
	}},
	{"a login instead of a refresh", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		if c.me() == 401 {
			c.login("demo")
		}
		c.me()
	}},
	{"a logout instead of a refresh", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		if c.me() == 401 {
			c.logout()
		}
	}},
	{"both tokens have expired", nil, quiet, func(w *world) {
		c := w.login()
		w.advance(8 * 24 * time.Hour)
		c.me()
	}},
	{"both tokens have expired, and the refresh is tried", nil, quiet, func(w *world) {
		c := w.login()
		w.advance(8 * 24 * time.Hour)
		c.sound()
		c.login("demo")
	}},
	{"a refresh right after the report was asked for", nil, quiet, func(w *world) {
		w.unread = true
		c := w.login()
		w.drain()
		c.me()
		go func() {
			time.Sleep(300 * time.Millisecond)
			c.refresh()
			c.me()
		}()
	}},
	{"two users side by side", nil, quiet, func(w *world) {
		one, other := w.login(), w.loginAs("admin")
		for range 3 {
			w.drain()
			callers(2, func(i int) { []*tab{one, other}[i].sound() })
		}
	}},
	{"three sessions of one user side by side", nil, quiet, func(w *world) {
		tabs := []*tab{w.login(), w.login(), w.login()}
		for range 3 {
			w.drain()
			callers(3, func(i int) { tabs[i].sound() })
		}
	}},
	{"four tries with a wrong password", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		for range 4 {
			c.send("POST", loginPath, wrong("demo"), "")
		}
		c.login("demo")
	}},
	{"seven wrong passwords, each another", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		for i := range 7 {
			c.send("POST", loginPath, object{"username": "demo", "password": fmt.Sprint("guess-guess", i)}, "")
		}
	}},
	{"eight failures at once", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "hold": 8, "status": 503})
		callers(8, func(int) { c.me() })
	}},
	{"five failures with long pauses", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		for range 6 {
			c.me()
			w.advance(6 * time.Second)
		}
	}},
	{"failures with a success between", nil, quiet, func(w *world) {
		c := w.login()
		for range 3 {
			w.fault(object{"operation": "me", "status": 503, "times": 3})
			for range 4 {
				c.me()
			}
		}
	}},
	{"six requests given up by their client", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "delay": "1s", "times": 0})
		for range 6 {
			ctx, giveUp := context.WithTimeout(w.t.Context(), 20*time.Millisecond)
			c.sendIn(ctx, "GET", mePath, nil, c.tokens.access)
			giveUp()
		}
	}},
	{"a page that loads three missing files, twice", nil, quiet, func(w *world) {
		c := w.login()
		for range 2 {
			for _, path := range filePaths {
				c.send("GET", path, nil, c.tokens.access)
			}
		}
	}},
	{"Retry-After in seconds is kept", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "30"}})
		c.me()
		c.send("GET", listingPath, nil, c.tokens.access)
		w.advance(30 * time.Second)
		c.me()
	}},
	{"Retry-After as a date is kept", nil, quiet, func(w *world) {
		c := w.login()
		date := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
		w.fault(object{"operation": "me", "status": 429, "headers": object{"Retry-After": date}})
		c.me()
		w.advance(61 * time.Second)
		c.me()
	}},
	{"callers that left before they could hear of Retry-After", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "hold": 5, "status": 503, "headers": object{"Retry-After": "30"}})
		callers(5, func(int) { c.me() })
	}},
	{"an ordered token that has expired", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		c.meWith(w.post("/lab/tokens", object{"user": "demo", "defect": "expired"}).want(201).str("token"))
		c.meWith(w.post("/lab/tokens", object{"user": "demo", "defect": "wrong_type"}).want(201).str("token"))
	}},
	{"a sound ordered refresh token, at once", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		c.refreshWith(w.post("/lab/tokens", object{"user": "demo", "kind": "refresh"}).want(201).str("token"))
		c.me()
	}},
	{"the frozen clock of a test", nil, nil, func(w *world) {
		w.clock(object{"at": "2026-03-01T12:00:00Z", "frozen": true})
		c := w.login()
		for range 3 {
			w.drain()
			c.sound()
		}
	}},
	{"a reset while a client is at work", nil, quiet, func(w *world) {
		c := w.login()
		c.me()
		w.post("/lab/reset", nil).want(204)
		if c.sound() == 401 {
			c.login("demo")
		}
		c.me()
	}},
	{"the record is cleared between two refreshes with one token", nil, nil, func(w *world) {
		c := w.login()
		_, first := c.tokens.get()
		w.drain()
		c.refreshWith(first)
		w.delete("/lab/requests").want(204)
		c.refreshWith(first)
	}},
	{"a snapshot is put back", nil, quiet, func(w *world) {
		c := w.login()
		snapshot := w.get("/lab/snapshot").want(200).json()
		_, first := c.tokens.get()
		w.drain()
		c.sound()
		w.put("/lab/snapshot", snapshot).want(204)
		w.drain()
		c.refreshWith(first)
		c.me()
	}},
	{"a browser's thirty callers over six connections, slowly", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		c.client.Transport.(*http.Transport).MaxConnsPerHost = 6
		c.login("demo")
		w.drain()
		w.fault(object{"operation": "me", "delay": "60ms", "times": 30})
		callers(30, func(int) { c.sound() })
	}},
	{"the race, and the winner's answer is lost", nil, nil, func(w *world) {
		c := w.login()
		_, token := c.tokens.get()
		w.drain()
		w.fault(object{"operation": "refresh", "drop": "after"})
		c.refreshWith(token)
		c.refreshWith(token)
		c.refreshWith(token)
		c.login("demo")
	}},
	{"a user switches accounts", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		c.logout()
		c.login("admin")
		c.me()
	}},
	{"six requests sent ahead on one connection", nil, quiet, func(w *world) {
		w.login()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		w.ahead(strings.Repeat(w.wire("GET", mePath, ""), 6))
	}},
	{"a request sent ahead behind the logout", nil, quiet, func(w *world) {
		c := w.login()
		w.ahead(w.wire("POST", logoutPath, c.tokens.access) + w.wire("GET", mePath, c.tokens.access))
	}},
	{"no rotation: one refresh token for ever", nil, quiet, func(w *world) {
		w.policy(object{"rotation": false})
		c := w.login()
		for range 4 {
			w.drain()
			c.sound()
		}
	}},
	{"no rotation: every caller refreshes", nil, nil, func(w *world) {
		w.policy(object{"rotation": false})
		c := w.login()
		race(w)
		callers(5, func(int) { c.naive() })
	}},
	{"a disabled account is met and comes back", nil, nil, func(w *world) {
		c := w.login()
		w.put("/lab/users/demo", object{"disabled": true}).want(200)
		c.me()
		w.put("/lab/users/demo", object{"disabled": false}).want(200)
		c.me()
		w.drain()
		c.sound()
	}},
	{"a refresh meets a disabled account, and is sent again when it is enabled", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.put("/lab/users/demo", object{"disabled": true}).want(200)
		c.refresh()
		w.put("/lab/users/demo", object{"disabled": false}).want(200)
		c.refresh()
		c.me()
	}},
	{"a logout of the other sessions spares its own", nil, quiet, func(w *world) {
		one, other := w.login(), w.login()
		one.send("POST", logoutPath+"?others=true", nil, one.tokens.access)
		one.me()
		other.sound()
		other.login("demo")
		one.me()
	}},
	{"the oauth2 dialect: one refresh for all callers", nil, quiet, func(w *world) {
		w.put("/lab/dialect", object{"name": "oauth2"}).want(200)
		c := w.login()
		race(w)
		callers(5, func(int) {
			access, _ := c.tokens.get()
			if c.meWith(access) != 401 {
				return
			}
			c.single.Lock()
			if now, _ := c.tokens.get(); now == access {
				c.grant()
			}
			c.single.Unlock()
			c.me()
		})
	}},
}
