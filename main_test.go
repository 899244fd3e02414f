package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/edge"
	"authhub/internal/flags"
	"authhub/internal/passwd"
)

// testClock is a clock that stands until a test moves it.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock {
	return &testClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *testClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testHub is a hub behind its edge, called without a socket.
type testHub struct {
	*Hub
	t       testing.TB
	clock   *testClock
	handler http.Handler
	remote  string // address that requests come from
}

// newTestHub returns an ephemeral hub with a clock of its own, or the hub that these flags ask for.
func newTestHub(t testing.TB, flags ...string) *testHub {
	t.Helper()
	if len(flags) == 0 {
		flags = []string{"-ephemeral"}
	}
	h, stop := openTestHub(t, newTestClock(), flags...)
	t.Cleanup(stop)
	return h
}

// openTestHub is newTestHub for tests that stop the hub themselves, or start it again on the same folder.
func openTestHub(t testing.TB, clock *testClock, flags ...string) (*testHub, func()) {
	t.Helper()
	return openLoggingHub(t, testLog(t), clock, flags...)
}

// openLoggingHub is openTestHub for tests in which the hub has reason to log errors.
func openLoggingHub(t testing.TB, log *slog.Logger, clock *testClock, flags ...string) (*testHub, func()) {
	t.Helper()
	o, err := newProgram(flags)
	if err != nil {
		t.Fatal(err)
	}
	o.now, o.rand = clock.time, testRand()
	o.rounds = passwd.EphemeralRounds // the race detector makes the full number take seconds
	if o.BaseURL == "" {
		o.BaseURL = "http://hub.test"
	}
	hub, stop, err := openHub(o, log)
	if err != nil {
		t.Fatal(err)
	}
	edge := edge.New(edge.Config{Next: hub, Loopback: true, BaseHost: "hub.test", Origins: o.CORS})
	return &testHub{Hub: hub, t: t, clock: clock, handler: described(t, edge), remote: "127.0.0.1:40000"}, sync.OnceFunc(stop)
}

// testRand returns reproducible randomness that may be read by many at once.
func testRand() io.Reader {
	return &lockedReader{reader: rand.NewChaCha8([32]byte([]byte("a seed of thirty-two bytes, fixed")[:32]))}
}

type lockedReader struct {
	mu     sync.Mutex
	reader io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reader.Read(p)
}

// testLog returns a logger that fails the test on an error: what is logged as one is a defect of the hub.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(&failingHandler{slog.NewTextHandler(io.Discard, nil), t})
}

type failingHandler struct {
	slog.Handler
	t testing.TB
}

func (h *failingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		var attrs []string
		r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a.String()); return true })
		h.t.Errorf("logged: %s %s", r.Message, strings.Join(attrs, " "))
	}
	return nil
}

// answer is an answer, its body read.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request. body is sent as JSON unless it is a string, which is sent as it is; options are pairs of
// header name and value.
func (h *testHub) do(method, target string, body any, options ...string) *answer {
	h.t.Helper()
	var reader io.Reader
	header := http.Header{}
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			h.t.Fatal(err)
		}
		reader, header = bytes.NewReader(data), http.Header{"Content-Type": {"application/json"}}
	}
	r := httptest.NewRequest(method, target, reader)
	r.Host, r.RemoteAddr, r.Header = "hub.test", h.remote, header
	for i := 0; i < len(options); i += 2 {
		if options[i] == "Host" {
			r.Host = options[i+1]
			continue
		}
		r.Header.Add(options[i], options[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return &answer{h.t, w.Code, w.Result().Header, w.Body.Bytes()}
}

func (h *testHub) get(target string, options ...string) *answer {
	h.t.Helper()
	return h.do("GET", target, nil, options...)
}

func (h *testHub) post(target string, body any, options ...string) *answer {
	h.t.Helper()
	return h.do("POST", target, body, options...)
}

// want fails the test unless the answer has this status and, where one is given, this problem code.
func (a *answer) want(status int, code ...string) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if len(code) == 0 {
		return a
	}
	if got := a.str("code"); got != code[0] {
		a.t.Fatalf("code %q, want %q: %s", got, code[0], a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("Content-Type %q of a problem", got)
	}
	if status == http.StatusUnauthorized && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
		a.t.Errorf("WWW-Authenticate %q", a.header.Get("WWW-Authenticate"))
	}
	return a
}

// json returns the body decoded.
func (a *answer) json() map[string]any {
	a.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func (a *answer) str(member string) string {
	a.t.Helper()
	s, _ := a.json()[member].(string)
	return s
}

// pair is what login and refresh give.
type pair struct{ access, refresh string }

func (a *answer) pair() pair { return pair{a.str("access_token"), a.str("refresh_token")} }

func (h *testHub) login(name string) pair {
	h.t.Helper()
	return h.post("/api/authentication/login", map[string]any{"username": name, "password": name + "-password"}).want(200).pair()
}

func (h *testHub) me(token string) *answer {
	h.t.Helper()
	return h.get("/api/authentication/me", bearerOf(token)...)
}

func (h *testHub) refreshWith(token string) *answer {
	h.t.Helper()
	return h.post("/api/authentication/refresh", map[string]string{"refresh_token": token})
}

func bearerOf(token string) []string { return []string{"Authorization", "Bearer " + token} }

// process is cli running in this process, with a real socket.
type process struct {
	base   string
	stderr *bytes.Buffer // complete once stopped
	stop   func() int    // ends it and returns the exit status
}

// startProcess runs cli until the test ends and waits for its line on stdout.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	line, stdout := io.Pipe()
	p := &process{stderr: new(bytes.Buffer)}
	status := make(chan int, 1)
	go func() {
		status <- cli(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), strings.NewReader(""), stdout, p.stderr)
		stdout.Close()
	}()
	p.stop = sync.OnceValue(func() int { cancel(); return <-status })
	t.Cleanup(func() { p.stop() })
	if _, err := fmt.Fscanln(line, &p.base); err != nil {
		t.Fatalf("no line on stdout: %v\n%s", err, p.stderr)
	}
	go io.Copy(io.Discard, line)
	return p
}

