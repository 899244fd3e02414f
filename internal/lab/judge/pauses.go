// Pauses: whether requests came as one caller sends them.

package judge

import (
	"slices"
	"time"
)

// pausesOf returns how long it was by the machine's clock, before each request of a row but the first, since the one
// before it had been answered.
func pausesOf(row []*Exchange) []time.Duration {
	pauses := make([]time.Duration, len(row)-1)
	for i, e := range row[1:] {
		pauses[i] = max(0, e.leftAt().Sub(row[i].End.Machine))
	}
	return pauses
}

// isOneCallers reports whether these pauses are one caller's: each as long as all before or longer, but for a quarter
// or a little (Idle), since machines hold their programs up. They may do so for longer (apart) once, or once for
// every four pauses.
func isOneCallers(pauses []time.Duration) bool {
	widest, held := time.Duration(0), max(1, len(pauses)/4)
	for _, rest := range pauses {
		switch shorter := widest - rest; {
		case shorter <= max(Idle, widest/4):
			widest = max(widest, rest)
		case held == 0 || shorter > apart:
			return false
		default:
			widest, held = rest, held-1
		}
	}
	return true
}

// hasTimer reports whether five in a row, or five over one connection, came by one timer (isTimer). In a browser a GET
// may wait for an equal one over another connection (isQueued): then it comes when that is answered. A caller whose
// answer took as long as the others paused takes turns with them (isBetween).
func hasTimer(row []*Exchange, alone bool) bool {
	is := func(five []*Exchange) bool { return isTimer(five, alone) }
	if hasRun(row, chain, is) {
		return true
	}
	byConn := make(map[int64][]*Exchange)
	queued := make(map[*Exchange]bool)
	for i, e := range row {
		byConn[e.Conn] = append(byConn[e.Conn], e)
		if i > 0 && e.isQueued(row[i-1]) {
			queued[e] = true
		}
	}
	ownIs := func(five []*Exchange) bool {
		return is(five) && !slices.ContainsFunc(five, func(e *Exchange) bool { return queued[e] }) &&
			!slices.ContainsFunc(row, func(e *Exchange) bool { return e.isBetween(five) })
	}
	for _, own := range byConn {
		if len(own) < len(row) && hasRun(own, chain, ownIs) {
			return true
		}
	}
	return false
}

// isQueued reports whether e, of a page, may have waited for before, which was over without a rest (Idle).
func (e *Exchange) isQueued(before *Exchange) bool {
	return e.isPageGet() && before.endedBefore(e) && e.restSince(before) <= Idle
}

// isBetween reports whether e came with one of these requests and was answered when the next of them came, both but for
// Idle.
func (e *Exchange) isBetween(requests []*Exchange) bool {
	for i, next := range requests[1:] {
		begun, over := e.leftAt().Sub(requests[i].leftAt()), next.leftAt().Sub(e.End.Machine)
		if begun.Abs() <= Idle && over.Abs() <= Idle {
			return true
		}
	}
	return false
}

// hasBackoff reports whether five in a row came by one caller's backoff (isBackoff), and nothing side by side: the
// pauses of several may grow by chance.
func hasBackoff(row []*Exchange) bool { return sideBySide(row) == 1 && hasRun(row, chain, isBackoff) }

// hasRun reports whether n in a row are so.
func hasRun(row []*Exchange, n int, are func([]*Exchange) bool) bool {
	for i := range len(row) - n + 1 {
		if are(row[i : i+n]) {
			return true
		}
	}
	return false
}

// isTimer reports whether requests came as one caller's timer sends them: at the same pauses, which are rests (Idle).
// alone asks as well that it had its connection, or one for each, for itself.
func isTimer(requests []*Exchange, alone bool) bool {
	return areSamePauses(requests, Idle, 10, func(e *Exchange) bool { return !alone || e.isBeside(requests[0]) })
}

// isEven reports whether requests came over one connection at equal pauses, however short.
func isEven(requests []*Exchange) bool {
	return areSamePauses(requests, atOnce, 1000, func(e *Exchange) bool { return e.Conn == requests[0].Conn })
}

// areSamePauses reports whether the pauses before requests are longer than shortest and all the same, but for a little
// or a share of them, and each request is as it has to be. It ends at the first that is not: there may be thousands.
func areSamePauses(requests []*Exchange, shortest, share time.Duration, is func(*Exchange) bool) bool {
	least, most := time.Duration(1<<62), time.Duration(0)
	for i, e := range requests[1:] {
		rest := e.restSince(requests[i])
		least, most = min(least, rest), max(most, rest)
		if rest <= shortest || most-least > max(2*atOnce, least/share) || !is(e) {
			return false
		}
	}
	return true
}

