// Clients whose callers are many: side by side, in a queue, or one after the other so that it looks alike.

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// withLogout logs out and asks for the user three times, all at once: the hub holds them until it has all four. The
// tab that does is given by of.
func withLogout(c *tab, of func(i int) *tab) {
	access, _ := c.tokens.get()
	c.w.fault(object{"operation": "*", "hold": 4})
	callers(4, func(i int) {
		if i == 0 {
			of(i).send("POST", logoutPath, nil, access)
		} else {
			of(i).meWith(access)
		}
	})
}

var cleanTogether = []behaviour{
	{"a logout and three requests at once", nil, quiet, func(w *world) {
		c := w.login()
		withLogout(c, func(int) *tab { return c })
	}},
	{"a logout and three requests at once, over cold connections", nil, quiet, func(w *world) {
		c := w.login()
		c.client.CloseIdleConnections()
		withLogout(c, func(int) *tab { return c })
	}},
	{"a logout and three requests at once, each over a connection of its own", nil, quiet, func(w *world) {
		c := w.login().over(0)
		withLogout(c, func(int) *tab { return c })
	}},
	{"a logout and requests of three other tabs at once", nil, quiet, func(w *world) {
		c := w.login()
		withLogout(c, func(int) *tab { return w.newTab(c.tokens) })
	}},
	{"a tab with an old session finds that the user has logged in anew", nil, quiet, func(w *world) {
		one := w.login()
		other := w.newTab(new(tokens))
		other.tokens.set(one.tokens.get())
		w.drain()
		one.login("demo")
		if other.me() == 401 {
			other.tokens.set(one.tokens.get())
			other.me()
		}
	}},
	{"where reuse is allowed, refreshes overtake each other", nil, quiet, func(w *world) {
		w.policy(object{"reuse": "allow"})
		c := w.login()
		access, refresh := c.tokens.get()
		w.drain()
		w.fault(object{"operation": "refresh", "hold": 12, "within": "300ms"})
		callers(12, func(int) {
			c.meWith(access)
			if status, answer := c.send("POST", refreshPath, object{"refresh_token": refresh}, ""); status == 200 {
				c.meWith(answer.Access)
			}
		})
	}},
	{"a refresh that waits for the connection, which another test of the suite uses", nil, quiet, func(w *world) {
		c := w.login().over(1)
		w.advance(16 * time.Minute)
		other := &tab{w: &world{hub: newHub(w.t)}, client: c.client, tokens: new(tokens)}
		other.w.fault(object{"operation": "me", "delay": "2100ms"})
		if c.me() == 401 {
			other.me()
			c.refresh()
			c.me()
		}
	}},
	{"a logout that is told token_expired", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "logout", "status": 401, "body": object{"code": "token_expired"}})
		c.logout()
	}},
	{"a request that had begun to leave before the logout", nil, quiet, func(w *world) {
		c := w.login()
		w.slowly(w.wire("GET", mePath, c.tokens.access), 10, func() { c.logout() })
	}},
	{"a refresh whose body had begun to leave before the logout", nil, quiet, func(w *world) {
		c := w.login()
		body := fmt.Sprintf(`{"refresh_token":%q}`, c.tokens.refresh)
		w.slowly(w.wireWith("POST", refreshPath, "", body), len(body), func() { c.logout() })
	}},
	{"an expired token, with a body that takes more than two seconds to send", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		long := strings.Repeat("8.05\n", 100_000)
		w.slowly(w.wireWith("GET", mePath, c.tokens.access, long), 10, func() { time.Sleep(2200 * time.Millisecond) })
		c.refresh()
		c.me()
	}},
	{"an expired token, with a body that stops for longer than a second", nil, quiet, func(w *world) {
		c, conn := w.login(), w.dial()
		defer conn.Close()
		w.drain()
		w.trickle(conn, "GET", mePath, c.tokens.access, 0, 0, 0, 0, 1200*time.Millisecond) // whether it hears the answer is up to the client
	}},
	{"a refresh whose answer is there, and never read", nil, nil, func(w *world) {
		c := w.login()
		w.drain()
		w.unread(w.wireWith("POST", refreshPath, "", fmt.Sprintf(`{"refresh_token":%q}`, c.tokens.refresh)))
		c.refresh()
		c.login("demo")
	}},
	{"eight callers in a browser's queue, whose refresh fails", nil, nil, func(w *world) {
		c := w.login().inBrowser().over(1)
		w.drain()
		w.fault(object{"operation": "refresh", "status": 503})
		callers(8, func(int) {
			if c.me() == 401 {
				c.single.Lock()
				defer c.single.Unlock()
				if access, _ := c.tokens.get(); access != "" {
					c.refresh()
					c.tokens.set("", "")
				}
			}
		})
	}},
	{"eight callers in a browser's queue, and a logout", nil, quiet, func(w *world) {
		c := w.login().inBrowser().over(1)
		w.drain()
		callers(8, func(int) { c.me() })
		c.logout()
	}},
	{"eight callers in a queue that wait as they are asked", nil, quiet, func(w *world) {
		c := w.login().over(1)
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "1"}, "times": 8})
		callers(8, func(int) { c.me() })
		w.advance(time.Second)
		callers(8, func(int) { c.me() })
	}},
	{"eight callers side by side that wait as they are asked", nil, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "1"}, "times": 8})
		callers(8, func(int) { c.me() })
		w.advance(time.Second)
		callers(8, func(int) { c.me() })
	}},
	{"two callers in a browser's queue, one of whom is asked to wait", nil, quiet, func(w *world) {
		c := w.login().inBrowser().over(1)
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "1"}})
		callers(2, func(int) { c.me() })
		w.advance(time.Second)
		c.me()
	}},
	{"five callers over two connections, three of whose first tries are lost", nil, nil, func(w *world) {
		c := w.login().over(2)
		w.drain()
		w.fault(object{"operation": "me", "drop": "before", "times": 3})
		callers(5, func(int) {
			access, _ := c.tokens.get()
			status := c.meWith(access)
			if status == 0 {
				time.Sleep(150 * time.Millisecond)
				status = c.meWith(access)
			}
			if status == 401 && c.renew(access) == 200 {
				c.me()
			}
		})
	}},
	{"twenty callers over six connections, and the account is disabled", nil, quiet, func(w *world) {
		c := w.login().inBrowser()
		w.put("/lab/users/demo", object{"disabled": true}).Want(200)
		callers(20, func(int) { c.me() })
	}},
	{"thirty callers over six connections, each twice", nil, quiet, func(w *world) {
		c := w.login().inBrowser()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		for range 2 {
			callers(30, func(int) { c.me() })
		}
	}},
	{"widgets that load one after the other during a slow refresh", nil, quiet, func(w *world) {
		c := w.login()
		w.drain()
		w.fault(object{"operation": "refresh", "delay": "900ms"})
		callers(7, func(i int) {
			time.Sleep(time.Duration(i*120) * time.Millisecond)
			c.sound()
		})
	}},
	{"downloads that are taken up where they had ended, and have it all", nil, quiet, func(w *world) {
		w.post(runPath, nil).Want(200)
		c := w.login()
		c.part = fmt.Sprintf("bytes=%d-", len(w.get(filePaths[0]).Want(200).Body))
		for range 6 {
			c.send("GET", filePaths[0], nil, c.tokens.access)
		}
	}},
}

