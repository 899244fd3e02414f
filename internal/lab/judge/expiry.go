// Expiries: which refreshes of a session belong together.

package judge

import (
	"slices"
	"time"
)

// expiry is one need for a new pair, and the refreshes for it.
//
// Refreshes with one token belong to one expiry until the successor pair has expired, has been found expired, or has
// more than half of its life behind it, or has been found revoked (overFor). A refresh with the successor's token
// belongs to it, too, while requests that got 401 with the old pair have not been sent again.
type expiry struct {
	refreshes []*Exchange // in order of arrival; the first one opened the expiry
	late      []*Exchange // with one of its tokens, after it was over
	told      bool        // as two_refreshes

	granted   map[int]*Exchange // by generation of the token sent: the first that the hub granted
	exchanged map[int]*Exchange // by generation of the token sent: the first whose pair the client got
	success   *Exchange         // of these the one that ended first
	reused    *Exchange         // the first that was answered token_reused
}

func newExpiry(r *Exchange) *expiry {
	x := &expiry{granted: make(map[int]*Exchange), exchanged: make(map[int]*Exchange)}
	x.add(r)
	return x
}

func (x *expiry) add(r *Exchange) {
	x.refreshes = append(x.refreshes, r)
	sent := r.Token.Generation
	if r.Given != nil && x.granted[sent] == nil {
		x.granted[sent] = r
	}
	if r.exchanged() {
		if x.exchanged[sent] == nil {
			x.exchanged[sent] = r
		}
		if x.success == nil || r.End.Order < x.success.End.Order {
			x.success = r
		}
	}
	if r.Code == "token_reused" && x.reused == nil {
		x.reused = r
	}
}

// findExpiries sorts the refreshes of a session into expiries, but for those told already: they came after the logout.
// A change of epoch starts afresh.
func (s *session) findExpiries(told map[*Exchange]bool) {
	var bySent, byGiven map[int]*expiry // the latest expiry in which a token was sent, or from which the client has it
	epoch := -1
	for _, r := range s.refreshes {
		if told[r] {
			continue
		}
		if r.Epoch != epoch {
			epoch, bySent, byGiven = r.Epoch, make(map[int]*expiry), make(map[int]*expiry)
		}
		x := s.assign(r, bySent[r.Token.Generation], byGiven[r.Token.Generation])
		if x == nil {
			continue
		}
		bySent[r.Token.Generation] = x
		if r.exchanged() {
			byGiven[r.Given.Generation] = x
		}
	}
}

// assign puts r into the expiry in which its token was sent, or into the one that gave it, or opens a new one. It
// returns the expiry, or nil if r came after it was over.
func (s *session) assign(r *Exchange, sent, gave *expiry) *expiry {
	switch {
	case sent != nil && !s.overFor(sent, r):
		sent.add(r)
		return sent
	case sent != nil && r.Policy.Spends():
		sent.late = append(sent.late, r)
		return nil
	case sent == nil && gave != nil && s.continues(gave, r):
		gave.add(r)
		return gave
	}
	x := newExpiry(r)
	s.expiries = append(s.expiries, x)
	return x
}

// overFor reports whether x was over when r came with one of its tokens again. It is, too, when the client's new access
// token was found revoked, not by its own race, and nothing of before had still to be sent again.
func (s *session) overFor(x *expiry, r *Exchange) bool {
	granted := x.granted[r.Token.Generation]
	switch {
	case granted == nil || !granted.endedBefore(r):
		return false
	case len(x.late) > 0: // nothing is current in a session that has ended
		return true
	}
	revoked := x.reused == nil && s.revoked.before(granted.Given.Generation, r) && !s.unsent(x, granted, r)
	return granted.isOver(r) || s.expired.before(granted.Given.Generation, r) || revoked
}

