// Crowds: many callers of one client, side by side or in its queue.

package judge

import (
	"slices"
	"time"
)

// isCrowd reports whether a row may be the requests of many callers, each of which tried fewer than five times. A
// client sends them over the connections that it allows itself, one behind the other, so that on the wire they look
// like tries of one caller.
func (c *trial) isCrowd(row []*Exchange) bool {
	all := row
	if tries := withoutResent(row); len(tries) >= chain || !row[0].Browser { // on a page they may be as many callers
		row = tries
	}
	rounds := roundsOf(row)
	whole := trafficOf(row)
	first := whole
	if len(rounds) > 1 {
		first = trafficOf(row[:rounds[0]])
	}
	pauses := pausesOf(row)
	few := (first.isTogether() || whole.isOfMany(pauses)) && len(row) < chain*min(whole.callers(), slices.Max(rounds)) // tries of each
	each, own, met := c.ownRefusals(row)
	i := slices.IndexFunc(row, (*Exchange).refused)
	switch {
	case i >= chain && !(few && isOnceEach(pauses[i:], whole.most)): // it had failed before
		return c.isCrowd(row[:i]) && (len(row)-i < chain || c.isCrowd(row[i:]))
	case whole.isTogether() && c.isAftermath(row[len(row)-1]), row[0].Browser && areTurns(row):
		return true
	case i >= 0 && row[i].isAccess() && c.meetsExpiry(row[i], whole, rounds):
		return true
	case isInStep(row, rounds):
		return false
	case c.isStaggered(row), len(row) < len(all) && c.isStaggered(all):
		return true
	case whole.isBusy() && !isBusyPoll(pauses) && c.isServedAll(row, rounds):
		return true
	case each && (len(row) < chain*own || c.isScattered(row)):
		return true
	case row[0].isRefresh() && met > 0 && len(row) >= chain*met:
		return false // more than four for each 401
	case whole.comesBack():
		return true
	case len(rounds) >= chain && isTimer(pauses[rounds[0]:]), whole.beside == 0 && isBackoff(pauses):
		return false
	case few:
		return true
	case len(rounds) >= chain:
		return false // tries of one caller
	}
	return row[0].isLogin() && c.isServedEach(row)
}

// areTurns reports whether a row asks for several things, for all of them before any comes again, and for each fewer than
// five times but not once: a page's queries, each with its retries.
func areTurns(row []*Exchange) bool {
	times := make(map[asked]int)
	for i, e := range row {
		a := e.asked()
		if times[a] == 0 && i > len(times) {
			return false
		}
		times[a]++
	}
	for _, n := range times {
		if n < 2 || n >= chain {
			return false
		}
	}
	return true
}

// isOnceEach reports whether so many callers may have sent requests with these pauses between them, each once.
func isOnceEach(pauses []time.Duration, callers int) bool {
	n := len(pauses) + 1
	return n <= callers && (n < chain || !isOfOne(pauses))
}

// isServedAll reports whether as many requests succeeded soon after a row as it has or, if they came without many rests
// either, as came at once in one of its few rounds: each caller tried once in a round.
func (c *trial) isServedAll(row []*Exchange, rounds []int) bool {
	served, most := c.served(row, reaction), slices.Max(rounds)
	return len(served) >= len(row) ||
		len(rounds) < chain && len(served) >= most && len(roundsOf(served[:most])) < chain
}

// isServedEach reports whether as many requests succeeded after a row as it has, or may do so in time, and the first of
// them after a rest that one caller did not make before: more than twice as long. Nor is it one caller's, with equal
// pauses and one connection for all.
func (c *trial) isServedEach(row []*Exchange) bool {
	served, pauses := c.served(row, pause), pausesOf(row)
	n := len(served)
	return n > 0 && len(row) >= chain && (n >= len(row) || !c.isPast(served[n-1].End)) &&
		(row[0].Conn != served[0].Conn || !isBusyPoll(pauses)) &&
		row[len(row)-1].End.until(&served[0].sentAt) > 2*slices.Max(pauses)
}

