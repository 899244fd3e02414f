// Clients whose behaviour the report judges: programs with connections, tokens and habits of their own.

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a namespace in which clients behave in some way.
type world struct {
	*hub
	early bool // the report is asked for as things stand, and not after the time to react
}

// tab is a program with its own connections: a browser tab, a process. Tabs may share their tokens.
type tab struct {
	w      *world
	client *http.Client
	tokens *tokens
	single sync.Mutex // held while a well-made client refreshes
	agent  string     // User-Agent; "": that of net/http
	site   string     // Sec-Fetch-Site, which browsers send
	part   string     // Range of the files that it gets; "": all
}

// tokens is where a client keeps its pair.
type tokens struct {
	mu              sync.Mutex
	access, refresh string
}

func (s *tokens) get() (access, refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.access, s.refresh
}

func (s *tokens) set(access, refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access, s.refresh = access, refresh
}

// newTab returns a tab with these tokens, or with none of its own yet.
func (w *world) newTab(shared *tokens) *tab {
	if shared == nil {
		shared = new(tokens)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &tab{w: w, client: &http.Client{Transport: transport}, tokens: shared}
}

// over has the tab keep this many connections, over which its callers wait in a queue. 0: a new one for each request.
func (t *tab) over(connections int) *tab {
	t.client.CloseIdleConnections()
	t.client.Transport = &http.Transport{MaxConnsPerHost: connections, DisableKeepAlives: connections == 0}
	t.w.t.Cleanup(t.client.CloseIdleConnections)
	return t
}

// inBrowser makes the tab one of a browser, with its six connections.
func (t *tab) inBrowser() *tab {
	t.agent, t.site = "Mozilla/5.0", "same-origin"
	return t.over(6)
}

// login returns a tab whose user has logged in.
func (w *world) login(members ...object) *tab { return w.loginAs("demo", members...) }

func (w *world) loginAs(name string, members ...object) *tab {
	t := w.newTab(nil)
	t.login(name, members...)
	return t
}

func (t *tab) login(name string, members ...object) int {
	body := right(name)
	for _, m := range members {
		for key, value := range m {
			body[key] = value
		}
	}
	status, answer := t.send("POST", loginPath, body, "")
	if status == 200 {
		t.tokens.set(answer.Access, answer.Refresh)
	}
	return status
}

// tokenAnswer is what login and refresh answer; of errors, the code.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Code    string `json:"code"`
}

// send sends a request and returns the status, 0 for no answer, and what was answered.
func (t *tab) send(method, target string, body any, token string) (int, tokenAnswer) {
	return t.sendIn(t.w.t.Context(), method, target, body, token)
}

func (t *tab) sendIn(ctx context.Context, method, target string, body any, token string) (status int, answer tokenAnswer) {
	var reader io.Reader
	media := "application/json"
	if file, ok := body.(string); ok {
		reader, media = io.MultiReader(strings.NewReader(file)), "text/csv"
	} else if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			t.w.t.Error(err)
		}
		reader = io.MultiReader(bytes.NewReader(data)) // net/http can't repeat it by itself
	}
	r, err := http.NewRequestWithContext(ctx, method, t.w.base+target, reader)
	if err != nil {
		t.w.t.Error(err)
		return 0, answer
	}
	r.Header.Set("Content-Type", media)
	for name, value := range map[string]string{"User-Agent": t.agent, "Sec-Fetch-Site": t.site, "Range": t.part} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := t.client.Do(r)
	if err != nil {
		return 0, answer
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, answer
	}
	json.Unmarshal(data, &answer)
	return resp.StatusCode, answer
}

// me asks for the user with the token that the tab has.
func (t *tab) me() int {
	access, _ := t.tokens.get()
	return t.meWith(access)
}

func (t *tab) meWith(access string) int {
	status, _ := t.send("GET", mePath, nil, access)
	return status
}

// refresh exchanges the token that the tab has, and stores the new pair.
func (t *tab) refresh() int {
	_, token := t.tokens.get()
	return t.refreshWith(token)
}

// refreshWith exchanges this token, and stores the new pair.
func (t *tab) refreshWith(token string) int {
	status, answer := t.send("POST", refreshPath, object{"refresh_token": token}, "")
	if status == 200 && answer.Access != "" {
		t.tokens.set(answer.Access, answer.Refresh)
	}
	return status
}

// grant refreshes as RFC 6749 section 6 says.
func (t *tab) grant() int {
	_, token := t.tokens.get()
	resp, err := t.client.PostForm(t.w.base+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	var answer tokenAnswer
	if json.NewDecoder(resp.Body).Decode(&answer); answer.Access != "" {
		t.tokens.set(answer.Access, answer.Refresh)
	}
	return resp.StatusCode
}

func (t *tab) logout() int {
	access, _ := t.tokens.get()
	status, _ := t.send("POST", logoutPath, nil, access)
	return status
}

// wire is a request as it goes over the wire.
func (w *world) wire(method, path, token string) string { return w.wireWith(method, path, token, "") }

func (w *world) wireWith(method, path, token, body string) string {
	at, err := url.Parse(w.base)
	if err != nil {
		w.t.Error(err)
	}
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		method, at.Path+path, at.Host, len(body), token, body)
}

