// Callers: how many callers of a client a row of failures shows.

package judge

import (
	"maps"
	"slices"
	"sort"
	"time"
)

const (
	atOnce = 3 * time.Millisecond // one caller takes at most so long to send the next request
	queue  = 60                   // callers on a page at most
	even   = 13                   // so many at equal pauses (isEven) are no callers that begin one after the other
)

// isCrowd reports whether a row may be the requests of several callers, each of whom tried fewer than five times. A
// row is of one caller unless the record shows more: by its times (callers), by refreshes beside it
// (callersAtExpiry), or by those who come back with success (cameBack). Until they have had the time for that, the
// row is a crowd's, unless it is longer than any page's.
//
// Requests in the queue of one connection are one caller's, but for those that met the end of a token and all come back
// at once with the next one. If fewer than all callers came back, they may be others, who have begun last.
func (c *trial) isCrowd(row []*Exchange) bool {
	sent := row
	row = withoutResent(row, false)
	rounds := roundsOf(row)
	tries, shown := len(row), c.callers(row, rounds)
	mayBeOf := func(n int) bool { return tries <= (chain-1)*n }
	beside := shown
	isRefused := row[0].isAccess() && slices.ContainsFunc(row, (*Exchange).refused)
	isQueue := func() bool { return isRefused && (len(rounds) == 1 || isQuick(row)) || c.waitsForPair(row) }
	if c.areUneven(row) && !(isRefused && c.reactsTo(row)) {
		shown, beside = 1, 1
	}
	if row[0].isRefresh() || row[0].isLogin() || row[0].Operation == "refresh" && row[0].Presented <= Unset {
		shown = max(shown, c.behindRefusals(sent))
		if own := withoutResent(sent, true); len(own) < len(sent) {
			shown = max(shown, c.behindRefusals(own))
		}
	}
	if slices.ContainsFunc(row, (*Exchange).callsForToken) {
		shown = c.callersAtExpiry(row, rounds, shown)
	}
	switch {
	case mayBeOf(shown), shown > 1 && c.isAftermath(row[tries-1]), c.cameBackTogether(row):
		return true
	case shown == 1 && !isQueue(), tries > (chain-1)*queue:
		return false
	}
	back, over := c.cameBack(row)
	return !over || back >= tries || shown > 1 && !areSteady(row, rounds) && mayBeOf(back) || beside > back && tries-back <= (chain-1)*beside
}

// callers returns how many callers a row shows, 1 at the least. Several show by requests that were under way at the
// same time (besideOneAnother) or, if the row was not sent at one caller's pauses or came in waves (areWaves), one
// shortly after the other (beginners), by their backoff (backOffAlike) or by what they ask for (addressesInTurn). The
// order of that may show several whose pauses are as one caller's (areMixed).
//
// In a browser any GETs may be those of a page's callers, who wait in its queue: Chromium sends one of equal GETs at a
// time, since the answer to one may serve the others from its cache. But nobody waits where each came after a rest or
// behind its caller's own refresh (mayHaveQueued).
//
// Five in a row by one timer are one caller's, whoever is beside it, if it has its own connection or one for each. So
// are nine by one beat (areTicks) over any connections. And if as many came in each of the first five rounds, there are
// no more callers, unless more connections took turns. A lone caller may take its connections in turn, as Firefox does.
func (c *trial) callers(row []*Exchange, rounds []int) int {
	pauses := pausesOf(row)
	if hasTimer(row, true) || hasRun(row, 2*chain-1, areTicks) {
		return 1
	}
	if areSteady(row, rounds) {
		n := max(rounds[1], takeTurns(row), callersByAddress(row))
		if rounds[0] > rounds[1] || areJobs(row, rounds) {
			n = max(n, callersByConnection(row))
		}
		return n
	}
	if row[0].isPageGet() && c.mayHaveQueued(row, pauses) {
		return queue
	}
	first, alone := c.beginners(row, pauses)
	if n := c.besideOneAnother(row, rounds, first); n > 1 {
		if alone && areSingle(row) {
			n = max(n, first)
		}
		return max(n, backOffAlike(pauses))
	}
	byAddress := addressesInTurn(row, pauses)
	if byAddress > 1 && areMixed(row) {
		return byAddress
	}
	isOnes := isOneCallers(pauses) && !areWaves(row, rounds, pauses)
	if isOnes || hasTimer(row, false) || hasBackoff(row) || hasRun(row, even, isEven) || isNested(row, pauses) {
		return 1
	}
	return max(first, backOffAlike(pauses), byAddress)
}

