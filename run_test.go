package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/listen"
	"authhub/internal/passwd"
	"authhub/internal/phase2"
	"authhub/internal/results"
	"authhub/internal/testkit"
)

// TestARun is the story of one run; internal/e2e tells of its parameters, its bodies and the line for it.
func TestARun(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.get(runPath).Want(404, "no_run")
	rec := h.runOn(fourReadings + "x,a,7\n").Want(200).JSON()
	if got := fmt.Sprint(rec["status"], rec["progress"], rec["error"], rec["screening"].(object)["rejected"]); got != "succeeded1 <nil> map[malformed:1 out_of_order:0 saturated:0]" {
		t.Errorf("%s", got)
	}
	for _, path := range []string{"/barrier", "/impact", "/alertesph"} {
		file := h.get(listingPath + path).Want(200).JSON()
		if fmt.Sprint(file["parameters"], file["source"]) != fmt.Sprint(rec["parameters"], rec["source"]) {
			t.Errorf("%s is not of this run: %v", path, file["source"])
		}
	}
	h.runOn("").Want(422, "unusable_readings")
	if failed := h.get(runPath).Want(200).JSON(); failed["status"] != "failed" {
		t.Errorf("%v", failed)
	}
	h.get(listingPath + "/impact").Want(200)
}

// steadyPatience is for clients that read or write slowly but steadily. They are served, however long it takes.
var steadyPatience = listen.Timeouts{Header: time.Second, Idle: time.Second, Read: 700 * time.Millisecond, Write: 700 * time.Millisecond, Upload: time.Minute}

