// Polls: whose tick it is that comes sooner than an answer has asked for with Retry-After, and who goes on as before.

package judge

import (
	"slices"
	"time"
)

// isOfPair reports whether e is of another caller with a timer of its own, who came as long behind the one who was asked
// at another time, too, although that was served: within 250 ms (stall), and with rests of twice as long before and
// after.
func (p *plea) isOfPair(e *Exchange) bool {
	gap := p.answer.sentAt.until(&e.sentAt)
	all := p.line.all
	if gap > stall || all[p.at+1] != e {
		return false
	}
	rests := func(i int) bool { return i == 0 || i >= len(all) || p.line.gapBefore(i) > 2*gap }
	if !rests(p.at) && all[p.at-1].plea == nil && !all[p.at-1].refused() { // of a 401 the answer is the second try
		return false
	}
	for i, e := range all[1:] {
		first, between := all[i], p.line.gapBefore(i+1)
		if !first.failed() && first.endedBefore(e) && (between-gap).Abs() <= max(atOnce, gap/4) && rests(i) && rests(i+2) {
			return true
		}
	}
	return false
}

// gapBefore returns how long after the one before it a request of the line was sent.
func (l *line) gapBefore(i int) time.Duration { return l.all[i-1].sentAt.until(&l.all[i].sentAt) }

// ticks is how many requests before the answer are looked at for those of a poll.
const ticks = 20

// isOfPoll reports whether e is of a poll that is being served and had begun before the answer, and of which that is no
// tick: a request came some time before the answer, and two as long before that as e behind it. But where they came as
// long before the answer as e behind it, twice, e is of the one who was asked.
func (p *plea) isOfPoll(e *Exchange, known []*Exchange) bool {
	if e.failed() || len(known) == 0 {
		return false
	}
	came := func(before, gap time.Duration) bool { // so long before the answer, by a timer of this gap
		return slices.ContainsFunc(known, func(other *Exchange) bool {
			return !other.failed() && (other.sentAt.until(&p.answer.sentAt)-before).Abs() <= timing(gap)
		})
	}
	own := p.answer.sentAt.until(&e.sentAt)
	if came(own, own) && (came(2*own, own) || known[0].sentAt.until(&p.answer.sentAt) < 2*own) {
		return false
	}
	return slices.ContainsFunc(known, func(other *Exchange) bool {
		gap := other.sentAt.until(&e.sentAt)
		return gap > Idle && !other.failed() && came(2*gap-own, gap) && came(3*gap-own, gap)
	})
}

// goesOn reports whether e and what came before and behind it are the tries of one caller, who goes on in an even rhythm,
// of which the request in time is a part: four at the least, and two before the answer if other requests came between.
// Jobs that a ticker starts begin in an even rhythm, too, and one that waits comes back to the moment: as long behind the
// answer as it asked, while the ticker goes by when that request was sent.
func (p *plea) goesOn(e *Exchange) bool {
	gap, pause, all := p.answer.sentAt.until(&e.sentAt), p.answer.End.until(&e.sentAt), p.line.all
	if pause <= Idle || e.since <= p.answer.Arrival.Order {
		return false
	}
	at := slices.Index(all, e)
	first, last, n := p.at, at, 2
	for i := p.line.step(first, -1, gap, pause); i >= 0 && n < 4; i = p.line.step(i, -1, gap, pause) {
		first, n = i, n+1
	}
	isBefore := n == 4
	for all[last] != p.kept {
		if last = p.line.step(last, 1, gap, pause); last < 0 {
			return false
		}
		n++
	}
	if p.line.near(last, gap) > p.line.near(p.at, gap) {
		return false // there is another one that may be of the rhythm
	}
	if next := p.line.step(last, 1, gap, pause); next >= 0 && n < 4 {
		last, n = next, n+1
	}
	if next := p.line.step(at, 1, gap, pause); next >= 0 && p.lateness(p.kept) <= atOnce {
		if between := e.sentAt.until(&all[next].sentAt); e.plea != nil || (between-gap).Abs()+atOnce < (between-pause).Abs() {
			return false
		}
	}
	return n >= 4 && (isBefore || last-first == n-1)
}

// step returns the index of the request next to that at i, before it (-1) or behind it (1), that came as long before or
// after it as gap, from its beginning, or pause, from its end; -1 if there is none.
func (l *line) step(i, by int, gap, pause time.Duration) int {
	for next := i + by; next >= 0 && next < len(l.all); next += by {
		a, b := l.all[min(i, next)], l.all[max(i, next)]
		between := a.sentAt.until(&b.sentAt)
		if (between-gap).Abs() <= timing(gap) || (a.End.until(&b.sentAt)-pause).Abs() <= timing(gap) {
			return next
		}
		if between > 2*gap {
			break
		}
	}
	return -1
}

// near returns how many of the three requests before and behind that at i came at the same time, by a timer of this gap.
func (l *line) near(i int, gap time.Duration) (n int) {
	for _, other := range l.all[max(0, i-3):min(len(l.all), i+4)] {
		if l.all[i].sentAt.until(&other.sentAt).Abs() <= timing(gap) {
			n++
		}
	}
	return n
}

// timing is how exactly a client's timer keeps a time.
func timing(d time.Duration) time.Duration { return max(2*atOnce, min(d/20, Idle/2)) }
