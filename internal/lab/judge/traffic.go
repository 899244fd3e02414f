// Traffic: a row of requests, and the connections over which it came.

package judge

import (
	"slices"
	"sort"
	"time"
)

// comesAfter finds when e was sent, and when the client began it: when it opened the connection, if it did so for it;
// and whether e may have waited for its connection. before is what came last over that, or nil.
func (e *Exchange) comesAfter(before *Exchange) {
	e.before, e.free = before, e.End
	e.sentAt = e.Arrival
	if !e.Sent.IsZero() {
		e.sentAt.Hub, e.sentAt.Machine = e.Arrival.Hub.Add(e.Sent.Sub(e.Arrival.Machine)), e.Sent
	}
	e.began = e.sentAt.Machine
	if before == nil && !e.Opened.IsZero() && e.began.Sub(e.Opened) <= apart {
		e.began = e.Opened
	}
	e.since = e.Arrival.Order
	if e.waited = before != nil && e.restSince(before)-e.usedSince(before) <= Idle; e.waited {
		e.since = before.since
	}
}

// isUnderWay reports whether e, which had begun before, had not been answered yet.
func (e *Exchange) isUnderWay(at time.Time) bool { return e.End.Order == 0 || e.End.Machine.After(at) }

// leftAt returns when e was sent or, if that was right behind the opening of its connection, when that was opened.
func (e *Exchange) leftAt() time.Time {
	if sent := e.sentAt.Machine; sent.Sub(e.began) > opening {
		return sent
	}
	return e.began
}

// restSince returns how long it was from the end of before until e was sent, with what a test advanced the hub's clock.
func (e *Exchange) restSince(before *Exchange) time.Duration {
	advanced := e.Arrival.Hub.Sub(before.End.Hub) - e.Arrival.Machine.Sub(before.End.Machine)
	return e.leftAt().Sub(before.End.Machine) + max(0, advanced)
}

// usedSince returns for how long other namespaces have used the connection without a rest since before; 0 if it rested.
func (e *Exchange) usedSince(before *Exchange) time.Duration {
	if e.Busy.IsZero() || e.Busy.After(before.Arrival.Machine) {
		return 0
	}
	return e.leftAt().Sub(before.End.Machine)
}

// opening is how long it takes at most to send a request over a connection that is opened for it.
const opening = 25 * time.Millisecond

// Idle is how long a connection rests, at the least, that no caller waits for.
const Idle = 40 * time.Millisecond

// atOnce is how long a client takes at most that sends the next request as soon as it has an answer.
const atOnce = 3 * time.Millisecond

// traffic is a row and how it came.
type traffic struct {
	row      []*Exchange
	lanes    []*lane
	beside   int  // requests that were under way together with another
	most     int  // requests under way at one time, of the first ones
	turns    int  // requests over a connection that took turns with others after some had been under way together
	rests    int  // requests over a connection that had rested (Idle)
	mayQueue bool // the callers may have waited for one another in a browser
}

const (
	browser = 6  // connections that a browser opens to one host
	queue   = 60 // callers on its page at most that wait for one of them
)

// trafficOf returns how a row came. In a browser callers may wait for one another while a page uses all connections
// that a browser opens to a host, and for the same GET, of which Chromium sends one at a time, since the answer to one
// may serve the others from the cache. But where the first ones, and most of all, came after a rest nobody waited.
func trafficOf(row []*Exchange) *traffic {
	t := &traffic{row: row}
	t.cut()
	t.mayQueue = row[0].Browser && !t.isApart() && (row[0].Method == "GET" || len(t.lanes) >= browser)
	return t
}

// isApart reports whether the second request did not wait together with the first: it came behind a refresh for that,
// or after a rest, as most did.
func (t *traffic) isApart() bool {
	if len(t.row) == 1 {
		return true
	}
	first, e := t.row[0], t.row[1]
	return e.before != nil && e.before.isRefresh() && first.endedBefore(e.before) ||
		t.isRested() && e.restSince(first) > Idle
}

// cut finds the lanes of a row, those that were side by side, and those that took turns. A single caller may take turns
// with two connections that are opened at the same time, but never sends two requests at a time.
func (t *traffic) cut() {
	row := slices.Clone(t.row)
	sort.SliceStable(row, func(i, j int) bool { return row[i].leftAt().Before(row[j].leftAt()) })
	byConn, last := make(map[int64]*lane), make(map[int64]*Exchange) // over each connection
	for _, e := range row {
		last[e.Conn] = e
	}
	shared, together := make(map[*Exchange]bool), false // some were sent while others were under way
	for i, e := range row {
		l := byConn[e.Conn]
		again, underWay := l != nil, 1
		for _, other := range t.lanes {
			switch {
			case other == l:
			case other.last.isUnderWay(e.leftAt()):
				shared[e], shared[other.last] = true, true
				underWay++
				together = together || other.last.isUnderWay(e.sentAt.Machine)
			case again || other.last != last[other.last.Conn]: // there is more to come over that
			case l == nil || other.last.End.Machine.Before(l.last.End.Machine):
				l = other
			}
		}
		if l == nil {
			l = new(lane)
			t.lanes = append(t.lanes, l)
		}
		if again && e.Conn != row[i-1].Conn && together && !shared[e] {
			t.turns++
		}
		if underWay >= i && underWay > t.most { // one may have come ahead of them
			t.most = underWay
		}
		byConn[e.Conn] = l
		if l.add(e) {
			t.rests++
		}
	}
	t.beside = len(shared)
}