var faultyTogether = []behaviour{
	{"three requests at once after the logout", []string{"token_after_logout[logout*1 me*3]"}, quiet, func(w *world) {
		c := w.login()
		c.logout()
		callers(3, func(int) { c.me() })
	}},
	{"three requests after the logout, each over a connection of its own", []string{"token_after_logout[logout*1 me*3]"}, quiet, func(w *world) {
		c := w.login().over(0)
		c.logout()
		for range 3 {
			c.me()
		}
	}},
	{"three requests after the logout, each by a new program", []string{"token_after_logout[logout*1 me*3]"}, quiet, func(w *world) {
		c := w.login()
		c.logout()
		for range 3 {
			w.newTab(c.tokens).me()
		}
	}},
	{"callers of a race that logs in anew, who each refresh for a 401 of the old session", []string{"two_refreshes[refresh*2]"}, quiet, func(w *world) {
		c := w.login()
		access, refresh := c.tokens.get()
		w.advance(16 * time.Minute)
		for range 6 {
			c.meWith(access)
		}
		c.refreshWith(refresh)
		c.refreshWith(refresh)
		c.login("demo")
		for range 6 {
			c.me()
		}
		for range 4 {
			c.refresh()
			c.me()
		}
	}},
	{"a loop on one connection that never refreshes", []string{"repeated_failure[me*5]"}, nil, func(w *world) {
		c := w.login().over(1)
		w.fault(object{"operation": "me", "status": 401, "times": 0})
		for range 5 {
			c.me()
		}
	}},
	{"a loop that goes on after its refresh has failed", []string{"repeated_failure[me*6]", "no_refresh_after_expiry[me*5]"}, nil, func(w *world) {
		c := w.login().over(1)
		w.drain()
		c.me()
		w.fault(object{"operation": "refresh", "status": 503})
		c.refresh()
		w.advance(1100 * time.Millisecond)
		for range 5 {
			c.me()
		}
	}},
	{"the old access token after each refresh", []string{"repeated_failure[me*5]"}, nil, func(w *world) {
		w.policy(object{"rotation": false})
		c := w.login()
		access, _ := c.tokens.get()
		w.drain()
		for range 5 {
			if c.meWith(access) == 401 {
				c.refresh()
			}
		}
	}},
	{"a poll that goes on after the logout, at once", []string{"token_after_logout[logout*1 me*6]"}, quiet, func(w *world) {
		c := w.login()
		c.logout()
		for range 6 {
			c.me()
		}
	}},
	{"a token in the address, with the header and without", []string{"token_in_address[me*1 listing*1]"}, quiet, func(w *world) {
		c := w.login()
		c.send("GET", mePath+"?t="+c.tokens.access, nil, c.tokens.access)
		c.send("GET", listingPath+"?token="+c.tokens.access, nil, "")
	}},
	{"a retry at once, and one in time", []string{"retry_after_ignored[me*2]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "1"}, "times": 2})
		c.me()
		c.me()
		w.advance(time.Second)
		c.me()
	}},
	{"three callers who each try seven times at once", []string{"repeated_failure[me*21]"}, quiet, func(w *world) {
		c := w.login()
		w.fault(object{"operation": "me", "status": 503, "times": 0})
		callers(3, func(int) {
			caller := w.newTab(c.tokens)
			for range 7 {
				caller.me()
			}
		})
	}},
	{"downloads that are taken up behind the end of the file", []string{"repeated_failure[file*6]"}, quiet, func(w *world) {
		w.post(runPath, nil).Want(200)
		c := w.login()
		c.part = "bytes=9999999-"
		for range 6 {
			c.send("GET", filePaths[0], nil, c.tokens.access)
		}
	}},
	{"a loop over one file", []string{"repeated_failure[file*5]"}, quiet, func(w *world) {
		c := w.newTab(nil)
		c.client.Transport.(*http.Transport).DisableKeepAlives = true
		for range 5 {
			c.send("GET", filePaths[0], nil, "")
		}
	}},
}
