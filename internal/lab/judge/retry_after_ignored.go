package judge

import (
	"fmt"
	"slices"
	"time"
)

// tolerance is how much earlier than asked a request may come: timers of clients fire a little early.
const tolerance = 50 * time.Millisecond

// precise is how much earlier it may come that is to excuse another one, which came too soon. A client that sends by
// the clock, whatever it is answered, is as much too early as the answer took: an error takes 5 ms.
const precise = 2 * time.Millisecond

// retryAfterIgnored: a request was sent again sooner than the answer to it had asked for with Retry-After (RFC 9110
// section 10.2.3). The answer that asked is shown, too. The same request is one to the same path and of the same
// session or, without a token, with the same body. What left before that answer is no retry (Exchange.follows).
//
// Nor is what may be of another caller: somebody came when the time was over (line.match), or came sooner by a timer of
// their own (isOfPair, isOfPoll), or may have waited in a browser's queue. But a caller that goes on in its rhythm does
// not wait (goesOn), and one that waits longer each time, and not as long as asked, is alone.
func (c *trial) retryAfterIgnored() {
	type key struct {
		place
		session string
		body    uint64
	}
	lines := make(map[key]*line)
	var all []*plea
	for _, e := range c.record {
		k := key{e.place(), e.Session, 0}
		if e.isRefresh() {
			k.body = e.Presented
		} else if e.Token == nil {
			k.session, k.body = "", e.Body^e.Presented
		}
		if lines[k] == nil {
			lines[k] = &line{session: k.session}
		}
		if p := lines[k].add(e); p != nil {
			all = append(all, p)
		}
	}
	for range 3 { // who did not wait for one answer did not wait for those before and behind it
		slices.Reverse(all)
		for _, p := range all {
			if p.hurried == nil {
				p.hurried = c.tooSoon(p)
			}
		}
	}
	var early, before groups
	for _, p := range all {
		if p.hurried != nil {
			p.line.ignored = true
			before.add(p.line.session, p.answer)
			early.add(p.line.session, p.hurried)
		}
	}
	for i, shown := range early.each {
		c.find("retry_after_ignored", fmt.Sprintf("%s came sooner than the answer before had asked for (Retry-After: up to %s). "+
			"Wait that long before the next try.", requests(shown), max(longestWait(before.each[i]).Round(time.Second), time.Second)),
			append(shown, before.each[i]...)...)
	}
}

// plea is an answer that asked for patience, and what came of it.
type plea struct {
	answer  *Exchange
	line    *line
	at      int       // index in line.all of the answer
	noisy   bool      // in the second half of the time something came over this connection or a new one
	kept    *Exchange // came in time
	hurried *Exchange // came too soon, and is told
}

// line is the same request, time and again.
type line struct {
	session string
	all     []*Exchange // in order of arrival
	pleas   []*plea     // that may still be kept
	unsent  []*Exchange // were answered 401, and have not been sent again with a new token
	renewed *Exchange   // the first with the newest token
	ignored bool        // a request came too soon, and is told
}

// add takes the next request, and returns what its answer asks for, or nil.
func (l *line) add(e *Exchange) *plea {
	e.plea, e.keeps, e.shown = nil, nil, false
	l.all = append(l.all, e)
	l.match(e)
	if e.isAccess() && (l.renewed == nil || e.Token.Generation > l.renewed.Token.Generation) {
		l.renewed = e
	}
	e.again = l.isSentAgain(e)
	if e.isAccess() && e.refused() {
		l.unsent = append(l.unsent, e)
	}
	if !e.received() || !e.failed() || e.RetryAfter == 0 {
		return nil
	}
	e.plea = &plea{answer: e, line: l, at: len(l.all) - 1}
	l.pleas = append(l.pleas, e.plea)
	return e.plea
}

