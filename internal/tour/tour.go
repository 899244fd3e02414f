// Package tour plays the story of a hub, prints every answer, and checks it against the contract.
package tour

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	tourTimeout = 30 * time.Second // for one answer
	tourLines   = 16               // of an answer's body that are printed
	tourWidth   = 100              // characters of a line that are printed
)

// Play plays the story against the hub at base. The error says which answer was not as it has to be.
func Play(ctx context.Context, base string, out io.Writer) error {
	return (&tour{ctx: ctx, base: base, out: out}).play()
}

// PlayOwn plays the story against a hub of its own. serve runs that hub until its context ends, and writes the hub's
// base URL to stdout once it is ready. Errors: those of Play and of serve.
func PlayOwn(ctx context.Context, out io.Writer, serve func(ctx context.Context, stdout io.Writer) error) error {
	ctx, stop := context.WithCancel(ctx)
	line, announced := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, announced)
		announced.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	base, err := bufio.NewReader(line).ReadString('\n')
	if err == nil {
		err = Play(ctx, strings.TrimSpace(base), out)
	}
	stop()
	return errors.Join(err, <-ended)
}

// tour is a client that stops at the first answer that is not as it has to be: from then on err is set and
// nothing is asked any more.
type tour struct {
	ctx  context.Context
	base string
	out  io.Writer
	step int
	err  error
}

// response is an answer, its body read. An answer that was never asked for is the zero response.
type response struct {
	header http.Header
	body   []byte
	json   map[string]any
}

func (r *response) text(member string) string {
	s, _ := r.json[member].(string)
	return s
}

func (t *tour) play() error {
	fmt.Fprintf(t.out, "A tour of the hub at %s\n", t.base)

	t.ask("Is it ready?", "GET", "/healthz", "", "", 200)
	session := t.ask("Log in as demo", "POST", "/api/authentication/login", "", `{"username":"demo","password":"demo-password"}`, 200)
	t.checkSession(session)
	me := t.ask("Who is that?", "GET", "/api/authentication/me", session.text("access_token"), "", 200)
	t.want(me.text("username") == "demo" && me.text("role") == "user" && me.json["password"] == nil, "the user record is not demo's")
	nobody := t.ask("And without a token?", "GET", "/api/authentication/me", "", "", 401)
	t.want(nobody.text("code") == "token_missing" && strings.HasPrefix(nobody.header.Get("WWW-Authenticate"), "Bearer"), "it is no token_missing with a Bearer challenge")
	next := t.ask("Exchange the refresh token", "POST", "/api/authentication/refresh", session.text("refresh_token"), "", 200)
	t.checkSession(next)
	t.want(next.text("refresh_token") != session.text("refresh_token"), "the refresh token is the one that was spent")

	access := next.text("access_token")
	run := t.ask("Produce the three files", "POST", "/api/run-ph-barrier-phase2", access, "", 200)
	t.want(run.text("status") == "succeeded" && run.json["error"] == nil, "the run has not succeeded")
	listing := t.ask("Which files are there?", "GET", "/api/files/phase2", access, "", 200)
	t.checkFiles(listing, access)

	t.ask("Log out", "POST", "/api/authentication/logout", access, "", 204)
	dead := t.ask("Is the token dead?", "GET", "/api/authentication/me", access, "", 401)
	t.want(dead.text("code") == "token_revoked", "the token of an ended session is not token_revoked")

	if t.err == nil {
		fmt.Fprintf(t.out, "\nAll %d answers are as expected.\n", t.step)
	}
	return t.err
}

