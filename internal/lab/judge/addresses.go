// Addresses: how many callers a row of failures shows by what they ask for.

package judge

import (
	"slices"
	"time"
)

// addresses returns to how many addresses, with a query and a body each, a row went, and how many of them at one time,
// between the first try and the last, if half of them or more were tried again, none more than four times and none side
// by side. Then those at one time are of a caller each. Otherwise both are 1.
func addresses(row []*Exchange) (all, atOneTime int) {
	tries := make(map[address][]*Exchange)
	for _, e := range row {
		before := tries[e.address()]
		if n := len(before); n == chain-1 || n > 0 && !before[n-1].endedBefore(e) {
			return 1, 1
		}
		tries[e.address()] = append(before, e)
	}
	if 2*len(row) < 3*len(tries) {
		return 1, 1
	}
	n := 0
	for _, e := range row {
		own := tries[e.address()]
		if e == own[0] {
			n++
			atOneTime = max(atOneTime, n)
		}
		if e == own[len(own)-1] {
			n--
		}
	}
	return len(tries), atOneTime
}

// callersByAddress returns how many callers the addresses of a row show that was sent side by side. Where no token was
// refused, as many again may have waited for these: jobs in a queue.
func callersByAddress(row []*Exchange) int {
	all, atOneTime := addresses(row)
	if atOneTime == 1 || slices.ContainsFunc(row, (*Exchange).refused) {
		return atOneTime
	}
	return min(all, 2*atOneTime)
}

// addressesInTurn returns how many addresses of a row are of a caller each although nothing came side by side: those
// at one time, unless most came at once behind another one, as one caller sends them.
func addressesInTurn(row []*Exchange, pauses []time.Duration) int {
	changes, quick := 0, 0
	for i, rest := range pauses {
		if row[i+1].address() != row[i].address() {
			changes++
			if rest <= atOnce {
				quick++
			}
		}
	}
	if 2*quick > changes {
		return 1
	}
	return callersByAddress(row)
}

// areMixed reports whether the addresses of a row come in no order that one caller keeps who goes through them: for two
// of them or more, another one came twice between two tries. A client with a token that was refused may go anywhere.
func areMixed(row []*Exchange) bool {
	if slices.ContainsFunc(row, (*Exchange).refused) {
		return false
	}
	next, mixed := make(map[address]int), make(map[address]bool) // next: index of what came behind the last try
	for i, e := range row {
		between := make(map[address]int)
		if n := next[e.address()]; n > 0 {
			for _, other := range row[n:i] {
				if between[other.address()]++; between[other.address()] == 2 {
					mixed[e.address()] = true
				}
			}
		}
		next[e.address()] = i + 1
	}
	return len(mixed) > 1
}