// isSentAgain reports whether e may be one of the requests that were answered 401 and wait to be sent again, and drops
// that: with the next token, in the five seconds from its issue, and right behind its first use (stall).
func (l *line) isSentAgain(e *Exchange) bool {
	i := slices.IndexFunc(l.unsent, e.asksFor)
	if i < 0 || !e.isAccess() || !e.Token.isOf(&e.Current.Pair) || l.unsent[i].Token.isOf(&e.Current.Pair) ||
		e.Arrival.Hub.Sub(e.Token.Issued) > pause || l.renewed.Arrival.until(&e.Arrival) > stall {
		return false
	}
	l.unsent = slices.Delete(l.unsent, i, i+1)
	return true
}

// match finds the answer for which e came in time: of those to a request with the same query and body, or else of all,
// the one whose time was over first.
func (l *line) match(e *Exchange) {
	for len(l.pleas) > 0 && (l.pleas[0].answer.Epoch != e.Epoch || l.pleas[0].overdue(e) > max(pause, l.pleas[0].fifth())) {
		l.pleas = l.pleas[1:]
	}
	best := -1
	for i, p := range l.pleas[:min(len(l.pleas), lookBack)] {
		if !p.isInTime(e) {
			continue
		}
		if same := e.asksFor(p.answer); best < 0 || same && !e.asksFor(l.pleas[best].answer) ||
			same == e.asksFor(l.pleas[best].answer) && p.lateness(e) > l.pleas[best].lateness(e) {
			best = i
		}
	}
	if best >= 0 {
		p := l.pleas[best]
		p.kept, e.keeps = e, p
		l.pleas = slices.Delete(l.pleas, best, best+1)
		return
	}
	for _, p := range l.pleas[:min(len(l.pleas), lookBack)] {
		lateness := p.lateness(e)
		p.noisy = p.noisy || lateness > -p.answer.RetryAfter/2 && lateness < -tolerance && p.connects(e)
	}
}

// lateness returns how long after the time that the answer had asked for e was sent; less than 0 if it was sooner.
func (p *plea) lateness(e *Exchange) time.Duration {
	return p.answer.End.until(&e.sentAt) - p.answer.RetryAfter
}

// overdue is the lateness by the clock by which less time has passed: a test may advance the other while a client waits.
func (p *plea) overdue(e *Exchange) time.Duration {
	end := &p.answer.End
	return min(e.sentAt.Hub.Sub(end.Hub), e.sentAt.Machine.Sub(end.Machine)) - p.answer.RetryAfter
}

// isInTime reports whether e, the latest of the line, may be the retry that the answer asked for: it is up to a fifth of
// the time late, which some clients add by chance, or up to a second, if nothing came in the second half of the time. In
// a queue it may have waited for longer. But what comes without a rest behind more than any page has goes on by itself.
func (p *plea) isInTime(e *Exchange) bool {
	lateness := p.overdue(e)
	isLoop := e.since <= p.answer.Arrival.Order && len(p.line.all)-1-p.at > queue
	return p.answer.endedBefore(e) && p.answer.Epoch == e.Epoch && p.lateness(e) >= -precise && !isLoop &&
		(lateness <= p.fifth() || lateness <= late && !p.noisy || lateness <= pause && e.waited)
}

// fifth is a fifth of the time that the answer asked for, 100 ms at the least.
func (p *plea) fifth() time.Duration { return max(apart, p.answer.RetryAfter/5) }

// asked is what a request asks of its place. A client may change it for a retry.
type asked struct{ query, body uint64 }

func (e *Exchange) asked() asked { return asked{e.Query, e.Body} }

// asksFor reports whether e has the same query and body as other.
func (e *Exchange) asksFor(other *Exchange) bool { return e.asked() == other.asked() }

