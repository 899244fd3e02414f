package judge

// twoRefreshes: one expiry was answered with more than one refresh, and at least one of them succeeded. All of them
// are shown, whichever won.
//
// Not counted: a refresh that failed by a fault, or of which the client got no answer, unless the client already had
// the new pair when it sent it; and what the policy in force allows. Under grace that is a repeat that gets the same
// successor again; with reuse allowed, or without rotation, it is every repeat.
func (c *trial) twoRefreshes(x *expiry) {
	if !x.refreshes[0].Policy.Spends() || x.success == nil {
		return
	}
	var shown []*Exchange // one that succeeded among them
	for _, r := range x.refreshes {
		if x.counts(r) {
			shown = append(shown, r)
		}
	}
	if len(shown) < 2 {
		return
	}
	c.find("two_refreshes", requests(shown)+" refreshed for the same expiry. "+
		"Let one request refresh, have all others wait for its result, and send the new access token from then on.", shown...)
	x.told = true
	if r := x.reused; r != nil {
		c.sessions[r.Session].raced = r
		c.races = append(c.races, r)
	}
	for _, r := range shown {
		c.told[r] = true
	}
}

// counts reports whether r is one of the refreshes that x needed only one of.
func (x *expiry) counts(r *Exchange) bool {
	switch {
	case x.forgiven(r):
		return false
	case r.exchanged(), r.Hub == 401 && x.exchanged[r.Token.Generation] != nil:
		return true
	}
	return x.success.endedBefore(r) // the client had the new pair, so it had no reason to try at all
}

// forgiven reports whether r repeats a refresh within the time of grace. The first whose answer the client got is none
// that needs it.
func (x *expiry) forgiven(r *Exchange) bool {
	granted := x.granted[r.Token.Generation]
	if r.Policy.Grace == 0 || granted == nil || granted == r || r == x.exchanged[r.Token.Generation] || r.Code == "token_reused" {
		return false
	}
	return r.Hub == 200 || r.Arrival.Hub.Sub(granted.End.Hub) < r.Policy.Grace
}
