package judge

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

const (
	chain    = 5               // so many failures in a row are a finding
	pause    = 5 * time.Second // a longer one ends the row
	longest  = 2 * time.Minute // that a request takes: a fault delays it by one at most, and holds it by another
	lookBack = 1000            // requests of a row that may lie between two of a chain
)

// repeatedFailure: the same operation with the same token, or without a token with the same body, failed five times
// in a row: no success, and no pause over five seconds between. Each request of such a chain certainly follows the
// one before it (Exchange.follows), and came sooner than that asked, if it did (Retry-After); those that left together
// are no chain. All requests are shown that lie on a chain of five.
//
// A changed path, method, query or body hides nothing when a token is there; the path and the method count of a 404,
// and of what is no operation. A request that its client gave up is neither a failure nor a success. What a rule about
// refreshes or a logout shows is not told again. Where the record shows several callers, the row must have more than
// four failures for each (isCrowd).
func (c *trial) repeatedFailure() {
	var bySession groups
	anywhere := slices.DeleteFunc(c.rows((*Exchange).effortAnywhere), isToOnePlace)
	for _, row := range slices.Concat(c.rows((*Exchange).effort), anywhere) {
		if len(row) < chain {
			continue
		}
		for first := row[0]; len(row) >= chain; {
			n := 1
			for n < len(row) && !c.beganAnew(first, row[n-1], row[n]) {
				n++
			}
			part := row[:n]
			row = row[n:]
			if loop := chained(part); len(loop) > 0 && !c.renewsMost(part) && !c.isCrowd(part) {
				bySession.add(first.Session, loop...)
				for _, e := range loop {
					c.loops[e] = true
				}
			}
		}
	}
	for _, shown := range bySession.each {
		c.find("repeated_failure", requests(shown)+" failed, five or more one after the other, with no success between these and no pause of five seconds. "+
			"Stop after a few tries, and wait longer before each.", shown...)
	}
}

// effort is what makes a failed request the same request again: its operation, method and path, and its token or,
// without one, its body.
type effort struct {
	place
	presented uint64
	body      uint64
}

func (e *Exchange) effort() effort {
	if e.Presented <= Unset {
		return effort{place: e.place(), body: e.Body}
	}
	return effort{place: e.place(), presented: e.Presented}
}

// effortAnywhere is the effort at whatever path, by whatever method. It is none for a 404, which speaks of its path,
// and for what is no operation.
func (e *Exchange) effortAnywhere() effort {
	if e.Operation == "other" || e.Status == http.StatusNotFound {
		return effort{}
	}
	f := e.effort()
	f.place = place{operation: e.Operation}
	return f
}

// isToOnePlace reports whether all of a row went to the same path by the same method.
func isToOnePlace(row []*Exchange) bool {
	return !slices.ContainsFunc(row, func(e *Exchange) bool { return e.place() != row[0].place() })
}

// waitedAsAsked reports whether the answer to e asked to wait, and its caller did.
func (e *Exchange) waitedAsAsked() bool {
	return e.plea != nil && e.plea.kept != nil && e.plea.hurried == nil
}

// withoutReasons returns a row without what r was sent for, a refresh of its session that failed and that a finding
// shows: the 401 over its connection for which it came at once, and those since the refresh before (last), if they are
// too few for a chain.
func withoutReasons(row []*Exchange, r, last *Exchange) []*Exchange {
	if r.before != nil && r.restSince(r.before) <= opening {
		row = slices.DeleteFunc(row, func(e *Exchange) bool { return e == r.before && e.refused() })
	}
	n := len(row)
	for n > 0 && row[n-1].refused() && (last == nil || row[n-1].Arrival.Order > last.Arrival.Order) {
		n--
	}
	if tries := len(row) - n; tries > 0 && tries < chain && inTime(row[len(row)-1], r) {
		return row[:n]
	}
	return row
}

