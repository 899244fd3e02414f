// Rounds: what comes without a rest, of one caller or of several.

package judge

import (
	"slices"
	"time"
)

// cut returns the sizes of the parts of a row. A part begins where begins says so of a request and the one before it.
func cut(row []*Exchange, begins func(before, e *Exchange) bool) []int {
	parts := []int{0}
	for i, e := range row {
		if i > 0 && begins(row[i-1], e) {
			parts = append(parts, 0)
		}
		parts[len(parts)-1]++
	}
	return parts
}

// roundsOf returns how many requests a row has each time that it goes on after a rest (Idle).
func roundsOf(row []*Exchange) []int {
	var end Mark // of what was under way last
	return cut(row, func(before, e *Exchange) bool {
		if before.End.Order > end.Order {
			end = before.End
		}
		return end.until(&e.sentAt) > Idle && !e.waited
	})
}

// beforeRest returns how many requests of a round came before a rest (apart) behind what had been answered. What comes
// later, while a slow answer is under way, may be a second try.
func beforeRest(round []*Exchange) int {
	byEnd := slices.DeleteFunc(slices.Clone(round), func(e *Exchange) bool { return e.End.Order == 0 })
	slices.SortFunc(byEnd, func(a, b *Exchange) int { return a.End.Order - b.End.Order })
	ended := 0
	for i, e := range round {
		for ended < len(byEnd) && byEnd[ended].endedBefore(e) {
			ended++
		}
		if ended > 0 && e.restSince(byEnd[ended-1]) > apart && !e.waited {
			return i
		}
	}
	return len(round)
}

// firstOf returns the first request of each round.
func firstOf(row []*Exchange, rounds []int) (firsts []*Exchange) {
	for _, n := range rounds {
		firsts, row = append(firsts, row[0]), row[n:]
	}
	return firsts
}

// areSteady reports whether as many requests of a row came in each of the first five rounds: there are no more callers.
// The first round may have up to four times as many, if not all at one time: urllib3's first retry comes at once, and a
// backoff may begin with a few milliseconds.
func areSteady(row []*Exchange, rounds []int) bool {
	if len(rounds) < chain || !areEqual(rounds[1:chain]) {
		return false
	}
	first, n := rounds[0], rounds[1]
	return first == n || first%n == 0 && first <= (chain-1)*n && sideBySide(row) <= n
}

// areEqual reports whether there are several rounds, all of the same size and of more than one request.
func areEqual(rounds []int) bool {
	return len(rounds) > 1 && rounds[0] > 1 && slices.Min(rounds) == slices.Max(rounds)
}

// alternate reports whether the first four rounds are of two sizes in turn.
func alternate(rounds []int) bool {
	return len(rounds) >= 4 && rounds[0] != rounds[1] && slices.Equal(rounds[:2], rounds[2:4])
}

// areWaves reports whether a row came in rounds of the same size, shortly one behind the other and over more than one
// connection. If several had begun a little apart (beginners), they try again.
func areWaves(row []*Exchange, rounds []int, pauses []time.Duration) bool {
	widest := slices.Max(pauses)
	return areEqual(rounds) && widest > Idle && widest <= stall && row[1].Conn != row[0].Conn
}

// twoGroups returns how many callers two groups have whose rounds a row shows, some of them together: the second one
// began later, both pause alike, and neither came more than four times. Otherwise it is 0.
func twoGroups(row []*Exchange, rounds []int) int {
	sizes := slices.Compact(slices.Sorted(slices.Values(rounds)))
	if len(sizes) < 2 || len(sizes) > 3 || len(sizes) == 3 && sizes[2] != sizes[0]+sizes[1] {
		return 0
	}
	var small, large []*Exchange // the first of each round of a group
	for i, first := range firstOf(row, rounds) {
		if rounds[i] != sizes[1] {
			small = append(small, first)
		}
		if rounds[i] != sizes[0] {
			large = append(large, first)
		}
	}
	if min(len(small), len(large)) == 1 || max(len(small), len(large)) >= chain {
		return 0
	}
	for i := range min(len(small), len(large)) - 1 {
		one, other := small[i].sentAt.until(&small[i+1].sentAt), large[i].sentAt.until(&large[i+1].sentAt)
		if (one - other).Abs() > max(Idle, one/4) {
			return 0
		}
	}
	return sizes[0] + sizes[1]
}

// areUneven reports whether a row went to one address, over one connection, in bursts of several sizes, more than a
// second apart: if each burst were of several callers, they would come again together. But some of them may have been
// served behind the last. In a browser, other callers may wait in the queue.
func (c *trial) areUneven(row []*Exchange) bool {
	for i, e := range row[1:] {
		rest := e.restSince(row[i])
		if e.Browser || e.Conn != row[0].Conn || e.address() != row[0].address() || rest > apart && rest <= late {
			return false
		}
	}
	bursts := cut(row, func(before, e *Exchange) bool { return e.restSince(before) > late })
	if len(bursts) == 1 {
		return false
	}
	last := row[len(row)-1]
	next := c.record[c.after(last):]
	if i := slices.IndexFunc(next, last.isLike); i >= 0 && next[i].succeeded() && next[i].restSince(last) <= apart {
		bursts = bursts[:len(bursts)-1]
	}
	return slices.Min(bursts) > 1 && slices.Min(bursts) < slices.Max(bursts)
}

// isLike reports whether other went to the same place in the same session.
func (e *Exchange) isLike(other *Exchange) bool {
	return e.place() == other.place() && e.Session == other.Session
}
