// Connections: what came before what over them, and which are of one client.

package judge

import (
	"cmp"
	"time"
)

const (
	// Idle is how long a connection rests, at the least, that no caller waits for.
	Idle = 40 * time.Millisecond

	// opening is how long it takes at most to send a request over a connection that is opened for it.
	opening = 25 * time.Millisecond
)

// connection is what the record knows of a connection, or of all those of a client.
type connection struct {
	of    *connection // another of the same client, and so on up to one that stands for the client; nil: it does
	first int         // of the client: the order of its first arrival
	known int         // of the client: the order of its first arrival with a session; 0: it had none in this record
	uses  int         // requests over it
	last  *Exchange   // over it
}

// findClients finds the connection and the client of each exchange, and what came after what over each connection.
// Those over which one session is used are of one client: tabs and workers that share a session count as one. So does
// what other namespaces know of a connection (Exchange.Client), since a suite's tests may run side by side over one
// pool. A login whose answer was lost is of no session.
func findClients(record []*Exchange, now Mark) {
	all := make(map[int64]*connection)
	bySession, byClient := make(map[string]*connection), make(map[int64]*connection)
	for _, e := range record {
		c := all[e.Conn]
		if c == nil {
			c = &connection{first: e.Arrival.Order}
			all[e.Conn] = c
		}
		e.comesAfter(c.last)
		e.conn, c.uses, c.last = c, c.uses+1, e
		if e.Lost && e.isLogin() {
			e.Session = ""
		}
		if e.Session != "" {
			joinKnown(c, bySession, e.Session)
			c.client().known = cmp.Or(c.client().known, e.Arrival.Order)
		}
		if e.Client != 0 {
			joinKnown(c, byClient, e.Client)
		}
	}
	for i := len(record) - 1; i >= 0; i-- {
		e := record[i]
		e.client = e.conn.client()
		if e.End.Order == 0 {
			e.free = now
		}
		if e.waited && e.before.Epoch == e.Epoch {
			e.before.free = e.free
		}
	}
}

// comesAfter finds when e was sent, and when the client began it: when it opened the connection, if it did so for it;
// and whether e may have waited for its connection. before is what came last over that, or nil.
func (e *Exchange) comesAfter(before *Exchange) {
	e.before, e.free = before, e.End
	e.sentAt = e.Arrival
	if !e.Sent.IsZero() {
		e.sentAt.Hub, e.sentAt.Machine = e.Arrival.Hub.Add(e.Sent.Sub(e.Arrival.Machine)), e.Sent
	}
	e.began = e.sentAt.Machine
	if before == nil && e.began.Sub(e.Opened) <= apart {
		e.began = e.Opened
	}
	e.waited = before != nil && e.restSince(before)-e.usedSince(before) <= Idle
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

// joinKnown makes the client of c one with whom else the key tells to be the same.
func joinKnown[K comparable](c *connection, known map[K]*connection, key K) {
	client := c.client()
	if other := known[key]; other != nil && other.client() != client {
		other = other.client()
		client.of, other.first = other, min(other.first, client.first)
		if client.known > 0 && (other.known == 0 || client.known < other.known) {
			other.known = client.known
		}
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

// isOfUnknown reports whether the client of e had used no session before e.
func (e *Exchange) isOfUnknown() bool {
	return e.client.known == 0 || e.client.known >= e.Arrival.Order
}

// isSingle reports whether nothing else came over the connection of e.
func (e *Exchange) isSingle() bool { return e.conn.uses == 1 }

// cameBefore returns what came last over the connection of e before it, without what is skipped. It is nil if nothing
// did.
func (e *Exchange) cameBefore(skip func(*Exchange) bool) *Exchange {
	before := e.before
	for before != nil && skip(before) {
		before = before.before
	}
	return before
}

// isUnderWay reports whether e, which had begun before, had not been answered yet.
func (e *Exchange) isUnderWay(at time.Time) bool { return e.End.Order == 0 || e.End.Machine.After(at) }

// leftAt returns when e was sent or, if that was right behind the opening of its connection, when that was opened.
func (e *Exchange) leftAt() time.Time {
	if sent := e.sentAt.Machine; sent.Sub(e.began) > opening {
		return sent
	}
	return e.began
}

// restSince returns how long it was from the end of before until e was sent, with what a test advanced the hub's clock.
func (e *Exchange) restSince(before *Exchange) time.Duration {
	advanced := e.Arrival.Hub.Sub(before.End.Hub) - e.Arrival.Machine.Sub(before.End.Machine)
	return e.leftAt().Sub(before.End.Machine) + max(0, advanced)
}

// usedSince returns for how long other namespaces have used the connection without a rest since before; 0 if it rested.
func (e *Exchange) usedSince(before *Exchange) time.Duration {
	if e.Busy.IsZero() || e.Busy.After(before.Arrival.Machine) {
		return 0
	}
	return e.leftAt().Sub(before.End.Machine)
}