// ask sends a request, prints it and its answer, and wants this status.
func (t *tour) ask(title, method, path, token, body string, status int) *response {
	if t.err != nil {
		return &response{}
	}
	t.step++
	fmt.Fprintf(t.out, "\n%2d  %s\n    %s %s%s\n", t.step, title, method, path, withToken(token))
	if body != "" {
		fmt.Fprintf(t.out, "    %s\n", body)
	}
	began := time.Now()
	resp, answer, err := t.send(method, path, token, body)
	if err != nil {
		t.err = fmt.Errorf("tour, step %d: %w", t.step, err)
		return &response{}
	}
	fmt.Fprintf(t.out, "    → %s, %d bytes in %s\n", resp.Status, len(answer), time.Since(began).Round(10*time.Microsecond))
	t.print(answer)
	r := &response{header: resp.Header, body: answer}
	if len(answer) > 0 {
		t.want(json.Unmarshal(answer, &r.json) == nil, "the body is not a JSON object")
	}
	t.want(resp.StatusCode == status, "the status is not "+strconv.Itoa(status))
	mediaType := "application/json"
	if status >= 400 {
		mediaType = "application/problem+json"
	}
	t.want(len(answer) == 0 || resp.Header.Get("Content-Type") == mediaType, "the media type is not "+mediaType)
	return r
}

func (t *tour) send(method, path, token, body string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, tourTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, t.base+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp, answer, err
}

// want makes the tour fail with complaint unless ok; an earlier failure stands.
func (t *tour) want(ok bool, complaint string) {
	if !ok && t.err == nil {
		t.err = fmt.Errorf("tour, step %d: %s", t.step, complaint)
	}
}

// checkSession holds an answer against the session body of the contract.
func (t *tour) checkSession(r *response) {
	for _, name := range []string{"access_token", "refresh_token"} {
		t.want(strings.Count(r.text(name), ".") == 2, name+" is no compact JWS")
	}
	for _, name := range []string{"expires_in", "refresh_expires_in"} {
		seconds, ok := r.json[name].(float64)
		t.want(ok && seconds > 0, name+" is no number of seconds")
	}
	user, _ := r.json["user"].(map[string]any)
	t.want(r.text("token_type") == "Bearer" && user["username"] == "demo", "it is no session of demo's")
}

// checkFiles reads the three files of a listing and wants them to belong together.
func (t *tour) checkFiles(listing *response, token string) {
	entries, _ := listing.json["phase2_files"].([]any)
	t.want(len(entries) == 3, "the listing has not three files")
	var source, parameters []byte
	for i, entry := range entries {
		e, _ := entry.(map[string]any)
		endpoint, _ := e["endpoint"].(string)
		t.want(e["available"] == true && endpoint != "", "a file is not available after the run")
		file := t.ask(fmt.Sprint("Read ", e["name"]), "GET", endpoint, token, "", 200)
		t.want(e["size_bytes"] == float64(len(file.body)), "its size is not the one in the listing")
		t.want(file.header.Get("ETag") != "" && file.header.Get("Last-Modified") != "", "it has no ETag or no Last-Modified")
		src, _ := json.Marshal(file.json["source"])
		par, _ := json.Marshal(file.json["parameters"])
		t.want(i == 0 || bytes.Equal(src, source) && bytes.Equal(par, parameters), "it is not of the same run as the one before")
		source, parameters = src, par
	}
}

// print shows the beginning of a body, indented, its tokens and other long lines cut short.
func (t *tour) print(body []byte) {
	var pretty bytes.Buffer
	if json.Indent(&pretty, bytes.TrimSpace(body), "    ", "  ") != nil {
		pretty.Reset()
		pretty.Write(body)
	}
	if pretty.Len() == 0 {
		return
	}
	lines := strings.Split(pretty.String(), "\n")
	for _, line := range lines[:min(len(lines), tourLines)] {
		if runes := []rune(line); len(runes) > tourWidth {
			line = string(runes[:tourWidth]) + "…"
		}
		fmt.Fprintf(t.out, "    %s\n", strings.TrimPrefix(line, "    "))
	}
	if more := len(lines) - tourLines; more > 0 {
		fmt.Fprintf(t.out, "    … %d more lines\n", more)
	}
}

func withToken(token string) string {
	if token == "" {
		return ""
	}
	return "  (Authorization: Bearer " + token[:min(len(token), 12)] + "…)"
}
