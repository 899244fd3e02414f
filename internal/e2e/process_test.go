// Package e2e tests the built binary from outside: over HTTP and sockets, by signals and by files.
//
// This file builds the binary, starts it and ends it. Most tests share one process and take a namespace each
// (newHub); a test that needs flags, a folder or a death of its own starts a process (start).
package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"authhub/internal/built"
	"authhub/internal/testkit"
)

var (
	buildDir string   // "" until a test needs the binary
	shared   *process // the hub whose namespaces tests take; started by the first that needs it
)

// root is the project's folder, seen from the folder that these tests run in.
const root = "../.."

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

// runAll runs the tests and looks at what the shared hub has logged.
func runAll(m *testing.M) int {
	testkit.WaitTogether(4)
	status := m.Run()
	defer os.RemoveAll(buildDir)
	quitBrowsers()
	if shared == nil {
		return status
	}
	if err := shared.interrupt(); err != nil {
		fmt.Fprintf(os.Stderr, "the shared hub: %v\n", err)
		return 1
	}
	return status
}

// binary returns the path of the hub. The first test that needs it builds it, with the race detector if the tests have
// it. No test can go on without it, so an error is a panic.
var binary = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "authhub-e2e-")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	var flags []string
	if raceDetector {
		flags = append(flags, "-race")
	}
	path, err := built.Hub(root, dir, flags...)
	if err != nil {
		panic(err)
	}
	return path
})

// process is a running hub.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	base  string        // base URL; "" until the hub has announced itself
	ready chan struct{} // closed when it has, or when it never will
	ended chan struct{} // closed when the process is gone

	stdout, stderr output
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts the binary with these arguments, and with settings of the environment (NAME=value) besides.
func launch(env []string, args ...string) (*process, error) {
	p := newProcess(env, args...)
	p.cmd.Stderr = &p.stderr
	return p, p.start()
}

// launchDeaf is launch with a stderr that nobody reads: its pipe is closed at once.
func launchDeaf(args ...string) (*process, error) {
	p := newProcess(nil, args...)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r.Close()
	p.cmd.Stderr = w
	return p, p.start()
}

func newProcess(env []string, args ...string) *process {
	p := &process{cmd: exec.Command(binary(), args...), ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(cleanEnvironment(), env...)
	p.cmd.Dir = filepath.Dir(binary()) // where a hub that is given no -dir makes one
	p.cmd.SysProcAttr = endWithParent()
	return p
}

func (p *process) start() error {
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.stdin = stdin
	go p.follow(stdout)
	return nil
}

// cleanEnvironment is this process's environment without what would set the hub's flags.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AUTHHUB_") })
}

// follow reads stdout to its end and waits for the process.
func (p *process) follow(stdout io.Reader) {
	lines := bufio.NewReader(io.TeeReader(stdout, &p.stdout))
	line, _ := lines.ReadString('\n')
	p.base = strings.TrimSpace(line)
	close(p.ready)
	io.Copy(io.Discard, lines)
	p.cmd.Wait()
	close(p.ended)
}

