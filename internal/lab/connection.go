// Connections, as the record tells them apart.

package lab

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// connection is one, and when the client was last heard on it.
type connection struct {
	*net.TCPConn
	id     int64
	opened time.Time
	heard  atomic.Int64 // nanoseconds since it was opened
}

type connectionKey struct{}

var lastConnection atomic.Int64

// Listen returns a listener whose connections the record can tell apart, with WithConnection as http.Server.ConnContext.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &connection{TCPConn: tcp, id: lastConnection.Add(1), opened: time.Now()}, nil
	}
	return c, err
}

// WithConnection keeps with each request the connection that it came on.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// Read notes when the client was heard. A request that a client has sent ahead, before the answer to the one in front of it,
// is read together with that one or while it is served.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.heard.Store(int64(time.Since(c.opened)))
	}
	return n, err
}

func (c *connection) heardAt() time.Time { return c.opened.Add(time.Duration(c.heard.Load())) }
