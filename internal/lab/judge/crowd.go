// Crowds: many callers of one client, side by side or in its queue.

package judge

import (
	"slices"
	"time"
)

// isCrowd reports whether a row may be the requests of many callers, each of which tried a few times. A client sends them
// over the connections that it allows itself, one behind the other, so that on the wire they look like tries of one caller.
//
// Callers that wait in a queue come without a break. A row that stops and goes on five times is tries of one caller, or of
// each of several.
func (c *trial) isCrowd(row []*Exchange) bool {
	if bursts(row) >= chain {
		return false
	}
	i := slices.IndexFunc(row, (*Exchange).refused)
	return i >= 0 && row[i].isAccess() && c.meetsExpiry(row[i], row) || c.comesBack(row)
}

// bursts returns how many times the row goes on after nothing of it was under way for a while (apart).
func bursts(row []*Exchange) int {
	n, end := 1, row[0].End
	for _, e := range row[1:] {
		if end.until(e.Arrival) > apart {
			n++
		}
		if e.End.Order > end.Order {
			end = e.End
		}
	}
	return n
}

// meetsExpiry reports whether a row, whose first 401 this is, is what many callers had asked for when the access token
// ended. A browser sends their requests over six connections, and the last ones with the old token long after the refresh.
// Either the client got a new token within the time to react, and sent more than half of the requests again; or it sent
// refreshes for more than half of them; or it tried to refresh in vain, or logged out.
func (c *trial) meetsExpiry(first *Exchange, row []*Exchange) bool {
	last := row[len(row)-1]
	if c.refreshesAround(first, last)*2 > len(row) {
		return true
	}
	got := c.nextTokens(first)
	if got == nil {
		return c.givesUp(first, last)
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

// givesUp reports whether a client that got no new token tried to, or logged out, after first and in time after last. What
// comes within a second behind such a try may have left before the client heard of it; the rest goes on in spite of it.
func (c *trial) givesUp(first, last *Exchange) bool {
	s := c.sessions[first.Session]
	return slices.ContainsFunc(slices.Concat(s.refreshes, s.logouts), func(r *Exchange) bool {
		if r.endedBefore(first) {
			return r.End.until(last.Arrival) <= late
		}
		return !r.exchanged() && inTime(last, r)
	})
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

// comesBack reports whether after a pause more than half of the requests of a row came again in time, as of callers that
// wait before they try once more. One caller would go on with its one request.
func (c *trial) comesBack(row []*Exchange) bool {
	last, wait := row[len(row)-1], time.Duration(0)
	for _, e := range row {
		wait = max(wait, e.RetryAfter)
	}
	again := 0
	for _, e := range c.record[c.after(last):] {
		if since := last.End.until(e.Arrival); since > wait+reaction {
			break
		} else if again == 0 && since <= apart {
			if e.isLike(last) {
				return false // at once
			}
		} else if e.isLike(last) {
			again++
		}
	}
	return again*2 > len(row)
}

// after returns the index in the record of what came next after e.
func (c *trial) after(e *Exchange) int {
	i, _ := slices.BinarySearchFunc(c.record, e.Arrival.Order+1, func(e *Exchange, order int) int { return e.Arrival.Order - order })
	return i
}

// isLike reports whether e is what other asks for, with whatever token of its session.
func (e *Exchange) isLike(other *Exchange) bool {
	if e.place() != other.place() || e.Session != other.Session {
		return false
	}
	return e.Session != "" || e.Presented == other.Presented && e.Body == other.Body
}
