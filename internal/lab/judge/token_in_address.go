package judge

import "cmp"

// tokenInAddress: a token stood in the path or the query of a request (RFC 6750 section 5.3: don't pass bearer tokens
// in page URLs).
func (c *trial) tokenInAddress() {
	var bySession groups
	for _, e := range c.record {
		if e.InAddress {
			bySession.add(cmp.Or(e.Addressed, e.Session), e)
		}
	}
	for _, shown := range bySession.each {
		c.find("token_in_address", requests(shown)+" had a token in the address, where it ends in logs and histories. "+
			"Send it as Authorization: Bearer TOKEN.", shown...)
	}
}

// groups is exchanges by session, or by another name, in the order in which the names came up.
type groups struct {
	index map[string]int
	each  [][]*Exchange
}

func (g *groups) add(name string, shown ...*Exchange) {
	if g.index == nil {
		g.index = make(map[string]int)
	}
	i, ok := g.index[name]
	if !ok {
		i = len(g.each)
		g.index[name] = i
		g.each = append(g.each, nil)
	}
	g.each[i] = append(g.each[i], shown...)
}
