package judge

import (
	"slices"
	"time"
)

// spare is how much of an access token's life must be left for a refresh to be early, whatever the lifetime: real
// clients refresh 10, 60 or 90 seconds ahead.
const spare = 2 * time.Minute

// refreshWithoutNeed: three early refreshes within one lifetime of the access token. A refresh is early when more
// than half of the access token's life, and more than two minutes, are left, and no request with an access token of
// that pair has been answered 401. Less often than that it is the note early_refresh: a page that keeps its access
// token in memory refreshes at every load.
//
// Of refreshes that two_refreshes shows, the first may belong to a habit, but is no note. One of a client whose race
// has just ended another session, and that logs in anew, is not early: its other callers hear of the old session one by
// one. Nor is one early behind a 401 for a token in the wrong place (isMisplaced), or right behind a 401 for any other
// token or none (isBehindRefusal).
func (c *trial) refreshWithoutNeed(s *session) {
	early := slices.DeleteFunc(s.earlyRefreshes(), func(r *Exchange) bool {
		return c.followsRace(r) || s.isMisplaced(r) || c.isBehindRefusal(r)
	})
	inHabit := make([]bool, len(early))
	for i := habitual - 1; i < len(early); i++ {
		first, last := early[i-habitual+1], early[i]
		if first.Epoch == last.Epoch && first.Arrival.until(&last.Arrival) <= first.Current.Lifetime {
			for j := i - habitual + 1; j <= i; j++ {
				inHabit[j] = true
			}
		}
	}
	var once, often []*Exchange
	for i, r := range early {
		switch {
		case inHabit[i]:
			often = append(often, r)
		case !c.told[r]:
			once = append(once, r)
		}
	}
	const what = " refreshed although more than half of the access token's lifetime (expires_in) was left"
	const advice = ". Refresh shortly before it ends, or on a 401."
	c.find("refresh_without_need", requests(often)+what+", three times within one lifetime"+advice, often...)
	c.note("early_refresh", requests(once)+what+advice, once...)
}

// followsRace reports whether the client's own race had ended a session of the same user less than a second before e.
func (c *trial) followsRace(e *Exchange) bool {
	return slices.ContainsFunc(c.races, func(end *Exchange) bool {
		return end.User == e.User && end.justBefore(e) && mayBeSame(end, e)
	})
}

// isBehindRefusal reports whether a request of its client, of no other session and no login, was answered 401 right
// before r (stall), and none of the session was served since. Where the hub could read no token, only the same request
// counts as served: others may be at work beside it. But a login or a refresh since is what the client did about that.
// Of a 401 that a client left, it may have heard, in the time to react: a body may have stopped when the hub refused
// it.
func (c *trial) isBehindRefusal(r *Exchange) bool {
	given := c.sessions[r.Session].given[r.Current.Generation]
	at := c.after(r) - 1
	if slices.ContainsFunc(c.record[max(0, at-lookBack):at], func(e *Exchange) bool {
		return e.Left && e.Status == 401 && (e.Session == "" || e.Session == r.Session) && e.endedBefore(r) && inTime(e, r) && mayBeSame(e, r)
	}) {
		return true
	}
	var served []*Exchange
	for i := at - 1; i >= 0 && c.record[i].Arrival.until(&r.sentAt) <= stall; i-- {
		before := c.record[i]
		switch {
		case before.Session != "" && before.Session != r.Session, !mayBeSame(before, r):
		case before.isAccess() && before.succeeded():
			served = append(served, before)
		case before.refused() && before.endedBefore(r) && !before.isLogin() && !c.sessions[r.Session].isStale(before):
			isDone := before.Session == "" && given != nil && before.endedBefore(given)
			if !isDone && !slices.ContainsFunc(served, func(use *Exchange) bool {
				return before.Session != "" || before.endedBefore(use) && use.goesTo(before)
			}) {
				return true
			}
		}
	}
	return false
}

// justBefore reports whether e was over when other arrived, for a second at most. Nothing is known of nil.
func (e *Exchange) justBefore(other *Exchange) bool {
	return e != nil && e.endedBefore(other) && e.End.until(&other.sentAt) <= late
}

// habitual is how many early refreshes within a lifetime are a habit.
const habitual = 3

// earlyRefreshes returns the refreshes that nothing called for, in order. A token that is never spent may be sent again
// at the same expiry: that is early if the first time was.
func (s *session) earlyRefreshes() (early []*Exchange) {
	for _, x := range s.expiries {
		i := slices.IndexFunc(x.refreshes, (*Exchange).exchanged)
		if i < 0 || !s.isEarly(x.refreshes[0]) || !s.isEarly(x.refreshes[i]) {
			continue
		}
		if x.told {
			early = append(early, x.refreshes[i])
			continue
		}
		var last *Exchange
		first, racing := len(early), false // first: index in early of those without a pause between
		for _, r := range x.refreshes[i:] {
			switch {
			case last == nil:
			case r.Policy.Spends(), !r.exchanged(), !s.isEarly(r):
				continue
			case last.End.until(&r.sentAt) > apart:
				first, racing = len(early), false
			default:
				racing = racing || !r.follows(last) && !s.used.before(last.Given.Generation, r) // whoever uses the new token had the answer
			}
			if last = r; racing {
				early = early[:first+1] // they do it once
			} else {
				early = append(early, r)
			}
		}
	}
	return early
}

