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

// isInStep reports whether a row is of callers who began one shortly after the other, tried as often as each other,
// and paused as long: the distance between them stays, and is less than half of any pause, and less than twice the
// one before a try that succeeded. Chance may change that by a third, and those that grow. Each may have sent its
// first retry at once. They have tried three or four times or, if they are three or more and began with pauses,
// twice; five or more, who were then served, once. Five or more at regular distances may be one caller's. While the
// next try may still come, they need not have tried as often.
//
// served are the requests that succeeded right after the row.
func (c *trial) isInStep(row, served []*Exchange) bool {
	first := withoutRepeats(row)
	return c.areInStep(row, row, served) || len(first) < len(row) && c.areInStep(first, row, served)
}

// areInStep reports whether tries, those of a row or those of it that are no repeats, are of callers in step.
func (c *trial) areInStep(tries, row, served []*Exchange) bool {
	k := len(tries)
	begun := make([]time.Duration, k+len(served))
	for i, e := range slices.Concat(tries, served) {
		begun[i] = e.sentAt.Machine.Sub(row[0].sentAt.Machine)
	}
	paused := k > 1 && (tries[1].before == nil || tries[1].restSince(tries[1].before) > atOnce)
	for n := (k + chain - 2) / (chain - 1); n <= k; n++ {
		if k < len(row) && !eachRepeated(tries, row, n) || n >= chain && isRegular(tries[:n]) {
			continue
		}
		even, more := k%n == 0, 1 // that succeeded, in the same round or as one of its own
		if even {
			more = n
		}
		if len(served) >= more && (k >= 2*n || paused) && keepStep(begun[:k+more], n, k) {
			return true
		}
		if n*2 > k || !keepStep(begun[:k], n, k) {
			continue
		}
		if k > 3*n || even && (len(row) > 2*n || n >= chain || n > 2 && paused) {
			return true // one or the other may have tried once more
		}
		if left := min((begun[k-1]-begun[k-1-n])*5/2, pause) - row[len(row)-1].End.until(&c.now); left > 0 {
			c.verdict.Open = max(c.verdict.Open, left)
			return true
		}
	}
	return false
}

// eachRepeated reports whether the first tries of n callers, and of nobody else, were each repeated at once, and leave
// each fewer than five. The row has the repeats.
func eachRepeated(tries, row []*Exchange, n int) bool {
	if len(tries) == n {
		return len(row) == 2*n
	}
	return len(row) > 2*n && len(row) <= (chain-1)*n && tries[n] == row[2*n]
}

// keepStep reports whether requests that began at these times are of n callers in step. Those behind the first tries of
// them succeeded.
func keepStep(begun []time.Duration, n, tries int) bool {
	between, exact := 2*begun[n-1], idle/2
	if 2*n == tries {
		exact = idle / 4
	}
	grow := 2*n < tries && (begun[2*n]-begun[n])*4 >= begun[n]*5
	for i := n; i < len(begun); i++ {
		first := i - i%n // the first caller's try in this round
		waited, slack, rest := begun[first]-begun[first-n], exact, between
		if grow || i >= tries {
			slack = waited / 3
		}
		if i >= tries {
			rest = between / 4
		}
		if off := begun[i] - begun[i-n] - waited; off.Abs() > slack || begun[first]-begun[first-1] < max(idle, rest) {
			return false
		}
	}
	return n > 1 && (begun[n-1] <= apart || (grow || n >= chain) && begun[n-1] <= stall)
}

// withoutRepeats returns a row without what came at once behind another over its connection: some libraries send the
// first retry so.
func withoutRepeats(row []*Exchange) (first []*Exchange) {
	for i, e := range row {
		if i > 0 && first[len(first)-1] == row[i-1] && e.Conn == row[i-1].Conn && e.restSince(row[i-1]) <= atOnce {
			continue
		}
		first = append(first, e)
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
