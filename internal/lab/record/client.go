// Clients, as far as the sessions that they use tell them apart.

package record

import "sync/atomic"

// Client is who sends over a connection. Connections over which one session is used are of one client, in whatever
// namespace: the tests of a suite run side by side over one pool, and each has a namespace.
type Client struct {
	id    int64
	of    atomic.Pointer[Client] // the same one, with a smaller id; nil: none is known
	known atomic.Bool            // it has used a session
}

// NewClient returns the client of a connection of which nothing is known yet.
func NewClient(connection int64) *Client { return &Client{id: connection} }

// identity returns what two that are the same have in common; 0 for one that has used no session, or for nil.
func (c *Client) identity() int64 {
	if c == nil || !c.known.Load() {
		return 0
	}
	return c.first().id
}

func (c *Client) first() *Client {
	for of := c.of.Load(); of != nil; of = c.of.Load() {
		c = of
	}
	return c
}

// join makes c and other the same.
func (c *Client) join(other *Client) {
	for {
		from, to := c.first(), other.first()
		if from.id < to.id {
			from, to = to, from
		}
		if from == to || from.of.CompareAndSwap(nil, to) {
			return
		}
	}
}

// meetLocked notes who has used the session of r. Introspection is no use (RFC 7662), nor is a login whose answer a
// fault has kept from the client.
func (l *Log) meetLocked(r *Request) {
	if r.Sender == nil || r.Session == "" || r.Lost || r.Operation == "introspect" {
		return
	}
	if l.clients == nil || len(l.clients) >= MaxRequests {
		l.clients = make(map[string]*Client)
	}
	r.Sender.known.Store(true)
	if other := l.clients[r.Session]; other != nil {
		r.Sender.join(other)
	}
	l.clients[r.Session] = r.Sender
}