// withoutResent returns a row without what an HTTP library may have sent by itself, at once, for a request whose
// connection was cut.
func withoutResent(row []*Exchange) (tries []*Exchange) {
	next := 0 // index of the next one that may have been sent again
	for i, e := range row {
		for next < i && (!row[next].isCut() || row[next].End.until(&e.sentAt) > opening) {
			next++
		}
		if next < i && row[next].endedBefore(e) {
			next++
		} else {
			tries = append(tries, e)
		}
	}
	return tries
}

// ownRefusals reports whether a row are refreshes or logins of callers who may each have sent one for its own 401, and
// how many such 401s there were: of requests that had come before the first of the row was answered, and at all.
func (c *trial) ownRefusals(row []*Exchange) (each bool, first, all int) {
	if row[0].isAccess() {
		return false, 0, 0
	}
	i := 0
	for _, e := range c.record {
		switch {
		case i < len(row) && e == row[i]:
			each = (i == 0 || each) && all > i
			i++
		case e.isAccess() && e.refused() && inTime(e, row[0]) && mayBeSame(e, row[0]) && e.Arrival.Order < row[len(row)-1].End.Order:
			all++
			if e.Arrival.Order < row[0].End.Order {
				first++
			}
		}
	}
	return each, first, all
}

// served returns the requests that succeeded after a row, as those of callers do that each try once more: within that
// time, or so long after it as the answers asked to wait.
func (c *trial) served(row []*Exchange, within time.Duration) (served []*Exchange) {
	last, wait := row[len(row)-1], within+longestWait(row)
	for _, e := range c.record[c.after(last):] {
		if last.End.until(&e.Arrival) > wait {
			break
		}
		if (e.isLike(last) || e.Path == last.Path && c.isAnew(last, e)) && e.succeeded() {
			served = append(served, e)
		}
	}
	return served
}

// isAftermath reports whether e is of a caller that had not heard yet that a race had ended the session.
// two_refreshes tells of that.
func (c *trial) isAftermath(e *Exchange) bool {
	return e.Code == "token_revoked" && e.isAccess() && c.sessions[e.Session].raced.justBefore(e)
}

// meetsExpiry reports whether a row, whose first 401 this is, is what several callers had asked for when the access
// token ended. They show by requests side by side, by a browser's queue, by more than one refresh, by another request
// that was under way, by what was sent again before the last came, by ten in a queue that were all sent again,
// or by distances that change by chance. Without that, all is one caller's.
//
// The client then sent all again, or most of a row of few tries or of what came until it got the new token; or it sent
// refreshes for most; or it sent the last one again, where half asked for something of their own, as in a search that
// each key begins anew; or, right after a row of few tries, it got a new token, tried to in vain, or logged out. Few
// tries are fewer than five rounds and, side by side, fewer than five for each caller. A browser sends such a row over
// six connections, and the last ones with the old token long after the refresh.
//
// A poll is no crowd, or two in step, that goes on in five rounds or more with the new token.
func (c *trial) meetsExpiry(first *Exchange, t *traffic, rounds []int) bool {
	row := t.row
	last := row[len(row)-1]
	if newer := c.sessions[first.Session].given[first.Token.Generation+1]; newer != nil && newer.End.until(&first.sentAt) > late && newer.End.Order < first.since {
		return false // the client had the next pair
	}
	got := c.nextTokens(first)
	again := c.sentAgain(got, first, last)
	sooner := 0 // again, before the last came
	for sooner < len(again) && again[sooner].Arrival.Order < last.Arrival.Order {
		sooner++
	}
	kept := 0
	for _, e := range row {
		if e.Lost && e.Hub == 401 { // a fault kept from the client that the token had ended
			kept++
		}
	}
	all := len(again) >= len(row)-kept
	goesOn := sooner < 2 && (isTimer(pausesOf(row)) || t.isSideBySide()) && len(row) >= chain*slices.Max(rounds) && isPoll(again, len(row))
	few := len(rounds) < chain && !t.hasLoops()
	ownEach, answered, granted := c.refreshesAround(first, row)
	several := t.isTogether() || c.isScattered(row) || got != nil && (ownEach || sooner > 0 || all && (t.isQueue() || trafficOf(again).isSideBySide())) ||
		slices.ContainsFunc(row, func(e *Exchange) bool { return c.isBesideOthers(e, few) })
	switch {
	case several && slices.ContainsFunc(again, last.asksFor) && last.Arrival.Order < got.End.Order && differ(row):
		return true // each gave up what the one before had asked for
	case !several, goesOn:
		return false
	case all, len(again)*2 > len(row)-kept && (few || got.Arrival.Order < last.Arrival.Order):
		return true
	case granted > 0 && answered*2 > len(row):
		return len(again)*2 >= granted || c.sessions[first.Session].raced != nil
	case got != nil && t.isTogether() && few && len(row) <= queue:
		return true // not_repeated tells of those that were not sent again
	}
	return few && (got == nil || got.Session != first.Session) && c.givesUp(first, last)
}

