package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// tolerance is how much earlier than asked a request may come: timers of clients fire a little early.
	tolerance = 50 * time.Millisecond

	// precise is how much earlier it may come that is to excuse another one, which came too soon. A client that sends
	// by the clock, whatever it is answered, is as much too early as the answer took: an error takes 5 ms.
	precise = 2 * time.Millisecond

	latest = late + apart // that it comes over the connection of the answer, if nothing else does before

	waiting = 4 * queue // answers at most for which a request may have come in time
)

// retryAfterIgnored: a request was sent again sooner than the answer to it had asked for with Retry-After (RFC 9110
// section 10.2.3). The answer that asked is shown, too. The same request is one to the same path and of the same
// session or, without a token, with the same body. What left before that answer is no retry (Exchange.follows), nor is
// what got a 401 before, and comes again with a new token.
//
// Nor is what may be of another caller: somebody came in time for the answer, and for the one to the early request,
// too, if that asked to wait (plea.isExcused).
func (c *trial) retryAfterIgnored() {
	type key struct {
		place
		user string
		body uint64
	}
	lines := make(map[key]*line)
	var all []*plea
	for _, e := range c.record {
		k := key{e.place(), cmp.Or(e.User, e.Session), 0}
		if e.isRefresh() {
			k.body = e.Presented
		} else if e.Token == nil {
			k.user, k.body = "", e.Body^e.Presented
		}
		if lines[k] == nil {
			lines[k] = &line{trial: c, renewals: make(map[string]*renewal)}
		}
		if p := lines[k].add(e); p != nil {
			all = append(all, p)
		}
	}
	var early, before groups
	taken := make(map[*Exchange]bool)
	for _, p := range all {
		if p.hurried = c.tooSoon(p, taken); p.hurried != nil {
			taken[p.hurried] = true
			session := ""
			if p.answer.Token != nil {
				session = p.answer.Session
			}
			before.add(session, p.answer)
			early.add(session, p.hurried)
		}
	}
	for i, shown := range early.each {
		c.find("retry_after_ignored", fmt.Sprintf("%s came sooner than the answer before had asked for (Retry-After: up to %s). "+
			"Wait that long before the next try.", requests(shown), max(longestWait(before.each[i]).Round(time.Second), time.Second)),
			append(shown, before.each[i]...)...)
	}
}

// line is the same request of a user, time and again.
type line struct {
	*trial
	all      []*Exchange         // in order of arrival
	pleas    []*plea             // that may still be kept
	renewals map[string]*renewal // by session
}

// renewal is the first use of a session's newest token, and what that may have renewed.
type renewal struct {
	first  *Exchange
	unsent []*Exchange // were answered 401 since the renewal before, and have not been sent again with a new token
}

// plea is an answer that asked for patience, and what came of it.
type plea struct {
	answer  *Exchange
	line    *line
	at      int       // index in line.all of the answer
	noisy   bool      // in the second half of the time something came over this connection or a new one
	kept    *Exchange // came in time
	keptAt  int       // index in line.all of that
	renewed *Exchange // came again with a new token, since the answer was 401
	hurried *Exchange // came too soon, and is told
}

// add takes the next request, and returns what its answer asks for, or nil.
func (l *line) add(e *Exchange) *plea {
	e.plea, e.keeps, e.again = nil, nil, false
	l.all = append(l.all, e)
	l.match(e)
	if e.isAccess() {
		l.renew(e)
	}
	if !e.received() || !e.failed() || e.RetryAfter == 0 {
		return nil
	}
	e.plea = &plea{answer: e, line: l, at: len(l.all) - 1}
	l.pleas = append(l.pleas, e.plea)
	return e.plea
}

// renew notes whether e, which used an access token, may be one of the requests that were answered 401 and wait to be
// sent again: it comes with the next token, in the five seconds from its issue, and right behind its first use (stall)
// or next over the connection of the 401, but for refreshes. What was answered before the last renewal waits no more.
func (l *line) renew(e *Exchange) {
	r := l.renewals[e.Session]
	if r == nil {
		r = &renewal{first: e}
		l.renewals[e.Session] = r
	}
	if e.Token.Generation > r.first.Token.Generation {
		r.unsent = slices.DeleteFunc(r.unsent, func(old *Exchange) bool { return old.endedBefore(r.first) })
		r.first = e
	}
	own := e.cameBefore((*Exchange).isRefresh)
	i := slices.IndexFunc(r.unsent, func(old *Exchange) bool { return old == own && e.asksFor(old) })
	if i < 0 && r.first.Arrival.until(&e.Arrival) <= stall {
		i = slices.IndexFunc(r.unsent, e.asksFor)
	}
	e.again = i >= 0 && e.Token.isOf(&e.Current.Pair) && !r.unsent[i].Token.isOf(&e.Current.Pair) && e.Arrival.Hub.Sub(e.Token.Issued) <= pause
	if e.again {
		if p := r.unsent[i].plea; p != nil {
			p.renewed = e
		}
		r.unsent = slices.Delete(r.unsent, i, i+1)
	}
	if e.refused() {
		r.unsent = append(r.unsent, e)
	}
}

