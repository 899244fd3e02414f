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

// isInStep reports whether a row may be of callers who began one shortly after the other, and tried fewer than five
// times each. Their first tries came within 250 ms (stall), at irregular distances if they are five or more, and then
// nothing for half as long again at the least, nor did one caller's other work keep the connection busy. Of what came
// later, one came sooner behind another than that had behind the one before (comesSooner). Each caller may have sent its
// first retry at once.
//
// served are the requests that succeeded right after the row. They count until each caller has tried twice, and that
// have callers who are five or more: else these are tries of one.
func (c *trial) isInStep(row, served []*Exchange) bool {
	tries := withoutRepeats(row)
	k := len(tries)
	all := slices.Concat(tries, served)
	begun := begunAt(all)
	for n := min(k, len(begun)-1); n > 1; n-- {
		spread, next := begun[n-1], all[n]
		if len(row) >= chain*n || all[n-1].isBusyUntil(next) || spread > stall || begun[n]-spread < max(idle, spread*3/2) || n >= chain && isRegular(tries[:n]) {
			continue
		}
		known := begun[:min(len(begun), max(k, 2*n))]
		if comesSooner(known[n-1:]) && (n < chain || len(known) >= 2*n) {
			return true
		}
		if left := 2*spread - row[len(row)-1].End.until(&c.now); left > 0 && k < 2*n {
			c.verdict.Open = max(c.verdict.Open, left)
			return true
		}
	}
	return false
}

// isBusyUntil reports whether the client did other work over the connection of next, without a rest (idle), since e.
func (e *Exchange) isBusyUntil(next *Exchange) bool {
	for next.Arrival.Order > e.Arrival.Order {
		if next.before == nil || next.restSince(next.before) > idle || next.isLike(e) && next.before.isLike(e) {
			return false
		}
		next = next.before
	}
	return true
}

// isScattered reports whether requests, five or more, were sent within 250 ms (stall) at distances by chance, as by
// callers who begin one shortly after the other.
func isScattered(row []*Exchange) bool {
	begun := begunAt(withoutRepeats(row))
	return len(begun) >= chain && begun[len(begun)-1] <= stall && comesSooner(begun)
}

// begunAt returns when each request was sent, from the first on.
func begunAt(row []*Exchange) []time.Duration {
	begun := make([]time.Duration, len(row))
	for i, e := range row {
		begun[i] = e.sentAt.Machine.Sub(row[0].sentAt.Machine)
	}
	return begun
}

// comesSooner reports whether one of these came sooner behind the one before, by a quarter at the least, than that had.
// One caller pauses as long each time, or longer.
func comesSooner(begun []time.Duration) bool {
	for i := 2; i < len(begun); i++ {
		now, before := begun[i]-begun[i-1], begun[i-1]-begun[i-2]
		if now*4 < before*3 && before-now > 2*atOnce {
			return true
		}
	}
	return false
}

// withoutRepeats returns a row without what came at once behind another over its connection: some libraries send the
// first retry so.
func withoutRepeats(row []*Exchange) (first []*Exchange) {
	for i, e := range row {
		if i == 0 || e.Conn != row[i-1].Conn || e.restSince(row[i-1]) > atOnce {
			first = append(first, e)
		}
	}
	return first
}

// isRegular reports whether all these requests were sent at the same distances.
func isRegular(row []*Exchange) bool { return offBeat(row, atOnce) == 0 }

// isTimer reports whether requests, enough for a chain with one before them, were sent at the same intervals, as by one
// caller's timer, but for a few of them.
func isTimer(row []*Exchange) bool {
	if len(row) < chain-1 {
		return false
	}
	return offBeat(row, min(idle/2, row[1].sentAt.Machine.Sub(row[0].sentAt.Machine)/4))*3 < len(row)-1
}

// offBeat counts the requests whose distance to the one before them differs by more than slack from the first distance.
func offBeat(row []*Exchange, slack time.Duration) (n int) {
	first := row[1].sentAt.Machine.Sub(row[0].sentAt.Machine)
	for i, e := range row[1:] {
		if (e.sentAt.Machine.Sub(row[i].sentAt.Machine) - first).Abs() > slack {
			n++
		}
	}
	return n
}

// isBackoff reports whether one caller sent a row, who pauses longer each time. Its first retry may have come at once.
func isBackoff(row []*Exchange) bool {
	var paused time.Duration
	for i, e := range row[1:] {
		rested := e.restSince(row[i])
		if i > 0 && rested < max(idle/4, paused*6/5) {
			return false
		}
		paused = rested
	}
	return paused > apart
}