// besideOneAnother returns how many callers sent a row side by side, if several did: as many as were under way at the
// same time or have a kept connection, or came in the first round or the second, or in both, if the two behind them are
// as large, in turn, or all rounds are those of two groups: some may have begun later than the others. But a round of
// five for each that was under way has tries of those: if a slow answer made it a round, it counts up to a rest
// (beforeRest), or as many as began a little apart (first).
func (c *trial) besideOneAnother(row []*Exchange, rounds []int, first int) int {
	most := sideBySide(c.withGivenUp(row))
	if most == 1 {
		return 1
	}
	n, sum, left := max(most, callersByConnection(row)), 0, row
	for _, size := range rounds[:min(len(rounds), 2)] {
		round := size
		if size >= chain*most {
			if round = beforeRest(left[:size]); round < size {
				round = max(round, min(size, first))
			}
		}
		if round < chain*most {
			n, sum = max(n, round), sum+round
		}
		left = left[size:]
	}
	if alternate(rounds) {
		n = max(n, sum)
	}
	return max(n, twoGroups(row, rounds), callersByAddress(row))
}

// keptConnections returns over how many connections a row came more than once, and over how many of them at one time:
// something came over each later, if not of the row.
func keptConnections(row []*Exchange) (all, atOneTime int) {
	uses := usesOf(row)
	var lasts []int // orders of the last requests over them
	for conn, n := range uses {
		if n > 1 {
			lasts = append(lasts, conn.last.Arrival.Order)
		}
	}
	slices.Sort(lasts)
	begun, over := 0, 0
	for _, e := range row {
		if uses[e.conn] > 1 {
			begun++
			uses[e.conn] = 0
		}
		for over < len(lasts) && lasts[over] < e.Arrival.Order {
			over++
		}
		atOneTime = max(atOneTime, begun-over)
	}
	return len(lasts), atOneTime
}

// callersByConnection returns how many callers the kept connections of a row show: one each, but no more than twice as
// many as the client kept at one time. A client that closes some and opens others again and again has no more callers
// for that.
func callersByConnection(row []*Exchange) int {
	all, atOneTime := keptConnections(row)
	return min(all, 2*atOneTime)
}

// areJobs reports whether a row is of jobs that came and went: each connection was used more than once, no more of them
// at one time than requests came in each round, and the rounds did not keep one pace through that.
func areJobs(row []*Exchange, rounds []int) bool {
	_, atOneTime := keptConnections(row)
	return atOneTime <= rounds[1] && areKept(usesOf(row)) && !isTimer(firstOf(row, rounds), false)
}

// usesOf returns how many requests of a row came over each connection.
func usesOf(row []*Exchange) map[*connection]int {
	uses := make(map[*connection]int)
	for _, e := range row {
		uses[e.conn]++
	}
	return uses
}

// areKept reports whether each connection was used more than once.
func areKept(uses map[*connection]int) bool {
	return !slices.Contains(slices.Collect(maps.Values(uses)), 1)
}

// takeTurns returns how many connections took turns with the requests of a row, twice or more and always in the same
// order, as those of workers do that have one each; 1 if they did not.
func takeTurns(row []*Exchange) int {
	n := 1
	for n < len(row) && row[n].Conn != row[0].Conn {
		n++
	}
	for i := n; i < len(row); i++ {
		if row[i].Conn != row[i-n].Conn {
			return 1
		}
	}
	if 2*n > len(row) {
		return 1
	}
	return n
}

// sideBySide returns how many requests of a row were under way at the same time, at the most.
func sideBySide(row []*Exchange) (most int) {
	var underWay []*Exchange
	for _, e := range row {
		underWay = slices.DeleteFunc(underWay, func(other *Exchange) bool { return !other.isUnderWay(e.sentAt.Machine) })
		underWay = append(underWay, e)
		most = max(most, len(underWay))
	}
	return most
}

// beginners returns how many callers may have sent the first requests of a row, which came within 250 ms (stall), each
// less than 100 ms (apart) after the answer to the one before or beside that. What came at once (atOnce) is of the same
// caller, unless it is the first over a connection that is kept, as that of the one before is. So is what came behind a
// refresh for the one before (isBehindRefresh). alone reports whether nothing came for longer (apart) behind them.
func (c *trial) beginners(row []*Exchange, pauses []time.Duration) (n int, alone bool) {
	n = 1
	for i, rest := range pauses {
		before, e := row[i], row[i+1]
		switch {
		case row[0].sentAt.until(&e.sentAt) > stall:
			return n, rest > apart
		case rest > apart:
			return n, true
		case rest > atOnce && !c.isBehindRefresh(before, e), !before.endedBefore(e), addsKept(row[:i+1], e):
			n++
		}
	}
	return n, false
}

