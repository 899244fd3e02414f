// Rhythm: what the times of a row tell of how many callers sent it.

package judge

import (
	"slices"
	"time"
)

// roundsOf returns how many requests a row has each time that it goes on after nothing of it was under way for some
// time (apart). Callers that wait in a queue come without a break.
func roundsOf(row []*Exchange) []int {
	rounds, end := []int{1}, row[0].End
	for _, e := range row[1:] {
		if end.until(&e.sentAt) > apart {
			rounds = append(rounds, 0)
		}
		rounds[len(rounds)-1]++
		if e.End.Order > end.Order {
			end = e.End
		}
	}
	return rounds
}

// isInStep reports whether callers in step tried five times each: as many requests came in each round but the first, two
// or more, after rests that stay the same or grow.
func isInStep(row []*Exchange, rounds []int) bool {
	if len(rounds) < chain || rounds[1] < 2 || len(row) < chain*rounds[1] {
		return false
	}
	rests, next := make([]time.Duration, len(rounds)-1), 0 // next: index in row of the first of a round
	for i, count := range rounds[1:] {
		next += rounds[i]
		if count != rounds[1] {
			return false
		}
		rests[i] = row[next-1].End.until(&row[next].sentAt)
	}
	return isOfOne(rests)
}

// isStaggered reports whether a row may be of callers who began one shortly after the other (beginners), and tried
// fewer than five times each: what came next, until each had tried twice, was not sent at the pauses of one (isOfOne),
// nor of one that its machine held up once (isStall), but for those who tried twice each.
//
// Of what succeeded after the row, requests with a query and body of the row count as tries, until each caller has
// tried twice. Five or more are taken for callers only when each has done so.
func (c *trial) isStaggered(row []*Exchange) bool {
	if row[0].Code == "invalid_credentials" {
		return false // a page has one form for a password
	}
	all, served := slices.Clone(row), c.served(row, pause)
	for _, e := range served {
		if slices.ContainsFunc(row, e.asksFor) {
			all = append(all, e)
		}
	}
	pauses := pausesOf(all)
	steady := slices.Clone(pauses) // what was sent again by itself, as soon as it was cut, is no pause
	for i := 1; i < len(pauses); i++ {
		if all[i].isCut() && pauses[i] <= Idle/4 {
			steady[i] = steady[i-1]
		}
	}
	for n := min(len(row), len(all)-1, 2*mostBeginners); n > 1; n-- {
		callers := c.beginners(all, pauses, n)
		if callers == 0 || len(row) >= chain*n {
			continue
		}
		twice := max(chain+1, 2*n)
		known := min(len(all), twice)
		held := isStall(pauses, n-1) && len(all) != 2*n
		if !held && !isOfOne(steady[n-1:known-1]) && (n < chain || known >= n+callers) {
			return true
		}
		if left := min(pauses[n-1], reaction) - all[len(all)-1].End.until(&c.now); left > 0 && known < twice {
			c.verdict.Open = max(c.verdict.Open, left)
			return true
		}
	}
	return areBeginners(row, pauses[:len(row)-1]) ||
		c.isScattered(row) && len(served) == 0 && !c.isPast(row[len(row)-1].End) // they may try again
}

// mostBeginners is how many requests, one a little after the other, may be of as many callers.
const mostBeginners = 2*chain - 1

// beginners returns how many callers may have sent the first n of these requests, or 0. They came within 250 ms
// (stall), each within 100 ms of the one before (apart), and then nothing for half as long again at the least, nor did
// one caller's other work keep the connection busy. Behind little pauses, with the first no longer under way, nothing
// came for 250 ms to two seconds. Five or more (mostBeginners) came at distances by chance, or each was repeated at
// once. Without that, what came at once is one caller's, but for pairs.
func (c *trial) beginners(all []*Exchange, pauses []time.Duration, n int) int {
	spread, widest, least := all[0].sentAt.until(&all[n-1].sentAt), slices.Max(pauses[:n-1]), Idle
	little := widest <= Idle/4 && all[0].endedBefore(all[n-1])
	if little {
		least = stall
	}
	callers, repeated := 1, n%2 == 0
	for i, pause := range pauses[:n-1] {
		if pause > atOnce || !all[i].endedBefore(all[i+1]) {
			callers++
		}
		repeated = repeated && (pause <= atOnce) == (i%2 == 0)
	}
	arePairs := n == 2 && len(pauses) > 3 && pauses[2] <= Idle/4 && pauses[3] > Idle
	switch {
	case spread > stall, widest > apart, pauses[n-1] < max(least, spread*3/2), little && pauses[n-1] > reaction && len(all) < 3*n:
		return 0 // too far apart, or the next one too soon or too late
	case all[n-1].isBusyUntil(all[n]):
		return 0 // it was no rest
	case callers == 1 && !arePairs, n >= chain && !repeated && (n > mostBeginners || !c.isScattered(all[:n])):
		return 0 // one caller's
	}
	return callers
}

