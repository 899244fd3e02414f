// Package listen opens the socket of a hub and runs the server on it, with the time that clients get.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"authhub/internal/flags"
)

// Grace is how long requests under way have to end when the hub stops.
const Grace = 5 * time.Second

const maxHeader = 12 << 10 // net/http reads 4 KiB more than it is told, which makes the 16 KiB of the contract

// Timeouts are how long the hub waits for its clients.
type Timeouts struct {
	Header, Idle time.Duration
	Read         time.Duration // for a whole request, or for the next part of a long body
	Write        time.Duration // for a whole answer, or for the next part of a long one
	Upload       time.Duration // for the longest body
}

// UsualTimeouts are those of every hub outside tests.
func UsualTimeouts() Timeouts {
	return Timeouts{Header: 10 * time.Second, Idle: 2 * time.Minute, Read: 30 * time.Second, Write: time.Minute, Upload: 10 * time.Minute}
}

// Open opens the socket of -addr. Errors: an address in use, or that this process can't have, with what to do about it;
// flags.ErrMisuse for a lab without a key where others than this machine could reach it.
func Open(o *flags.Options) (net.Listener, error) {
	listener, err := net.Listen("tcp", o.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use; choose another address with -addr (port 0 picks a free one)", o.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; with -addr, name an address of this machine and a port that you may open, for example 127.0.0.1:8080", err)
	}
	if o.Lab && strings.TrimSpace(o.LabKey) == "" && !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		listener.Close()
		return nil, fmt.Errorf("-lab on %s, which is not a loopback address: set AUTHHUB_LAB_KEY (%w)", o.Addr, flags.ErrMisuse)
	}
	return listener, nil
}

// Config is what a server is made of.
type Config struct {
	Handler     http.Handler
	Timeouts    Timeouts
	ConnContext func(context.Context, net.Conn) context.Context // as in http.Server
	Log         *slog.Logger
}

// Server is a server that answers.
type Server struct {
	http  *http.Server
	ended chan error // why it does not accept connections any more
	log   *slog.Logger
}

// Start answers on listener from now on.
func Start(listener net.Listener, c Config) *Server {
	s := &Server{ended: make(chan error, 1), log: c.Log, http: &http.Server{
		Handler:           c.Timeouts.drain(c.Handler),
		ReadHeaderTimeout: c.Timeouts.Header,
		ReadTimeout:       c.Timeouts.Read,
		WriteTimeout:      c.Timeouts.Write,
		IdleTimeout:       c.Timeouts.Idle,
		MaxHeaderBytes:    maxHeader,
		ConnContext: func(ctx context.Context, outer net.Conn) context.Context {
			return c.ConnContext(ctx, outer.(*conn).Conn)
		},

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the handler as well
		ErrorLog:                     slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}}
	go func() { s.ended <- s.http.Serve(patient{listener}) }()
	return s
}

// Wait returns after ctx has ended and requests under way have too, or have used up their Grace. Errors: that of a
// listener which fails before.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case err := <-s.ended:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping")
	shutDown(s.http, Grace)
	return nil
}

// shutDown lets requests under way end, for a while.
func shutDown(server *http.Server, patience time.Duration) {
	grace, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		server.Close() // the connections that are left had their time
	}
}