// match finds the answer for which e came in time: of those to a request with the same query and body, or else of all,
// the one whose time ends first. Each request is in time for one answer only, so that there are as many callers who
// waited.
func (l *line) match(e *Exchange) {
	for len(l.pleas) > 0 && (l.pleas[0].answer.Epoch != e.Epoch || l.pleas[0].isOver(e)) {
		l.pleas = l.pleas[1:]
	}
	found := -1
	for i, p := range l.pleas[:min(len(l.pleas), waiting)] {
		if !p.isInTime(e) {
			continue
		}
		if same := e.asksFor(p.answer); found < 0 || same && !e.asksFor(l.pleas[found].answer) ||
			same == e.asksFor(l.pleas[found].answer) && p.lateness(e)-p.leeway() > l.pleas[found].lateness(e)-l.pleas[found].leeway() {
			found = i
		}
	}
	if found >= 0 {
		p := l.pleas[found]
		p.kept, p.keptAt, e.keeps = e, len(l.all)-1, p
		l.pleas = slices.Delete(l.pleas, found, found+1)
		return
	}
	for _, p := range l.pleas[:min(len(l.pleas), waiting)] {
		lateness := p.lateness(e)
		p.noisy = p.noisy || lateness > -p.answer.RetryAfter/2 && lateness < -tolerance && p.connects(e)
	}
}

// isInTime reports whether e may be the retry that the answer asked for: by one of the clocks, for a test may advance
// the other while its client waits, it is up to a fifth of the time and 100 ms late (leeway). It may be up to a second
// late, if nothing came in the second half of the time, or a little longer (apart), if it is the next over the
// connection of the answer.
func (p *plea) isInTime(e *Exchange) bool {
	leeway := p.leeway()
	switch {
	case e.before == p.answer:
		leeway = max(leeway, latest)
	case !p.noisy:
		leeway = max(leeway, late)
	}
	return p.isWithin(e, leeway) && p.isOwn(e)
}

// isOwn reports whether e may be of the client that was asked to wait: it is of its session, or of one that the user
// began meanwhile, while the old one does not go on.
func (p *plea) isOwn(e *Exchange) bool {
	return p.answer.Token == nil || e.Session == p.answer.Session ||
		p.line.isOf(e, p.answer) && mayBeSame(p.answer, e) && (e.Conn == p.answer.Conn || !p.line.goesOn(p.answer.Session, e))
}

// goesOn reports whether a session was used for more than its logout, later (stall) than the login to that of e: it is
// another client's.
func (c *trial) goesOn(session string, e *Exchange) bool {
	login := c.sessions[e.Session].exchanges[0]
	return slices.ContainsFunc(c.sessions[session].from(login), func(use *Exchange) bool {
		return use.isAccess() && use.Operation != "logout" && login.End.until(&use.sentAt) > stall
	})
}

// isWithin reports whether e came when the time that the answer asked for was over, by one of the clocks, and with no
// more delay than leeway.
func (p *plea) isWithin(e *Exchange, leeway time.Duration) bool {
	inTime := func(waited time.Duration) bool {
		lateness := waited - p.answer.RetryAfter
		return lateness >= -precise && lateness <= leeway
	}
	end := &p.answer.End
	return inTime(e.sentAt.Hub.Sub(end.Hub)) || inTime(e.sentAt.Machine.Sub(end.Machine))
}

// isOver reports whether the time in which somebody may come for the answer was over by both clocks when e came.
func (p *plea) isOver(e *Exchange) bool {
	end := &p.answer.End
	waited := min(e.sentAt.Hub.Sub(end.Hub), e.sentAt.Machine.Sub(end.Machine))
	return waited-p.answer.RetryAfter > max(latest, p.leeway())
}

// lateness returns how long after the time that the answer had asked for e was sent; less than 0 if it was sooner.
func (p *plea) lateness(e *Exchange) time.Duration {
	return p.answer.End.until(&e.sentAt) - p.answer.RetryAfter
}

// leeway is how much later than the answer asked somebody may come who adds up to a fifth by chance, as axios-retry
// does.
func (p *plea) leeway() time.Duration { return p.answer.RetryAfter/5 + apart }