func TestSteadyReaders(t *testing.T) {
	t.Parallel()
	s := serveHub(t, steadyPatience)
	const size = 24 << 20
	s.largeResult(t, size)

	steadily(t, steadyPatience.Write/2, func(p *pace) error {
		reader := testkit.Dial(t, s.addr)
		reader.SetReadBuffer(64 << 10)
		fmt.Fprintf(reader, "GET /api/files/phase2/barrier HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.addr)
		start, n, part := time.Now(), 0, make([]byte, 512<<10)
		for {
			got, err := io.ReadFull(reader, part)
			if n += got; err != nil {
				break
			}
			p.wait()
		}
		if took := time.Since(start); n < size || took < steadyPatience.Write {
			return fmt.Errorf("%d of %d bytes after %v", n, size, took)
		}
		return nil
	})
}

func TestSteadyUploads(t *testing.T) {
	t.Parallel()
	s := serveHub(t, steadyPatience)
	upload := fmt.Sprintf("POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: %s\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n", s.addr, len(fourReadings))
	writer := testkit.Dial(t, s.addr)
	io.WriteString(writer, upload)
	<-time.After(2 * steadyPatience.Read) // not a byte yet: too slow
	io.WriteString(writer, fourReadings)
	if got := testkit.Statuses(writer, 1); !slices.Equal(got, []int{400}) {
		t.Errorf("an upload that pauses for too long: %v", got)
	}
	steadily(t, steadyPatience.Read/2, func(p *pace) error {
		start, writer := time.Now(), testkit.Dial(t, s.addr)
		io.WriteString(writer, upload)
		for b := range strings.SplitSeq(fourReadings, "") {
			io.WriteString(writer, b)
			if b == "0" {
				p.wait()
			}
		}
		if got := testkit.Statuses(writer, 1); !slices.Equal(got, []int{200}) || time.Since(start) < steadyPatience.Read {
			return fmt.Errorf("an upload in drips, %v: %v", time.Since(start), got)
		}
		return nil
	})
}

// pace is the rhythm of a client that goes on every 30 ms, as long as its machine lets it.
type pace struct {
	*time.Ticker
	last    time.Time
	longest time.Duration // between two steps
}

func (p *pace) wait() {
	<-p.C
	now := time.Now()
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
}

// steadily lets a client do something. On a busy machine the client may stand still for longer than it should: then
// it was not steady, and does it again.
func steadily(t *testing.T, longest time.Duration, do func(p *pace) error) {
	t.Helper()
	var err error
	for range 10 {
		p := &pace{Ticker: time.NewTicker(30 * time.Millisecond), last: time.Now()}
		err = do(p)
		p.wait()
		p.Stop()
		if err == nil || p.longest < longest {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestPatienceOfARun: a run that takes longer than an answer may take to go out is still answered.
func TestPatienceOfARun(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no body":         "Content-Length: 0\r\n\r\n",
		"body of nothing": "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveHub(t, shortPatience)
			testkit.MustBeWell(t, s.addr)
			c := testkit.Dial(t, s.addr)
			s.slow.Store(true)
			fmt.Fprintf(c, "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: %s\r\n%s", s.addr, body)
			begun := time.Now()
			got := testkit.Statuses(c, 1)
			s.slow.Store(false)
			if took := time.Since(begun); !slices.Equal(got, []int{200}) || took < 3*shortPatience.Write {
				t.Errorf("%v after %v", got, took)
			}
		})
	}
}

// served is the hub on a socket of its own, in this process.
type served struct {
	addr string
	dir  string
	log  *lockedBuffer // stderr
	slow atomic.Bool   // whoever asks for the time waits for three times shortPatience
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
func serveHub(t *testing.T, patience listen.Timeouts, args ...string) *served {
	t.Helper()
	s := &served{dir: t.TempDir(), log: new(lockedBuffer)}
	o, err := newProgram(append([]string{"-addr", "127.0.0.1:0", "-dir", s.dir, "-log", "json"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	o.timeouts, o.rounds = patience, passwd.EphemeralRounds
	o.now = func() time.Time {
		if s.slow.Load() {
			<-time.After(3 * shortPatience.Write)
		}
		return time.Now()
	}
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

var shortPatience = listen.Timeouts{Header: 150 * time.Millisecond, Idle: 300 * time.Millisecond, Read: 300 * time.Millisecond, Write: 300 * time.Millisecond, Upload: time.Second}

// largeResult puts a file of n bytes in the place of a result.
func (s *served) largeResult(t *testing.T, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "phase2", results.Barrier.Name()), bytes.Repeat([]byte("x"), n), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSlowClients: each kind of slowness ends with its time-out, holds nobody up and leaves nothing behind. Not
// parallel: it counts the goroutines and descriptors of the process.
func TestSlowClients(t *testing.T) {
	s := serveHub(t, shortPatience)
	s.largeResult(t, 24<<20)
	testkit.MustBeWell(t, s.addr)
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
			c := testkit.Dial(t, s.addr)
			c.SetReadBuffer(16 << 10)
			io.WriteString(c, row.send)
			conns = append(conns, c)
		}
		testkit.MustBeWell(t, s.addr)
		testkit.Eventually(t, "the hub has let go of clients of the kind: "+row.name, func() bool {
			return takeCensus(t).goroutines <= before.goroutines
		})
		for _, c := range conns {
			c.Close()
		}
		before.mustReturnTo(t)
	}
	if names := testkit.List(t, filepath.Join(s.dir, "phase2")); len(names) != 1 {
		t.Errorf("left behind: %v", names)
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
	testkit.Eventually(t, fmt.Sprintf("goroutines and descriptors are back at %+v", before), func() bool {
		now := takeCensus(t)
		return now.goroutines <= before.goroutines && now.descriptors <= before.descriptors
	})
}

// FuzzQueries: parameters of runs and of logout.
func FuzzQueries(f *testing.F) {
	h, _ := newFuzzHub(f)
	for _, q := range []string{
		"low=6.5&high=8.5&interval=1h&max_gap=1h", "low=-1e9&high=1e999999999", "low=NaN&high=+Inf", "interval=2562047h47m16.854775807s", "max_gap=2562047h47m16s",
		"max_gap=1ns", "interval=1ns", "interval=-1h", "low=%zz", "low=7;high=8", "low=7&low=8", "all=true", "all=%00", "all=2", strings.Repeat("a&", 5_000), "low=" + strings.Repeat("0", 5_000),
		"low=0.0005&high=13.9994", "low=1e-999999999999", "interval=1e3h", "interval=1h0m0.0000001s",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		h.t = t
		for _, target := range []string{runPath, logoutPath} {
			r := httptest.NewRequest("POST", target, strings.NewReader(fourReadings))
			r.Header.Set("Content-Type", "text/csv")
			if target == logoutPath {
				r.Header.Set("Authorization", "Bearer "+h.login("demo").Access)
			}
			r.URL.RawQuery = query
			h.mustStand(t, r)
			h.clear(t)
		}
	})
}

// FuzzUploads: whatever is sent as readings, the run succeeds or says what is wrong, and leaves nothing behind.
func FuzzUploads(f *testing.F) {
	h, _ := newFuzzHub(f)
	for _, csv := range []string{fourReadings, "", phase2.Header, phase2.Header + "\n", "\ufeff" + phase2.Header + "\r\n2025-01-01T00:00:00Z,a,7\r", phase2.Header + "\n0000-01-01T00:00:00Z,a,7\n9999-12-31T23:59:59Z,a,13.999\n",
		phase2.Header + "\n2025-01-01T00:00:00.999999999999+23:59,\"a\"\"\n\",1e1\n", phase2.Header + "\n\"", "time;station;ph\n1;2;3\n"} {
		f.Add(csv, "low=6.5&high=8.5&interval=1m&max_gap=1s")
		f.Add(csv, "interval=24h")
	}
	f.Fuzz(func(t *testing.T, csv, query string) {
		h.t = t
		r := httptest.NewRequest("POST", runPath, strings.NewReader(csv))
		r.Header.Set("Content-Type", "text/csv; charset=UTF-8")
		r.URL.RawQuery = query
		h.mustStand(t, r)
		if names := testkit.List(t, h.output.Path()); len(names) != results.Count {
			t.Errorf("left behind: %v", names)
		}
	})
}
