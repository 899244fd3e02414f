// Reactions: how many callers a row of failures shows by what the client did beside and behind it.

package judge

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"time"
)

// callersAtExpiry returns how many callers a row shows that met the end of a token, of whom its times show so many.
// What came while the client refreshed is of a caller each, who waits for that. If several callers' client refreshed,
// logged in or gave up in time, all that came without a rest may have waited for the same answer.
func (c *trial) callersAtExpiry(row []*Exchange, rounds []int, shown int) int {
	if row[0].isAccess() {
		shown = max(shown, c.besideRefreshes(row))
	}
	if shown > 1 && c.reactsTo(row) {
		shown = max(shown, inQueue(row, rounds))
	}
	return shown
}

// inQueue returns how many requests of a round may have waited for its connections, each of one caller: they came right
// behind what was answered over theirs, or first over it. It is 0 if a round is longer than a page's (queue).
func inQueue(row []*Exchange, rounds []int) (most int) {
	if slices.Max(rounds) > queue {
		return 0
	}
	for _, size := range rounds {
		n, last := 0, make(map[int64]*Exchange)
		for _, e := range row[:size] {
			if before := last[e.Conn]; before == nil || e.restSince(before) <= 3*atOnce {
				n++
			}
			last[e.Conn] = e
		}
		most, row = max(most, n), row[size:]
	}
	return most
}

// besideRefreshes returns how many callers the refreshes beside a row show: as many as came while one was under way,
// or two if they came by a timer. If none of the row came by a timer or a backoff, they show two callers, too, if a
// client tried one again that had failed for now, and requests came between; or if two came with one token, with
// nothing of the row between and before its successor was used (mayBeAnother). 0: they show nothing.
func (c *trial) besideRefreshes(row []*Exchange) (n int) {
	i, timer := 0, hasTimer(row, false) || hasBackoff(row)
	var before *Exchange
	s, isLate := c.sessions[row[0].Session], c.tooLateFor(row)
	for _, r := range s.refreshes {
		if isLate(r) {
			break
		}
		first := i
		for i < len(row) && row[i].Arrival.Order < r.Arrival.Order {
			i++
		}
		meanwhile := 0
		for i+meanwhile < len(row) && !r.endedBefore(row[i+meanwhile]) {
			meanwhile++
		}
		between := before != nil && i > first
		again := before != nil && i == first && r.Token.Generation == before.Token.Generation &&
			!s.used.before(row[0].Token.Generation+1, r) && c.mayBeAnother(r, before, row)
		if meanwhile > 0 || !timer && (again || between && before.failsForNow() && r.exchanged()) {
			n = max(n, 2)
		}
		if !timer {
			n = max(n, meanwhile)
		}
		if i > 0 {
			before = r
		}
	}
	return n
}

// tooLateFor returns whether an exchange is no reaction to a row: it came too late for the last request, or behind a
// success that had ended the row.
func (c *trial) tooLateFor(row []*Exchange) func(*Exchange) bool {
	last, isOver := row[len(row)-1], c.behindEndOf(row)
	return func(e *Exchange) bool { return !inTime(last, e) || isOver(e) }
}

// behindEndOf returns whether an exchange came behind a success of the operation with the token, which had ended a row.
func (c *trial) behindEndOf(row []*Exchange) func(*Exchange) bool {
	last := row[len(row)-1]
	for _, e := range c.record[c.after(last):] {
		if !inTime(last, e) {
			break
		}
		if e.Presented == last.Presented && e.Operation == last.Operation && e.succeeded() {
			return e.endedBefore
		}
	}
	return func(*Exchange) bool { return false }
}

// mayBeAnother reports whether a refresh that sends the token of the one before may be another caller's. A lone caller,
// too, tries one again that had failed for now, unless the row was quick, or that was refused, unless a rule about
// refreshes shows it.
func (c *trial) mayBeAnother(r, before *Exchange, row []*Exchange) bool {
	if before.failsForNow() {
		return isQuick(row)
	}
	return c.told[r] || !r.follows(before)
}

