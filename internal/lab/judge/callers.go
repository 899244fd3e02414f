// Callers: how many callers of a client a row of failures shows.

package judge

import (
	"slices"
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
// at once with the next one.
func (c *trial) isCrowd(row []*Exchange) bool {
	row = withoutResent(row)
	rounds := roundsOf(row)
	tries, shown := len(row), callers(row, rounds)
	mayBeOf := func(n int) bool { return n > 1 && tries <= (chain-1)*n }
	isQueue := false
	if row[0].isRefresh() || row[0].isLogin() {
		shown = max(shown, c.behindRefusals(row))
	}
	if row[0].isAccess() && slices.ContainsFunc(row, (*Exchange).refused) {
		shown = c.callersAtExpiry(row, rounds, shown)
		isQueue = len(rounds) == 1 || isQuick(row)
	}
	if c.areUneven(row) {
		shown = 1
	}
	switch {
	case tries < chain, mayBeOf(shown), shown > 1 && c.isAftermath(row[tries-1]):
		return true
	case shown == 1 && !isQueue, tries > (chain-1)*queue:
		return false
	}
	back, over := c.cameBack(row)
	return !over || back >= tries || shown > 1 && !areSteady(rounds) && mayBeOf(back)
}

// callers returns how many callers a row shows, 1 at the least. Several show by requests that were under way at the
// same time (besideOneAnother) or, if the row was not sent at one caller's pauses or came in waves (areWaves), one
// shortly after the other (beginners), by their backoff (backOffAlike) or by what they ask for (addressesInTurn).
//
// In a browser any GETs may be those of a page's callers, who wait in its queue: Chromium sends one of equal GETs at a
// time, since the answer to one may serve the others from its cache. But nobody waits where each came after a rest.
//
// Five in a row by one timer are one caller's, whoever is beside it, if it has its own connection or one for each.
// And if as many came in each of the first five rounds, there are no more callers.
func callers(row []*Exchange, rounds []int) int {
	pauses := pausesOf(row)
	if hasTimer(row, true) {
		return 1
	}
	if areSteady(rounds) {
		return max(rounds[0], takeTurns(row), callersByAddress(row))
	}
	if row[0].Browser && row[0].Method == "GET" && slices.Min(pauses) <= Idle {
		return queue
	}
	first, alone := beginners(row, pauses)
	if n := besideOneAnother(row, rounds); n > 1 {
		if alone && areSingle(row) {
			n = max(n, first)
		}
		return n
	}
	byAddress := addressesInTurn(row, pauses)
	if byAddress > 1 && areMixed(row) {
		return byAddress
	}
	isWaves := first > 1 && areWaves(row, rounds, pauses)
	if isOneCallers(pauses) && !isWaves || hasTimer(row, false) || hasBackoff(row) || hasRun(row, even, isEven) {
		return 1
	}
	return max(takeTurns(row), first, backOffAlike(pauses), byAddress)
}

// areWaves reports whether a row came in rounds of the same size, shortly one behind the other and over more than one
// connection. If several had begun a little apart (beginners), they try again.
func areWaves(row []*Exchange, rounds []int, pauses []time.Duration) bool {
	widest := slices.Max(pauses)
	return areEqual(rounds) && widest > Idle && widest <= stall && row[1].Conn != row[0].Conn
}

// areSteady reports whether as many requests came in each of the first five rounds: there are no more callers.
func areSteady(rounds []int) bool { return len(rounds) >= chain && areEqual(rounds[:chain]) }

// areEqual reports whether there are several rounds, all of the same size and of more than one request.
func areEqual(rounds []int) bool {
	return len(rounds) > 1 && rounds[0] > 1 && slices.Min(rounds) == slices.Max(rounds)
}

// besideOneAnother returns how many callers sent a row side by side, if several did: as many as were under way at the
// same time or have a kept connection, or came in the first round or the second, or in both, if the two behind them are
// as large, in turn, or all rounds are those of two groups: some may have begun later than the others. But a round of
// five for each that was under way has tries of those.
func besideOneAnother(row []*Exchange, rounds []int) int {
	most := sideBySide(row)
	if most == 1 {
		return 1
	}
	n, sum := max(most, keptConnections(row)), 0
	for _, round := range rounds[:min(len(rounds), 2)] {
		if round < chain*most {
			n, sum = max(n, round), sum+round
		}
	}
	if alternate(rounds) {
		n = max(n, sum)
	}
	return max(n, twoGroups(row, rounds), callersByAddress(row))
}

// twoGroups returns how many callers two groups have whose rounds a row shows, some of them together: the second one
// began later, both pause alike, and neither came more than four times. Otherwise it is 0.
func twoGroups(row []*Exchange, rounds []int) int {
	sizes := slices.Compact(slices.Sorted(slices.Values(rounds)))
	if len(sizes) < 2 || len(sizes) > 3 || len(sizes) == 3 && sizes[2] != sizes[0]+sizes[1] {
		return 0
	}
	var small, large []*Exchange // the first of each round of a group
	for at, i := 0, 0; i < len(rounds); i++ {
		if rounds[i] != sizes[1] {
			small = append(small, row[at])
		}
		if rounds[i] != sizes[0] {
			large = append(large, row[at])
		}
		at += rounds[i]
	}
	if min(len(small), len(large)) == 1 || max(len(small), len(large)) >= chain {
		return 0
	}
	for i := range min(len(small), len(large)) - 1 {
		one, other := small[i].sentAt.until(&small[i+1].sentAt), large[i].sentAt.until(&large[i+1].sentAt)
		if (one - other).Abs() > max(Idle, one/4) {
			return 0
		}
	}
	return sizes[0] + sizes[1]
}

// addresses returns to how many addresses, with a query and a body each, a row went, and how many of them at one time,
// between the first try and the last, if half of them or more were tried again, none more than four times and none side
// by side. Then those at one time are of a caller each. Otherwise both are 1.
func addresses(row []*Exchange) (all, atOneTime int) {
	tries := make(map[address][]*Exchange)
	for _, e := range row {
		before := tries[e.address()]
		if n := len(before); n == chain-1 || n > 0 && !before[n-1].endedBefore(e) {
			return 1, 1
		}
		tries[e.address()] = append(before, e)
	}
	if 2*len(row) < 3*len(tries) {
		return 1, 1
	}
	n := 0
	for _, e := range row {
		own := tries[e.address()]
		if e == own[0] {
			n++
			atOneTime = max(atOneTime, n)
		}
		if e == own[len(own)-1] {
			n--
		}
	}
	return len(tries), atOneTime
}

// callersByAddress returns how many callers the addresses of a row show that was sent side by side. Where no token was
// refused, as many again may have waited for these: jobs in a queue.
func callersByAddress(row []*Exchange) int {
	all, atOneTime := addresses(row)
	if slices.ContainsFunc(row, (*Exchange).refused) {
		return atOneTime
	}
	return min(all, 2*atOneTime)
}

// addressesInTurn returns how many addresses of a row are of a caller each although nothing came side by side: those
// at one time, unless most came at once behind another one, as one caller sends them.
func addressesInTurn(row []*Exchange, pauses []time.Duration) int {
	changes, quick := 0, 0
	for i, rest := range pauses {
		if row[i+1].address() != row[i].address() {
			changes++
			if rest <= atOnce {
				quick++
			}
		}
	}
	if 2*quick > changes {
		return 1
	}
	_, n := addresses(row)
	return n
}

// areMixed reports whether the addresses of a row come in no order that one caller keeps who goes through them: for two
// of them or more, another one came twice between two tries. A client with a token that was refused may go anywhere.
func areMixed(row []*Exchange) bool {
	if slices.ContainsFunc(row, (*Exchange).refused) {
		return false
	}
	next, mixed := make(map[address]int), make(map[address]bool) // next: index of what came behind the last try
	for i, e := range row {
		between := make(map[address]int)
		if n := next[e.address()]; n > 0 {
			for _, other := range row[n:i] {
				if between[other.address()]++; between[other.address()] == 2 {
					mixed[e.address()] = true
				}
			}
		}
		next[e.address()] = i + 1
	}
	return len(mixed) > 1
}

// alternate reports whether the first four rounds are of two sizes in turn.
func alternate(rounds []int) bool {
	return len(rounds) >= 4 && rounds[0] != rounds[1] && slices.Equal(rounds[:2], rounds[2:4])
}

// keptConnections returns over how many connections a row came more than once.
func keptConnections(row []*Exchange) (n int) {
	uses := make(map[int64]int)
	for _, e := range row {
		if uses[e.Conn]++; uses[e.Conn] == 2 {
			n++
		}
	}
	return n
}

// takeTurns returns how many connections took turns with the requests of a row, twice or more and always in the same
// order, as those of workers do that have one each; 1 if they did not. One caller, too, may take turns with two.
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
	if n == 2 || 2*n > len(row) {
		return 1
	}
	return n
}

