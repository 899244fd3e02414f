// Hubs in processes of their own: this test binary, started again as the program.

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/passwd"
	"authhub/internal/phase2"
)

// TestMain makes the test binary the program itself where the environment says so. It differs in two things: its
// passwords are hashed with few rounds, since the race detector makes the full number take seconds; and for each
// line on standard input it says on standard error what it holds.
func TestMain(m *testing.M) {
	if os.Getenv("AUTHHUB_TEST_PROCESS") == "" {
		os.Exit(m.Run())
	}
	go reportHoldings()
	o, err := newProgram(os.Args[1:])
	if err == nil {
		o.rounds = passwd.EphemeralRounds
		err = serve(untilSignalled(), o, strings.NewReader(""), os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "authhub:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// reportHoldings answers each line on standard input.
func reportHoldings() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		fmt.Fprintf(os.Stderr, "holdings %d %d\n", runtime.NumGoroutine(), memory.HeapAlloc)
	}
}

// child is a hub that can be killed.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Writer
	stderr io.Closer     // end of the pipe that log is read from
	base   string        // "" until it has announced itself
	ready  chan struct{} // closed when it has, or when it never will
	ended  chan struct{} // closed when the process is gone
	client *http.Client

	mu  sync.Mutex
	log bytes.Buffer // stderr
}

// startChild starts the program on a free port.
func startChild(t testing.TB, args ...string) *child {
	t.Helper()
	p := &child{
		cmd:    exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...),
		ready:  make(chan struct{}),
		ended:  make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second},
	}
	p.cmd.Env = append(os.Environ(), "AUTHHUB_TEST_PROCESS=1", "AUTHHUB_SECRET=")
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	stderr, err3 := p.cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	p.stdin, p.stderr = stdin, stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var read sync.WaitGroup
	read.Go(func() { io.Copy(p, stderr) })
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		p.base = strings.TrimSpace(line)
		close(p.ready)
		io.Copy(io.Discard, stdout)
		read.Wait()
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// Write keeps what the process says on stderr.
func (p *child) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *child) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill ends the process by SIGKILL and waits until it is gone.
func (p *child) kill() {
	p.cmd.Process.Kill()
	<-p.ended
	p.client.CloseIdleConnections()
}

// mustBeReady waits for the announcement.
func (p *child) mustBeReady(t testing.TB) {
	t.Helper()
	<-p.ready
	if p.base == "" {
		<-p.ended
		t.Fatalf("the hub did not start:\n%s", p.said())
	}
}

// ask sends a request; nil means that no whole answer came.
func (p *child) ask(t testing.TB, method, target, body, token string) *answer {
	r, err := http.NewRequest(method, p.base+target, strings.NewReader(body))
	if err != nil {
		return nil
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	switch {
	case strings.HasPrefix(body, "{"):
		r.Header.Set("Content-Type", "application/json")
	case strings.HasPrefix(body, phase2.Header):
		r.Header.Set("Content-Type", "text/csv")
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	whole, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return &answer{t, resp.StatusCode, resp.Header, whole}
}

// writeUsers makes a -users file of n accounts user0, user1, … with the password "password-" and the name, hashed
// with so few rounds that logins cost next to nothing.
func writeUsers(t testing.TB, n int) string {
	t.Helper()
	var seeds []string
	for i := range n {
		name := fmt.Sprintf("user%d", i)
		hash, err := passwd.NewHasher(1).Hash(t.Context(), rand.Reader, "password-"+name)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, fmt.Sprintf(`{"username":%q,"password_hash":%q}`, name, hash))
	}
	path := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(path, []byte("["+strings.Join(seeds, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustList returns the names in a folder.
func mustList(t testing.TB, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
