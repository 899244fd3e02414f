// Clean clients: no finding, whatever happens to their refreshes.

package e2e

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"
)

var quiet = []string{} // no notes

// race is the refresh race of the README: five callers meet the end of the access token together.
func race(w *world) {
	w.drain()
	w.fault(object{"operation": "me", "hold": 5})
}

// refreshTwiceAround sends one refresh token before and after changes of the policy.
func refreshTwiceAround(changes func(w *world)) func(w *world) {
	return func(w *world) {
		c := w.login()
		_, first := c.tokens.get()
		w.drain()
		c.refreshWith(first)
		changes(w)
		c.refreshWith(first)
	}
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
	{"a token of another issuer in the address", nil, quiet, func(w *world) {
		c := w.login()
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"supabase","role":"anon"}`))
		c.send("GET", listingPath+"?apikey=eyJhbGciOiJIUzI1NiJ9."+claims+".c2ln", nil, "")
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
	{"the policy changes between two refreshes with one token", nil, nil, refreshTwiceAround(func(w *world) {
		w.policy(object{"reuse": "allow"})
	})},
	{"the policy changes there and back between two refreshes with one token", nil, nil, refreshTwiceAround(func(w *world) {
		w.policy(object{"reuse": "allow"})
		w.policy(object{"reuse": "strict"})
	})},
	{"a dialect without rotation comes and goes between two refreshes with one token", nil, nil, refreshTwiceAround(func(w *world) {
		w.put("/lab/dialect", object{"name": "simplejwt"}).Want(200)
		w.delete("/lab/dialect").Want(204)
	})},
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
			w.post("/lab/sessions/"+sid(w.t, access)+"/expire", object{}).Want(200)
			c.sound()
		}
	}},
	{"the lab revokes the session", nil, nil, func(w *world) {
		c := w.login()
		access, _ := c.tokens.get()
		w.post("/lab/sessions/"+sid(w.t, access)+"/revoke", nil).Want(204)
		c.sound()
		c.login("demo")
		c.me()
	}},
}
