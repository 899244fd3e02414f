// Clients: which connections are of one client, as far as the record tells.

package judge

// connections has what the record knows of each connection. Those over which one session is used are of one client:
// tabs and workers that share a session count as one.
type connections map[int64]*connection

type connection struct {
	of    *connection // another of the same client, and so on up to one that stands for the client; nil: it does
	first int         // of the client, once all are joined: the order of its first arrival
	guest bool        // of the client, once all are joined: it has used no session
	uses  int         // requests over it
	last  *Exchange   // over it
}

// connectionsOf finds the connections of a record and what came after what over each, and joins those of one client.
func connectionsOf(record []*Exchange) connections {
	all := make(connections)
	bySession := make(map[string]*Exchange)
	for _, e := range record {
		c := all[e.Conn]
		if c == nil {
			c = &connection{first: e.Arrival.Order, guest: true}
			all[e.Conn] = c
		}
		e.comesAfter(c.last)
		c.uses, c.last = c.uses+1, e
		if e.Session == "" {
			continue
		}
		all.client(e).guest = false
		if other := bySession[e.Session]; other != nil {
			all.join(other, e)
		}
		bySession[e.Session] = e
	}
	return all
}

func (all connections) join(a, b *Exchange) {
	x, y := all.client(a), all.client(b)
	if x != y {
		y.of, x.first, x.guest = x, min(x.first, y.first), x.guest && y.guest
	}
}

// client returns the connection that stands for the client of e.
func (all connections) client(e *Exchange) *connection {
	c := all[e.Conn]
	for c.of != nil {
		if c.of.of != nil {
			c.of = c.of.of
		}
		c = c.of
	}
	return c
}

// isSame reports whether two requests are of one client.
func (all connections) isSame(a, b *Exchange) bool { return all.client(a) == all.client(b) }

// mayBeSame reports whether b may be of the client of a: it is, or it came over a connection that the client may have
// opened since a was answered, or nothing is known of their connections: they had no other request, or a proxy hides
// when they were opened.
func (all connections) mayBeSame(a, b *Exchange) bool {
	if all.isSame(a, b) || all.isSingle(a) && all.isSingle(b) || b.Opened.IsZero() {
		return true
	}
	return b.Opened.After(a.End.Machine) && all.client(b).first > a.End.Order
}

// isSibling reports whether a guest sent a, and opened the connection of b together with that of a: a page opens several
// for its first requests, and some clients take turns between two.
func (all connections) isSibling(a, b *Exchange) bool {
	return all.client(a).guest && b.Opened.Sub(a.Opened).Abs() <= apart
}

// isSingle reports whether nothing else came over the connection of e.
func (all connections) isSingle(e *Exchange) bool { return all[e.Conn].uses == 1 }
