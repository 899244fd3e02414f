// Rhythm: what the times of a row tell of how many callers sent it.

package judge

import "time"

// roundsOf returns how many requests a row has each time that it goes on after nothing of it was under way for some
// time (apart). Callers that wait in a queue come without a break.
func roundsOf(row []*Exchange) []int {
	rounds, end := []int{1}, row[0].End
	for _, e := range row[1:] {
		if end.until(e.sent()) > apart {
			rounds = append(rounds, 0)
		}
		rounds[len(rounds)-1]++
		if e.End.Order > end.Order {
			end = e.End
		}
	}
	return rounds
}

// isInStep reports whether a row is of callers who began one shortly after the other, tried as often as each other, three
// or four times or, if they are five or more, twice, and paused as long, or by chance up to a third longer or shorter
// where the pauses grow: the distance between them stays, and is less than half of any pause. Five or more at regular
// distances may be one caller's. While the next try may still come, they need not have tried as often.
func (c *trial) isInStep(row []*Exchange) bool {
	begun := make([]time.Duration, len(row))
	for i, e := range row {
		begun[i] = e.sentAt().Sub(row[0].sentAt())
	}
	last := len(row) - 1
	for n := (last + chain - 1) / (chain - 1); n <= len(row)/2; n++ {
		if !keepStep(begun, n) || n >= chain && isTimer(row[:n]) {
			continue
		}
		if len(row)%n == 0 && (len(row) > 2*n || n >= chain) {
			return true
		}
		if left := min((begun[last]-begun[last-n])*5/2, pause) - row[last].End.until(c.now); left > 0 {
			c.verdict.Open = max(c.verdict.Open, left)
			return true
		}
	}
	return false
}

// keepStep reports whether requests that began at these times are of n callers in step.
func keepStep(begun []time.Duration, n int) bool {
	between, exact := max(2*begun[n-1], idle), idle/2
	if 2*n == len(begun) {
		exact = idle / 8
	}
	grow := 2*n < len(begun) && (begun[2*n]-begun[n])*4 >= begun[n]*5
	for i := n; i < len(begun); i++ {
		first := i - i%n // the first caller's try in this round
		waited, slack := begun[first]-begun[first-n], exact
		if grow {
			slack = waited / 3
		}
		if off := begun[i] - begun[i-n] - waited; off.Abs() > slack || begun[first]-begun[first-1] < between {
			return false
		}
	}
	return n > 1 && (begun[n-1] <= apart || (grow || n >= chain) && begun[n-1] <= stall)
}

// isTimer reports whether requests, enough for a chain with one before them, were sent at the same intervals, as by one
// caller's timer, but for a few of them.
func isTimer(row []*Exchange) bool {
	if len(row) < chain-1 {
		return false
	}
	interval, off := row[1].sentAt().Sub(row[0].sentAt()), 0
	for i, e := range row[1:] {
		if (e.sentAt().Sub(row[i].sentAt()) - interval).Abs() > min(idle/2, interval/4) {
			off++
		}
	}
	return off*3 < len(row)-1
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
