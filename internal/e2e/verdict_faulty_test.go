// Faulty clients: the right rule about their refreshes, once, with all its evidence.

package e2e

import (
	"strings"
	"time"
)

var faultyClients = []behaviour{
	{"the same wrong password, with the members in another order", []string{"repeated_failure[login*5]"}, nil, func(w *world) {
		c := w.newTab(nil).over(1)
		for i := range 5 {
			body := `{"username":"demo","password":"wrong-password"}`
			if i%2 > 0 {
				body = `{"password":"wrong-password","username":"demo"}`
			}
			answer, err := c.client.Post(w.base+loginPath, "application/json", strings.NewReader(body))
			if err != nil {
				w.t.Error(err)
				return
			}
			answer.Body.Close()
		}
	}},
	{"every caller refreshes", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(int) { c.naive() })
	}},
	{"every caller refreshes, held until all are there", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		race(w)
		w.fault(object{"operation": "refresh", "hold": 5})
		callers(5, func(int) { c.naive() })
	}},
	{"every caller refreshes, each with another body", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		race(w)
		_, token := c.tokens.get()
		callers(5, func(i int) {
			if c.me() == 401 {
				c.send("POST", refreshPath, object{"refresh_token": token, "caller": i}, "")
			}
		})
	}},
	{"every caller refreshes with the token of the caller before", []string{"two_refreshes[refresh*5]"}, nil, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(int) { c.me() })
		for range 5 {
			c.refresh()
			c.me()
		}
	}},
	{"every caller refreshes, expiry after expiry, under a short grace", []string{"two_refreshes[refresh*2]", "two_refreshes[refresh*2]"}, quiet, func(w *world) {
		w.policy(object{"reuse": "grace", "grace": "1s"})
		c := w.login()
		for range 2 {
			w.drain()
			_, old := c.tokens.get()
			c.me()
			c.refreshWith(old)
			c.me()
			w.advance(5 * time.Second)
			c.refreshWith(old)
			c.login("demo")
		}
	}},
	{"every tab refreshes by its own timer", []string{"two_refreshes[refresh*3]"}, quiet, func(w *world) {
		one := w.login()
		_, token := one.tokens.get()
		w.advance(14 * time.Minute)
		w.fault(object{"operation": "refresh", "hold": 3})
		callers(3, func(int) { w.newTab(nil).refreshWith(token) })
	}},
	{"the losers of a race go on with what they have", []string{"two_refreshes[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		race(w)
		callers(5, func(int) {
			access, refresh := c.tokens.get()
			if c.meWith(access) == 401 {
				c.refreshWith(refresh)
				c.me()
			}
		})
	}},
	{"a refresh, its use, and the old token once more", []string{"two_refreshes[refresh*2]"}, quiet, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		w.drain()
		c.me()
		c.refreshWith(old)
		for range 3 {
			c.me()
		}
		c.refreshWith(old)
	}},
	{"ten times the same token after it was exchanged", []string{"two_refreshes[refresh*10]"}, nil, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		w.drain()
		for i := range 10 {
			c.send("POST", refreshPath, object{"refresh_token": old, "try": i}, "")
		}
	}},
	{"the new refresh token is not stored", []string{"spent_refresh_token[refresh*2]"}, quiet, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		for range 2 {
			w.drain()
			if c.me() == 401 && c.refreshWith(old) == 200 {
				c.me()
			}
		}
	}},
	{"the new refresh token is not stored, under grace", []string{"spent_refresh_token[refresh*2]"}, quiet, func(w *world) {
		w.policy(object{"reuse": "grace", "grace": "10s"})
		c := w.login()
		_, old := c.tokens.get()
		for range 2 {
			w.drain()
			if c.me() == 401 && c.refreshWith(old) == 200 {
				c.me()
			}
		}
	}},
	{"the new refresh token is not stored, and the lab expires the access token", []string{"spent_refresh_token[refresh*2]"}, quiet, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		for range 2 {
			access, _ := c.tokens.get()
			w.post("/lab/sessions/"+sid(w.t, access)+"/expire", object{}).Want(200)
			if c.me() == 401 && c.refreshWith(old) == 200 {
				c.me()
			}
		}
	}},
	{"a tab wakes up after hours", []string{"spent_refresh_token[refresh*2]"}, quiet, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		for range 3 {
			w.drain()
			c.sound()
		}
		w.newTab(nil).refreshWith(old)
	}},
	{"one expiry raced, the next with the spent token", []string{"two_refreshes[refresh*2]", "spent_refresh_token[refresh*2]"}, nil, func(w *world) {
		c := w.login()
		_, old := c.tokens.get()
		w.drain()
		w.fault(object{"operation": "refresh", "hold": 2})
		callers(2, func(int) { c.refreshWith(old) })
		w.drain()
		c.refreshWith(old)
	}},
	{"a refresh before every request", []string{"refresh_without_need[refresh*5]"}, quiet, func(w *world) {
		c := w.login()
		for range 5 {
			c.refresh()
			c.me()
		}
	}},
	{"a refresh every minute", []string{"refresh_without_need[refresh*6]"}, quiet, func(w *world) {
		c := w.login()
		for range 6 {
			w.advance(time.Minute)
			c.refresh()
			c.me()
		}
	}},
	{"a refresh before every request, where reuse is allowed", []string{"refresh_without_need[refresh*4]"}, quiet, func(w *world) {
		w.policy(object{"reuse": "allow"})
		c := w.login()
		_, first := c.tokens.get()
		for range 4 {
			c.refreshWith(first)
			c.me()
		}
	}},
}
