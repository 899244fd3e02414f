// Tests of a Go client against a real hub: started once, a namespace for each test, all of them in parallel.
//
//	go test ./...          builds the hub first; AUTHHUB=/path/to/authhub uses that one
//
// The standard library and nothing else.

package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

var hubURL string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "authhub-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	url, stop, err := startHub(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the hub does not start:", err)
		return 1
	}
	defer stop()
	hubURL = url
	return m.Run()
}

// startHub starts a hub on a free port. It ends with stop, and also when this process is killed: then its standard
// input is closed.
func startHub(dir string) (url string, stop func(), err error) {
	binary := os.Getenv("AUTHHUB")
	if binary == "" {
		binary = filepath.Join(dir, "authhub.exe") // a name that runs on every platform
		build := exec.Command("go", "build", "-C", "../..", "-o", binary, ".")
		if out, err := build.CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	hub := exec.Command(binary, "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "off", "-exit-with-stdin")
	stdin, err := hub.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := hub.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	hub.Stderr = os.Stderr // why it does not start, if it does not
	if err := hub.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	return strings.TrimSpace(line), func() { stdin.Close(); hub.Wait() }, err
}

// namespace is a hub of its own, for one test.
type namespace struct {
	t   *testing.T
	url string
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	t.Parallel()
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/ #", r) {
			return '-'
		}
		return r
	}, t.Name())
	ns := namespace{t, hubURL + "/ns/" + name}
	t.Cleanup(func() { ns.call("DELETE", "", nil, nil) })
	return ns
}

// lab sends a request to the lab and decodes the answer into out, unless it is nil. An error answer fails the test.
func (ns namespace) lab(method, path string, in, out any) {
	ns.t.Helper()
	ns.call(method, "/lab"+path, in, out)
}

func (ns namespace) call(method, path string, in, out any) {
	ns.t.Helper()
	var body io.Reader
	if in != nil {
		data, _ := json.Marshal(in)
		body = bytes.NewReader(data)
	}
	req, _ := http.NewRequest(method, ns.url+path, body)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		ns.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= 300 {
		ns.t.Fatalf("%s %s: %s", method, path, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			ns.t.Fatal(err)
		}
	}
}

// clean fails the test if the client has done anything that the hub's report finds fault with.
func (ns namespace) clean() {
	ns.t.Helper()
	var report struct {
		Findings []struct{ Rule, Sentence string }
	}
	ns.lab("GET", "/report", nil, &report)
	for _, f := range report.Findings {
		ns.t.Errorf("%s: %s", f.Rule, f.Sentence)
	}
}

type object = map[string]any

func login(t *testing.T, ns namespace) *Client {
	t.Helper()
	c := &Client{Base: ns.url}
	if err := c.Login("demo", "demo-password"); err != nil {
		t.Fatal(err)
	}
	return c
}

// The same user name in each: they would be in each other's way on one hub.
func TestRegister(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := &Client{Base: newNamespace(t).url}
			if err := c.Register("kim", "a good password"); err != nil {
				t.Fatal(err)
			}
			if u, err := c.Me(); err != nil || u.Username != "kim" {
				t.Errorf("Me: %v, %v", u, err)
			}
		})
	}
}

func TestExpiredTokenIsRefreshed(t *testing.T) {
	ns := newNamespace(t)
	c := login(t, ns)
	ns.lab("PUT", "/clock", object{"advance": "16m"}, nil)

	if u, err := c.Me(); err != nil || u.Username != "demo" {
		t.Errorf("Me: %v, %v", u, err)
	}
	ns.clean()
}

func TestRaceForTheRefresh(t *testing.T) {
	ns := newNamespace(t)
	c := login(t, ns)
	ns.lab("PUT", "/clock", object{"advance": "16m"}, nil)
	ns.lab("POST", "/faults", object{"operation": "me", "hold": 8}, nil) // all get their 401 at the same moment

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Me(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	ns.lab("POST", "/expect", object{"operation": "refresh", "count": object{"exactly": 1}, "within": "100ms"}, nil)
	ns.clean()
}

func TestSessionEndsAfterALostRefresh(t *testing.T) {
	ns := newNamespace(t)
	c := login(t, ns)
	ns.lab("PUT", "/clock", object{"advance": "16m"}, nil)
	ns.lab("POST", "/faults", object{"operation": "refresh", "drop": "after"}, nil)

	if _, err := c.Me(); err == nil {
		t.Fatal("Me succeeds without an answer to its refresh")
	}
	if _, err := c.Me(); !errors.Is(err, ErrSessionEnded) { // strict rotation: the token was spent
		t.Errorf("Me: %v", err)
	}
}

// What a client meets when its tokens are not what they should be.
func TestTokensToOrder(t *testing.T) {
	for _, row := range [][2]string{
		{"none", ""},
		{"expired", "token_expired"},
		{"not_yet_valid", "token_malformed"},
		{"wrong_key", "token_malformed"},
		{"alg_none", "token_malformed"},
		{"wrong_type", "token_wrong_type"},
		{"truncated", "token_malformed"},
		{"tampered", "token_malformed"},
		{"revoked", "token_revoked"},
	} {
		t.Run(row[0], func(t *testing.T) {
			ns := newNamespace(t)
			var ordered struct{ Token string }
			ns.lab("POST", "/tokens", object{"user": "demo", "defect": row[0]}, &ordered)
			c := &Client{Base: ns.url}

			err := c.send("GET", "me", ordered.Token, nil, new(User))

			problem := &Error{}
			errors.As(err, &problem)
			if problem.Code != row[1] {
				t.Errorf("code %q, not %q", problem.Code, row[1])
			}
		})
	}
}

func TestSnapshot(t *testing.T) {
	ns := newNamespace(t)
	c := login(t, ns)
	var before json.RawMessage
	ns.lab("GET", "/snapshot", nil, &before)
	first, err := c.Me()
	if err != nil {
		t.Fatal(err)
	}

	ns.lab("POST", "/reset", nil, nil) // the session is gone
	if _, err := c.Me(); err == nil {
		t.Error("a session survives a reset")
	}
	ns.lab("PUT", "/snapshot", before, nil) // and is back

	if again, err := c.Me(); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("Me: %v, %v", again, err)
	}
}
