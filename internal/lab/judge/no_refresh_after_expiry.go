package judge

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// noRefreshAfterExpiry: an access token was answered token_expired, and its client sent no refresh within two seconds.
//
// Not judged: a client that refreshes meanwhile or has the new pair already, that waits to try a refresh again which
// failed without a refusal (triesOn), or with those of all its sessions after one that did (waitsWithAll), to whose new
// token a fault says the same, that logs in or out instead, that goes on in a session in which the user had logged in
// since the token expired, whose refresh token has expired, too, or that did not get the answer; and a logout.
func (c *trial) noRefreshAfterExpiry(s *session) {
	var shown []*Exchange
	for _, e := range s.exchanges {
		if e.isAccess() && e.Operation != "logout" && e.saw("token_expired") && !e.Current.RefreshOver && !c.handled(s, e) && c.timeIsUp(e) {
			shown = append(shown, e)
		}
	}
	c.find("no_refresh_after_expiry", requests(shown)+" got token_expired, and no refresh followed within two seconds. "+
		"Exchange the refresh token and send the request again with the new access token.", shown...)
}

// handled reports whether the client did something about the expired token of e.
func (c *trial) handled(s *session, e *Exchange) bool {
	renewing := func(r *Exchange) bool { return r.renews(e) && inTime(e, r) }
	instead := func(r *Exchange) bool { return r.Arrival.Order > e.Arrival.Order && inTime(e, r) }
	first, given := s.firstRefused[e.Token.Generation], s.given[e.Token.Generation]
	unreadable := func(r *Exchange) bool { // a refresh whose token this hub cannot read
		wasDue := !r.endedBefore(e) || first != nil && first.Arrival.Order < r.Arrival.Order
		isOwn := r.isOfUnknown() && first != nil && r.client.first > first.End.Order // a connection for its refreshes alone
		return (r.Session == "" || r.Session == s.id) && (mayBeSame(e, r) || isOwn) && renewing(r) && wasDue
	}
	switch {
	case slices.ContainsFunc(s.refreshes, renewing), slices.ContainsFunc(c.useless, unreadable), s.usesNewer(e):
	case e.Injected && given != nil && given.isRefresh() && inTime(given, e): // a fault says so of a new token
	case c.triesOn(s.refreshes, e), c.triesOn(c.logins, e), c.waitsWithAll(s, e):
	case slices.ContainsFunc(s.logouts, instead), c.logsInAfter(s, e, instead), c.movedOn(s, e, instead):
	default:
		return false
	}
	return true
}

// triesOn reports whether the client had made one of these tries to get new tokens before e, in vain but without a
// refusal, and tries again in time (Exchange.patience). Where it was asked to wait, it may still do so until then.
func (c *trial) triesOn(tries []*Exchange, e *Exchange) bool {
	own := func(r *Exchange) bool {
		return r.client == e.client || r.isSingle() && e.isSingle() && cmp.Or(r.User, c.owners[r.Body], e.User) == e.User
	}
	for i := len(tries) - 1; i >= 0; i-- {
		r := tries[i]
		switch {
		case r.Arrival.Order > e.Arrival.Order || !own(r):
		case !r.failsForNow() || r.Epoch != e.Epoch:
			return false
		case r.RetryAfter > 0 && r.End.until(&e.Arrival) <= r.RetryAfter:
			return true // it was asked to wait, and may have no reason to come again
		case i+1 < len(tries) && own(tries[i+1]):
			return r.End.until(&tries[i+1].sentAt) <= r.patience()
		default:
			left := r.RetryAfter + reaction - r.End.until(&c.now)
			if left > 0 && r.RetryAfter == 0 {
				c.verdict.Open = max(c.verdict.Open, left)
			}
			return left >= 0
		}
	}
	return false
}

// waitsWithAll reports whether the client of e waited with the refreshes of all its sessions after one that failed for
// now, which came before e or in time for it, and refreshed s in time (reaction) when it tried again or when the time
// was over for which it was asked to wait, or still may. If it was asked, it may have no reason to come again. What had
// left before that answer is no try again.
func (c *trial) waitsWithAll(s *session, e *Exchange) bool {
	tries := c.refreshes[e.client]
	behind := after(tries, e)
	var again *Mark // when the client tried again
	for i := max(0, behind-lookBack); i < len(tries); i++ {
		r, asked := tries[i], tries[i].RetryAfter+reaction
		if i >= behind && !inTime(e, r) && (again == nil || again.until(&r.sentAt) > reaction) {
			return false
		}
		next := i + 1
		for next < len(tries) && tries[next].Arrival.Order <= r.End.Order {
			next++
		}
		switch {
		case !r.failsForNow() || r.Epoch != e.Epoch, next < behind:
		case next == len(tries):
			if r.RetryAfter > 0 && (i >= behind || r.End.until(&e.Arrival) <= r.RetryAfter) || !c.isPast(r.End) {
				return true
			}
		case r.End.until(&tries[next].sentAt) <= r.patience():
			again = &tries[next].sentAt
			renewed := func(x *Exchange) bool {
				return x.renews(e) && (again.until(&x.sentAt) <= reaction || r.End.until(&x.sentAt) <= asked)
			}
			if slices.ContainsFunc(s.refreshes, renewed) || !c.isPast(*again) || r.End.until(&c.now) <= asked {
				return true
			}
		}
	}
	return false
}

// failsForNow reports whether the client may try e again, since the hub has not refused it.
func (e *Exchange) failsForNow() bool {
	return !e.received() || e.Injected || e.Status >= 500 || e.Status == http.StatusTooManyRequests
}

