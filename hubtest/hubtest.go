// Package hubtest starts an authhub for the tests of a Go client, as net/http/httptest starts a server.
//
//	func TestExpiredTokenIsRefreshed(t *testing.T) {
//		hub := hubtest.Start(t)
//		c := client.New(hub.URL)
//		c.Login("demo", "demo-password")
//		hub.Advance(16 * time.Minute) // an access token lives 15 minutes
//		c.Me()
//		hub.NoFindings()
//	}
//
// One process serves all tests of a test binary. It is built with go build at the first Start, or taken from the path
// in the environment variable AUTHHUB. It ends with the test binary, even when that is killed. Each Start gives a
// namespace of it: a separate hub with its own users, sessions, clock and failures, so tests may run in parallel.
//
// With AUTHHUB_URL, the tests use the hub at that address. The namespaces of failed tests stay there, to be looked at.
package hubtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Hub is a namespace for one test.
type Hub struct {
	URL string // base address for the client under test, without a slash at the end

	t testing.TB
}

// base returns the address of the hub for this test binary, which it starts when first called.
var base = sync.OnceValues(func() (string, error) {
	if url := os.Getenv("AUTHHUB_URL"); url != "" {
		return strings.TrimRight(url, "/"), nil
	}
	if binary := os.Getenv("AUTHHUB"); binary != "" {
		return launch(binary, patience)
	}
	dir, err := os.MkdirTemp("", "hubtest-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // a running binary needs no name; on Windows it keeps it, and the folder stays
	binary := filepath.Join(dir, "authhub.exe")
	if out, err := exec.Command("go", "build", "-o", binary, "authhub").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build authhub: %w: %s", err, out)
	}
	return launch(binary, patience)
})

const patience = 30 * time.Second // that a start may take on a busy machine

var (
	process atomic.Pointer[exec.Cmd] // kept, because the hub ends when its end of the standard input is collected as garbage
	started atomic.Int64
)

// Start returns a new namespace. It is deleted when the test ends; if the test failed, what the hub received is logged
// before. A hub that does not start fails the test.
func Start(t testing.TB) *Hub {
	t.Helper()
	root, err := base()
	if err != nil {
		t.Fatalf("hubtest: %v", err)
	}
	name := regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-")
	name = fmt.Sprintf("%.40s-%d-%d", name, os.Getpid(), started.Add(1))
	h := &Hub{URL: root + "/ns/" + name, t: t}
	t.Cleanup(h.end)
	return h
}

// launch starts the binary on a free port and returns its address, which has to come within patience. The hub ends
// when this process does: its standard input, which nobody writes to, is closed then.
func launch(binary string, patience time.Duration) (string, error) {
	hub := exec.Command(binary, "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "off", "-exit-with-stdin")
	said := new(bytes.Buffer)
	hub.Stderr = said
	if _, err := hub.StdinPipe(); err != nil {
		return "", err
	}
	stdout, err := hub.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := hub.Start(); err != nil {
		return "", err
	}
	process.Store(hub)
	late := time.AfterFunc(patience, func() { hub.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !late.Stop() {
		hub.Wait()
		return "", fmt.Errorf("%s says nothing within %v: %s", binary, patience, strings.TrimSpace(said.String()))
	}
	if err != nil {
		hub.Wait()
		return "", fmt.Errorf("%s does not start: %s", binary, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(line), nil
}

// end deletes the namespace, or logs what it received if the test failed.
func (h *Hub) end() {
	if h.t.Failed() {
		h.t.Logf("%s/ received:\n%s", h.URL, h.summary())
		if os.Getenv("AUTHHUB_URL") != "" {
			return
		}
	}
	req, _ := http.NewRequest(http.MethodDelete, h.URL, nil)
	if resp, err := send(req); err == nil {
		resp.Body.Close()
	}
}

// summary returns the requests and findings as text, a line each.
func (h *Hub) summary() string {
	var record struct {
		Requests []struct {
			Seq          int
			Method, Path string
			Status       *int
			Code, Fault  *string
			Token        *struct{ Kind, State string }
		}
	}
	if err := h.do("GET", "/lab/requests", nil, &record); err != nil {
		return err.Error()
	}
	var lines []string
	for _, r := range record.Requests {
		line := fmt.Sprintf("#%d %s %s", r.Seq, r.Method, r.Path)
		if r.Status == nil {
			line += " no answer"
		} else {
			line += fmt.Sprintf(" %d", *r.Status)
		}
		if r.Code != nil {
			line += " " + *r.Code
		}
		if r.Token != nil {
			line += " " + r.Token.State + " " + r.Token.Kind + " token"
		}
		if r.Fault != nil {
			line += " fault " + *r.Fault
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, h.Findings()...), "\n")
}

// Lab sends a request to the lab, for example ("PUT", "/clock", map[string]string{"advance": "16m"}), and decodes the
// answer into out unless that is nil. docs/lab.md describes the operations. A refused request fails the test.
func (h *Hub) Lab(method, path string, in, out any) {
	h.t.Helper()
	if err := h.do(method, "/lab"+path, in, out); err != nil {
		h.t.Fatal(err)
	}
}

// Advance lets time pass in the namespace: tokens expire without waiting. A negative d turns the clock back.
func (h *Hub) Advance(d time.Duration) {
	h.t.Helper()
	h.Lab("PUT", "/clock", map[string]string{"advance": d.String()}, nil)
}

// Fault adds a fault to the queue, written as in docs/lab.md: `{"operation":"refresh","drop":"after"}`.
func (h *Hub) Fault(fault string) {
	h.t.Helper()
	h.Lab("POST", "/faults", json.RawMessage(fault), nil)
}

// Expect waits until a statement about the requests holds, and fails the test if it does not. It is written as in
// docs/lab.md: `{"operation":"refresh","count":{"exactly":1},"within":"200ms"}`.
func (h *Hub) Expect(statement string) {
	h.t.Helper()
	h.Lab("POST", "/expect", json.RawMessage(statement), nil)
}

// Findings returns what the client did wrong, each finding as "rule: sentence".
func (h *Hub) Findings() []string {
	h.t.Helper()
	var report struct {
		Findings []struct{ Rule, Sentence string }
	}
	if err := h.do("GET", "/lab/report", nil, &report); err != nil {
		h.t.Error(err)
	}
	var findings []string
	for _, f := range report.Findings {
		findings = append(findings, f.Rule+": "+f.Sentence)
	}
	return findings
}

// NoFindings fails the test if the report has findings.
func (h *Hub) NoFindings() {
	h.t.Helper()
	for _, f := range h.Findings() {
		h.t.Error(f)
	}
}

func (h *Hub) do(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, h.URL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s", method, path, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// send sends a request to the lab, with the key where there is one.
func send(req *http.Request) (*http.Response, error) {
	if key := os.Getenv("AUTHHUB_LAB_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return http.DefaultClient.Do(req)
}
