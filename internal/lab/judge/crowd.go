// Crowds: many callers that meet the end of an access token together.

package judge

import "slices"

// isCrowd reports whether a row is what many callers had asked for when the access token ended. A browser sends their
// requests over six connections, one behind the other, and the last ones with the old token long after the refresh. Either the
// client got a new token within the time to react, and sent more than half of the requests again; or it sent refreshes for
// more than half of them; or it tried to refresh in vain, and some of the requests certainly came side by side.
func (c *trial) isCrowd(row []*Exchange) bool {
	i := slices.IndexFunc(row, (*Exchange).refused)
	if i < 0 || !row[i].isAccess() {
		return false
	}
	first, last := row[i], row[len(row)-1]
	if c.refreshesAround(first, last)*2 > len(row) {
		return true
	}
	got := c.nextTokens(first)
	if got == nil {
		return c.triedInVain(first) && (!inSequence(row) || c.comesBehind(first, last))
	}
	again := 0
	for _, e := range c.record {
		if e.Arrival.Order > first.Arrival.Order && e.Operation == first.Operation && e.isAccess() && e.User == first.User &&
			(e.Session != first.Session || e.Token.isOf(got.Given)) && (inTime(got, e) || inTime(last, e)) {
			again++
		}
	}
	return again*2 > len(row)
}

// refreshesAround counts the refreshes that may be a reaction to the answers from first to last.
func (c *trial) refreshesAround(first, last *Exchange) int {
	n := 0
	for _, r := range c.sessions[first.Session].refreshes {
		if inTime(last, r) && (r.Arrival.Order > first.Arrival.Order || r.End.until(first.Arrival) <= late) {
			n++
		}
	}
	return n
}

// triedInVain reports whether a refresh that failed was the client's reaction to the answer to e, or just before it.
func (c *trial) triedInVain(e *Exchange) bool {
	return slices.ContainsFunc(c.sessions[e.Session].refreshes, func(r *Exchange) bool {
		return !r.exchanged() && inTime(e, r) && (r.End.Order == 0 || r.End.Order > e.Arrival.Order || r.End.until(e.Arrival) <= late)
	})
}

// comesBehind reports whether all from first to last came so soon after a refresh that failed that they may have left before
// the client heard of it.
func (c *trial) comesBehind(first, last *Exchange) bool {
	return slices.ContainsFunc(c.sessions[first.Session].refreshes, func(r *Exchange) bool {
		return !r.exchanged() && r.endedBefore(first) && r.End.until(last.Arrival) <= late
	})
}

// inSequence reports whether each exchange certainly follows the one before it.
func inSequence(row []*Exchange) bool {
	for i, e := range row[1:] {
		if !e.follows(row[i]) {
			return false
		}
	}
	return true
}

// nextTokens returns the first refresh or login by which the client got new tokens in time after it got the answer to e, or
// nil.
func (c *trial) nextTokens(e *Exchange) *Exchange {
	for _, r := range slices.Concat(c.sessions[e.Session].refreshes, c.logins) {
		renewed := r.exchanged() || r.Given != nil && r.received() && r.User == e.User
		if renewed && r.End.Order > e.Arrival.Order && inTime(e, r) {
			return r
		}
	}
	return nil
}
