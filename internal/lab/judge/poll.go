// Polls: whose tick it is that comes sooner than an answer has asked for with Retry-After.

package judge

import (
	"slices"
	"time"
)

// isOfTick reports whether the request that came too soon is of another caller with a timer of its own, who came as
// long behind the first at another time, too, although that was served: within 250 ms (stall), and with rests of twice
// as long before and after. The first has rested before, too, or is another of the tick.
func (p *plea) isOfTick() bool {
	gap := p.answer.sentAt.until(&p.hurried.sentAt)
	if gap > stall {
		return false
	}
	all := p.line.all
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

// isEven reports whether the request that came too soon is one of a poll that goes on as before: as long behind the
// answer as that behind the request before, and the next behind it, and waited in no queue. Two callers would not take
// turns so evenly.
func (p *plea) isEven() bool {
	l, i := p.line, p.at
	if i < 1 || i+2 >= len(l.all) || l.all[i+1] != p.hurried || p.hurried.waited {
		return false
	}
	gap := l.gapBefore(i + 1)
	return gap > stall && (l.gapBefore(i)-gap).Abs() <= tolerance && (l.gapBefore(i+2)-gap).Abs() <= tolerance
}

// isRegular reports whether the requests around the answer came at the distances of one poll.
func (p *plea) isRegular() bool {
	l := p.line
	for i := max(1, p.at); i < p.at+2 && i+1 < len(l.all); i++ {
		if gap := l.gapBefore(i); (gap - l.gapBefore(i+1)).Abs() <= max(2*atOnce, gap/4) {
			return true
		}
	}
	return false
}

// withoutPoll looks for the request that came too soon behind those of a poll which goes on beside the caller that was
// asked to wait, or of a caller that comes as long behind it each time.
func (p *plea) withoutPoll() {
	if p.hurried == nil {
		return
	}
	all := p.line.all
	known := slices.Clone(all[max(0, p.at-ticks):p.at]) // and the latest that are another caller's
	first, pair := len(known), time.Duration(0)
	for i := p.at + 1; i < len(all) && p.answer.End.until(&all[i].sentAt) < p.answer.RetryAfter-tolerance; i++ {
		e := all[i]
		if pair > 0 && p.line.gapBefore(i) <= 2*pair {
			break
		}
		isTick := e == p.hurried && p.isOfTick()
		if isTick {
			pair = p.answer.sentAt.until(&e.sentAt)
		}
		switch {
		case isTick || p.isOfPoll(e, known):
			known = append(known, e)
			if len(known) > first+ticks {
				known = append(known[:first], known[first+1:]...)
			}
		case e == p.hurried:
			return
		case len(known) > first && e.follows(p.answer) && mayBeSame(p.answer, e) && e.keeps == nil:
			p.hurried, p.strange, p.excused = e, !e.asksFor(p.answer), false
			return
		}
	}
	if len(known) > first {
		p.hurried = nil
	}
}

// ticks is how many requests before and behind the answer are looked at for those of a poll.
const ticks = 20

// isOfPoll reports whether e is of a poll that is being served and had begun before the answer, and of which that is no
// tick: of the known requests one came before e, and one as long before that. Where they also came as long before the
// answer as e behind it, that poll is a quicker one, or else e is of the one who was asked.
func (p *plea) isOfPoll(e *Exchange, known []*Exchange) bool {
	if e.failed() || len(known) == 0 {
		return false
	}
	came := func(at, gap time.Duration) bool { // so long before the answer, as far as a timer keeps gap
		return slices.ContainsFunc(known, func(other *Exchange) bool {
			return !other.failed() && (other.sentAt.until(&p.answer.sentAt)-at).Abs() <= max(2*atOnce, min(gap/20, Idle/2))
		})
	}
	own := p.answer.sentAt.until(&e.sentAt)
	isOwn := came(own, own) && (came(2*own, own) || known[0].sentAt.until(&p.answer.sentAt) < 2*own)
	for _, other := range known {
		gap := other.sentAt.until(&e.sentAt)
		if gap > Idle && !other.failed() && came(2*gap-own, gap) && !(isOwn && gap*4 > own*3) {
			return true
		}
	}
	return false
}