// behindRefusals returns how many callers a row of refreshes or logins shows, if each was sent for a refusal of its own
// (refusalsBefore), shortly behind it (stall) or, by a caller that waited for a lock, soon behind the one before
// (lockTime): as many as refusals came between two of them, or as these show (callers). Otherwise callers under a lock
// may try more than once each (turns, crowdBefore), or it is 0.
func (c *trial) behindRefusals(row []*Exchange) (n int) {
	var all []*Exchange
	calls, within := c.callsOf(row[0]), lockTime(row)
	free, alone := 0, false // refusals that nothing in the row has followed yet; some of the row has none of its own
	for i, r := range row {
		refused, between := c.refusalsBefore(r, calls), 0
		for _, e := range refused {
			if i == 0 || e.End.Order > row[i-1].Arrival.Order {
				all = append(all, e)
				between++
			}
		}
		free += between - 1
		waits := i > 0 && (r.restSince(row[i-1]) <= within || r.before != nil && r.before.isRefresh() && r.restSince(r.before) <= apart)
		alone = alone || len(refused) == 0 || free < 0 || !waits && r.restSince(refused[len(refused)-1]) > stall
		n = max(n, between)
	}
	if alone {
		return max(turns(row, len(all)), crowdBefore(row, all))
	}
	if len(all) > 1 {
		n = max(n, c.callers(all, roundsOf(all)))
	}
	return n
}

// refusalsBefore returns what was refused before r, in time, and calls for r. A loop does not call for more refreshes.
func (c *trial) refusalsBefore(r *Exchange, calls func(*Exchange) bool) (refused []*Exchange) {
	at := c.after(r) - 1
	for _, e := range c.record[max(0, at-lookBack):at] {
		if e.callsForToken() && e.endedBefore(r) && inTime(e, r) && calls(e) && !(c.loops[e] && r.isRefresh()) {
			refused = append(refused, e)
		}
	}
	return refused
}

// lockTime returns how long it takes at most from one caller's refresh under a lock to the next one's: each may prepare
// its own (stall). But that is short (apart) where one caller may send all: by a timer or a backoff, or at its pauses
// over a connection that it keeps.
func lockTime(row []*Exchange) time.Duration {
	if hasTimer(row, false) || hasBackoff(row) || callersByConnection(row) > 0 && isOneCallers(pausesOf(row)) {
		return apart
	}
	return stall
}

// callsOf returns whether a refusal calls for r, a refresh or a login: it is of the client of a login, or of the
// session of a refresh and for its pair or, where no token is spent, for the newest that the client had; or it had no
// token, and is of the client or of an unknown one.
func (c *trial) callsOf(r *Exchange) func(*Exchange) bool {
	if !r.isRefresh() {
		owner := c.owners[r.Body]
		return func(e *Exchange) bool {
			return (mayBeSame(e, r) || r.isOfUnknown()) && cmp.Or(owner, e.User) == cmp.Or(e.User, owner)
		}
	}
	generation := r.Token.Generation
	if !r.Policy.Spends() {
		generation = c.sessions[r.Session].newest(r)
	}
	return func(e *Exchange) bool {
		if e.Session == "" {
			return mayBeSame(e, r) || e.isOfUnknown()
		}
		return e.Session == r.Session && e.Token.Generation >= generation
	}
}

// callsForToken reports whether e was refused for its access token or for none, or was forbidden: some clients take
// that, too, for the end of their token, and the status 419 of some servers.
func (e *Exchange) callsForToken() bool {
	return e.isAccess() && (e.refused() || e.received() && (e.Status == http.StatusForbidden || e.Status == 419)) ||
		e.Session == "" && e.refused() && !e.isLogin() && e.Operation != "refresh"
}