// isOver reports whether the pair that e gave was expired by order when r came, or more than half of its life was over,
// in milliseconds, as tokens have their times. Under grace, an earlier answer may have given it.
func (e *Exchange) isOver(r *Exchange) bool {
	return r.Current.Expired && r.Current.Generation >= e.Given.Generation || max(e.End.until(&r.Arrival), r.Arrival.Hub.Sub(e.Given.Issued)).Truncate(time.Millisecond) > e.Given.Lifetime/2
}

// continues reports whether r, which sends a token that x gave, is one more refresh for x and not for a need of its
// own.
// A client that killed its session by its own race gets 401 for the new pair as well. That is no new need.
func (s *session) continues(x *expiry, r *Exchange) bool {
	granted := x.gave(r)
	if granted == nil || granted.isOver(r) || s.refused.before(r.Token.Generation, r) {
		return false
	}
	raced := x.reused != nil && x.reused.endedBefore(r)
	return (raced || !s.revoked.before(r.Token.Generation, r)) && (s.unsent(x, granted, r) || s.inTurn(x, granted, r))
}

// inTurn reports whether r continues a race in which one caller after the other refreshed, at once: there are more that
// met the end of the pair than have refreshed, although others sent as many requests with the new one.
func (s *session) inTurn(x *expiry, granted, r *Exchange) bool {
	race := 0
	for _, other := range x.refreshes {
		if !other.failsForNow() {
			race++
		}
	}
	return race > 1 && granted.End.until(&r.Arrival) <= stall && s.met(x.refreshes[0], r) > race
}

// met counts the requests with the pair that r was to renew that had come in time before next and were answered 401.
func (s *session) met(r, next *Exchange) (n int) {
	generation := max(r.Current.Generation, r.Token.Generation) // nothing is current in a session that has ended
	for _, e := range s.from(s.firstRefused[generation]) {
		if e.isAccess() && e.Token.Generation == generation && e.refused() && e.Arrival.Order < next.Arrival.Order && inTime(e, next) {
			n++
		}
	}
	return n
}

// gave returns the refresh of x whose answer had the refresh token that r sends, or nil if that was not before r.
func (x *expiry) gave(r *Exchange) *Exchange {
	for i := len(x.refreshes) - 1; i >= 0; i-- {
		before := x.refreshes[i]
		if before.exchanged() && before.Given.Generation == r.Token.Generation && before.endedBefore(r) {
			return before
		}
	}
	return nil
}

// unsent reports whether requests that got 401 with the pair that x is about had not been sent again with a newer one
// when r came. Those that have had the time for it are given up, unless one of them comes in time after r, and nothing
// but r had come over its connection since, or refreshes that failed for now. What came between a late answer and a
// refresh right behind it (Idle) may have been sent before the client heard. A request that was refused again behind a
// refresh that failed for now counts once.
func (s *session) unsent(x *expiry, granted, r *Exchange) bool {
	old := x.refreshes[0].Current.Generation
	recent := func(e *Exchange) bool { return min(e.End.until(&r.Arrival), granted.End.until(&r.Arrival)) <= reaction }
	soon := granted.End.until(&r.Arrival) <= stall
	var unsent pending
	var last *Exchange // refresh
	again := func(e, other *Exchange) bool {
		return other != nil && other.refused() && other.isAccess() && other.Token.Generation == old && e.goesTo(other)
	}
	for _, e := range s.from(s.firstRefused[old]) {
		before := e.Arrival.Order < r.Arrival.Order
		switch {
		case !before && slices.ContainsFunc(unsent.left, recent):
			return true
		case !before && (r.End.Order == 0 || !inTime(r, e)):
			return false
		case before && e.isRefresh():
			if last != nil && last.failsForNow() && last.endedBefore(e) {
				unsent.giveUp(last)
			}
			last = e
		case !e.isAccess():
		case before && e.Token.Generation == old && e.refused() && e.endedBefore(r) && granted.End.until(&e.sentAt) <= reaction:
			if other := e.behindFailed(); again(e, other) {
				unsent.drop(e, func(left *Exchange) bool { return left == other })
			}
			unsent.add(e)
		case x.reused != nil && e.Code == "token_revoked": // the race has ended the session, so that nothing can be sent again
		case e.Token.Generation > old:
			dropped := unsent.drop(e, func(other *Exchange) bool {
				isLate := granted.End.Order < other.End.Order && r.sentAt.Machine.Sub(other.End.Machine) <= Idle
				return other.endedBefore(e) && (!isLate || s.isOnly(other, e)) && (other.Query == e.Query || !s.comesAgain(other, e))
			})
			if !before && e.Token.Generation > r.Token.Generation &&
				(again(e, dropped) && e.comesBehind(dropped, r) || e.before == r && (soon && again(e, r.before) || again(e, r.behindFailed()))) {
				return true
			}
		}
	}
	return false
}