// call sends a request over the socket and returns the answer, whose status must be as wanted.
func (p *process) call(t *testing.T, want int, method, path, contentType, body, token string) *answer {
	t.Helper()
	r, err := http.NewRequest(method, p.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range answerFaults(r, resp.StatusCode, resp.Header, data) {
		t.Errorf("%s %s: %d: %s", method, path, resp.StatusCode, fault)
	}
	return (&answer{t, resp.StatusCode, resp.Header, data}).want(want)
}

func TestReadyFile(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "ready", "what an earlier hub wrote")
	dir := filepath.Join(t.TempDir(), "hub")
	hub := startProcess(t, "-dir", dir, "-log", "off", "-ready-file", file)
	if got := readFile(t, file); got != hub.base+"\n" {
		t.Errorf("%q after the line on stdout, which says %s", got, hub.base)
	}
	for _, args := range [][]string{
		{"-dir", t.TempDir(), "-addr", strings.TrimPrefix(hub.base, "http://")}, // its port
		{"-dir", dir, "-addr", "127.0.0.1:0"},                                   // its folder
	} {
		var stderr bytes.Buffer
		if status := cli(t.Context(), append(args, "-ready-file", file), nil, io.Discard, &stderr); status != 1 {
			t.Errorf("%v: exit status %d, %s", args, status, &stderr)
		}
		if got := readFile(t, file); got != hub.base+"\n" {
			t.Errorf("%v: %q after a start that failed", args, got)
		}
	}

	hub.stop()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hub that is gone is still ready: %v", err)
	}
}