// isEndOfToken reports whether e, behind a row of other failures, met the end of the token, alone or with others side
// by side, and the client refreshes in time and before it tries again, perhaps with more than one try. That is no more
// of the same.
func (c *trial) isEndOfToken(row []*Exchange, e *Exchange) bool {
	if !e.isAccess() || !e.saw("token_expired") || len(row) == 0 || slices.ContainsFunc(row, (*Exchange).refused) {
		return false
	}
	last := e
	for _, next := range c.sessions[e.Session].from(e)[1:] {
		switch {
		case next.isRefresh() && next.End.Order > 0 && next.failsForNow() && inTime(last, next):
			last = next
		case next.isRefresh():
			return inTime(last, next) && (next.End.Order == 0 || next.exchanged())
		case next.effort() == e.effort() && next.refused() && next.follows(e):
			return false
		}
	}
	return !c.timeIsUp(last)
}

// rows returns the failures of each effort that nothing interrupts: no success of the operation with the token, at
// whatever path, and no pause or change of epoch. Without a token, a success is any of the operation, or a login: a
// suite that types a wrong password before the right one does not loop, nor does one that registers its user, who is
// there, before it logs in, or a page that looks for a session at each load before that.
func (c *trial) rows(effortOf func(*Exchange) effort) [][]*Exchange {
	var rows [][]*Exchange
	open := make(map[effort]int)       // index in rows of those that may go on
	last := make(map[string]*Exchange) // refresh of a session that a finding shows
	served := make(successes)
	for _, e := range c.record {
		if c.told[e] && e.isRefresh() {
			if e.failed() {
				for _, i := range open {
					if len(rows[i]) > 0 && rows[i][0].Session == e.Session {
						rows[i] = withoutReasons(rows[i], e, last[e.Session])
					}
				}
			}
			last[e.Session] = e
		}
		f := effortOf(e)
		if f == (effort{}) {
			continue
		}
		i, ok := open[f]
		ok = ok && len(rows[i]) > 0 && !served.since(rows[i], f)
		switch {
		case e.End.Order == 0 || e.Left:
		case e.succeeded():
			served[use{f.operation, f.presented}] = e.Arrival.Order
			served[use{f.operation, 0}] = e.Arrival.Order
		case c.told[e], e.InAddress && e.refused(), e.waitedAsAsked(), ok && c.isEndOfToken(rows[i], e):
		case e.Hub == http.StatusPartialContent && !e.Lost: // it has all of the download
			delete(open, f)
		case !ok || !mayJoin(rows[i], e) || e.isNextPart(rows[i]):
			open[f] = len(rows)
			rows = append(rows, []*Exchange{e})
		default:
			rows[i] = append(rows[i], e)
		}
	}
	return rows
}

// use is of an operation with a token.
type use struct {
	operation string
	presented uint64 // 0: with whatever token
}

// successes are the orders of the last success of each use.
type successes map[use]int

// since reports whether a success of the effort came behind a row.
func (s successes) since(row []*Exchange, f effort) bool {
	order := s[use{f.operation, f.presented}]
	if f.presented == 0 {
		order = max(order, s[use{"login", 0}], s[use{"register", 0}])
	}
	return order > row[len(row)-1].Arrival.Order
}

// isNextPart reports whether e goes on with a download, of which the last of a row got some although a fault cut it.
// That was not in vain.
func (e *Exchange) isNextPart(row []*Exchange) bool {
	last := row[len(row)-1]
	isPart := last.Hub == http.StatusPartialContent || last.Lost && e.Hub == http.StatusPartialContent
	return isPart && !last.isCut() && !e.asksFor(last)
}

// mayJoin reports whether e may be a link of a chain with one of a row.
func mayJoin(row []*Exchange, e *Exchange) bool {
	for i := len(row) - 1; i >= 0 && row[i].Epoch == e.Epoch; i-- {
		if row[i].End.until(&e.Arrival) <= pause {
			return true
		}
	}
	return false
}