// withGivenUp returns a row with those requests of the same kind that their client gave up, and that were under way
// beside the row for longer than Idle: they are no failures, but show another caller.
func (c *trial) withGivenUp(row []*Exchange) []*Exchange {
	var left []*Exchange
	for _, e := range c.record[max(0, c.after(row[0])-queue):c.after(row[len(row)-1])] {
		sent, end := e.sentAt.Machine, e.End.Machine
		if !e.Left || end.Sub(sent) <= Idle || e.Operation != row[0].Operation || e.Presented != row[0].Presented || e.Presented <= Unset && e.Body != row[0].Body {
			continue
		}
		i := after(row, e)
		if i > 0 && row[i-1].isUnderWay(sent) || i < len(row) && end.Sub(row[i].sentAt.Machine) > Idle {
			left = append(left, e)
		}
	}
	if left == nil {
		return row
	}
	return slices.SortedFunc(slices.Values(append(left, row...)), byArrival)
}

// isBehindRefresh reports whether nothing came between two requests but a refresh that succeeded, right behind the one
// and before the other (opening), and all over one connection or with one for each: one caller goes on with its old
// token.
func (c *trial) isBehindRefresh(before, e *Exchange) bool {
	between := c.between(before, e)
	return len(between) == 1 && between[0].exchanged() && between[0].isBeside(before) && between[0].isBeside(e) &&
		between[0].restSince(before) <= opening && e.restSince(between[0]) <= opening
}

// mayHaveQueued reports whether any of a row came without a rest (Idle) behind the one before, and not behind a refresh
// for that.
func (c *trial) mayHaveQueued(row []*Exchange, pauses []time.Duration) bool {
	for i, rest := range pauses {
		if rest <= Idle && !c.isBehindRefresh(row[i], row[i+1]) {
			return true
		}
	}
	return false
}

// addsKept reports whether e is the first behind some requests that came over its connection, and that is kept, as the
// connection of the last of them is.
func addsKept(row []*Exchange, e *Exchange) bool {
	return !e.isSingle() && !row[len(row)-1].isSingle() &&
		!slices.ContainsFunc(row, func(other *Exchange) bool { return other.Conn == e.Conn })
}

// areSingle reports whether each of these requests had a connection for itself.
func areSingle(row []*Exchange) bool {
	return !slices.ContainsFunc(row, func(e *Exchange) bool { return !e.isSingle() })
}

// isBeside reports whether two requests came over one connection, or with one for each.
func (e *Exchange) isBeside(other *Exchange) bool {
	return e.Conn == other.Conn || e.isSingle() && other.isSingle()
}

// isQuick reports whether all of a row was sent without a break (stall).
func isQuick(row []*Exchange) bool { return row[0].sentAt.until(&row[len(row)-1].sentAt) <= stall }

// isAftermath reports whether e is of a caller that had not heard yet that a race had ended the session.
// two_refreshes tells of that.
func (c *trial) isAftermath(e *Exchange) bool {
	return e.Code == "token_revoked" && e.isAccess() && c.sessions[e.Session].raced.justBefore(e)
}

// withoutResent returns a row without what an HTTP library may have sent by itself, at once, for a request whose
// connection was cut: over each connection that it had kept, and over new ones twice at most, as Chromium does, or
// nine times if it is a browser's GET, as Firefox does. If reused is true, only a connection that was not opened for
// the request itself makes a library do so (RFC 9112 section 9.3.1).
func withoutResent(row []*Exchange, reused bool) (tries []*Exchange) {
	next, sent := 0, make([]int, len(row)) // index of the next that may have been sent again; how often over new connections
	most := 2
	if row[0].isPageGet() {
		most = 9
	}
	for i, e := range row {
		for next < i && (!row[next].isCut() || sent[next] == most || row[next].End.until(&e.sentAt) > opening || reused && row[next].isFirst()) {
			next++
		}
		if next == i || !row[next].endedBefore(e) {
			tries = append(tries, e)
			continue
		}
		sent[i] = sent[next]
		if e.Opened.IsZero() || e.Opened.After(row[next].End.Machine) {
			sent[i]++
		}
		next++
	}
	return tries
}

// isFirst reports whether the connection of e was opened for it.
func (e *Exchange) isFirst() bool { return e.began.Equal(e.Opened) }

// byArrival orders requests as they came.
func byArrival(a, b *Exchange) int { return a.Arrival.Order - b.Arrival.Order }

// after returns the index in a list, which is in order of arrival, of what came next after e.
func after(list []*Exchange, e *Exchange) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Arrival.Order > e.Arrival.Order })
}

// after returns the index in the record of what came next after e.
func (c *trial) after(e *Exchange) int { return after(c.record, e) }
