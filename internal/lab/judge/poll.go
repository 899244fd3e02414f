// Polls: whose tick it is that comes sooner than an answer has asked for with Retry-After.

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