// turns returns in how many turns a row came, if there were no more than refusals, and each is of the same number of
// tries, two to four with a pause between, but for the last one, which may be shorter; each turn begins right behind
// the one before (opening), as under a lock. Otherwise it is 0.
func turns(row []*Exchange, refused int) int {
	sizes := cut(row, func(before, r *Exchange) bool { return r.restSince(before) <= opening })
	last := len(sizes) - 1
	if slices.Max(sizes) != sizes[0] || slices.Min(sizes[:max(1, last)]) != sizes[0] || sizes[0] == 1 || sizes[0] >= chain || len(sizes) > refused {
		return 0
	}
	return len(sizes)
}

// crowdBefore returns how many callers the refusals show for which a row of refreshes or logins was sent: the most that
// came at once (stall), if some came side by side, or beside the row, and one of the row right behind another
// (opening), as under a lock. It is 0 if the row has one caller's pauses, unless half of the refusals came behind its
// first try: somebody refreshes ahead of time, say, and again behind its 401.
func crowdBefore(row, refused []*Exchange) (n int) {
	all := slices.SortedFunc(slices.Values(slices.Concat(row, refused)), byArrival)
	behind := 0
	for i, e := range refused {
		if e.Arrival.Order > row[0].Arrival.Order {
			behind++
		}
		first := slices.IndexFunc(refused, func(other *Exchange) bool { return other.sentAt.until(&e.sentAt) <= stall })
		n = max(n, i+1-first)
	}
	pauses := pausesOf(row)
	isOnes := isOneCallers(pauses) || hasBackoff(row)
	if sideBySide(all) == 1 || slices.Min(pauses) > opening || hasTimer(row, true) || isOnes && 2*behind < len(refused) {
		return 0
	}
	return n
}

// newest returns the generation of the newest pair that the client had when it sent the refresh r.
func (s *session) newest(r *Exchange) int {
	generation := r.Token.Generation
	for _, before := range s.refreshes {
		if before.exchanged() && before.endedBefore(r) {
			generation = max(generation, before.Given.Generation)
		}
	}
	return generation
}

// reactsTo reports whether the client tried to get new tokens, or logged out, in time after a row's first request that
// calls for that, and did not go on for long (late) behind a success.
func (c *trial) reactsTo(row []*Exchange) bool {
	first, last := row[slices.IndexFunc(row, (*Exchange).callsForToken)], row[len(row)-1]
	isLate := c.tooLateFor(row)
	for _, e := range c.record[c.after(first):] {
		isOwn := e.isLogin() || (e.Operation == "refresh" || e.Operation == "logout") && (e.Session == first.Session || e.Session == "" || first.Session == "")
		switch isDone := e.succeeded() && e.End.until(&last.sentAt) > late; {
		case isLate(e):
			return false
		case isOwn && !isDone && mayBeSame(first, e):
			return true
		}
	}
	return false
}

// waitsForPair reports whether a row calls for a new token, and the client refreshed or logged in, or tried to, between
// the first and the last of it, but not for every other one: the others may wait for that. Where each request has a
// connection for itself, it may be the client's, if none of the row came behind it.
func (c *trial) waitsForPair(row []*Exchange) bool {
	if !slices.ContainsFunc(row, (*Exchange).callsForToken) {
		return false
	}
	first, last, tries := row[0], row[len(row)-1], 0
	for e := range c.alongside(first) {
		if e.Arrival.Order > last.Arrival.Order {
			break
		}
		mayBeOwn := func() bool { return e.isSingle() && first.isSingle() && e.End.until(&last.sentAt) <= apart }
		if (e.isLogin() || e.isRefresh()) && (e.client == first.client || mayBeOwn()) {
			tries++
		}
	}
	return tries > 0 && 2*tries < len(row)
}

// cameBack returns how many requests like those of a row succeeded behind its first one and without a rest between; or,
// if they called for a new token and did not come by a timer or a backoff, right behind that (stall), if that is as
// many as there were. over reports whether the time for that is over.
func (c *trial) cameBack(row []*Exchange) (n int, over bool) {
	done, wait := c.isDone(row), longestWait(row)
	served := c.served(row, done, wait)
	n = slices.Max(roundsOf(served))
	soon := slices.DeleteFunc(served, func(e *Exchange) bool { return e.Arrival.Order < done.Order || done.until(&e.sentAt) > stall })
	if len(soon) >= len(row) && row[0].callsForToken() && !hasTimer(row, false) && !hasBackoff(row) {
		n = max(n, len(soon))
	}
	return n, c.isPast(done) && c.waitIsOver(row[len(row)-1], wait)
}

