// Clean clients: logging out, failing, waiting, and in the worlds that the lab makes.

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var cleanElsewhere = []behaviour{
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
		w.early = true
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
	{"an address with an empty parameter, and one that holds no token", nil, quiet, func(w *world) {
		c := w.login()
		c.send("GET", mePath+"?access_token=", nil, c.tokens.access)
		for _, value := range []string{"undefined", "null", "None", "NaN", "%5Bobject%20Object%5D", "{token}", "$TOKEN"} {
			c.send("GET", mePath+"?access_token="+value, nil, c.tokens.access)
		}
		c.send("GET", mePath+"?token=abc", nil, c.tokens.access)
	}},
	{"a page that sends null for the token that it does not have, before each of six logins", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		for range 6 {
			c.send("POST", refreshPath, object{"refresh_token": "undefined"}, "")
			c.meWith("null")
			c.login("demo")
			c.me()
			c.logout()
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
	{"six files of one length, each uploaded once", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		w.fault(object{"operation": "run", "status": 503, "headers": object{"Retry-After": "30"}, "times": 0})
		for i := range 6 {
			c.send("POST", runPath, fmt.Sprintf("%s%d\n", fourReadings, i), "")
			w.advance(time.Second)
		}
	}},
	{"callers that left before they could hear of Retry-After", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "hold": 5, "status": 503, "headers": object{"Retry-After": "30"}})
		callers(5, func(int) { c.me() })
	}},
	{"an ordered token that has expired", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		c.meWith(w.post("/lab/tokens", object{"user": "demo", "defect": "expired"}).Want(201).Text("token"))
		c.meWith(w.post("/lab/tokens", object{"user": "demo", "defect": "wrong_type"}).Want(201).Text("token"))
	}},
	{"a sound ordered refresh token, at once", nil, quiet, func(w *world) {
		c := w.newTab(nil)
		c.refreshWith(w.post("/lab/tokens", object{"user": "demo", "kind": "refresh"}).Want(201).Text("token"))
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
		w.post("/lab/reset", nil).Want(204)
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
		w.delete("/lab/requests").Want(204)
		c.refreshWith(first)
	}},
	{"a snapshot is put back", nil, quiet, func(w *world) {
		c := w.login()
		snapshot := w.get("/lab/snapshot").Want(200).JSON()
		_, first := c.tokens.get()
		w.drain()
		c.sound()
		w.put("/lab/snapshot", snapshot).Want(204)
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
		w.put("/lab/users/demo", object{"disabled": true}).Want(200)
		c.me()
		w.put("/lab/users/demo", object{"disabled": false}).Want(200)
		c.me()
		w.drain()
		c.sound()
	}},
	{"a refresh meets a disabled account, and is sent again when it is enabled", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		c.me()
		w.put("/lab/users/demo", object{"disabled": true}).Want(200)
		c.refresh()
		w.put("/lab/users/demo", object{"disabled": false}).Want(200)
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
		w.put("/lab/dialect", object{"name": "oauth2"}).Want(200)
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
