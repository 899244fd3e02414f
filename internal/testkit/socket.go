// Raw connections to a hub, for requests that no HTTP client sends.

package testkit

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// Dial opens a connection to a hub, which is closed at the end of the test. A read or write that takes 20 seconds
// fails.
func Dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// Statuses reads answers until the connection ends or n have come, and returns their statuses.
func Statuses(c net.Conn, n int) (got []int) {
	r := bufio.NewReader(c)
	for len(got) < n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return got
		}
		if resp.StatusCode != http.StatusContinue {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		got = append(got, resp.StatusCode)
	}
	return got
}

// MustBeWell asks a hub for its health as another client would, who is served within two seconds.
func MustBeWell(t testing.TB, addr string) {
	t.Helper()
	c := Dial(t, addr)
	defer c.Close()
	start := time.Now()
	fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr)
	if got := Statuses(c, 1); !slices.Equal(got, []int{200}) {
		t.Fatalf("the hub is not well: %v", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("another client waited %v", took)
	}
}

// FreeAddress returns an address of this machine that nobody listens on just now, for a program that must be told one.
// Its port is lower than those that systems give to the connections of others (from 32768 on in Linux), so that it
// stays free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// FreePort returns the port of a FreeAddress.
func FreePort(t testing.TB) string {
	_, port, _ := net.SplitHostPort(FreeAddress(t))
	return port
}