// TestStory is the newcomer's story, from the start of the process to a restart that has forgotten nothing.
func TestStory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	hub := startProcess(t, "-dir", dir)
	const form = "application/x-www-form-urlencoded"

	session := hub.call(t, 200, "POST", "/api/authentication/login", form, "username=demo&password=demo-password", "")
	first := session.pair()
	if name := hub.call(t, 200, "GET", "/api/authentication/me", "", "", first.access).str("username"); name != "demo" {
		t.Errorf("me is %q", name)
	}
	second := hub.call(t, 200, "POST", "/api/authentication/refresh", form, "refresh_token="+first.refresh, "").pair()

	available := func() (n int) {
		for _, f := range hub.call(t, 200, "GET", "/api/files/phase2", "", "", "").json()["phase2_files"].([]any) {
			if f.(map[string]any)["available"] == true {
				n++
			}
		}
		return n
	}
	if n := available(); n != 0 {
		t.Errorf("%d files before the first run", n)
	}
	if status := hub.call(t, 200, "POST", "/api/run-ph-barrier-phase2", "", "", "").str("status"); status != "succeeded" {
		t.Errorf("run %s", status)
	}
	if n := available(); n != 3 {
		t.Errorf("%d files after the run", n)
	}
	for _, name := range []string{"barrier", "impact", "alertesph"} {
		hub.call(t, 200, "GET", "/api/files/phase2/"+name, "", "", "").json()
	}
	fresh := hub.call(t, 201, "POST", "/api/authentication/register", "application/json",
		`{"username":"kim","password":"correct horse","email":"kim@example.test"}`, "").pair()

	if status := hub.stop(); status != 0 {
		t.Fatalf("exit status %d\n%s", status, hub.stderr)
	}
	for _, secret := range []string{"demo-password\"", "correct horse", first.access, second.refresh} {
		if strings.Contains(hub.stderr.String(), secret) {
			t.Errorf("the log holds a secret: %s", secret)
		}
	}
	hub = startProcess(t, "-dir", dir, "-log", "off")

	hub.call(t, 200, "GET", "/api/authentication/me", "", "", second.access)
	hub.call(t, 200, "GET", "/api/authentication/me", "", "", fresh.access)
	hub.call(t, 200, "POST", "/api/authentication/login", form, "email=kim@example.test&password=correct+horse", "")
	if n := available(); n != 3 {
		t.Errorf("%d files after the restart", n)
	}
	hub.call(t, 204, "POST", "/api/authentication/logout", "", "", second.access)
	hub.call(t, 401, "GET", "/api/authentication/me", "", "", second.access).want(401, "token_revoked")
	hub.call(t, 401, "POST", "/api/authentication/refresh", form, "refresh_token="+first.refresh, "").want(401, "token_revoked")
	if status := hub.stop(); status != 0 || hub.stderr.Len() > 0 {
		t.Errorf("exit status %d with -log off: %s", status, hub.stderr)
	}
}

// A terminal signals the whole group, and a parent such as npm passes its signal on: a second one, while a client still
// uploads, stops nothing that the first has not stopped.
func TestASecondSignalDoesNotKill(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	ready := filepath.Join(t.TempDir(), "ready")
	p := startChild(t, "-ephemeral", "-ready-file", ready)
	p.mustBeReady(t)
	upload, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(upload, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", runPath)
	if line, err := bufio.NewReader(upload).ReadString('\n'); !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}

	p.cmd.Process.Signal(os.Interrupt)
	eventually(t, "the hub stops", func() bool { return strings.Contains(p.said(), "stopping") })
	p.cmd.Process.Signal(os.Interrupt)
	time.AfterFunc(50*time.Millisecond, func() { upload.Close() }) // had the second one killed it, it would be dead by then
	<-p.ended
	if status := p.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if _, err := os.Stat(ready); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ready file: %v", err)
	}
}

// A test run that reads the address and lets go of both pipes keeps its hub.
func TestNobodyHasToReadTheLog(t *testing.T) {
	t.Parallel()
	p := startChild(t, "-ephemeral", "-log", "text")
	p.mustBeReady(t)
	p.stderr.Close()
	for range 3 {
		if a := p.ask(t, "GET", "/api", "", ""); a == nil || a.status != 200 {
			t.Fatalf("answer %v", a)
		}
	}
}

func TestTheAddressThatClientsKnow(t *testing.T) {
	t.Parallel()
	hub := startProcess(t, "-ephemeral", "-base-url", "https://hub.example")
	hub.stop()
	if said := hub.stderr.String(); hub.base != "https://hub.example" || !strings.Contains(said, "It listens on http://127.0.0.1:") {
		t.Errorf("stdout %q, stderr\n%s", hub.base, said)
	}
}

func TestAHubStoppedDuringItsFirstRunIsNotAnnounced(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	var stdout bytes.Buffer
	if status := cli(ended, []string{"-addr", "127.0.0.1:0", "-ephemeral", "-run"}, nil, &stdout, io.Discard); status != 0 || stdout.Len() > 0 {
		t.Errorf("exit status %d, stdout %q", status, &stdout)
	}
}

// The demo accounts on a network are worth a warning to those, too, who want no log.
func TestWhoBindsWiderIsWarned(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args   []string
		warned bool
	}{
		{[]string{"-log", "off"}, true},
		{[]string{"-log", "json"}, true},
		{[]string{"-log", "off", "-users", writeUsers(t, 1)}, false},
	} {
		hub := startProcess(t, append(row.args, "-ephemeral", "-addr", "0.0.0.0:0")...)
		hub.stop()
		if warned := strings.Contains(hub.stderr.String(), "demo accounts"); warned != row.warned {
			t.Errorf("%v: stderr %q", row.args, hub.stderr)
		}
	}
}

