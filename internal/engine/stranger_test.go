// Starts beside something that is not an etcd to talk to: waiting would not help, so they are refused at once.

package engine_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestStartRefusesStrangersAtOnce: what is wrong with their certificate or their answers stays wrong.
func TestStartRefusesStrangersAtOnce(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it hears of each handshake that fails
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := answering(t, "<html>Welcome</html>")
	for name, row := range map[string]struct{ address, want string }{
		"unknown authority":  {secure.URL, "SSL_CERT_FILE"},
		"another name":       {strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), "example.com"},
		"https to http":      {strings.Replace(plain, "http", "https", 1), "http://"},
		"http to https":      {strings.Replace(secure.URL, "https", "http", 1), "HTTPS"},
		"http to etcd's TLS": {closing(t, secure.TLS), "write https://"},
		"a page":             {plain, "Welcome"},
		"another API":        {answering(t, `{"succeeded":"yes"}`), "as no etcd does"},
		"an API of anything": {answering(t, `{}`), "is not etcd's"},
		"another protocol":   {greeting(t, "-ERR unknown command\r\n"), "malformed HTTP"},
		"none of two":        {plain + "," + secure.URL, "Acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			wantStart(t, config(t, row.address), row.want)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("refused after %v", took)
			}
		})
	}
}

// answering returns the address of a web server that answers everything with body.
func answering(t *testing.T, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	t.Cleanup(server.Close)
	return server.URL
}

// greeting returns the address of a server that says words to each connection and ends it when the client has spoken.
func greeting(t *testing.T, words string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	return ending(t, listener, err, func(conn net.Conn) {
		conn.Read(make([]byte, 64<<10))
		fmt.Fprint(conn, words)
	})
}

// closing returns the address of a server that takes TLS and ends every other connection without a word, as etcd does.
func closing(t *testing.T, secure *tls.Config) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", secure)
	return ending(t, listener, err, func(conn net.Conn) { conn.(*tls.Conn).Handshake() })
}

// ending returns the address of a server that ends each connection after serve, one after the other.
func ending(t *testing.T, listener net.Listener, err error, serve func(net.Conn)) string {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}