// isEarly reports whether the access token was good for long when r came. A refresh token newer than its caller's pair
// (ownPair) shows that the caller has a newer one.
func (s *session) isEarly(r *Exchange) bool {
	life := r.Current.Lifetime
	if pair := s.ownPair(r); pair != nil && pair.Generation >= r.Token.Generation && life-r.Arrival.Hub.Sub(pair.Issued) <= max(life/2, spare) {
		return false
	}
	left := life - r.Arrival.Hub.Sub(r.Current.Issued)
	if e := s.given[r.Current.Generation]; e != nil && e.endedBefore(r) { // a client may measure by its own clock
		left = min(left, life-r.Arrival.Machine.Sub(e.End.Machine))
	}
	if byExp := life - r.Arrival.Machine.Sub(r.Current.Issued); byExp < left && s.isUsedBefore(r) {
		left = byExp // by the token's exp, where the hub's clock is behind
	}
	return !r.Current.Expired && left > life/2 && left > spare && !s.callsFor(r) &&
		!s.refused.before(r.Current.Generation, r) && !s.revoked.before(r.Current.Generation, r)
}

// ownPair returns the pair that the caller of r had, where no token is spent, so that several may be in use side by
// side: that of its refresh token, if nobody has sent that before; or of the last access token which came or was given
// over its connection. With a connection for r alone it may be the oldest in use since the refresh before. It is nil if
// that is not known.
func (s *session) ownPair(r *Exchange) *Pair {
	if r.Policy.Spends() {
		return nil
	}
	if first := s.firstSpent[r.Token.Generation]; !r.Policy.NoRotation && (first == nil || first.Arrival.Order >= r.Arrival.Order) {
		return r.Token.pair()
	}
	for b := r.before; b != nil; b = b.before {
		switch {
		case b.Session != s.id:
		case b.exchanged():
			return b.Given
		case b.isAccess():
			return b.Token.pair()
		}
	}
	var oldest *Token
	for i := len(s.exchanges) - len(s.from(r)) - 1; i >= 0 && !s.exchanges[i].exchanged(); i-- {
		if e := s.exchanges[i]; e.isAccess() && e.succeeded() && (oldest == nil || e.Token.Generation < oldest.Generation) {
			oldest = e.Token
		}
	}
	if oldest == nil || !r.isSingle() {
		return nil
	}
	return oldest.pair()
}

// isMisplaced reports whether the client was refused before r, for it had sent a token of the current pair in the wrong
// place, and had sent none in the right place since: other rules tell of that. Behind one in the address others may be
// at work while its caller reacts.
func (s *session) isMisplaced(r *Exchange) bool {
	given := s.given[r.Current.Generation]
	return slices.ContainsFunc(s.misplaced, func(e *Exchange) bool {
		isServed := func(use *Exchange) bool {
			return use.isAccess() && use.succeeded() && e.endedBefore(use) && use.endedBefore(r)
		}
		return e.endedBefore(r) && (given == nil || given.endedBefore(e)) &&
			(e.InAddress && inTime(e, r) || !slices.ContainsFunc(s.from(e), isServed))
	})
}

// isUsedBefore reports whether the client had sent a request with an access token of the session before r.
func (s *session) isUsedBefore(r *Exchange) bool {
	i := slices.IndexFunc(s.exchanges, (*Exchange).isAccess)
	return i >= 0 && s.exchanges[i].Arrival.Order < r.Arrival.Order
}

// callsFor reports whether a request had been answered 401, in the time to react before r, that no refresh had followed
// yet: tabs may each keep an access token of their own. Where tokens are spent, it must have come with an older pair
// than the session had by then; elsewhere nothing counts that came with an older one than r.
func (s *session) callsFor(r *Exchange) bool {
	followed, at := 0, len(s.exchanges)-len(s.from(r)) // followed: 401s for which a later refresh has come
	for i := at - 1; i >= max(0, at-waiting); i-- {
		e := s.exchanges[i]
		switch {
		case e.Arrival.until(&r.Arrival) > reaction:
			return false
		case !r.Policy.Spends() && e.Token != nil && e.Token.Generation < r.Token.Generation:
		case e.Operation == "refresh":
			followed++
		case e.Hub != 401 || !e.endedBefore(r):
		case followed > 0:
			followed--
		case !r.Policy.Spends() || e.isAccess() && e.Token.Generation < e.Current.Generation && !s.isStale(e):
			return true
		}
	}
	return false
}

// isStale reports whether e was refused for an older access token than the session has, for which the client had
// refreshed twice before, over its connection or with one for each: it does not take the new ones. Tabs may each keep
// one, and refresh for it once.
func (s *session) isStale(e *Exchange) bool {
	if !e.isAccess() || !e.refused() || e.Token.Generation >= e.Current.Generation {
		return false
	}
	refreshed, refused := 0, false // refreshed: how often behind such a refusal
	for _, before := range s.from(s.firstRefused[e.Token.Generation]) {
		switch {
		case before == e:
			return false
		case before.exchanged() && refused:
			if refreshed++; refreshed == 2 {
				return true
			}
			refused = false
		case before.isAccess() && before.refused() && before.Token.Generation == e.Token.Generation && before.isBeside(e):
			refused = true
		}
	}
	return false
}
