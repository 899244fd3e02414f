package listen

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines: a noted deadline ends a read at the instant at which the connection's own would, whatever was asked
// for before it, and a write as well.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	const second = time.Second
	never := time.Duration(0)
	for _, row := range []struct {
		name  string
		asked []time.Duration // from the beginning on; 0: none
		after time.Duration   // asked for when half a second of the read has passed; -1: nothing
		ends  time.Duration   // of a read that begins at 0
	}{
		{"one", []time.Duration{3 * second}, -1, 3 * second},
		{"the last one counts, when it is later", []time.Duration{second, 3 * second}, -1, 3 * second},
		{"the last one counts, when it is earlier", []time.Duration{3 * second, second}, -1, second},
		{"later while it lasts", []time.Duration{second}, 3 * second, 3 * second},
		{"earlier while it lasts", []time.Duration{3 * second}, second, second},
		{"none any more", []time.Duration{second, never}, 3 * second, 3 * second},
		{"none any more while it lasts", []time.Duration{second}, never, 10 * second},
		{"long ago", []time.Duration{-100 * second}, -1, 0},
		{"long ago while it lasts", []time.Duration{3 * second}, -100 * second, second / 2},
		{"passed before it began", []time.Duration{-second / 2}, -1, 0},
	} {
		for _, write := range []bool{false, true} {
			name := "read/" + row.name
			if write {
				name = "write/" + row.name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c, client := pair(t)
					set, use := c.SetReadDeadline, c.Read
					if write {
						set, use = c.SetWriteDeadline, c.Write
					}
					time.Sleep(10 * second)
					begin := time.Now()
					ask := func(d time.Duration) {
						if d == never {
							set(time.Time{})
						} else {
							set(begin.Add(d))
						}
					}
					for _, d := range row.asked {
						ask(d)
					}
					if row.after != -1 {
						time.AfterFunc(second/2, func() { ask(row.after) })
					}
					time.AfterFunc(10*second, func() { client.Close() })
					_, err := use(make([]byte, 1))
					if took := time.Since(begin); took != row.ends || errors.Is(err, os.ErrDeadlineExceeded) != (row.ends < 10*second) {
						t.Errorf("it ended after %v with %v, want %v", took, err, row.ends)
					}
				})
			})
		}
	}
}

// TestConnectionLivesOnAfterADeadline: net/http ends its own read between two requests with a deadline of long ago.
func TestConnectionLivesOnAfterADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, client := pair(t)
		for range 3 {
			ended := make(chan error)
			go func() {
				_, err := c.Read(make([]byte, 1))
				ended <- err
			}()
			synctest.Wait()
			c.SetReadDeadline(time.Unix(1, 0))
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(time.Minute))
			go client.Write([]byte("x"))
			if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(2 * time.Minute) // nothing is read, and the deadline passes
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
		}
	})
}

// pair returns a connection as the server has it, and its client's end.
func pair(t *testing.T) (net.Conn, net.Conn) {
	listener, client := pipe(t)
	c, err := patient{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, client
}

// pipe returns a listener with one connection, and its client's end.
func pipe(t *testing.T) (net.Listener, net.Conn) {
	server, client := net.Pipe()
	t.Cleanup(func() { server.Close(); client.Close() })
	conns := make(chan net.Conn, 1)
	conns <- server
	return queue{conns}, client
}

// queue is a listener for the connections in it.
type queue struct{ conns chan net.Conn }

func (l queue) Accept() (net.Conn, error) {
	if c, open := <-l.conns; open {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l queue) Addr() net.Addr { return &net.TCPAddr{} }
func (l queue) Close() error   { close(l.conns); return nil }
