// Clients: which connections are of one client, as far as the record tells.

package judge

// connection is what the record knows of a connection, or of all those of a client.
type connection struct {
	of    *connection // another of the same client, and so on up to one that stands for the client; nil: it does
	first int         // of the client: the order of its first arrival
	guest bool        // of the client: it has used no session, here or in another namespace
	group *connection // the first of those that were opened together, as a page opens several for its first requests
	uses  int         // requests over it
	last  *Exchange   // over it
	began int         // order of the first arrival over it of a request of a session; 0: none

	member  *connection     // of a group: a client that used a session over one of its connections
	clients int             // of a group: 1 if there is one such client
	kept    bool            // of a group: one of its connections had several requests, and used no session
	failed  map[effort]bool // of a group: without a token, over one that had several and used a session
}

// findClients finds the connection and the client of each exchange, and what came after what over each connection.
// Those over which one session is used are of one client: tabs and workers that share a session count as one. So does
// what other namespaces know of a connection (Exchange.Client), since a suite's tests may run side by side over one
// pool. A login whose answer was lost is of no session.
func findClients(record []*Exchange, now Mark) {
	all := make(map[int64]*connection)
	bySession, byClient := make(map[string]*connection), make(map[int64]*connection)
	var opened, lost *Exchange // the first over the latest connection; the latest that a fault kept from the client
	for i, e := range record {
		c := all[e.Conn]
		if c == nil {
			c = &connection{first: e.Arrival.Order, guest: true}
			all[e.Conn] = c
			switch {
			case opened != nil && e.Opened.Sub(opened.Opened).Abs() <= apart:
				c.group = opened.conn.group
			case i > 0 && e.isLike(record[i-1]) && record[i-1].isUnderWay(e.Opened):
				c.group = record[i-1].conn.group // side by side with that
			case lost != nil && e.isLike(lost) && e.Opened.After(lost.End.Machine):
				c.group = lost.conn.group // its client opened another one
				c.join(lost.conn.client())
			default:
				c.group = c
			}
			opened = e
		}
		e.comesAfter(c.last)
		e.conn, c.uses, c.last = c, c.uses+1, e
		if e.Lost {
			if lost = e; e.isLogin() {
				e.Session = ""
			}
		}
		if e.Session != "" {
			if joinKnown(c, bySession, e.Session); c.began == 0 {
				c.began = e.Arrival.Order
			}
		}
		if e.Client != 0 {
			joinKnown(c, byClient, e.Client)
		}
	}
	for i := len(record) - 1; i >= 0; i-- {
		e := record[i]
		e.client = e.conn.client()
		e.conn.group.note(e)
		if e.End.Order == 0 {
			e.free = now
		}
		if e.waited && e.before.Epoch == e.Epoch {
			e.before.free = e.free
		}
	}
}

// note takes what e, whose client is known, tells of its group, which is c.
func (c *connection) note(e *Exchange) {
	switch {
	case e.isSingle():
	case e.client.guest:
		c.kept = true
	case e.Presented <= Unset && e.failed():
		if c.failed == nil {
			c.failed = make(map[effort]bool)
		}
		c.failed[e.plainEffort()] = true
	}
	if !e.client.guest && c.member != e.client {
		c.member = e.client
		c.clients++
	}
}

// client returns the connection that stands for the client of c.
func (c *connection) client() *connection {
	for c.of != nil {
		if c.of.of != nil {
			c.of = c.of.of
		}
		c = c.of
	}
	return c
}

// join makes two clients one.
func (c *connection) join(other *connection) {
	if c != other {
		c.of, other.first = other, min(other.first, c.first)
	}
}

// joinKnown makes the client of c no guest, and one with whom else the key tells to be the same.
func joinKnown[K comparable](c *connection, known map[K]*connection, key K) {
	client := c.client()
	client.guest = false
	if other := known[key]; other != nil {
		client.join(other.client())
	}
	known[key] = c
}

// mayBeSame reports whether b may be of the client of a: it is, or it came over a connection that the client, a browser
// like that of a or none, may have opened since a was answered, or nothing is known of their connections: they had no
// other request, or a proxy hides when they were opened.
func mayBeSame(a, b *Exchange) bool {
	if a.client == b.client || a.isSingle() && b.isSingle() || b.Opened.IsZero() {
		return true
	}
	return a.Browser == b.Browser && b.Opened.After(a.End.Machine) && b.client.first > a.End.Order
}

// isSibling reports whether a guest sent a, and opened the connection of b together with that of a.
func isSibling(a, b *Exchange) bool { return a.client.guest && a.conn.group == b.conn.group }

// isSingle reports whether nothing else came over the connection of e.
//
//go:noinline
func (e *Exchange) isSingle() bool { return e.conn.uses == 1 }

// isOfSeveral reports whether e came without a token, from one of several clients that guest takes for one.
func (e *Exchange) isOfSeveral() bool {
	if e.Presented > Unset || e.Browser {
		return false
	}
	guest := e.guest()
	return guest != nil && guest.clients > 1
}

// guest returns what stands for the client of a request without a token: its connections, if it has used a session; or
// else those that were opened together with that of e, or the only client that used a session over one of these. Where
// several did, outside a browser, callers of one program have each logged in, and it stands for all of these
// connections until then. It is nil where these tell nothing, since the client keeps none: a browser does, and others
// of whose connections one had several requests, or failures of the same kind if it used a session later.
func (e *Exchange) guest() *connection {
	group := e.conn.group
	switch {
	case group.clients > 1 && !e.Browser && (e.conn.began == 0 || e.Arrival.Order < e.conn.began):
		return group
	case !e.client.guest:
		return e.client
	case e.Opened.IsZero(), e.isSingle() && !e.Browser && !group.kept && !group.failed[e.plainEffort()]:
		return nil
	case group.clients == 1:
		return group.member
	}
	return group
}