// cameBackTogether reports whether as many as were refused in a row came back right behind the refresh or login that
// was in time for all of them (stall), and half of them together: none came after the answer to another one. What comes
// by a timer or a backoff does not wait.
func (c *trial) cameBackTogether(row []*Exchange) bool {
	if !row[0].refused() || hasTimer(row, false) || hasBackoff(row) {
		return false
	}
	done := c.isDone(row)
	if done.Machine.Sub(row[0].free.Machine) > reaction {
		return false
	}
	back := slices.DeleteFunc(c.served(row, done, longestWait(row)), func(e *Exchange) bool { return done.until(&e.sentAt) > stall })
	if len(back) < len(row) {
		return false
	}
	var together []*Exchange
	for _, e := range back {
		if slices.ContainsFunc(together, e.follows) {
			together = nil
		}
		if together = append(together, e); 2*len(together) >= len(row) {
			return true
		}
	}
	return false
}

// served returns the requests like those of a row that succeeded behind its first one, in time (reaction) after done
// and what its answers asked to wait: as they were or, if no success had ended the row before, with a newer token or in
// a session that the user began later.
func (c *trial) served(row []*Exchange, done Mark, wait time.Duration) (served []*Exchange) {
	first := row[0]
	places := make(map[place]bool)
	for _, e := range row {
		places[e.place()] = true
	}
	s := c.sessions[first.Session]
	renewed := s != nil && slices.ContainsFunc(s.from(first), (*Exchange).exchanged)
	isOver := c.behindEndOf(row)
	for _, e := range c.record[c.after(first):] {
		if done.until(&e.sentAt) > reaction+wait {
			break
		}
		if !places[e.place()] || !e.succeeded() || e.Presented != first.Presented && isOver(e) {
			continue
		}
		if c.isOf(e, first) && (e.Session == first.Session || !renewed) || first.Session == "" && mayBeSame(first, e) {
			served = append(served, e)
		}
	}
	return served
}

// alongside iterates over what came after first, and before that over what was still under way when first came.
func (c *trial) alongside(first *Exchange) iter.Seq[*Exchange] {
	at := c.after(first) - 1
	return func(yield func(*Exchange) bool) {
		for i := max(0, at-lookBack); i < len(c.record); i++ {
			e := c.record[i]
			isBeside := i > at || i < at && (e.End.Order == 0 || e.End.Order > first.Arrival.Order)
			if isBeside && !yield(e) {
				return
			}
		}
	}
}

// isDone returns when the last of a row had its answer, or the refreshes and logins that came in time for that; now, if
// one is under way.
func (c *trial) isDone(row []*Exchange) Mark {
	last := row[len(row)-1]
	done := last.free
	isOwn := func(e *Exchange) bool {
		return e.isRefresh() && e.Session == last.Session || (e.isLogin() || e.isRefresh() && last.Session == "") && mayBeSame(last, e)
	}
	for e := range c.alongside(row[0]) {
		switch {
		case done.until(&e.sentAt) > reaction:
			return done
		case !isOwn(e):
		case e.End.Order == 0:
			return c.now
		case e.End.Order > done.Order:
			done = e.End
		}
	}
	return done
}

// isOf reports whether e is of the session of before, or of one that its user got by a login later.
func (c *trial) isOf(e, before *Exchange) bool {
	s := c.sessions[e.Session]
	return e.Session == before.Session ||
		e.User == before.User && s != nil && s.exchanges[0].isLogin() && s.exchanges[0].End.Order > before.Arrival.Order
}

// longestWait returns how long the answers ask to wait with Retry-After, at most.
func longestWait(row []*Exchange) (wait time.Duration) {
	for _, e := range row {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}