// ahead sends requests on one connection without waiting for the answer to the one in front (pipelining).
func (w *world) ahead(requests string) {
	conn := w.dial()
	defer conn.Close()
	io.WriteString(conn, requests)
	answers := bufio.NewReader(conn)
	for range strings.Count(requests, " HTTP/1.1\r\n") {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			w.t.Error(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
	}
}

// slowly sends a request and does something before the last of it leaves. It returns when it is answered.
func (w *world) slowly(request string, last int, meanwhile func()) {
	conn := w.dial()
	defer conn.Close()
	io.WriteString(conn, request[:len(request)-last])
	time.Sleep(20 * time.Millisecond) // it has left
	meanwhile()
	time.Sleep(120 * time.Millisecond)
	io.WriteString(conn, request[len(request)-last:])
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		w.t.Error(err)
	}
}

// trickle sends a request with a long body over conn, in parts with these pauses between, and returns the status.
func (w *world) trickle(conn net.Conn, method, path, token string, pauses ...time.Duration) int {
	part := strings.Repeat("8.05\n", 4000)
	request := w.wireWith(method, path, token, strings.Repeat(part, 1+len(pauses)))
	io.WriteString(conn, request[:len(request)-len(part)*len(pauses)])
	for _, rest := range pauses {
		time.Sleep(rest)
		io.WriteString(conn, part)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Error(err)
		return 0
	}
	io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// unread sends a request and closes the connection when the answer is there, without reading more than its first byte.
func (w *world) unread(request string) {
	conn := w.dial()
	io.WriteString(conn, request)
	conn.Read(make([]byte, 1)) // the rest has come with it
	conn.Close()
	time.Sleep(50 * time.Millisecond) // the hub is told
}

func (w *world) dial() net.Conn {
	at, err := url.Parse(w.base)
	if err != nil {
		w.t.Error(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		w.t.Error(err)
	}
	return conn
}

// drain lets the access token run out.
func (w *world) drain() { w.advance(16 * time.Minute) }

// callers calls do in so many places at once.
func callers(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// sound is a well-made client's request: on a 401 one refresh for all who wait, and then each request again.
func (t *tab) sound() int {
	access, _ := t.tokens.get()
	status := t.meWith(access)
	if status != 401 {
		return status
	}
	if t.renew(access) != 200 {
		return status
	}
	return t.me()
}

// renew refreshes unless somebody else has since that access token was in use.
func (t *tab) renew(access string) int {
	t.single.Lock()
	defer t.single.Unlock()
	if now, _ := t.tokens.get(); now != access {
		return 200
	}
	return t.refresh()
}

// naive is the request of a client that has every caller refresh for itself.
func (t *tab) naive() {
	access, refresh := t.tokens.get()
	if t.meWith(access) == 401 && t.refreshWith(refresh) == 200 {
		t.me()
	}
}

// chained is naive, but for reading the refresh token just before it is sent.
func (t *tab) chained() {
	if t.me() == 401 && t.refresh() == 200 {
		t.me()
	}
}

// verdict returns what the report says, a line a finding, with the operations of the requests that show it.
func (w *world) verdict() (findings, notes []string) {
	w.t.Helper()
	if !w.early {
		w.advance(3 * time.Second)
	}
	operations := make(map[float64]string)
	for _, r := range w.get("/lab/requests").Want(200).List("requests") {
		operations[r["seq"].(float64)] = r["operation"].(string)
	}
	report := w.get("/lab/report").Want(200)
	return spellVerdict(report.List("findings"), operations), spellVerdict(report.List("notes"), operations)
}

// spellVerdict writes findings as rule(operation*count operation*count), in the order of the requests.
func spellVerdict(findings []object, operations map[float64]string) []string {
	lines := []string{}
	for _, f := range findings {
		var evidence []string
		counts := make(map[string]int)
		for _, seq := range f["seqs"].([]any) {
			name := operations[seq.(float64)]
			if counts[name]++; counts[name] == 1 {
				evidence = append(evidence, name)
			}
		}
		for i, name := range evidence {
			evidence[i] = fmt.Sprintf("%s*%d", name, counts[name])
		}
		lines = append(lines, fmt.Sprint(f["rule"], evidence))
	}
	return lines
}

// behave lets clients behave in a namespace of their own, and says how the verdict differs from the true one.
func behave(t *testing.T, b *behaviour) string {
	w := &world{hub: newHub(t)}
	w.faulty = true
	b.does(w)
	findings, notes := w.verdict()
	if fmt.Sprint(findings) != fmt.Sprint(b.findings) || b.notes != nil && fmt.Sprint(notes) != fmt.Sprint(b.notes) {
		return fmt.Sprintf("%v, notes %v\nwant %v, notes %v\n%s", findings, notes, b.findings, b.notes, spellRequests(w))
	}
	return ""
}

// spellRequests lists the record in short.
func spellRequests(w *world) string {
	var b bytes.Buffer
	for _, r := range w.get("/lab/requests").List("requests") {
		token, _ := r["token"].(object)
		fmt.Fprintln(&b, r["seq"], r["at"], r["operation"], r["status"], r["code"], token["kind"], token["generation"], token["state"], r["fault"])
	}
	return b.String()
}
