package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// late is how long after a 401 still comes what a client had begun before it heard.
const late = time.Second

// tokenAfterLogout: a token of a session was used after its logout had been answered. The logout is shown, too. What
// left before that answer is no use after it (Exchange.follows), and another logout is none either.
//
// A session that the logout of all sessions has ended from elsewhere hears of it by a 401, or by its own logout if that
// comes first. From then on its tokens are worthless to its client as well, but for one refresh and for what follows
// within a second.
//
// Where a client sent others behind the logout before that was answered, or opened connections for them, what comes at
// once (apart) may have waited in its queue since then.
//
// The same second has a client that logs out because its own race has ended the session: its other callers find out
// one by one. That race is what two_refreshes tells.
//
// Nor is judged what may have waited in a browser, for a second at most, for an equal GET that was under way
// (comesBehindEqual).
//
// Not judged: a logout of which the client got no answer, and sessions that the lab ended.
func (c *trial) tokenAfterLogout(s *session) {
	end := s.logout()
	if end == nil || s.over != nil && s.over.endedBefore(end.logout) {
		end = cmp.Or(c.endedElsewhere(s), end)
	}
	if end == nil {
		return
	}
	var uses, early []*Exchange // early: behind the logout, but not judged
	var gets []*Exchange        // of a browser: those for which another may have waited
	for _, e := range s.exchanges {
		isGet, isUse := e.isPageGet(), e.usesToken() && end.covers(e)
		if e.usesToken() && !isUse && e.Arrival.Order > end.logout.Arrival.Order {
			early = append(early, e)
		}
		switch {
		case isGet && (!isUse || end.logout.End.until(&e.sentAt) <= late && e.comesBehindEqual(gets)):
			gets = append(gets, e)
			if isUse {
				c.told[e] = true // nor is it a try of a loop
			}
		case isUse:
			uses = append(uses, e)
		}
	}
	if len(uses) > 0 {
		for _, e := range append(early, uses...) {
			c.told[e] = true
		}
		c.find("token_after_logout", fmt.Sprintf("%s used a token after request %d had logged out. "+
			"Forget both tokens on logout and cancel what is still to be sent.", requests(uses), end.logout.Seq),
			append(uses, end.logout)...)
	}
}

// comesBehindEqual reports whether one of these GETs, the latest ones at the end, was equal to e and was answered just
// (apart) before it: Chromium sends one at a time (callers).
func (e *Exchange) comesBehindEqual(gets []*Exchange) bool {
	return slices.ContainsFunc(gets[max(0, len(gets)-lookBack):], func(before *Exchange) bool {
		return before.goesTo(e) && before.endedBefore(e) && before.End.until(&e.sentAt) <= apart
	})
}

// ending is the end of a session.
type ending struct {
	logout *Exchange
	heard  map[int64]*Exchange // by connection: the 401 by which its caller knows; nil: all know by the logout's answer
	hasty  bool                // the client went on before it was answered
	slack  time.Duration
}

// covers reports whether e was sent by a client that knew. Many clients try a refresh on any 401, and again until they
// hear that it is refused.
func (end *ending) covers(e *Exchange) bool {
	told := end.logout
	if end.heard != nil {
		told = end.heard[e.Conn]
	}
	switch {
	case told == nil, told != end.logout && (e.Browser || e.isRefresh() && !told.isRefresh()): // tabs share connections
		return false
	case end.hasty && end.logout.End.until(&e.sentAt) <= apart:
		return false
	}
	return e.follows(told) && told.End.until(&e.Arrival) >= end.slack
}

func (e *Exchange) isLogout() bool {
	return e.Operation == "logout" && e.succeeded() && e.Status < 300
}

func (e *Exchange) usesToken() bool {
	return e.Token != nil && e.Operation != "logout"
}

// logout returns the session's own end, or nil.
func (s *session) logout() *ending {
	for _, e := range s.logouts {
		if !e.isLogout() || e.Elsewhere {
			continue
		}
		end := &ending{logout: e, hasty: s.goesOnDuring(e)}
		if slices.ContainsFunc(s.refreshes, func(r *Exchange) bool { return r.saw("token_reused") && r.Arrival.Order < e.Arrival.Order }) {
			end.slack = late
		}
		return end
	}
	return nil
}

// goesOnDuring reports whether the client sent something, or opened a connection for it, while e was under way.
func (s *session) goesOnDuring(e *Exchange) bool {
	return slices.ContainsFunc(s.from(e)[1:], func(next *Exchange) bool {
		return next.Arrival.Order < e.End.Order || next.began.After(e.Arrival.Machine) && e.isUnderWay(next.began)
	})
}

// endedElsewhere returns the end of s by the logout of all sessions, or nil. Over each connection the first 401 tells
// of it or, in time after that or after a refresh that failed for now, the 401 of a refresh: the callers of several
// tabs hear of it one by one.
func (c *trial) endedElsewhere(s *session) *ending {
	logout := c.logoutOfAll(s)
	if logout == nil {
		return nil
	}
	end := &ending{logout: logout, heard: make(map[int64]*Exchange), slack: late}
	tries := false // to refresh, and failed for now
	for _, e := range s.exchanges {
		tries = tries || e.isRefresh() && e.failsForNow()
		if !e.usesToken() || !e.refused() || e.Code != "token_revoked" || e.endedBefore(logout) {
			continue
		}
		if before := end.heard[e.Conn]; before == nil || e.isRefresh() && !before.isRefresh() && (tries || inTime(before, e)) {
			end.heard[e.Conn] = e
		}
	}
	return end
}

// logoutOfAll returns the first logout of all of a user's sessions after s had begun, or nil. A session that had ended
// by then is not ended by it.
func (c *trial) logoutOfAll(s *session) *Exchange {
	for _, e := range c.everywhere {
		if e.User != "" && e.User == s.user && e.Session != s.id &&
			e.Arrival.Order > s.exchanges[0].Arrival.Order && (s.over == nil || !s.over.endedBefore(e)) {
			return e
		}
	}
	return nil
}