// isRested reports whether most requests came over a connection that had rested, so that they waited for none.
func (t *traffic) isRested() bool { return t.rests*2 > len(t.row) }

// isSideBySide reports whether most requests came at the same time as others, or over connections that took turns after
// some had. A client with one caller may change between connections as well, but never uses two at a time.
func (t *traffic) isSideBySide() bool { return (t.beside+t.turns)*2 > len(t.row) }

// hasLoops reports whether callers side by side tried five times each: they waited for none, and are too few.
func (t *traffic) hasLoops() bool {
	return t.isSideBySide() && t.isRested() && len(t.row) >= chain*t.callers()
}

// isTogether reports whether the row may be of several callers, who came side by side or in a browser's queue.
func (t *traffic) isTogether() bool { return t.mayQueue || t.isSideBySide() }

// isBusy reports whether the requests kept the connections busy as several callers do.
func (t *traffic) isBusy() bool { return !t.isRested() && (t.isTogether() || t.isQueue()) }

// isOfMany reports whether callers began together, with fewer than five tries each on the whole: five or more, or some
// whose tries came at pauses (pausesOf) that change by chance, as no single one's do (isOfOne).
func (t *traffic) isOfMany(pauses []time.Duration) bool {
	return len(t.row) < chain*t.most && (t.most >= chain || !isOfOne(pauses[t.most-1:]))
}

// isQueue reports whether ten requests or more came over one connection that did not rest, but for a refresh.
func (t *traffic) isQueue() bool {
	return slices.ContainsFunc(t.lanes, func(l *lane) bool { return l.queue.longest >= 2*chain })
}

// comesBack reports whether half of a row, or more, are of callers who wait as the answers ask: ten at most in the time
// that these ask for, where they did not queue.
func (t *traffic) comesBack() bool {
	kept, wait := 0, longestWait(t.row)
	for _, e := range t.row {
		if e.plea != nil && e.plea.kept != nil && e.plea.hurried == nil {
			kept++
		}
	}
	span := max(wait, t.row[0].sentAt.until(&t.row[len(t.row)-1].sentAt))
	return kept*2 >= len(t.row) && !(t.isRested() && time.Duration(len(t.row))*wait > 2*chain*span)
}

// callers returns how many callers at most sent a row that came together: as many as its requests over each connection
// before that was idle, since no caller waits for an idle one. Five or more are tries of those that waited at first
// (lane.waited). In a browser they may be others that waited behind it, unless they are more than any page has (queue),
// and so may be what came, not all without a rest, over connections with one request each.
// It is 0 where a connection's first requests, five or more, came at once one after the other: a loop, whatever is
// beside it. Among eight times as many that may be chance.
func (t *traffic) callers() (n int) {
	for _, l := range t.lanes {
		most := chain - 1
		if t.mayQueue || l.mixed && l.burst.longest < l.count {
			most = queue
		}
		switch {
		case l.loop > most && l.loop*8 > len(t.row):
			return 0
		case l.run.longest > most:
			n += l.waited()
		default:
			n += l.burst.longest
		}
	}
	return n
}

// lane is a connection over which a part of a row came, or several that followed one another.
type lane struct {
	last  *Exchange     // to end, so far
	mixed bool          // some of its connections had no other request
	count int           // requests
	burst streak        // requests before it was idle (Idle)
	queue streak        // requests before that, where a refresh is no rest
	run   streak        // requests before it rested for long (apart)
	loop  int           // requests from the first on that came at once (atOnce)
	pause time.Duration // after these
}

// waited returns how many callers a lane had at first: more than one if a few requests came at once, and then none.
func (l *lane) waited() int {
	if l.pause > Idle && l.loop < chain {
		return l.loop
	}
	return 1
}

// streak counts requests in a row.
type streak struct{ now, longest int }

// add counts one more, which begins a new row if that before it is broken.
func (s *streak) add(broken bool) {
	if broken {
		s.now = 0
	}
	s.now++
	s.longest = max(s.longest, s.now)
}

// add adds e to end the lane, and reports whether that had rested.
func (l *lane) add(e *Exchange) bool {
	var rested time.Duration
	l.count++
	if l.last != nil {
		l.mixed = l.mixed || e.isSingle() && l.last.isSingle()
		rested = e.restSince(l.last)
	}
	l.burst.add(rested > Idle)
	l.queue.add(rested > Idle && !(e.before != nil && e.before.isRefresh() && e.restSince(e.before) <= Idle))
	l.run.add(rested > apart)
	switch {
	case l.pause > 0:
	case rested > atOnce:
		l.pause = rested
	default:
		l.loop++
	}
	if l.last == nil || e.End.Machine.After(l.last.End.Machine) {
		l.last = e
	}
	return rested > Idle
}