func TestAFileOfReadingsMayComeLater(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plant.csv")
	hub := startProcess(t, "-ephemeral", "-readings", file)
	hub.call(t, 422, "POST", runPath, "", "", "")
	if err := os.WriteFile(file, []byte(fourReadings), 0o600); err != nil {
		t.Fatal(err)
	}
	hub.call(t, 200, "POST", runPath, "", "", "")
	hub.stop()
	if said := hub.stderr.String(); !strings.Contains(said, "no readings yet") || !strings.Contains(said, "plant.csv") {
		t.Errorf("no warning in\n%s", said)
	}
}

func TestASecretIsTheSameFromFileAndEnvironment(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	made, err1 := openSecret(path)
	kept, err2 := openSecret(path)
	if err := errors.Join(err1, err2); err != nil || len(made) < flags.MinSecret || !bytes.Equal(made, kept) {
		t.Errorf("made %q, then read %q, %v", made, kept, err)
	}
	if file := readFile(t, path); file != string(made)+"\n" {
		t.Errorf("the file holds %q", file)
	}
}

func TestExitStatusAndOutput(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing", "file")
	short := filepath.Join(t.TempDir(), "short")
	if err := errors.Join(os.Mkdir(short, 0o700), os.WriteFile(filepath.Join(short, "secret"), []byte("too short"), 0o600)); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(t.TempDir(), "held")
	holder := startProcess(t, "-dir", held, "-log", "off")
	for _, row := range []struct {
		name, args     string
		status         int
		stdout, stderr string // substrings
	}{
		{"help", "-help", 0, "Usage:", ""},
		{"version", "-version", 0, "authhub ", ""},
		{"unknown flag", "-adr :80", 2, "", "-adr"},
		{"argument", "serve", 2, "", `"serve"`},
		{"bad address", "-addr 8080", 2, "", "-addr"},
		{"no port", "-addr 127.0.0.1:99999", 2, "", "-addr"},
		{"no folder", "-dir=", 2, "", "-dir"},
		{"bad lifetime", "-access-ttl 15", 2, "", "access-ttl"},
		{"no lifetime", "-refresh-ttl 0s", 2, "", "-refresh-ttl"},
		{"bad group", "-protect files,everything", 2, "", "everything"},
		{"bad origin", "-cors app.example", 2, "", "app.example"},
		{"pattern of origins", "-cors https://*.example", 2, "", "*.example"},
		{"bad base URL", "-base-url ftp://x", 2, "", "-base-url"},
		{"base URL with a user", "-base-url http://u:p@x", 2, "", "-base-url"},
		{"base URL with a query", "-base-url http://x?", 2, "", "-base-url"},
		{"base URL of no port", "-base-url http://x:99999", 2, "", "port"},
		{"base URL with an empty port", "-base-url http://x:", 2, "", "-base-url"},
		{"bad log", "-log loud", 2, "", "loud"},
		{"taken port", "-ephemeral -addr " + strings.TrimPrefix(holder.base, "http://"), 1, "", "is in use"},
		{"held folder", "-dir " + held, 1, "", fmt.Sprintf("process %d", os.Getpid())},
		{"short secret", "-dir " + short, 1, "", "32 bytes"},
		{"no users", "-ephemeral -users " + missing, 1, "", "missing"},
		{"run without readings", "-ephemeral -run -log off -readings " + missing, 1, "", "can't be opened"},
		{"check of nothing", "-check=", 2, "", "-check"},
		{"check of no address", "-check 127.0.0.1:8080", 1, "", "127.0.0.1:8080"},
		{"ready file in no folder", "-ephemeral -log off -ready-file " + missing, 1, "", "-ready-file"},
		{"unhealthy", "-check http://127.0.0.1:1", 1, "", "127.0.0.1:1"},
		{"healthy", "-check " + holder.base, 0, "", ""},
		{"healthy by the address of its health", "-check " + holder.base + "/healthz", 0, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(row.args)
			if !strings.Contains(row.args, "-addr") && !strings.HasPrefix(args[0], "-check") {
				args = append([]string{"-addr", "127.0.0.1:0"}, args...)
			}
			var stdout, stderr bytes.Buffer
			if status := cli(context.Background(), args, strings.NewReader(""), &stdout, &stderr); status != row.status {
				t.Errorf("exit status %d, want %d", status, row.status)
			}
			if !strings.Contains(stdout.String(), row.stdout) || row.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q", &stdout)
			}
			if !strings.Contains(stderr.String(), row.stderr) || strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("stderr %q, want one line with %q", &stderr, row.stderr)
			}
		})
	}
}

// writeFile returns the path of a new file with this content, in a folder of its own.
func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