// differ reports whether a row asks for half as many things as it has requests, or more: other queries or bodies.
func differ(row []*Exchange) bool {
	all := make(map[asked]bool)
	for _, e := range row {
		all[e.asked()] = true
	}
	return len(all)*2 >= len(row)
}

// sentAgain returns the requests with the new tokens of got that may be those from first to last again; none for nil.
func (c *trial) sentAgain(got, first, last *Exchange) (again []*Exchange) {
	if got == nil {
		return nil
	}
	anew := got.isLogin() || c.sessions[first.Session].raced != nil // in another session
	for _, e := range c.record[c.after(first):] {
		renewed := e.Session == got.Session && e.Token != nil && e.Token.isOf(got.Given) ||
			anew && c.isAnew(first, e)
		if renewed && e.Path == first.Path && (inTime(got, e) || inTime(last, e)) {
			again = append(again, e)
		}
	}
	return again
}

// isPoll reports whether requests that came with new tokens, behind so many with the old one, are no second tries of
// these: they came in five rounds or more, and not half as many at once.
func isPoll(again []*Exchange, behind int) bool {
	if len(again) < chain {
		return false
	}
	rounds := roundsOf(again)
	return len(rounds) >= chain && rounds[0]*2 < behind
}

// isAnew reports whether e is of a session that the client of before began later for the same user.
func (c *trial) isAnew(before, e *Exchange) bool {
	return e.Session != before.Session && e.User == before.User && c.sessions[e.Session].beganAfter(before) && mayBeSame(before, e)
}

// isBesideOthers reports whether the client had another request under way together with e: one of the same operation or
// a refresh, for which the others of a page wait, or any at all. (Beside a long poll is everything.)
func (c *trial) isBesideOthers(e *Exchange, any bool) bool {
	s := c.sessions[e.Session]
	next := s.from(e)[1:]
	i := len(s.exchanges) - len(next)
	counts := func(other *Exchange) bool { return any || other.isRefresh() || other.Operation == e.Operation }
	return len(next) > 0 && counts(next[0]) && !e.endedBefore(next[0]) ||
		slices.ContainsFunc(s.exchanges[max(0, i-1-lookBack):i-1], func(other *Exchange) bool { return counts(other) && !other.endedBefore(e) })
}