// beganAnew reports whether a session was used for the first time between two requests, by the client of one of them or
// with a connection for each, in which the user had logged in after first: the tests of a suite, or the starts of a
// program, may each find the same dead session.
func (c *trial) beganAnew(first, last, e *Exchange) bool {
	if last.Presented <= Unset {
		return false
	}
	single := last.isSingle() && e.isSingle()
	return slices.ContainsFunc(c.between(last, e), func(b *Exchange) bool {
		own := b.client == last.client || b.client == e.client || single && b.isSingle()
		return own && b.isAccess() && b.succeeded() && b.Session != last.Session &&
			cmp.Or(last.User, b.User) == b.User && c.isFirstUse(b, first)
	})
}

// isFirstUse reports whether b is the first request behind the login to its session, which came after first.
func (c *trial) isFirstUse(b, first *Exchange) bool {
	s := c.sessions[b.Session]
	i := len(s.exchanges) - len(s.from(b))
	return i > 0 && s.exchanges[i-1].isLogin() && s.exchanges[i-1].Arrival.Order > first.Arrival.Order
}

// renewsMost reports whether most failures of a loop were renewed. Each call begins with the old token, which the hub
// refuses; other rules tell of that. Either the client's next request shows it (isRenewed), or nobody else works with
// the newer tokens (as many requests failed as succeeded with these, or more), and each call took one from a store
// (fromStore) or refreshed.
func (c *trial) renewsMost(loop []*Exchange) bool {
	if !slices.ContainsFunc(loop, (*Exchange).callsForToken) {
		return false
	}
	last := len(loop) - 1
	served, refreshed := 0, 0
	for _, e := range c.between(loop[0], loop[last]) {
		switch {
		case c.isNewer(loop[0], e) && e.place() == loop[0].place():
			served++
		case e.exchanged() && e.Session == loop[0].Session:
			refreshed++
		}
	}
	renewed, timed := 0, hasTimer(loop, false)
	separate, elsewhere := timed || c.isSeparate(loop), pause
	switch { // two pollers do not wait for each other, but Node's fetch takes two connections in turn
	case separate && served > len(loop):
		elsewhere = 0
	case timed:
		elsewhere = 3 * atOnce
	case separate:
		elsewhere = opening
	}
	for i, e := range loop[:last] {
		if c.isRenewed(e, c.between(e, loop[i+1]), elsewhere) {
			renewed++
		}
	}
	if served <= len(loop) {
		renewed = max(renewed, min(served, refreshed))
		if loop[0].Session != "" {
			renewed = max(renewed, c.fromStore(loop, separate))
		}
	}
	return renewed*4 >= last*3
}

// isSeparate reports whether a loop has connections of its own: each was used for several of it, and what succeeded in
// between with a newer token was of another session and came over others. It is not if just one of these lies between
// any two failures, as with a job that begins with the old token.
func (c *trial) isSeparate(loop []*Exchange) bool {
	uses, inTurn := usesOf(loop), true
	if loop[0].Session == "" || !areKept(uses) {
		return false
	}
	for i, e := range loop[1:] {
		served := 0
		for _, b := range c.between(loop[i], e) {
			switch {
			case !c.isNewer(loop[0], b):
			case b.Session == loop[0].Session, uses[b.conn] > 0:
				return false
			case b.goesTo(e):
				served++
			}
		}
		inTurn = inTurn && served == 1
	}
	return !inTurn
}

// isRenewed reports whether the client's next request behind last, sent at once (opening) or behind a refresh, was the
// same with a newer token, and succeeded. If it came over another connection, and not with one for each, it must have
// come in the time for that (elsewhere).
func (c *trial) isRenewed(last *Exchange, next []*Exchange, elsewhere time.Duration) bool {
	within := opening
	for _, b := range next {
		if cmp.Or(last.User, b.User) != b.User || !last.endedBefore(b) {
			continue
		}
		rest := b.restSince(last)
		if c.isNewer(last, b) && b.goesTo(last) && rest <= within && (b.isBeside(last) || rest < elsewhere) {
			return true
		}
		if !b.exchanged() {
			return false
		}
		within = pause
	}
	return false
}