// isStall reports whether one pause is the time for which a machine held up a loop: all others are as long as the
// first, but for a quarter.
func isStall(pauses []time.Duration, one int) bool {
	for i, now := range pauses {
		if i != one && (now-pauses[0]).Abs() > max(2*atOnce, pauses[0]/4) {
			return false
		}
	}
	return pauses[one] < stall
}

// isBusyUntil reports whether the client did other work over the connection of next, without a rest (Idle), since e.
func (e *Exchange) isBusyUntil(next *Exchange) bool {
	for next.Arrival.Order > e.Arrival.Order {
		if next.before == nil || next.restSince(next.before) > Idle || next.isLike(e) && next.before.isLike(e) {
			return false
		}
		next = next.before
	}
	return true
}

// isScattered reports whether requests, five or more, were sent within 250 ms (stall) at distances by chance, as by
// callers who begin one shortly after the other: some came sooner than the one before, but not all with little pauses.
// The time that other failures of the client took meanwhile is no pause.
func (c *trial) isScattered(row []*Exchange) bool {
	if len(row) < chain || row[0].sentAt.until(&row[len(row)-1].sentAt) > stall {
		return false
	}
	pauses := pausesOf(row)
	i := 0 // of the pause that is going on
	for _, other := range c.record[c.after(row[0]):] {
		switch {
		case i == len(pauses):
		case other == row[i+1]:
			i++
		case other.client == row[i].client && other.failed() && row[i].endedBefore(other) && other.endedBefore(row[i+1]):
			pauses[i] = max(0, pauses[i]-other.took())
		}
	}
	return slices.Max(pauses) > Idle/4 && shrink(pauses, 0, atOnce)
}

// pausesOf returns how long it was by the machine's clock, before each request of a row but the first, since the one
// before it had been answered.
func pausesOf(row []*Exchange) []time.Duration {
	pauses := make([]time.Duration, len(row)-1)
	for i, e := range row[1:] {
		pauses[i] = max(0, e.leftAt().Sub(row[i].End.Machine))
	}
	return pauses
}

// isOfOne reports whether one caller may pause so: as long each time as before, but for a quarter, or longer.
func isOfOne(pauses []time.Duration) bool {
	return !shrink(pauses, 1, Idle/2)
}

// shrink reports whether one of these pauses is shorter than the one before, by more than so many quarters of that and
// by more than slack.
func shrink(pauses []time.Duration, quarters, slack time.Duration) bool {
	for i := 1; i < len(pauses); i++ {
		if before := pauses[i-1]; before-pauses[i] > max(slack, before*quarters/4) {
			return true
		}
	}
	return false
}

// isTimer reports whether these pauses are the same, as by one caller's timer, but for a few of them. Requests side by
// side have none.
func isTimer(pauses []time.Duration) bool {
	off := 0
	for _, now := range pauses {
		if (now - pauses[0]).Abs() > min(Idle/2, pauses[0]/4) {
			off++
		}
	}
	return len(pauses) > 0 && pauses[0] > 0 && off*3 < len(pauses)
}

// areBeginners reports whether five or more requests (mostBeginners) within 250 ms (stall), with a connection for each,
// may be of as many programs that each tried once: two came side by side, or their pauses are not about the same; nor is
// each half as long again as the one before.
func areBeginners(row []*Exchange, pauses []time.Duration) bool {
	if len(row) < chain || len(row) > mostBeginners || row[0].sentAt.until(&row[len(row)-1].sentAt) > stall {
		return false
	}
	beside, grows := false, true
	for i, e := range row {
		if !e.isSingle() {
			return false
		}
		beside = beside || i > 0 && !row[i-1].endedBefore(e)
		grows = grows && (i < 2 || pauses[i-1] >= pauses[i-2]*3/2)
	}
	return !grows && (beside || !isSteady(pauses))
}

// isSteady reports whether most of these pauses are about the same, as one caller's are that its machine holds up now
// and then.
func isSteady(pauses []time.Duration) bool {
	sorted, off := slices.Clone(pauses), 0
	slices.Sort(sorted)
	middle := sorted[len(sorted)/2]
	for _, now := range pauses {
		if (now - middle).Abs() > max(atOnce, middle/4) {
			off++
		}
	}
	return off*3 <= len(pauses)
}

// isBusyPoll reports whether these pauses are of one caller's timer, and longer than any queue's (10 ms).
func isBusyPoll(pauses []time.Duration) bool { return isTimer(pauses) && slices.Min(pauses) > Idle/4 }

// isBackoff reports whether these pauses are of one caller, who waits longer each time, up to a limit. Its first retry
// may have come at once.
func isBackoff(pauses []time.Duration) bool {
	return len(pauses) > 1 && pauses[1] >= Idle/4 && pauses[len(pauses)-1] > apart && isOfOne(pauses)
}