// tooSoon returns the request that came sooner than the answer had asked for, if nothing excuses that, or nil. Of
// several that is the one that fits best: with the same query and body, not taken for another answer, and over the
// connection of the answer or a new one. What asks for something else is none, if the very request came again when its
// time was over, however late.
func (c *trial) tooSoon(p *plea, taken map[*Exchange]bool) (early *Exchange) {
	next := p.line.all[p.at+1 : min(len(p.line.all), p.at+waiting)]
	polled, comesLater, fit := p.isPolled(), p.comesLater(), -best
	for _, e := range next {
		n := e.fits(p, !taken[e])
		if polled && e.asksFor(p.answer) {
			n = best // the first of them is the retry
		}
		switch {
		case p.lateness(e) >= -tolerance, fit == best, e == p.renewed:
			return early
		case !p.mayBeRetry(e), comesLater && !e.asksFor(p.answer), !polled && c.isExcused(p, e):
		case n > fit:
			early, fit = e, n
		}
	}
	return early
}

// mayBeRetry reports whether e may be a retry of the request that was asked to wait: it is of the same session and
// may be of the same client, was certainly sent after the answer, got no 401 before, and did not wait in a browser's
// queue when the answer came (callers). Two connections that no session here was used over may be of one pool, if the
// same login comes over both.
func (p *plea) mayBeRetry(e *Exchange) bool {
	queued := e.isPageGet() && p.answer.End.until(&e.sentAt) <= apart
	ofPool := e.isLogin() && e.isOfUnknown() && p.answer.isOfUnknown()
	return e.Epoch == p.answer.Epoch && (e.Token == nil || e.Session == p.answer.Session) && (ofPool || mayBeSame(p.answer, e)) &&
		e.follows(p.answer) && !e.again && !queued
}

const best = 7 // what fits returns at the most

// fits says how well e fits as the retry that came too soon, if it is free to be taken for that. What came in time for
// another answer fits worse.
func (e *Exchange) fits(p *plea, free bool) (n int) {
	if e.asksFor(p.answer) {
		n += 4
	}
	if free {
		n += 2
	}
	if p.connects(e) {
		n++
	}
	if e.keeps != nil {
		n -= 3
	}
	return n
}

// isExcused reports whether e may be of another caller than the one that was asked to wait: it came in time for another
// answer; or it is a refresh for a 401 of its own; or somebody came in time for this one and, if e was asked to wait,
// for that. Before the time is over nobody knows.
func (c *trial) isExcused(p *plea, e *Exchange) bool {
	switch q := e.plea; {
	case e.keeps != nil && e.keeps.hurried == nil, p.answer.isRefresh() && e.isForOwn401(p.answer) && c.rested(p):
		return true
	case p.kept == nil, e.asksFor(p.answer) && !p.kept.asksFor(p.answer):
		return !c.waitIsOver(p.answer, p.answer.RetryAfter) || !e.asksFor(p.answer) && p.isTogether()
	case q == nil:
		return !p.isServedRetry(e)
	default:
		return q.kept != nil || !c.waitIsOver(q.answer, q.answer.RetryAfter)
	}
}

// isForOwn401 reports whether the refresh e came behind a 401 over a connection of its own, which the client had when
// the refresh other was answered.
func (e *Exchange) isForOwn401(other *Exchange) bool {
	return e.before != nil && e.before.refused() && e.Conn != other.Conn && other.endedBefore(e.before) && !e.Opened.After(other.End.Machine)
}

// rested reports whether the caller that was asked to wait did so: the next over its connection, or over one for itself
// if it has one for each request, came in time.
func (c *trial) rested(p *plea) bool {
	for _, next := range c.record[c.after(p.answer):] {
		if next.before == p.answer || p.answer.isSingle() && next.isSingle() && next.Session == p.answer.Session {
			return p.isWithin(next, max(latest, p.leeway()))
		}
	}
	return false
}

// comesLater reports whether the very request comes again when the answer had asked for, or later, and not before.
func (p *plea) comesLater() bool {
	next := p.line.all[p.at+1 : min(len(p.line.all), p.at+waiting)]
	i := slices.IndexFunc(next, func(e *Exchange) bool { return e.asksFor(p.answer) })
	return i >= 0 && next[i].Epoch == p.answer.Epoch && p.lateness(next[i]) >= -tolerance
}

// isServedRetry reports whether e, which was served, is a retry although somebody came in time: it came over the
// connection of the answer, or both had one for themselves. And it came at once, or the one in time did not come to the
// moment, but is more work of the same caller. A page's callers share connections, and so do those who send more than
// the pool has connections: what comes at once over one may have waited for it.
func (p *plea) isServedRetry(e *Exchange) bool {
	own := e.isBeside(p.answer)
	isAtOnce := e.before == p.answer && e.restSince(p.answer) <= atOnce && e.asksFor(p.answer) && !p.isAmongOthers()
	return own && !e.Browser && (isAtOnce || !p.isWithin(p.kept, p.leeway()))
}