// roundsOf returns how many requests a row has each time that it goes on after a rest (Idle).
func roundsOf(row []*Exchange) []int {
	rounds, end := []int{0}, Mark{}
	for i, e := range row {
		if i > 0 && end.until(&e.sentAt) > Idle && !e.waited {
			rounds = append(rounds, 0)
		}
		rounds[len(rounds)-1]++
		if e.End.Order > end.Order {
			end = e.End
		}
	}
	return rounds
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
// caller, unless it is the first over a connection that is kept, as that of the one before is. alone reports whether
// nothing came for longer (apart) behind them.
func beginners(row []*Exchange, pauses []time.Duration) (n int, alone bool) {
	n = 1
	for i, rest := range pauses {
		before, e := row[i], row[i+1]
		switch {
		case row[0].sentAt.until(&e.sentAt) > stall:
			return n, rest > apart
		case rest > apart:
			return n, true
		case rest > atOnce, !before.endedBefore(e), addsKept(row[:i+1], e):
			n++
		}
	}
	return n, false
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

// areUneven reports whether a row came over one connection in bursts of several sizes, more than a second apart: if each
// burst were of several callers, they would come again together. But some of them may have been served behind the last.
func (c *trial) areUneven(row []*Exchange) bool {
	bursts := []int{1}
	for i, e := range row[1:] {
		rest := e.restSince(row[i])
		if e.Conn != row[0].Conn || rest > apart && rest <= late {
			return false
		}
		if rest > late {
			bursts = append(bursts, 0)
		}
		bursts[len(bursts)-1]++
	}
	last := row[len(row)-1]
	next := c.record[c.after(last):]
	if i := slices.IndexFunc(next, last.isLike); len(bursts) > 1 && i >= 0 && next[i].succeeded() && next[i].restSince(last) <= apart {
		bursts = bursts[:len(bursts)-1]
	}
	return slices.Min(bursts) > 1 && slices.Min(bursts) < slices.Max(bursts)
}

// isLike reports whether other went to the same place in the same session.
func (e *Exchange) isLike(other *Exchange) bool {
	return e.place() == other.place() && e.Session == other.Session
}

// isQuick reports whether all of a row was sent without a break (stall).
func isQuick(row []*Exchange) bool { return row[0].sentAt.until(&row[len(row)-1].sentAt) <= stall }

// isAftermath reports whether e is of a caller that had not heard yet that a race had ended the session.
// two_refreshes tells of that.
func (c *trial) isAftermath(e *Exchange) bool {
	return e.Code == "token_revoked" && e.isAccess() && c.sessions[e.Session].raced.justBefore(e)
}

// withoutResent returns a row without what an HTTP library may have sent by itself, at once, for a request whose
// connection was cut. It does so twice at most, as Chromium does.
func withoutResent(row []*Exchange) (tries []*Exchange) {
	next, sent := 0, make([]int, len(row)) // index of the next that may have been sent again; how often each had been
	for i, e := range row {
		for next < i && (!row[next].isCut() || sent[next] == 2 || row[next].End.until(&e.sentAt) > opening) {
			next++
		}
		if next < i && row[next].endedBefore(e) {
			sent[i] = sent[next] + 1
			next++
		} else {
			tries = append(tries, e)
		}
	}
	return tries
}

// after returns the index in the record of what came next after e.
func (c *trial) after(e *Exchange) int {
	i, _ := slices.BinarySearchFunc(c.record, e.Arrival.Order+1, func(e *Exchange, order int) int { return e.Arrival.Order - order })
	return i
}