// areTicks reports whether requests came by a timer that keeps its beat, as setInterval does: a late one (Idle/2) does
// not delay the next. Each came after a rest.
func areTicks(requests []*Exchange) bool {
	n := len(requests) - 1
	first := requests[0].leftAt()
	interval := requests[n].leftAt().Sub(first) / time.Duration(n)
	for i, e := range requests {
		off := e.leftAt().Sub(first) - time.Duration(i)*interval
		if off.Abs() > Idle/2 || i > 0 && e.restSince(requests[i-1]) <= Idle {
			return false
		}
	}
	return interval >= 5*Idle
}

// isBackoff reports whether requests came as one caller's exponential backoff sends them: each pause is longer than the
// one before by the same factor (but for a quarter).
func isBackoff(requests []*Exchange) bool {
	least, most := 3.5, 1.3
	before := requests[1].restSince(requests[0])
	for i, e := range requests[1:] {
		rest := e.restSince(requests[i])
		if rest <= atOnce {
			return false
		}
		if i > 0 {
			factor := float64(rest) / float64(before)
			least, most, before = min(least, factor), max(most, factor), rest
		}
	}
	return least >= 1.3 && most <= 3.5 && most <= least*1.25
}

// backOffAlike returns how many callers may have sent a row with these pauses: they began one after the other and back
// off alike, so that their tries come in rounds with the same pauses within each, and each round is further from the
// one before, by a factor. It returns 1 if there are none, or fewer than two rounds and a try. What goes on at the same
// pauses, or at once, is no next round, unless there are three of them.
func backOffAlike(pauses []time.Duration) int {
	for n := 2; 2*n <= len(pauses); n++ {
		apart := (pauses[n-1] - pauses[0]).Abs() > max(Idle, pauses[0]/4)
		if pauses[n-1] > atOnce && (apart || len(pauses) >= 3*n-1) && areRounds(pauses, n) {
			return n
		}
	}
	return 1
}

// areRounds reports whether pauses are those of rounds of n callers who back off alike.
func areRounds(pauses []time.Duration, n int) bool {
	at := make([]time.Duration, len(pauses)+1) // when each request came
	for i, rest := range pauses {
		at[i+1] = at[i] + rest
	}
	for i := n + 1; i < len(at); i++ {
		switch {
		case i%n > 0 && !isNear(at[i]-at[i-1], at[i-n]-at[i-n-1]):
			return false
		case i%n == 0 && !isLonger(at[i]-at[i-n], at[i-n]-at[i-2*n]):
			return false
		}
	}
	return true
}

// isNested reports whether a row is of one caller whose tries are retries within a retry: they come in rounds, further
// apart each time (areRounds). Either all tries of a round, three or more, come at once, over the connection of the one
// before or each over one for itself; or the rests behind the rounds grow by a factor, and the rounds' distances, which
// do so for callers who back off alike, do not.
func isNested(row []*Exchange, pauses []time.Duration) bool {
	for n := 2; max(6, 3*n-1) <= len(pauses); n++ {
		if pauses[n-1] <= atOnce || !areRounds(pauses, n) {
			continue
		}
		quick := n > 2
		var rests, distances []time.Duration
		for i, rest := range pauses {
			if (i+1)%n > 0 {
				quick = quick && rest <= atOnce && row[i+1].isBeside(row[i])
			} else {
				rests = append(rests, rest)
				distances = append(distances, row[i+1].leftAt().Sub(row[i+1-n].leftAt()))
			}
		}
		if quick || restsGrow(rests, distances) {
			return true
		}
	}
	return false
}

// restsGrow reports whether the rests behind rounds are those of an exponential backoff, and the rounds' distances are
// not (2*Idle), or much less so: by the factor 2, if that fits either (but for Idle or a twentieth), or by the first of
// the others that does.
func restsGrow(rests, distances []time.Duration) bool {
	for _, factor := range []float64{2, 1.5, 3, 4} {
		rest, distance := offGrowth(rests, factor), offGrowth(distances, factor)
		if min(rest, distance) <= max(Idle, slices.Max(rests)/20) {
			return 4*rest < distance && distance > 2*Idle
		}
	}
	return false
}

// offGrowth returns by how much these spans differ from those that grow by a factor.
func offGrowth(spans []time.Duration, factor float64) (off time.Duration) {
	for i, span := range spans[1:] {
		off += (span - time.Duration(factor*float64(spans[i]))).Abs()
	}
	return off
}

// isNear reports whether a pause is as long as another one, but for what a timer may be late.
func isNear(pause, other time.Duration) bool { return (pause - other).Abs() <= max(2*atOnce, other/20) }

// isLonger reports whether a pause is longer than the one before, as in an exponential backoff.
func isLonger(pause, before time.Duration) bool {
	factor := float64(pause) / float64(before)
	return factor >= 1.5 && factor <= 3.5
}