// tooSoon returns the first request that came sooner than the answer had asked for, if it can be no other caller's, or
// nil: with the same query and body, or else any, over the connection of the answer or a new one, or else any, and one
// that is not shown for another answer.
func (c *trial) tooSoon(p *plea) *Exchange {
	all, told := p.line.all, false
	known := slices.Clone(all[max(0, p.at-ticks):p.at])
	var best *Exchange
	for i := p.at + 1; i < min(len(all), p.at+queue) && p.lateness(all[i]) < -tolerance && !(told && best.suits(p) == most); i++ {
		e := all[i]
		switch {
		case e.Epoch != p.answer.Epoch, !e.follows(p.answer), !p.mayBeOf(e), e.again, e.keeps != nil && e.keeps.hurried == nil:
		case p.mayBeQueued(e), p.isOfPair(e):
		case p.isOfPoll(e, known):
			known = append(known[max(0, len(known)-2*ticks):], e)
		default:
			if best == nil || e.suits(p) > best.suits(p) {
				best = e
			}
			told = told || !c.isExcused(p, e)
		}
	}
	if !told {
		return nil
	}
	best.shown = true
	return best
}

// most is what suits returns for a request with the query and body of the one that was asked, over its connection or a
// new one, that is not shown for another answer.
const most = 7

// suits says how well e fits as the retry that came too soon, up to most.
func (e *Exchange) suits(p *plea) (n int) {
	if e.asksFor(p.answer) {
		n += 4
	}
	if p.connects(e) {
		n += 2
	}
	if !e.shown {
		n++
	}
	return n
}

// isExcused reports whether the one who was asked came in time, so that e, which came sooner, is another caller's. What
// succeeds over the connection of the answer, or over one opened since, is a retry unless the other one came promptly,
// and so it is if it came at once. Before the time is over nobody knows.
func (c *trial) isExcused(p *plea, e *Exchange) bool {
	switch {
	case p.kept == nil:
		return !c.waitIsOver(p.answer, p.answer.RetryAfter) || !e.asksFor(p.answer) && p.isTogether()
	case p.goesOn(e), p.kept.plea != nil && p.kept.plea.hurried != nil:
		return false
	case !e.failed() && !e.Browser && p.connects(e):
		return p.lateness(p.kept) <= p.fifth() && !p.isAtOnce(e)
	}
	q := e.plea // one caller waits longer each time
	return q == nil || q.kept != nil || !c.waitIsOver(q.answer, q.answer.RetryAfter)
}

// isAtOnce reports whether one caller sent the same again as soon as it had the answer, over the connection of that, or
// with a connection for each request, unless the one in time came to the moment. Nobody else came meanwhile.
func (p *plea) isAtOnce(e *Exchange) bool {
	next := p.line.all[p.at+1:]
	return next[0] == e && next[1] == p.kept && e.asksFor(p.answer) && !p.isTogether() && e.comesSoon(p.answer) &&
		(e.before == p.answer && e.restSince(p.answer) <= atOnce || e.isSingle() && p.lateness(p.kept) > tolerance)
}

// connects reports whether e came over the connection of the answer, or over one opened since, or a proxy hides that.
func (p *plea) connects(e *Exchange) bool {
	return e.Conn == p.answer.Conn || e.Opened.IsZero() || e.Opened.After(p.answer.End.Machine)
}

// isTogether reports whether the request that was asked to wait was under way together with the one before or behind it.
func (p *plea) isTogether() bool {
	l := p.line
	return p.at > 0 && !l.all[p.at-1].endedBefore(p.answer) || p.at+1 < len(l.all) && !p.answer.endedBefore(l.all[p.at+1])
}

// mayBeOf reports whether e may be of the client that was asked. A browser keeps its connections, so that a guest with
// another one is another client.
func (p *plea) mayBeOf(e *Exchange) bool {
	isGuest := func(e *Exchange) bool { return e.conn.began == 0 || e.conn.began >= e.Arrival.Order }
	if p.line.session == "" && !e.Browser && isGuest(e) && isGuest(p.answer) && p.answer.conn.group == e.conn.group {
		return true
	}
	guest := p.answer.guest()
	return mayBeSame(p.answer, e) && (p.line.session != "" || !e.Browser || guest == nil || guest == e.guest())
}

// mayBeQueued reports whether e may have waited in a browser's queue when the answer came (trafficOf).
func (p *plea) mayBeQueued(e *Exchange) bool {
	return e.Browser && e.Method == "GET" && p.answer.End.until(&e.sentAt) <= apart
}
