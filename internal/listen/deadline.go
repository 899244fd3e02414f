// Connections whose deadlines cost next to nothing while nobody is late.
//
// net/http moves nine deadlines a request, and each takes the locks of the connection and most a timer of the runtime.
// Here a deadline is only noted. Each connection has one timer, which is left alone as long as it goes off before any
// deadline: then it looks what has been asked for meanwhile. A read or a write is ended through the connection's own
// deadline, when it is late or when net/http calls it back (with a deadline of long ago).

package listen

import (
	"net"
	"os"
	"sync"
	"time"
)

// patient is a listener of such connections.
type patient struct{ net.Listener }

func (l patient) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, opened: time.Now()}
	c.read.move, c.write.move = inner.SetReadDeadline, inner.SetWriteDeadline
	return c, nil
}

// conn is such a connection. It has no ReadFrom, which would pass Write by.
type conn struct {
	net.Conn
	opened time.Time

	mu          sync.Mutex
	read, write deadline
	timer       *time.Timer // nil before the first deadline
	goesOff     time.Time   // zero: the timer is not armed
}

// deadline is that of reads or that of writes.
type deadline struct {
	move  func(time.Time) error // the connection's own
	asked time.Time             // zero: none
	late  bool                  // asked has passed
	under bool                  // a read or a write is under way
	ended bool                  // the connection's own has passed, and has to be moved before the next one
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.begin(&c.read); err != nil {
		return 0, err
	}
	defer c.end(&c.read)
	return c.Conn.Read(b)
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.begin(&c.write); err != nil {
		return 0, err
	}
	defer c.end(&c.write)
	return c.Conn.Write(b)
}

func (c *conn) begin(d *deadline) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.late {
		return os.ErrDeadlineExceeded
	}
	d.under = true
	if !d.ended {
		return nil
	}
	d.ended = false
	return d.move(time.Time{})
}

func (c *conn) end(d *deadline) {
	c.mu.Lock()
	d.under = false
	c.mu.Unlock()
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.ask(&c.read, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.ask(&c.write, t) }

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.ask(&c.read, t); err != nil {
		return err
	}
	return c.ask(&c.write, t)
}

// ask notes a deadline.
func (c *conn) ask(d *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.asked, d.late = t, !t.IsZero() && t.Before(c.opened)
	if d.late {
		return d.stop()
	}
	c.arm(t)
	return nil
}

// stop ends the read or write under way, whose time is over.
func (d *deadline) stop() error {
	d.late = true
	if !d.under {
		return nil
	}
	d.ended = true
	return d.move(time.Unix(1, 0))
}

// arm makes the timer go off at t or before. A zero t is never.
func (c *conn) arm(t time.Time) {
	if t.IsZero() || !c.goesOff.IsZero() && !t.Before(c.goesOff) {
		return
	}
	c.goesOff = t
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(t), c.look)
	} else {
		c.timer.Reset(time.Until(t))
	}
}

// look ends what is late, and arms the timer for what is not.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goesOff = time.Time{}
	now := time.Now()
	for _, d := range []*deadline{&c.read, &c.write} {
		if d.asked.After(now) {
			c.arm(d.asked)
		} else if !d.asked.IsZero() && !d.late {
			d.stop()
		}
	}
}

// Close stops the timer, too.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer whose request it has not read to the end.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