// isOnly reports whether e asks for what other asked for, and nothing else of the session did in the two seconds
// (reaction) before: it is other, sent again.
func (s *session) isOnly(other, e *Exchange) bool {
	for i := len(s.exchanges) - len(s.from(e)) - 1; i >= 0 && s.exchanges[i].Arrival.until(&e.Arrival) <= reaction; i-- {
		if before := s.exchanges[i]; before != other && before.address() == e.address() {
			return false
		}
	}
	return e.address() == other.address()
}

// goesTo reports whether e has the place and the query of other.
func (e *Exchange) goesTo(other *Exchange) bool {
	return e.place() == other.place() && e.Query == other.Query
}

// comesAgain reports whether the very request of before, which was refused, comes again after e with a newer token.
func (s *session) comesAgain(before, e *Exchange) bool {
	next := s.from(e)
	return slices.ContainsFunc(next[:min(len(next), lookBack)], func(next *Exchange) bool {
		return next.isAccess() && next.Token.Generation > before.Token.Generation && next.goesTo(before)
	})
}

// comesBehind reports whether e came over the connection of before, with nothing between them but r.
func (e *Exchange) comesBehind(before, r *Exchange) bool {
	if e.before == r {
		return r.before == before
	}
	return e.before == before
}

// behindFailed returns what came over the connection of e before refreshes that failed for now, with nothing between
// them and e. It is nil if there are none.
func (e *Exchange) behindFailed() *Exchange {
	before := e.cameBefore(func(r *Exchange) bool { return r.isRefresh() && r.failsForNow() })
	if before == e.before {
		return nil
	}
	return before
}

// pending is requests that were refused, and those of them that have not been sent again.
type pending struct {
	all, left []*Exchange
	lent      []*Exchange // dropped for a request to another address
}

func (p *pending) add(e *Exchange) { p.all, p.left = append(p.all, e), append(p.left, e) }

// drop drops and returns the first that e may be again: of those with its address, if there was one, or else of its
// place, the last over its connection first. A request to a new address may have taken the one that e is again; then it
// was another one. drop returns nil if there is none.
func (p *pending) drop(e *Exchange, is func(other *Exchange) bool) (dropped *Exchange) {
	isSame := func(other *Exchange) bool { return e.address() == other.address() }
	mayBe := func(other *Exchange) bool { return other.place() == e.place() && is(other) }
	i := slices.IndexFunc(p.left, func(other *Exchange) bool { return isSame(other) && is(other) })
	if j := slices.IndexFunc(p.lent, isSame); i < 0 && (j >= 0 || !slices.ContainsFunc(p.all, isSame)) {
		if j >= 0 {
			p.lent = slices.Delete(p.lent, j, j+1)
		}
		i = slices.IndexFunc(p.left, func(other *Exchange) bool { return other == e.before && mayBe(other) })
		if i < 0 {
			i = slices.IndexFunc(p.left, mayBe)
		}
	}
	if i < 0 {
		return nil
	}
	dropped = p.left[i]
	p.left = slices.Delete(p.left, i, i+1)
	if !e.asksFor(dropped) {
		p.lent = append(p.lent, dropped)
	}
	return dropped
}
