package judge

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"
)

// tolerance is how much earlier than asked a request may come: timers of clients fire a little early.
const tolerance = 50 * time.Millisecond

// precise is how much earlier it may come that is to excuse another one, which came too soon. A client that sends by
// the clock, whatever it is answered, is as much too early as the answer took: an error takes 5 ms.
const precise = 2 * time.Millisecond

// retryAfterIgnored: a request was sent again sooner than the answer to it had asked for with Retry-After (RFC 9110
// section 10.2.3). The answer that asked is shown, too. The same request is one to the same path and of the same
// session or, without a token, with the same body. But one with another query or body is no retry, if the one that was
// asked to wait comes again in time. What left before that answer is no retry (Exchange.follows).
//
// Nor is what may be of another caller: the answer was followed by a request in time, at most a second late or a fifth
// of the time or, where the other came without a break behind the answer, as from a client's queue, five seconds. But a
// client that sends in the second half of the time, too, or goes on in an even rhythm (isEven), does not wait at all,
// and outside a browser a request that succeeds over the connection of the answer, or over one opened since, is the
// retry. In a browser what comes within apart may have waited for another caller (mayQueue). And two callers with timers
// of their own come as long behind one another at each tick (isOfTick), or a poll goes on beside the caller (isOfPoll).
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
			lines[k] = &line{session: k.session, spell: new(spell)}
		}
		if asked := lines[k].add(e); asked != nil {
			all = append(all, asked)
		}
	}
	for _, p := range all {
		p.spell.asked = append(p.spell.asked, p.answer)
		p.spell.missed = p.spell.missed || !p.prompt
	}
	for _, p := range all {
		p.withoutPoll()
		if asked := p.spell.asked; asked[0] == p.answer && len(asked) > 3 && isTimer(pausesOf(asked)) {
			p.spell.missed = true
		}
		if p.hurried != nil && !p.spell.restless && (!p.wasQuiet() || c.wasAlone(p) || p.isEven()) {
			p.spell.restless = true
		}
	}
	var early, before groups
	for _, p := range all {
		if p.hurried != nil && p.wasIgnored() && !p.isOfTick() && !c.mayBeQueued(p) && c.isDecided(p) {
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

// wasAlone reports whether the request that came too soon is no other caller's, since that one was asked to wait as
// well, and nobody came again for it: one caller waits longer each time.
func (c *trial) wasAlone(p *plea) bool {
	q := p.hurried.plea
	return p.kept && !p.excused && q != nil && !q.kept && c.waitIsOver(q.answer, q.answer.RetryAfter)
}

// isDecided reports whether nothing that may still come in time makes the request that came too soon another caller's.
func (c *trial) isDecided(p *plea) bool {
	last := p.answer
	if p.line.isSlow() {
		last = p.line.owed[len(p.line.owed)-1].answer
	} else if (p.kept || p.spell.restless) && (p.again || !p.strange) {
		return true
	}
	return c.waitIsOver(last, last.RetryAfter)
}

// mayBeQueued reports whether the request that came too soon may have waited in a browser's queue meanwhile, or is of
// callers that came together, while the one in time came to the moment.
func (c *trial) mayBeQueued(p *plea) bool {
	if p.answer.End.until(&p.hurried.sentAt) > apart {
		return false
	}
	b := p.burst
	if b.traffic == nil {
		b.traffic = trafficOf(b.all)
	}
	return b.traffic.mayQueue || (p.strange || p.punctual && !p.spell.restless) && b.traffic.isTogether()
}

// plea is an answer that asked for patience, and what came of it.
type plea struct {
	answer  *Exchange
	line    *line
	at      int           // index in line.all of the answer
	next    int           // index in line.first of what came next
	burst   *burst        // of the answer
	spell   *spell        // of the answer
	hurried *Exchange     // the request that came too soon
	strange bool          // it asks for something else (asksFor)
	excused bool          // it was in time for another answer
	slack   time.Duration // how late a request may come that is in time
	kept    bool          // a request came in time
	again   bool          // with the same query and body
	home    bool          // over the connection of the answer

	prompt   bool // it came right when the time was over
	punctual bool // it came when the time was over, or a fifth of it later: some clients add that by chance
}

// wasIgnored reports whether the request that came too soon can be no other caller's. The queue of a slow server
// never rests, so that first tries and retries come mixed: there the numbers tell.
func (p *plea) wasIgnored() bool {
	switch {
	case p.again && p.strange:
		return false
	case p.line.isSlow():
		return len(p.line.owed) > 0
	}
	return p.spell.restless || !p.excused && (!p.kept || p.hurriedWorked())
}

// hurriedWorked reports whether the request that came too soon succeeded and was sent after the answer by the same
// caller: the one in time is more work. Callers that came together and all came too soon may have changed connections.
// Where it did not come at once, and the other to the moment, it is the first of another caller.
func (p *plea) hurriedWorked() bool {
	e := p.hurried
	return !e.Browser && !e.failed() && (p.connects(e) || slices.ContainsFunc(p.burst.all, func(other *Exchange) bool {
		return other.Conn == e.Conn && other.plea != nil && other.plea.hurried != nil
	})) &&
		(!p.punctual || p.answer.End.until(&e.sentAt) <= atOnce)
}

// wasQuiet reports whether nothing came in the second half of the time that the answer had asked for, but for what
// was in time for another answer, came behind a success of a caller that had waited, is of a caller that waited
// itself, as all did, or succeeded before one came right when the time was over, or came over another connection. One
// opened since is the same caller's, but not where that came back over the connection of the answer.
func (p *plea) wasQuiet() bool {
	first := p.line.first[p.next:] // the latest of them comes last
	half := p.answer.RetryAfter / 2
	firstHalf := p.answer.End.until(&p.hurried.sentAt) <= half
	n := sort.Search(len(first), func(i int) bool {
		return first[i].Epoch != p.answer.Epoch || p.spell.over > 0 && first[i].Arrival.Order > p.spell.over ||
			p.answer.End.until(&first[i].sentAt) >= p.answer.RetryAfter-precise
	})
	for n--; n >= 0 && p.answer.End.until(&first[n].sentAt) > half; n-- {
		e := first[n]
		waited := e.plea != nil && !p.spell.missed
		served := !firstHalf && p.prompt && !e.failed() && !p.isRegular()
		if p.connects(e) && (!p.home || e.Conn == p.answer.Conn) && !waited && !served {
			return false
		}
	}
	return true
}

// connects reports whether e came over the connection of the answer, or over one opened since, or a proxy hides that.
func (p *plea) connects(e *Exchange) bool {
	return e.Conn == p.answer.Conn || e.Opened.IsZero() || e.Opened.After(p.answer.End.Machine)
}

// line is the same request, time and again.
type line struct {
	session string
	all     []*Exchange // in order of arrival
	first   []*Exchange // requests that were not in time for any answer
	pleas   []*plea     // that may still be kept, oldest first
	owed    []*plea     // those for which no request has come in time, where each counts for the oldest
	burst   *burst      // the latest
	rested  bool        // it is not the first
	spell   *spell      // the latest
	ends    ends
	took    time.Duration
	refused *Exchange // the latest that was answered 401
	renewed *Exchange // the first with the newest token
	unsent  int       // so many of these have not been sent again with a new token
	ignored bool      // a request came too soon, and is told
}

// burst is requests without a break between them.
type burst struct {
	all     []*Exchange
	traffic *traffic // once somebody has asked for it
}

// spell is the requests up to a success that had waited.
type spell struct {
	restless bool        // something came in the second half of the time that an answer had asked for
	asked    []*Exchange // that were asked to wait
	missed   bool        // for one of these nothing came right when the time was over, or they are one caller's timer's
	over     int         // order of the arrival of that success; 0: none
}

// add takes the next request, and returns what its answer asks for, or nil.
func (l *line) add(e *Exchange) *plea {
	if l.burst == nil || l.ends.until(&e.Arrival) > apart {
		l.rested = l.burst != nil
		l.burst = new(burst)
	}
	l.burst.all = append(l.burst.all, e)
	l.ends.add(e)
	l.all = append(l.all, e)
	inTime := l.keep(e)
	if !inTime {
		l.first = append(l.first, e)
	} else if !e.failed() {
		l.spell.over = e.Arrival.Order
		l.spell = new(spell)
	}
	if e.isAccess() && (l.renewed == nil || e.Token.Generation > l.renewed.Token.Generation) {
		l.renewed = e
	}
	if l.isSentAgain(e) {
		l.unsent--
	} else {
		l.hurry(e, inTime)
	}
	if e.isAccess() && e.refused() {
		l.refused, l.unsent = e, l.unsent+1
	}
	l.count(e)
	if !e.received() || !e.failed() || e.RetryAfter == 0 {
		return nil
	}
	p := &plea{answer: e, line: l, at: len(l.all) - 1, next: len(l.first), burst: l.burst, spell: l.spell, slack: pause}
	e.plea, l.pleas, l.owed = p, append(l.pleas, p), append(l.owed, p)
	return p
}

// isSentAgain reports whether e may be one of the requests that were answered 401 and wait to be sent again: with the
// next token, in the five seconds from its issue and its first use.
func (l *line) isSentAgain(e *Exchange) bool {
	return l.unsent > 0 && e.isAccess() && e.Token.isOf(&e.Current.Pair) && !l.refused.Token.isOf(&e.Current.Pair) &&
		e.Arrival.Hub.Sub(e.Token.Issued) <= pause && l.renewed.Arrival.until(&e.Arrival) <= pause
}

// count counts e and the time that it took.
func (l *line) count(e *Exchange) {
	if e.took() <= late {
		l.took += e.took()
	}
	if len(l.owed) == 0 || !l.owed[0].answer.endedBefore(e) {
		return
	}
	asked := l.owed[0].answer
	if asked.End.until(&e.sentAt) >= asked.RetryAfter-tolerance {
		l.owed = l.owed[1:]
	}
}

// isSlow reports whether the requests waited for answers for most of the time, and one behind the other.
func (l *line) isSlow() bool {
	return !l.rested && l.took > stall && l.took > l.ends.quick.Machine.Sub(l.all[0].sentAt.Machine)/2
}

// keep reports whether e is the retry in time that one of the answers asked for: to a request with the same query and
// body, or else for which nobody has hurried (who tries at once and then in time has hurried), or else the latest.
func (l *line) keep(e *Exchange) bool {
	kept, best, over := -1, 0, 0
	for i, p := range l.pleas[:min(len(l.pleas), lookBack)] {
		switch {
		case p.answer.Epoch != e.Epoch || p.answer.End.until(&e.Arrival) > p.answer.RetryAfter+p.slack:
			if i == over {
				over++
			}
		case p.isDue(e):
			if n := p.suits(e); n >= best {
				kept, best = i, n
			}
		}
	}
	if kept >= 0 {
		p := l.pleas[kept]
		e.keeps, p.kept, p.again, p.home = p, true, e.asksFor(p.answer), e.Conn == p.answer.Conn
		delay := p.answer.End.until(&e.sentAt) - p.answer.RetryAfter
		p.punctual, p.prompt = delay <= max(apart, p.answer.RetryAfter/5), delay <= tolerance
		if p.again { // else that may be still to come
			l.pleas = slices.Delete(l.pleas, kept, kept+1)
		}
	}
	l.pleas = l.pleas[over:]
	return kept >= 0
}

// suits says how well e fits as the retry that the answer asked for: more is better, less than 0 is not at all.
func (p *plea) suits(e *Exchange) (n int) {
	switch {
	case e.asksFor(p.answer):
		n = 2
	case p.kept:
		return -1
	}
	if p.hurried == nil {
		n++
	}
	return n
}

// asksFor reports whether e has the same query and body as other. A client may change them for a retry.
func (e *Exchange) asksFor(other *Exchange) bool {
	return e.Query == other.Query && e.Body == other.Body
}

// isDue reports whether the time that the answer asked for was over when e came.
func (p *plea) isDue(e *Exchange) bool {
	early := tolerance
	if p.hurried != nil {
		early = precise
	}
	return p.answer.endedBefore(e) && p.answer.End.until(&e.Arrival) >= p.answer.RetryAfter-early
}

// hurry notes that e came sooner than the answer before it had asked for, if it did and is the first. It is excused if
// it is the retry in time for another answer.
func (l *line) hurry(e *Exchange, excused bool) {
	p := l.pleaBefore(e)
	if p == nil {
		return
	}
	p.hurried, p.strange, p.excused = e, !e.asksFor(p.answer), excused
	if p.burst != l.burst {
		p.slack = max(late, p.answer.RetryAfter/5)
	}
}

// pleaBefore returns the latest plea after whose answer e was certainly sent, and not by another client, or nil: of
// those to a request with the same query and body, if there are any. Nobody has hurried for it, or only one that asks
// for something else. A browser keeps its connections, so that a guest with another one is another client.
func (l *line) pleaBefore(e *Exchange) (latest *plea) {
	for i := len(l.pleas) - 1; i >= max(0, len(l.pleas)-lookBack); i-- {
		p := l.pleas[i]
		guest := p.answer.guest()
		if (p.hurried == nil || p.strange && e.asksFor(p.answer)) && !p.isDue(e) && e.follows(p.answer) &&
			(mayBeSame(p.answer, e) && (l.session != "" || !e.Browser || guest == nil || guest == e.guest()) ||
				l.session == "" && !e.Browser && e.client.guest && isSibling(p.answer, e)) {
			if e.asksFor(p.answer) {
				return p
			}
			latest = cmp.Or(latest, p)
		}
	}
	return latest
}
