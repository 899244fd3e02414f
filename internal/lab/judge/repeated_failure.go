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
// A changed body or query hides nothing when a token is there; another path or method is another request. A request
// that its client gave up is neither a failure nor a success. What a rule about refreshes or a logout shows is not told
// again, and a crowd of callers is not told at all (isCrowd).
func (c *trial) repeatedFailure() {
	var bySession groups
	for _, row := range c.rows() {
		if len(row) < chain {
			continue
		}
		row = c.withoutAnswered(row)
		loop := withoutOwn(c.settled(c.loopOf(row)))
		for i, n := 0, 1; i < len(loop); i, n = i+n, 1 {
			for i+n < len(loop) && !c.beganAnew(loop[i+n-1], loop[i+n]) {
				n++
			}
			if n >= chain && !c.renewsMost(loop[i:i+n]) {
				bySession.add(row[0].Session, chained(loop[i:i+n])...)
			}
		}
	}
	for _, shown := range bySession.each {
		c.find("repeated_failure", requests(shown)+" failed, five or more one after the other, with no success between these and no pause of five seconds. "+
			"Stop after a few tries, and wait longer before each.", shown...)
	}
}

// withoutAnswered returns a row without the 401s over connections where a login succeeded in time, if these are two at
// most and none of another connection is between them, or the same request with another token, if it is one: of workers
// that share a token each may log in anew, or take the new one from a store if several do. But what comes behind all of
// a row of one caller, who takes turns with its connections, is of that caller.
func (c *trial) withoutAnswered(row []*Exchange) []*Exchange {
	answered, several := make(map[int64]int), false // by connection: how many 401s
	isOne, end := takesTurns(row), row[len(row)-1]
	stranger := "" // whose the answers are, where nobody knows whose the 401s are
	for i, n := 0, 0; i < len(row); i += n {
		last := row[i]
		for n = 1; i+n < len(row) && row[i+n].Conn == last.Conn; n++ {
			last = row[i+n]
		}
		if next := c.answerTo(last); next != nil && (next.isLogin() && n <= 2 || n == 1) &&
			(!isOne || !end.endedBefore(next)) {
			if last.User == "" && cmp.Or(stranger, next.User) != next.User {
				return row // several users
			}
			stranger = next.User
			answered[last.Conn] = n
			several = several || next.isLogin() || len(answered) > 1
		}
	}
	if several {
		for conn, n := range answered {
			row = withoutFew(row, conn, n)
		}
	}
	return row
}

// withoutOwn returns a loop of several clients that used no session yet (guest) without the requests over a connection
// that are fewer than five, if a session was used over that later: they were that client's own.
func withoutOwn(loop []*Exchange) []*Exchange {
	if len(loop) == 0 || !loop[0].isOfSeveral() {
		return loop
	}
	sent := make(map[*connection]int)
	for _, e := range loop {
		sent[e.conn]++
	}
	return slices.DeleteFunc(loop, func(e *Exchange) bool { return e.conn.began > 0 && sent[e.conn] < chain })
}

// takesTurns reports whether a row came at one caller's pauses, over fewer connections than it has requests.
func takesTurns(row []*Exchange) bool {
	conns, pauses := make(map[int64]bool), pausesOf(row)
	for _, e := range row {
		conns[e.Conn] = true
	}
	return len(conns) < len(row) && (isOfOne(pauses) || isBusyPoll(pauses))
}

// answerTo returns what succeeded in time over the connection of e, a 401: a login, or the same request of the user. It
// may be nil.
func (c *trial) answerTo(e *Exchange) *Exchange {
	if !e.refused() {
		return nil
	}
	for _, next := range c.record[c.after(e):] {
		switch {
		case !inTime(e, next):
			return nil
		case next.Conn == e.Conn && e.endedBefore(next) && next.succeeded() &&
			(next.isLogin() || next.place() == e.place()) && cmp.Or(e.User, next.User) == next.User:
			return next
		}
	}
	return nil
}