// launchHub starts a hub on a free port, which is killed at the end of the test if it still runs. It logs in JSON
// unless a flag says otherwise.
func launchHub(t testing.TB, env []string, flags ...string) *process {
	t.Helper()
	p, err := launch(env, append([]string{"-addr", "127.0.0.1:0", "-log", "json"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// start launches a hub and waits until it is ready. A defect that it logs by the end of the test fails the test.
func start(t testing.TB, flags ...string) *hub {
	t.Helper()
	return startIn(t, nil, flags...)
}

// startIn is start with settings of the environment (NAME=value) besides.
func startIn(t testing.TB, env []string, flags ...string) *hub {
	t.Helper()
	p := launchHub(t, env, flags...)
	p.mustBeReady(t)
	h := &hub{t: t, base: p.base, process: p, client: newClient("")}
	t.Cleanup(func() {
		h.client.CloseIdleConnections()
		if defect := p.defect(); defect != "" && !h.mayFail {
			t.Errorf("the hub has logged a defect: %s", defect)
		}
	})
	return h
}

// patience is how long a hub may take to start or to end, on a machine that is busy with other tests.
const patience = time.Minute

// await waits for one of the two channels of p to be closed. A process that takes too long has to say where it hangs.
func (p *process) await(event <-chan struct{}, limit time.Duration) error {
	select {
	case <-event:
		return nil
	case <-time.After(limit):
	}
	p.cmd.Process.Signal(syscall.SIGQUIT) // Go then writes the stacks of all goroutines
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.kill()
	}
	what := "did not end"
	if event == p.ready {
		what = "said nothing"
	}
	return fmt.Errorf("%v %s within %v:\n%s", p.cmd.Args, what, limit, &p.stderr)
}

// mustEnd waits until the process is gone, and returns its exit status.
func (p *process) mustEnd(t testing.TB) int {
	t.Helper()
	if err := p.await(p.ended, patience); err != nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// announced waits for the announcement. A process that ends without it is an error.
func (p *process) announced() error {
	if err := p.await(p.ready, patience); err != nil {
		return err
	}
	if p.base == "" {
		<-p.ended
		return fmt.Errorf("the hub did not start:\n%s", &p.stderr)
	}
	return nil
}

func (p *process) mustBeReady(t testing.TB) {
	t.Helper()
	if err := p.announced(); err != nil {
		t.Fatal(err)
	}
}

// listening returns the address that the process listens on, by its log, whatever base URL it has announced.
func (p *process) listening(t testing.TB) string {
	t.Helper()
	addr := regexp.MustCompile(`"addr":"([^"]+)"`)
	var found []string
	testkit.Eventually(t, "the hub logs where it listens", func() bool {
		found = addr.FindStringSubmatch(p.stderr.String())
		return found != nil
	})
	return "http://" + found[1]
}

// kill ends the process at once, if it still runs, and waits until it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// stop ends the process as a user does and returns its exit status.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signal that asks a process to end")
	}
	p.cmd.Process.Signal(os.Interrupt)
	return p.mustEnd(t)
}

// interrupt ends the shared hub, which must not have logged a defect.
func (p *process) interrupt() error {
	if p.cmd.Process.Signal(os.Interrupt) != nil { // Windows has no such signal
		p.kill()
	}
	if err := p.await(p.ended, 10*time.Second); err != nil {
		return err
	}
	if defect := p.defect(); defect != "" {
		return fmt.Errorf("it has logged a defect: %s", defect)
	}
	return nil
}

// defect returns the first line on stderr that no hub should write.
func (p *process) defect() string {
	for line := range strings.Lines(p.stderr.String()) {
		for _, sign := range []string{`"level":"ERROR"`, "level=ERROR", "panic:", "DATA RACE", "fatal error:"} {
			if strings.Contains(line, sign) {
				return line
			}
		}
	}
	return ""
}

// run runs the binary to its end and returns what it says.
func run(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return runIn(t, nil, args...)
}

// runIn is run with settings of the environment besides.
func runIn(t testing.TB, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p, err := launch(env, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p.mustEnd(t), p.stdout.String(), p.stderr.String()
}

// sharedProcess starts the hub whose namespaces tests take.
var sharedProcess = sync.OnceValues(func() (*process, error) {
	p, err := launch(nil, "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "json")
	if err != nil {
		return nil, err
	}
	if err := p.announced(); err != nil {
		return nil, err
	}
	shared = p
	return p, nil
})

// require skips a test for want of something that not every machine has; in CI it has to be there.
func require(t testing.TB, have bool, what string) {
	t.Helper()
	if have {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("CI has no %s", what)
	}
	t.Skipf("this machine has no %s", what)
}

// newClient returns a client of its own, which sends from the address given if one is. It follows no redirects and
// unpacks nothing.
func newClient(from string) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, DialContext: dialer(from).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}
}

// TestAHubThatHangsIsTold: the tests do not wait for it for ever, and say where it hangs.
func TestAHubThatHangsIsTold(t *testing.T) {
	t.Parallel()
	p := launchHub(t, nil, "-ephemeral")
	p.mustBeReady(t)
	err := p.await(p.ended, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end within 1ms") || runtime.GOOS != "windows" && !strings.Contains(err.Error(), "goroutine 1") {
		t.Errorf("%v", err)
	}
}
