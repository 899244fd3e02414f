// Lanes: the connections of a row of requests.

package judge

import (
	"slices"
	"sort"
	"time"
)

// findBeginnings finds when the client began each exchange: when it opened the connection, if it did so for it.
func findBeginnings(record []*Exchange) {
	open := make(map[int64]bool) // connections that have had a request
	for _, e := range record {
		e.began = e.sent().Machine
		if !open[e.Conn] && !e.Opened.IsZero() && e.began.Sub(e.Opened) <= apart {
			e.began = e.Opened
		}
		open[e.Conn] = true
	}
}

// isUnderWay reports whether e, which had begun before, had not been answered yet.
func (e *Exchange) isUnderWay(at time.Time) bool { return e.End.Order == 0 || e.End.Machine.After(at) }

// leftAt returns when e was sent or, if that was right behind the opening of its connection, when that was opened.
func (e *Exchange) leftAt() time.Time {
	if sent := e.sent().Machine; sent.Sub(e.began) > opening {
		return sent
	}
	return e.began
}

// opening is how long it takes at most to send a request over a connection that is opened for it.
const opening = 25 * time.Millisecond

// idle is how long a connection rests, at the least, that no caller waits for.
const idle = 40 * time.Millisecond

// atOnce is how long a client takes at most that sends the next request as soon as it has an answer.
const atOnce = 3 * time.Millisecond

// lane is a connection over which a part of a row came, or several that followed one another.
type lane struct {
	last  *Exchange // to end, so far
	burst streak    // requests before it was idle (idle)
	run   streak    // requests before it rested for long (apart)
	loop  int       // requests from the first on that came at once (atOnce)
	slow  bool      // one did not
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

// lanesOf returns the lanes of a row, and how many of its requests were under way together with another, or came over
// a connection that took turns with others after some had been. A single caller may take turns with two connections
// that are opened at the same time, but never sends two requests at a time.
func lanesOf(row []*Exchange) (lanes []*lane, beside, turns int) {
	row = slices.Clone(row)
	sort.SliceStable(row, func(i, j int) bool { return row[i].leftAt().Before(row[j].leftAt()) })
	byConn, uses := make(map[int64]*lane), make(map[int64]int) // uses of a connection that are still to come
	for _, e := range row {
		uses[e.Conn]++
	}
	shared, together := make(map[*Exchange]bool), false // some were sent while others were under way
	for i, e := range row {
		l := byConn[e.Conn]
		again := l != nil
		for _, other := range lanes {
			switch {
			case other == l:
			case other.last.isUnderWay(e.leftAt()):
				shared[e], shared[other.last] = true, true
				together = together || other.last.isUnderWay(e.sent().Machine)
			case again || uses[other.last.Conn] > 0:
			case l == nil || other.last.End.Machine.Before(l.last.End.Machine):
				l = other
			}
		}
		if l == nil {
			l = new(lane)
			lanes = append(lanes, l)
		}
		if again && e.Conn != row[i-1].Conn && together && !shared[e] {
			turns++
		}
		byConn[e.Conn] = l
		uses[e.Conn]--
		l.add(e)
	}
	return lanes, len(shared), turns
}

func (l *lane) add(e *Exchange) {
	var rested time.Duration
	if l.last != nil {
		rested = e.leftAt().Sub(l.last.End.Machine)
	}
	l.burst.add(rested > idle)
	l.run.add(rested > apart)
	if l.slow = l.slow || rested > atOnce; !l.slow {
		l.loop++
	}
	if l.last == nil || e.End.Machine.After(l.last.End.Machine) {
		l.last = e
	}
}