// settled returns what of a loop nothing can excuse that the client may still do in time: all of it, or nothing yet.
// Of a loop that goes on it is what came before that time, if it had five rounds by then or is more than any page has
// (queue).
func (c *trial) settled(loop []*Exchange) []*Exchange {
	if len(loop) < chain {
		return nil
	}
	if loop[0].isAccess() && c.sessions[loop[0].Session].isRefreshing() {
		return nil // its callers may wait for that
	}
	if c.isSettled(loop) {
		return loop
	}
	n := 0
	for n < len(loop) && loop[n].End.until(&c.now) > reaction {
		n++
	}
	if n < chain || n <= queue && len(roundsOf(loop[:n])) < chain {
		return nil
	}
	return c.loopOf(loop[:n])
}

// loopOf returns what of a row is no crowd's: all of it; or, where many callers met the end of the access token, what
// still came with it more than a second after the client had got a new one (late). A few that came before are part of
// the same loop.
func (c *trial) loopOf(row []*Exchange) []*Exchange {
	if len(row) < chain || !c.isCrowd(row) {
		return row
	}
	i := slices.IndexFunc(row, (*Exchange).refused)
	if i < 0 || !row[i].isAccess() {
		return nil
	}
	got := c.nextTokens(row[i])
	if got == nil {
		return nil
	}
	n := stillOld(row, got)
	rest := row[n:]
	switch {
	case len(rest) < chain:
		return nil
	case c.isCrowd(rest):
		return nil
	case n < chain:
		return row
	}
	return rest
}

// stillOld returns the index of the first of a row that was sent with its old token more than a second after the client
// had got a new one, and had not waited in a queue since before that.
func stillOld(row []*Exchange, got *Exchange) int {
	i := slices.IndexFunc(row, func(e *Exchange) bool {
		return got.End.until(&e.sentAt) > late && (got.End.Order < e.since || len(row) > queue)
	})
	if i < 0 {
		return len(row)
	}
	return i
}

// effort is what makes a failed request the same request again.
type effort struct {
	place
	presented uint64
	body      uint64
	guest     *connection // of a request without a token
}

func (e *Exchange) effort() effort {
	if e.Presented <= Unset {
		f := e.plainEffort()
		f.guest = e.guest()
		return f
	}
	return effort{place: e.place(), presented: e.Presented}
}

// plainEffort is the effort of a request without a token, whoever sent it.
func (e *Exchange) plainEffort() effort { return effort{place: e.place(), body: e.Body} }

// rows returns the failures of each effort that nothing interrupts: no success, pause or change of epoch. Without a
// token, a success is any of the same operation, or a login, by the same client (ends): a suite that types a wrong
// password before the right one does not loop, nor does one that registers its user, who is there, before it logs in,
// or a page that looks for a session at each load before that.
func (c *trial) rows() [][]*Exchange {
	var rows [][]*Exchange
	withToken, without := make(map[effort]int), make(map[effort]int) // index in rows of those that may go on
	for _, e := range c.record {
		f := e.effort()
		open := withToken
		if f.presented == 0 {
			open = without
		}
		i, ok := open[f]
		switch {
		case e.End.Order == 0 || e.Left:
		case e.succeeded():
			delete(open, f)
			for other, i := range without {
				if other.place != f.place && !e.isLogin() {
					continue
				}
				ended := c.ends(e, rows[i])
				if len(rows[i]) < chain {
					rows[i] = withoutFew(rows[i], e.Conn, chain-1)
				}
				if ended || len(rows[i]) == 0 {
					delete(without, other)
				}
			}
		case c.told[e]:
		case e.Hub == http.StatusPartialContent && !e.isCut(): // a part, although a fault cut it, is not in vain
			delete(open, f)
		case !ok || !goesOn(rows[i], e):
			open[f] = len(rows)
			rows = append(rows, []*Exchange{e})
		default:
			rows[i] = append(rows[i], e)
		}
	}
	return rows
}