// fromStore returns how many failures of a loop were followed within 250 ms (stall) by the same request with a newer
// token, one by one: over its connection or with one for each or, if the loop may not be separate from that, over any.
func (c *trial) fromStore(loop []*Exchange, separate bool) (n int) {
	var open []*Exchange // failures that nothing has followed yet
	next := 0
	for _, e := range c.record[c.after(loop[0])-1:] {
		isNext := next < len(loop) && e == loop[next]
		if !isNext && next == len(loop) && len(open) == 0 {
			break
		}
		open = slices.DeleteFunc(open, func(failed *Exchange) bool { return e.restSince(failed) > stall })
		if isNext {
			if i := slices.IndexFunc(open, e.isBeside); i >= 0 && slices.ContainsFunc(open[i+1:], e.isBeside) {
				open = slices.Delete(open, i, i+1) // a third one: these may be tries of one caller
			}
			open = append(open, e)
			next++
			continue
		}
		i := slices.IndexFunc(open, func(failed *Exchange) bool {
			return (e.isBeside(failed) || !separate) && failed.endedBefore(e) && c.isNewer(failed, e) && e.goesTo(failed)
		})
		if i >= 0 {
			open = slices.Delete(open, i, i+1)
			n++
		}
	}
	return n
}

// isNewer reports whether b succeeded with a newer token than that of last, or in a newer session. Any token is newer
// than one that the hub cannot read.
func (c *trial) isNewer(last, b *Exchange) bool {
	if !b.isAccess() || !b.succeeded() {
		return false
	}
	if old := c.sessions[last.Session]; old != nil {
		isSame := b.Session == last.Session && last.Token != nil && b.Token.Generation <= last.Token.Generation
		return c.isOf(b, old.exchanges[0]) && !isSame
	}
	return last.Presented > Unset && mayBeSame(last, b)
}

// between returns what came between two requests.
func (c *trial) between(first, next *Exchange) []*Exchange {
	i := c.after(first)
	return c.record[i:max(i, c.after(next)-1)]
}

// chained returns the exchanges of a row that lie on a chain of five.
func chained(row []*Exchange) []*Exchange {
	behind := make([]int, len(row)) // length of a chain that ends here: the longest, or one of five
	ahead := make([]int, len(row))  // that begins here
	for i := range row {
		behind[i] = 1
		for j := i - 1; j >= max(0, i-lookBack) && row[i].mayFollow(row[j]) && behind[i] < chain; j-- {
			if links(row, j, i) {
				behind[i] = max(behind[i], behind[j]+1)
			}
		}
	}
	for i := len(row) - 1; i >= 0; i-- {
		ahead[i] = 1
		for j := i + 1; j < min(len(row), i+1+lookBack) && row[j].mayFollow(row[i]) && ahead[i] < chain; j++ {
			if links(row, i, j) {
				ahead[i] = max(ahead[i], ahead[j]+1)
			}
		}
	}
	var shown []*Exchange
	for i, e := range row {
		if behind[i]+ahead[i]-1 >= chain {
			shown = append(shown, e)
		}
	}
	return shown
}

// mayFollow reports whether it is worth while to look whether before and e are links of a chain.
func (e *Exchange) mayFollow(before *Exchange) bool {
	return before.Arrival.until(&e.Arrival) <= pause+longest
}

// links reports whether the request at i of a row is the next try after that at j. What came no sooner than the answer
// had asked does what it was told. A library sends a request again by itself twice at most (Chromium does): what comes
// behind three that were cut is a try of the client.
func links(row []*Exchange, j, i int) bool {
	before, e := row[j], row[i]
	since := before.End.until(&e.Arrival)
	waits := e.keeps != nil && e.keeps.hurried == nil && e.keeps.answer.Session == e.Session
	asked := waits || before.RetryAfter > 0 && since >= before.RetryAfter-tolerance
	return (e.follows(before) || j+2 < i && areCut(row[j:j+3]) && e.Opened.After(row[j+2].End.Machine)) && since <= pause && !asked
}

// areCut reports whether faults cut these requests, one after the other.
func areCut(row []*Exchange) bool {
	for i, e := range row {
		if !e.isCut() || i > 0 && !row[i-1].endedBefore(e) {
			return false
		}
	}
	return true
}
