// Sockets: clients that are slow, idle, too many, too large or out of shape, against the server as it is, with
// its patience cut short.

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// served is the hub on a socket of its own, in this process.
type served struct {
	addr string
	dir  string
	log  *lockedBuffer // stderr
}

// lockedBuffer is a buffer that one may write to while another reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serveHub runs a hub with this patience until the test ends.
func serveHub(t *testing.T, patience timeouts, args ...string) *served {
	t.Helper()
	s := &served{dir: t.TempDir(), log: new(lockedBuffer)}
	o, err := parseFlags(append([]string{"-addr", "127.0.0.1:0", "-dir", s.dir, "-log", "json"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	o.timeouts, o.rounds = patience, ephemeralRounds
	ctx, cancel := context.WithCancel(context.Background())
	line, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, o, strings.NewReader(""), stdout, s.log)
		stdout.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if strings.Contains(s.log.String(), `"msg":"panic"`) {
			t.Errorf("a panic: %s", s.log)
		}
	})
	base, err := bufio.NewReader(line).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.addr = strings.TrimPrefix(strings.TrimSpace(base), "http://")
	return s
}

var shortPatience = timeouts{header: 150 * time.Millisecond, idle: 300 * time.Millisecond, read: 300 * time.Millisecond, write: 300 * time.Millisecond, upload: time.Second}

func (s *served) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// statuses reads answers until the connection ends or n have come.
func statuses(c net.Conn, n int) (got []int) {
	r := bufio.NewReader(c)
	for len(got) < n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return got
		}
		if resp.StatusCode == 100 {
			got = append(got, 100)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		got = append(got, resp.StatusCode)
	}
	return got
}

// mustBeWell asks as another client would.
func (s *served) mustBeWell(t testing.TB) {
	t.Helper()
	c := s.dial(t)
	defer c.Close()
	start := time.Now()
	fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.addr)
	if got := statuses(c, 1); !slices.Equal(got, []int{200}) {
		t.Fatalf("the hub is not well: %v", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("another client waited %v", took)
	}
}

