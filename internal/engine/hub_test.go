// Hubs in processes of their own, on an etcd of its own: what a client sees of several of them behind a balancer.

package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"authhub/internal/built"
	"authhub/internal/passwd"
	"authhub/internal/testkit"
)

// build returns the path of the program, built once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "authhub-test-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	return built.Hub("../..", dir)
})

var buildDir string // "" if nothing was built

func TestMain(m *testing.M) {
	testkit.WaitTogether(12)
	status := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(status)
}

const testSecret = "AUTHHUB_SECRET=0123456789abcdef0123456789abcdef"

// hub is a process that can be killed. It keeps its address when it is started again.
type hub struct {
	t    testing.TB
	args []string
	env  []string
	addr string
	base string

	mu     sync.Mutex
	cmd    *exec.Cmd // nil: not running
	ended  chan struct{}
	stderr bytes.Buffer // to be read when it has ended
}

// startHub starts a hub on a free port and waits until it listens.
func startHub(t testing.TB, args ...string) *hub {
	t.Helper()
	h := &hub{t: t, args: args, addr: "127.0.0.1:0"}
	if err := h.start(); err != nil {
		t.Fatalf("%v\n%s", err, h.log())
	}
	t.Cleanup(h.kill)
	return h
}

// startQuickHub is startHub with demo as the only user of -users, whose password was hashed in few rounds: a hub hashes
// or checks the passwords of its demo accounts at each start, which takes half a second of a processor.
func startQuickHub(t testing.TB, args ...string) *hub {
	t.Helper()
	return startHub(t, append(args, "-users", usersFile(t, map[string]string{"demo": "demo-password"}))...)
}

// usersFile returns the path of a file for -users with these names and passwords, which are hashed in few rounds.
func usersFile(t testing.TB, passwords map[string]string) string {
	t.Helper()
	var users []map[string]string
	for name, password := range passwords {
		users = append(users, map[string]string{"id": "user-" + name, "username": name, "password_hash": quickHash(t, password).String()})
	}
	text, err := json.Marshal(users)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.WriteFile(t, "users.json", string(text))
}

// quickHash returns a hash of few rounds.
func quickHash(t testing.TB, password string) passwd.Credential {
	t.Helper()
	hash, err := passwd.NewHasher(passwd.EphemeralRounds).Hash(t.Context(), rand.Reader, password)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// start starts the process, which must not run.
func (h *hub) start() error {
	path, err := build()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	cmd := exec.Command(path, append([]string{"-addr", h.addr, "-log", "json"}, h.args...)...)
	cmd.Env = append(append(os.Environ(), testSecret), h.env...)
	cmd.Stderr = &h.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) }) // Go then says where it hangs
	line, err := bufio.NewReader(stdout).ReadString('\n')
	late.Stop()
	h.ended = make(chan struct{})
	go func() { cmd.Wait(); close(h.ended) }()
	if err != nil {
		<-h.ended
		return fmt.Errorf("the hub has not started: %w\n%s", err, h.log())
	}
	h.cmd = cmd
	if h.base == "" { // clients read it while the hub is started again
		h.base = strings.TrimSpace(line)
		h.addr = strings.TrimPrefix(h.base, "http://")
	}
	return nil
}

// kill kills the process, if it runs.
func (h *hub) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd == nil {
		return
	}
	h.cmd.Process.Kill()
	<-h.ended
	h.cmd = nil
}

// log returns what the hub has said, once it has ended.
func (h *hub) log() string { return h.stderr.String() }

// failStart runs the program to its end and returns its exit status and what it says on stderr.
func failStart(t testing.TB, env []string, args ...string) (int, string) {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Run()
	if err := ctx.Err(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &said)
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(said.String())
}

// answer is what a hub said. Status is 0 if the connection broke.
type answer struct {
	Status int         `json:"-"`
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"`

	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Code    string `json:"code"`
	User    struct{ Username string }
}

const (
	runPath   = "/api/run-ph-barrier-phase2"
	filesPath = "/api/files/phase2"
)

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// ask sends a request with a token and a form, either of which may be "", and further header fields.
func ask(method, url, token, form string, header ...string) answer {
	request, err := http.NewRequest(method, url, strings.NewReader(form))
	if err != nil {
		return answer{}
	}
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()
	a := answer{Status: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return answer{}
	}
	decode(a.Body, &a)
	return a
}

// decode reads what it can of JSON into to.
func decode(body []byte, to any) { json.Unmarshal(body, to) }

func (h *hub) register(name string) answer {
	return ask("POST", h.base+"/api/authentication/register", "", "password=password-1&username="+name)
}

func (h *hub) login(name, password string) answer {
	return ask("POST", h.base+"/api/authentication/login", "", "password="+password+"&username="+name)
}

func (h *hub) me(token string) answer {
	return ask("GET", h.base+"/api/authentication/me", token, "")
}

func (h *hub) refresh(token string) answer {
	return ask("POST", h.base+"/api/authentication/refresh", "", "refresh_token="+token)
}

func (h *hub) logout(token string) answer {
	return ask("POST", h.base+"/api/authentication/logout", token, "")
}

// want fails unless a has the status and, if there is one, the code.
func (a answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if a.Status != status || a.Code != code {
		t.Fatalf("got %d %s %s, want %d %s", a.Status, a.Code, a.Body, status, code)
	}
	return a
}