// isAmongOthers reports whether the same request came over another connection, a little (stall) before or after the
// answer.
func (p *plea) isAmongOthers() bool {
	near := func(e *Exchange) bool {
		return e.Conn != p.answer.Conn && e.sentAt.until(&p.answer.End) <= stall && p.answer.End.until(&e.sentAt) <= stall
	}
	return slices.ContainsFunc(p.line.all[max(0, p.at-queue):min(len(p.line.all), p.at+queue)], near)
}

// isTogether reports whether the request that was asked to wait was under way together with the one before or behind
// it.
func (p *plea) isTogether() bool {
	l := p.line
	return p.at > 0 && !l.all[p.at-1].endedBefore(p.answer) || p.at+1 < len(l.all) && !p.answer.endedBefore(l.all[p.at+1])
}

// connects reports whether e came over the connection of the answer, or over one opened since, or a proxy hides that.
func (p *plea) connects(e *Exchange) bool {
	return e.Conn == p.answer.Conn || e.Opened.IsZero() || e.Opened.After(p.answer.End.Machine)
}

// isPolled reports whether one timer sent the requests from the answer to the one in time, so that nobody waited. They
// came over one connection at the same pauses, or over several with less of a difference (a twentieth) or by a beat
// (areTicks). They are four at the least: with the one before or behind; or without the retry behind the answer
// (isRetried); or from that retry on, if the timer begins anew with it (shifts), and it is not of another caller,
// between the ticks.
func (p *plea) isPolled() bool {
	if p.kept == nil {
		return false
	}
	all, at, keptAt := p.ofClient()
	isPoll := func(run []*Exchange) bool {
		return isTimer(run, true) || !p.isKeptBesideAnother() && (areSamePauses(run, Idle, 20, func(*Exchange) bool { return true }) || areTicks(run))
	}
	byTimer := func(from, to int) bool { return from >= 0 && to < len(all) && to-from > 2 && isPoll(all[from:to+1]) }
	without := func(i int) bool { // the request at the index, which may be another caller's or a retry
		return i > 0 && keptAt-i > 2 && isPoll(slices.Concat(all[i-1:i], all[i+1:keptAt+1]))
	}
	isRetried := func() bool { // not by another poll beside this one
		next := all[at+1:]
		return without(at+1) && next[2].restSince(next[1])-next[1].restSince(next[0]) > Idle
	}
	shifts := func() bool { // over several connections with the interval from before
		run := all[at+1 : keptAt+1]
		if len(run) < 4 || without(at) {
			return false
		}
		interval := run[1].restSince(run[0])
		goesOn := at > 0 && isNear(p.answer.restSince(all[at-1]), interval) && run[0].restSince(p.answer) <= interval && isPoll(run)
		return goesOn || run[0].isBeside(p.answer) && isTimer(run, true)
	}
	return byTimer(at, keptAt) || byTimer(at-1, keptAt) || byTimer(at, keptAt+1) || isRetried() || shifts()
}

// ofClient returns the requests from the one before the answer to the one behind that in time, and the indexes of these
// two, without those of other clients (isOthers).
func (p *plea) ofClient() (all []*Exchange, at, keptAt int) {
	l := p.line.all
	from, to := p.at-1, p.keptAt+1
	for from > 0 && p.isOthers(l[from]) {
		from--
	}
	for to < len(l) && p.isOthers(l[to]) {
		to++
	}
	from = max(0, from)
	all = l[from:min(to+1, len(l))]
	if !slices.ContainsFunc(all, p.isOthers) { // a copy each time made BenchmarkJudge/Retry-After a third slower
		return all, p.at - from, p.keptAt - from
	}
	all = slices.DeleteFunc(slices.Clone(all), p.isOthers)
	return all, slices.Index(all, p.answer), slices.Index(all, p.kept)
}

// isOthers reports whether e is of a session that another client has of the same user: not that of the answer, nor that
// of the request in time.
func (p *plea) isOthers(e *Exchange) bool {
	return p.answer.Token != nil && e.Session != p.answer.Session && e.Session != p.kept.Session
}

// isKeptBesideAnother reports whether the request in time was the next over the connection of the answer, and all
// between came over one other: two callers may have a connection each.
func (p *plea) isKeptBesideAnother() bool {
	between := p.line.all[p.at+1 : p.keptAt]
	return p.kept.before == p.answer && !slices.ContainsFunc(between, func(e *Exchange) bool { return e.Conn != between[0].Conn })
}

// asksFor reports whether e has the same query and body as other.
func (e *Exchange) asksFor(other *Exchange) bool {
	return e.Query == other.Query && e.Body == other.Body
}