// goesOn reports whether e may be a link of a chain with one of a row.
func goesOn(row []*Exchange, e *Exchange) bool {
	for i := len(row) - 1; i >= 0 && row[i].Epoch == e.Epoch; i-- {
		if row[i].End.until(&e.Arrival) <= pause {
			return true
		}
	}
	return false
}

// beganAnew reports whether the user logged in between two requests of one client, or with a connection for each, and
// used the new session: the tests of a suite, or the starts of a program, may each find the same dead session.
func (c *trial) beganAnew(last, e *Exchange) bool {
	single := last.isSingle() && e.isSingle()
	if last.client != e.client && !single || last.Presented <= Unset {
		return false
	}
	session := "" // of the latest login
	for _, b := range c.between(last, e) {
		switch {
		case b.client != e.client && !(single && b.isSingle()), !b.succeeded(), cmp.Or(last.User, b.User) != b.User:
		case b.isLogin():
			session = b.Session
		case session != "" && b.Session == session:
			return true
		}
	}
	return false
}

// renewsMost reports whether the same request succeeded behind most of a loop, with a newer token: the client had
// refreshed, or it came as soon as the first had failed. Each call begins with the old token; other rules tell of that.
func (c *trial) renewsMost(loop []*Exchange) bool {
	renewed := 0
	for i, last := range loop[:len(loop)-1] {
		refreshed := false
		if slices.ContainsFunc(c.between(last, loop[i+1]), func(b *Exchange) bool {
			refreshed = refreshed || b.exchanged() && b.Session == last.Session
			return (refreshed || b.comesSoon(last)) && b.isAccess() && b.succeeded() && b.Session == last.Session && b.goesTo(last)
		}) {
			renewed++
		}
	}
	return renewed*4 >= (len(loop)-1)*3
}

// comesSoon reports whether e came soon after last had been answered (opening), over its connection or with one for each.
func (e *Exchange) comesSoon(last *Exchange) bool {
	return e.restSince(last) <= opening && (e.before == last || e.isSingle() && last.isSingle())
}

// between returns what came between two requests.
func (c *trial) between(first, next *Exchange) []*Exchange {
	i := c.after(first)
	return c.record[i:max(i, c.after(next)-1)]
}

// ends reports whether e, a success, came after the last of a row and may be of the same client. A client that keeps
// its connection opens none for a success. Of several clients it is that of the last.
func (c *trial) ends(e *Exchange, row []*Exchange) bool {
	last := row[len(row)-1]
	own := last.isSingle() && mayBeSame(last, e)
	if last.isOfSeveral() {
		row = row[len(row)-1:]
	}
	for _, before := range row {
		own = own || before.client == e.client || !last.isLogin() && isSibling(before, e)
	}
	return own && last.endedBefore(e)
}

// withoutFew returns a row without what came over a connection, if that is not more than few: its caller has succeeded.
func withoutFew(row []*Exchange, conn int64, few int) []*Exchange {
	n := 0
	for _, e := range row {
		if e.Conn == conn {
			n++
		}
	}
	if n == 0 || n > few {
		return row
	}
	return slices.DeleteFunc(row, func(e *Exchange) bool { return e.Conn == conn })
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
	asked := before.RetryAfter > 0 && since >= before.RetryAfter-tolerance || e.obeys()
	return (e.follows(before) || j+2 < i && areCut(row[j:j+3]) && e.Opened.After(row[j+2].End.Machine)) && since <= pause && !asked
}

// obeys reports whether e came to the moment for which another answer had asked, as a caller's that waits as it is
// asked each time, and nobody ignored that.
func (e *Exchange) obeys() bool {
	p := e.keeps
	return p != nil && p.lateness(e) <= p.fifth() && !p.line.ignored
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