// patience is how long after such an answer the next try comes at the latest: as long as it asks to wait (Retry-After),
// and the time to react; or five seconds, for clients that wait longer each time.
func (e *Exchange) patience() time.Duration { return max(pause, e.RetryAfter+reaction) }

// logsInAfter reports whether the client logged in, or tried to, instead of a refresh after e, or was doing so, and did
// not go on in s. Of a login that failed nobody knows whose it was, and the client may have opened its connection for
// another namespace, or have one for its logins, which belong to no session if they fail. Only a connection shows that
// the client logs in as somebody else; the session must not have gone on before that either.
func (c *trial) logsInAfter(s *session, e *Exchange, instead func(*Exchange) bool) bool {
	for _, login := range c.logins[max(0, after(c.logins, e)-lookBack):] {
		if login.Arrival.Machine.Sub(e.free.Machine) > reaction+longest {
			return false
		}
		underWay := login.Arrival.Order < e.Arrival.Order && !login.endedBefore(e)
		unknown := !login.succeeded() && login.isOfUnknown() && cmp.Or(c.owners[login.Body], s.user) == s.user
		mayBeOwn := mayBeSame(e, login) || e.Browser == login.Browser && (unknown || login.client.first > e.End.Order)
		goesOn := s.goesOnAfter(login)
		switch {
		case !underWay && !instead(login):
		case login.User != "" && login.User != s.user:
			if e.client == login.client && !goesOn && !s.goesOnAfter(e) {
				return true
			}
		case mayBeOwn && (!goesOn || isByCallerOf(e, login, unknown)):
			return true
		}
	}
	return false
}

// isByCallerOf reports whether a login is by the caller of e, whatever others of the session do: it came at once
// (apart) by its client or an unknown one, or both had a connection for themselves.
func isByCallerOf(e, login *Exchange, unknown bool) bool {
	return e.isSingle() && login.isSingle() || (unknown || e.client == login.client) && e.End.until(&login.sentAt) <= apart
}

// usesNewer reports whether the client had used a newer pair than that of e, which was not over, or did so in time: e
// is of a widget, say, that has kept its old token.
func (s *session) usesNewer(e *Exchange) bool {
	next := s.from(e)[1:]
	return !e.Current.isOver(e.Arrival.Hub) && s.used.before(e.Token.Generation+1, e) || slices.ContainsFunc(next[:min(len(next), lookBack)], func(use *Exchange) bool {
		return use.isAccess() && use.Token.Generation > e.Token.Generation && inTime(e, use)
	})
}

// movedOn reports whether the user of s had logged in anew when e met the end of its token, and goes on in that
// session: all do, or the caller of e, who sends it again, over its connection and nothing more in s, or with a
// connection for each request.
func (c *trial) movedOn(s *session, e *Exchange, instead func(*Exchange) bool) bool {
	over := e.Token.Issued.Add(e.Current.Lifetime)
	if e.Current.Expired {
		over = s.lastServed(e)
	}
	for _, next := range c.sessions {
		first := next.exchanges[0]
		since := next.beganAfter(s.firstRefused[e.Token.Generation]) || first.startedAfter(over)
		if !since || next.user != s.user || next.id == s.id || !mayBeSame(e, first) && !(e.isSingle() && first.isOfUnknown() && e.End.until(&first.sentAt) <= apart) {
			continue
		}
		all := !s.goesOnAfter(first)
		if slices.ContainsFunc(next.from(e), func(use *Exchange) bool {
			return use.isAccess() && instead(use) && (all || use.place() == e.place() &&
				(use.isSingle() && e.isSingle() || use.Conn == e.Conn && s.isLastOver(e)))
		}) {
			return true
		}
	}
	return false
}

// lastServed returns when the access token of e was last good, by the hub's clock: for the last request that it
// served, or when it was issued. Of a token that was expired by order nobody knows when it ended.
func (s *session) lastServed(e *Exchange) time.Time {
	for i := len(s.exchanges) - len(s.from(e)) - 1; i >= 0; i-- {
		if use := s.exchanges[i]; use.isAccess() && use.succeeded() && use.Token.Generation == e.Token.Generation {
			return use.Arrival.Hub
		}
	}
	return e.Token.Issued
}

// isLastOver reports whether nothing more of the session came over the connection of e.
func (s *session) isLastOver(e *Exchange) bool {
	return !slices.ContainsFunc(s.from(e)[1:], func(next *Exchange) bool { return next.Conn == e.Conn })
}

// startedAfter reports whether the session of e, its first exchange in the record, began after a time: with this login,
// or with the pair of one that the record has no more.
func (e *Exchange) startedAfter(t time.Time) bool {
	return e.Given != nil && e.Arrival.Hub.After(t) || e.isAccess() && e.Token.Generation == 0 && e.Token.Issued.After(t)
}

// renews reports whether the refresh r is for the expiry that e met, or for a later one. One that came after e is,
// whichever token it sent, and so is one that was over just before: e had left by then, if it has no token of later.
func (r *Exchange) renews(e *Exchange) bool {
	before := r.End.until(&e.Arrival) <= late && (r.Session == "" || e.Token.Generation <= r.Current.Generation)
	return r.End.Order == 0 || r.End.Order > e.Arrival.Order || before && (r.Given == nil || !e.Token.isOf(r.Given))
}

// inTime reports whether next came within the time that a client may take to react to the answer to e, which begins
// when its connection rests. A test that advances the hub's clock by that time leaves its client a moment (apart).
func inTime(e, next *Exchange) bool {
	return next.sentAt.Machine.Sub(e.free.Machine) <= reaction && next.sentAt.Hub.Sub(e.free.Hub) <= reaction+apart
}