// TestShapes sends requests in every shape that two parsers might read in two ways.
func TestShapes(t *testing.T) {
	t.Parallel()
	s := serveHub(t, shortPatience)
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	const smuggled = "GET /api HTTP/1.1\r\nHost: HOST\r\n\r\n"
	for _, row := range []struct {
		name, send string
		want       []int // statuses in order, then the connection ends or falls silent
	}{
		{"Content-Length and Transfer-Encoding", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n", []int{422}},
		{"Content-Length that would smuggle", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 42\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{422, 200}},
		{"two equal Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 3\r\n" + form + "\r\na=b", []int{422}},
		{"two Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 4\r\n" + form + "\r\na=b" + smuggled, []int{400}},
		{"list of Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3, 3\r\n" + form + "\r\na=b" + smuggled, []int{400}},
		{"negative Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", []int{400}},
		{"signed Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: +3\r\n" + form + "\r\na=b", []int{400}},
		{"Content-Length beyond 64 bits", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n", []int{400}},
		{"huge Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9223372036854775807\r\n" + form + "\r\n", []int{413}},
		{"huge Content-Length of an upload", "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9223372036854775807\r\nContent-Type: text/csv\r\n\r\n", []int{413}},
		{"chunked twice", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"Transfer-Encoding twice", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"unknown Transfer-Encoding", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"Transfer-Encoding with a vertical tab", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: \x0bchunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"space before the colon", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding : chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk size of garbage", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\nzz\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk size beyond 64 bits", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk that is longer than it says", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n1\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunks that end with a bare LF", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n3\na=b\n0\n\n" + smuggled, []int{400}},
		{"bare LF", "GET /healthz HTTP/1.1\nHost: HOST\n\n", []int{200}},
		{"bare CR in a value", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: a\rb\r\n\r\n", []int{400}},
		{"NUL in a value", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: a\x00b\r\n\r\n", []int{400}},
		{"obs-fold", "GET /api/authentication/me HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer\r\n x\r\n\r\n", []int{401}},
		{"obs-fold first", "GET /healthz HTTP/1.1\r\n Host: HOST\r\n\r\n", []int{400}},
		{"no Host", "GET /healthz HTTP/1.1\r\n\r\n", []int{400}},
		{"two Hosts", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", []int{400}},
		{"Host of garbage", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}},
		{"Host in the target", "GET http://evil.test/healthz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{403}},
		{"HTTP/1.0", "GET /healthz HTTP/1.0\r\nHost: HOST\r\n\r\n", []int{200}},
		{"HTTP/1.0 without Host", "GET /healthz HTTP/1.0\r\n\r\n", []int{403}},
		{"HTTP/1.0 with Transfer-Encoding", "POST /api/authentication/login HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{422}},
		{"HTTP/0.9", "GET /healthz\r\n\r\n", []int{400}},
		{"HTTP/9.9", "GET /healthz HTTP/9.9\r\nHost: HOST\r\n\r\n", []int{505}},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{403}},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{404}},
		{"OPTIONS * of another host", "OPTIONS * HTTP/1.1\r\nHost: evil.test\r\n\r\n", []int{403}},
		{"CONNECT", "CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n", []int{403}},
		{"method of garbage", "G(T /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target of garbage", "GET /%zz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target with a control", "GET /\x01 HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target of 20 KiB", "GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{431}},
		{"field of 17 KiB", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", []int{431}},
		{"5,000 fields", "GET /healthz HTTP/1.1\r\nHost: HOST\r\n" + strings.Repeat("X: a\r\n", 5_000) + "\r\n", []int{431}},
		{"body of 65 KiB", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Content-Length: 66560\r\n\r\n" + strings.Repeat("a", 65<<10), []int{413}},
		{"chunked body of 65 KiB", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Transfer-Encoding: chunked\r\n\r\n10400\r\n" + strings.Repeat("a", 65<<10) + "\r\n0\r\n\r\n", []int{413}},
		{"body of a GET", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello" + smuggled, []int{200, 200}},
		{"Expect: 100-continue", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\na=b", []int{100, 422}},
		{"Expect: 100-continue with too much", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Expect: 100-continue\r\nContent-Length: 70000\r\n\r\n", []int{413}},
		{"Expect: 100-continue at a foreign host", "POST /api/authentication/login HTTP/1.1\r\nHost: evil.test\r\n" + form + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", []int{403}},
		{"Expect: something else", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nExpect: miracles\r\nContent-Length: 0\r\n\r\n", []int{417}},
		{"Upgrade to h2c", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", []int{200}},
		{"fifty in a row", strings.Repeat(smuggled, 50), slices.Repeat([]int{200}, 50)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := s.dial(t)
			io.WriteString(c, strings.ReplaceAll(row.send, "HOST", s.addr))
			c.CloseWrite()
			if got := statuses(c, len(row.want)+1); !slices.Equal(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
			s.mustBeWell(t)
		})
	}
}

// census is what a hub holds in this process.
type census struct{ goroutines, descriptors int }

func takeCensus(t testing.TB) census {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // there is no such folder but on Linux
		t.Fatal(err)
	}
	return census{runtime.NumGoroutine(), len(fds)}
}

// mustReturnTo waits until what before counted is all that is held.
func (before census) mustReturnTo(t testing.TB) {
	t.Helper()
	eventually(t, fmt.Sprintf("goroutines and descriptors are back at %+v", before), func() bool {
		now := takeCensus(t)
		return now.goroutines <= before.goroutines && now.descriptors <= before.descriptors
	})
}

// largeResult puts a file of n bytes in the place of a result.
func (s *served) largeResult(t *testing.T, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "phase2", barrierFile.name()), bytes.Repeat([]byte("x"), n), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSlowClients: each kind of slowness ends with its time-out, holds nobody up and leaves nothing behind. Not
// parallel: it counts the goroutines and descriptors of the process.
func TestSlowClients(t *testing.T) {
	s := serveHub(t, shortPatience)
	s.largeResult(t, 24<<20)
	s.mustBeWell(t)
	before := takeCensus(t)
	const each = 40
	for _, row := range []struct{ name, send string }{
		{"says nothing", ""},
		{"slow header", "GET /healthz HTTP/1.1\r\nHost: " + s.addr + "\r\nX-"},
		{"slow body", "POST /api/authentication/login HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"},
		{"slow chunks", "POST /api/authentication/login HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"},
		{"slow upload", "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Type: text/csv\r\nContent-Length: 100\r\n\r\ntime,"},
		{"announced body that never comes", "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Length: 100\r\n\r\n"},
		{"idle after an answer", "GET /healthz HTTP/1.1\r\nHost: " + s.addr + "\r\n\r\n"},
		{"does not read", "GET /api/files/phase2/barrier HTTP/1.1\r\nHost: " + s.addr + "\r\n\r\n"},
	} {
		var conns []*net.TCPConn
		for range each {
			c := s.dial(t)
			c.SetReadBuffer(16 << 10)
			io.WriteString(c, row.send)
			conns = append(conns, c)
		}
		s.mustBeWell(t)
		eventually(t, "the hub has let go of clients of the kind: "+row.name, func() bool {
			return takeCensus(t).goroutines <= before.goroutines
		})
		for _, c := range conns {
			c.Close()
		}
		before.mustReturnTo(t)
	}
	if names := mustList(t, filepath.Join(s.dir, "phase2")); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// TestSteadyClients: who reads or writes slowly but steadily is served, however long it takes.
func TestSteadyClients(t *testing.T) {
	t.Parallel()
	patience := timeouts{header: time.Second, idle: time.Second, read: 700 * time.Millisecond, write: 700 * time.Millisecond, upload: time.Minute}
	s := serveHub(t, patience)
	const size = 24 << 20
	s.largeResult(t, size)
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()

	reader := s.dial(t)
	reader.SetReadBuffer(64 << 10)
	fmt.Fprintf(reader, "GET /api/files/phase2/barrier HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.addr)
	start, n, part := time.Now(), 0, make([]byte, 512<<10)
	for {
		got, err := io.ReadFull(reader, part)
		if n += got; err != nil {
			break
		}
		<-tick.C
	}
	if took := time.Since(start); n < size || took < patience.write {
		t.Errorf("%d of %d bytes after %v", n, size, took)
	}

	writer := s.dial(t)
	fmt.Fprintf(writer, "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: %s\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n", s.addr, len(fourReadings))
	for start = time.Now(); time.Since(start) < 2*patience.read; <-tick.C {
	} // not a byte yet: too slow
	io.WriteString(writer, fourReadings)
	if got := statuses(writer, 1); !slices.Equal(got, []int{400}) {
		t.Errorf("an upload that pauses for too long: %v", got)
	}
	start, writer = time.Now(), s.dial(t)
	fmt.Fprintf(writer, "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: %s\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n", s.addr, len(fourReadings))
	for b := range strings.SplitSeq(fourReadings, "") {
		io.WriteString(writer, b)
		if b == "0" {
			<-tick.C
		}
	}
	if got := statuses(writer, 1); !slices.Equal(got, []int{200}) || time.Since(start) < patience.read {
		t.Errorf("an upload in drips, %v: %v", time.Since(start), got)
	}
}

// TestPatienceOfARun: a run that takes longer than an answer may take to go out is still answered.
func TestPatienceOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "readings.csv")
	if err := mkfifo(fifo); err != nil {
		t.Skip(err)
	}
	s := serveHub(t, shortPatience, "-readings", fifo)
	for _, body := range []string{"Content-Length: 0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"} {
		c := s.dial(t)
		fmt.Fprintf(c, "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: %s\r\n%s", s.addr, body)
		var readings *os.File
		eventually(t, "run that reads", func() (reading bool) {
			var err error
			readings, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0) // refused as long as nobody reads
			return err == nil
		})
		<-time.After(3 * shortPatience.write) // the story is about this much time passing
		io.WriteString(readings, fourReadings)
		readings.Close()
		if got := statuses(c, 1); !slices.Equal(got, []int{200}) {
			t.Errorf("%q: %v", body, got)
		}
	}
}

// TestIdleConnections opens thousands of connections and leaves them alone. Not parallel: it counts.
func TestIdleConnections(t *testing.T) {
	s := serveHub(t, usualTimeouts())
	s.mustBeWell(t)
	before := takeCensus(t)
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	held := memory.HeapInuse + memory.StackInuse

	const many = 5_000
	conns := make([]net.Conn, 0, many)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range many {
		c, err := net.Dial("tcp", s.addr)
		require(t, err == nil, fmt.Sprintf("room for %d connections: %v", many, err))
		conns = append(conns, c)
		if i%2 == 0 { // half of them have been used
			fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", s.addr)
			statuses(c, 1)
		}
	}
	eventually(t, "the hub has taken them all", func() bool { return runtime.NumGoroutine() >= many })
	for range 20 {
		s.mustBeWell(t)
	}
	runtime.GC()
	runtime.ReadMemStats(&memory)
	t.Logf("%d idle connections hold %d KiB each, both ends", many, (memory.HeapInuse+memory.StackInuse-held)/many/1024)
	for _, c := range conns {
		c.Close()
	}
	conns = nil
	before.mustReturnTo(t)
}
