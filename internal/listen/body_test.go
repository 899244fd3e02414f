package listen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestARefusedBody: whoever still sends hears why the hub does not want it, after however many parts; whoever stops
// hears it a second later.
func TestARefusedBody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		parts int // of 64 KiB, of a body of 16
		pause time.Duration
		hears time.Duration // after the request
	}{
		"sent at once":                     {16, 0, 0},
		"over a slow line":                 {16, 900 * time.Millisecond, 16 * 900 * time.Millisecond},
		"only promised":                    {0, 0, time.Second},
		"that stops, and goes on too late": {3, 1200 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := refusing(t)
				began := time.Now()
				fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 1048576\r\n\r\n")
				go func() {
					for range row.parts {
						time.Sleep(row.pause)
						client.Write(make([]byte, 64<<10))
					}
				}()
				answer, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer time.Sleep(time.Minute) // until the connection has ended
				if took := time.Since(began); answer.StatusCode != 413 || took != row.hears {
					t.Errorf("%v after %v, want 413 after %v", answer.Status, took, row.hears)
				}
			})
		})
	}
}

// refusing returns a connection to a server that wants no body.
func refusing(t *testing.T) net.Conn {
	listener, client := pipe(t)
	s := Start(listener, Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}),
		Timeouts:    UsualTimeouts(),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return ctx },
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	t.Cleanup(func() { s.http.Close() })
	return client
}