// refreshesAround counts the refreshes that may be a reaction to the answers of a row from first on, those that did not
// fail for now and those that succeeded. It reports whether there was more than one, and they did not take turns with
// the row, as they do where one caller goes from one to the other and back, nor came sooner than as many requests.
func (c *trial) refreshesAround(first *Exchange, row []*Exchange) (ownEach bool, answered, granted int) {
	last := row[len(row)-1]
	n, tries := 0, 0 // n: of the row, before r
	for _, r := range c.sessions[first.Session].refreshes {
		if inTime(last, r) && r.renews(first) {
			before := n
			for n < len(row) && row[n].Arrival.Order < r.Arrival.Order {
				n++
			}
			tries++
			ownEach = ownEach || tries > 1 && n != before+1 && n >= tries
			if !r.failsForNow() {
				answered++
			}
			if r.exchanged() {
				granted++
			}
		}
	}
	return ownEach, answered, granted
}

// givesUp reports whether a client tried in vain to get a new token, or logged out, while the requests from first to
// last came or in time after them. What comes within a second behind such a try may have left before the client heard
// of it; the rest goes on in spite of it.
func (c *trial) givesUp(first, last *Exchange) bool {
	s := c.sessions[first.Session]
	return firstOf(func(r *Exchange) bool {
		switch {
		case r.exchanged() || !mayBeSame(first, r):
			return false
		case r.isLogin() && (r.Given != nil || r.Code == "invalid_credentials"):
			return false // a login that succeeded, or somebody else's: a client's own password is right
		case r.endedBefore(last):
			return r.End.until(&last.Arrival) <= late
		}
		return inTime(last, r)
	}, s.refreshes, s.logouts, c.logins, c.useless) != nil
}

// firstOf returns the first of these lists' exchanges, one list after the other, that is so, or nil.
func firstOf(is func(*Exchange) bool, lists ...[]*Exchange) *Exchange {
	for _, list := range lists {
		if i := slices.IndexFunc(list, is); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// nextTokens returns the first refresh or login by which the client got new tokens in time after it got the answer to
// e, or nil. A refresh that fails for now gives it the time to try again (Exchange.patience).
func (c *trial) nextTokens(e *Exchange) *Exchange {
	due := e.free.Machine.Add(reaction)
	s := c.sessions[e.Session]
	return firstOf(func(r *Exchange) bool {
		switch {
		case r.sentAt.Machine.After(due):
		case r.exchanged() && !e.Token.isOf(r.Given) && r.renews(e),
			r.isLogin() && r.Given != nil && r.received() && r.User == e.User && r.End.Order > e.Arrival.Order && !s.goesOnAfter(r) && mayBeSame(e, r):
			return true
		case r.isRefresh() && r.failsForNow():
			if again := r.End.Machine.Add(r.patience()); again.After(due) {
				due = again
			}
		}
		return false
	}, s.refreshes, c.logins)
}

// longestWait returns how long the answers ask to wait with Retry-After, at most.
func longestWait(row []*Exchange) (wait time.Duration) {
	for _, e := range row {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}

// isSettled reports whether nothing that the client may do in time can make a row that is no crowd one.
func (c *trial) isSettled(row []*Exchange) bool {
	last := row[len(row)-1]
	refused := slices.IndexFunc(row, func(e *Exchange) bool { return e.refused() && e.Session != "" })
	if (refused >= 0 || trafficOf(row).isBusy()) && !c.isPast(last.free) {
		return false
	}
	if refused >= 0 && row[refused].isAccess() {
		if got := c.nextTokens(row[refused]); got != nil && !c.isPast(got.End) {
			return false // they may be sent again
		}
	}
	return c.waitIsOver(last, longestWait(row))
}

// after returns the index in the record of what came next after e.
func (c *trial) after(e *Exchange) int {
	i, _ := slices.BinarySearchFunc(c.record, e.Arrival.Order+1, func(e *Exchange, order int) int { return e.Arrival.Order - order })
	return i
}

// isLike reports whether e is what other asks for, with whatever token of its session. Each login has one of its own.
func (e *Exchange) isLike(other *Exchange) bool {
	switch {
	case e.place() != other.place():
		return false
	case e.isLogin(), e.Session == "" && other.Session == "":
		return e.Presented == other.Presented && e.Body == other.Body
	}
	return e.Session == other.Session
}
