// Connections, as the record tells them apart.

package lab

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
)

// connection is one, and what it tells of when its client sent a request and whether it got the answer.
type connection struct {
	*net.TCPConn
	id     int64
	opened time.Time
	sender *record.Client

	mu       sync.Mutex
	answered bool      // nothing has been read since the last answer
	began    time.Time // when the first byte of the latest request was read
	busy     time.Time // since when requests to hubs have come over it without a rest
	ended    time.Time // when the latest of them was answered
	ahead    time.Time // when the first byte of a request was read that the client has sent ahead of an answer; zero: none
	unread   func()    // called when it turns out that the client has not read the last answer
}

type connectionKey struct{}

// Listen returns a listener whose connections the record can tell apart, with WithConnection as
// http.Server.ConnContext.
func Listen(l net.Listener) net.Listener { return &listener{Listener: l} }

type listener struct {
	net.Listener
	last int64
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		l.last++
		return &connection{TCPConn: tcp, id: l.last, opened: time.Now(), sender: record.NewClient(l.last), answered: true}, nil
	}
	return c, err
}

// WithConnection keeps with each request the connection that it came on.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// Read notes when a request begins. While a request is served, net/http reads one byte to hear whether the client is
// there: that is of a request that the client has sent ahead (pipelining), if the answer has not left.
//
// A client that closes its end before it has read all sends a reset (RFC 9293 section 3.6.1).
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n > 0 && c.answered:
		c.began, c.answered, c.unread = time.Now(), false, nil
	case n > 0 && len(b) == 1:
		c.ahead = time.Now()
	case n == 0 && c.unread != nil && errors.Is(err, syscall.ECONNRESET):
		c.unread()
		c.unread = nil
	}
	return n, err
}

// Write sends a part of an answer, behind which the next request begins.
func (c *connection) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.answered = c.ahead.IsZero(); !c.answered {
		c.began, c.ahead = c.ahead, time.Time{}
	}
	c.mu.Unlock()
	return c.TCPConn.Write(b)
}

// beganAt returns when the request that is being served, to a hub, began to come in, and since when the connection had
// not rested then (judge.Idle).
func (c *connection) beganAt() (sent, busy time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.Sub(c.ended) > judge.Idle {
		c.busy = c.began
	}
	return c.began, c.busy
}

// rests notes that a request to a hub has been answered.
func (c *connection) rests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = time.Now()
}

// whenUnread has do called if it turns out that the client has not read the answer that is about to leave.
func (c *connection) whenUnread(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = do
}
