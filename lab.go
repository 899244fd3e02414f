// The lab: hubs for tests, and everything about them that a test may want to turn.
//
// With -lab this handler stands between the edge and the hubs: edge -> lab -> bench -> Hub. A bench is one hub with
// what the lab adds to it: clock, refresh policy, faults, request record. The root hub has one, and so has every
// namespace. A hub knows nothing of its bench; without -lab none of this exists.
//
// This file owns the namespaces, the routes and the key.

package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"hash/maphash"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/results"
	"authhub/internal/route"
	"authhub/internal/runs"
)

const (
	maxNamespaces    = 10_000
	maxNamespaceName = 64
	goodLabKey       = 16 // bytes of a key that nobody guesses
)

// lab is the handler of a process with -lab.
type lab struct {
	ctx      context.Context // ends when the process stops; then nothing waits any longer
	secret   []byte          // of the namespaces
	seeds    []*account.User
	identity maphash.Seed      // of the digests that tell whether two requests are the same
	names    map[string]string // of the hub's operations, by path
	root     *bench

	mu     sync.RWMutex
	spaces map[string]*bench // nil: closed
}

// bench is one hub and what the lab adds to it.
type bench struct {
	lab  *lab
	ctx  context.Context
	gone context.CancelCauseFunc // lets go whoever is held or delayed here; the cause is what an expect is answered with

	hub      atomic.Pointer[Hub] // replaced by reset; a request keeps the one it began with
	clock    *labClock
	policy   atomic.Pointer[account.ReusePolicy]
	dialect  atomic.Pointer[dialect.Dialect]
	faults   faultQueue
	requests requestLog
	changing sync.Mutex // held by reset and snapshot, so that each is whole

	arrivals sync.Mutex // held while a request arrives, and while the state is replaced, so that it meets the one or the other
	underWay map[*seenRequest]context.CancelCauseFunc
}

// newLab takes hub over as the root: from now on its clock is the lab's.
func newLab(ctx context.Context, hub *Hub) *lab {
	l := &lab{
		ctx:      ctx,
		secret:   hub.secret,
		seeds:    hub.embedded().Seeds(),
		identity: maphash.MakeSeed(),
		names:    make(map[string]string),
		spaces:   make(map[string]*bench),
	}
	for _, o := range hub.operations.Operations {
		l.names[o.Path] = o.Name
	}
	l.root = l.newBench(*hub)
	return l
}

// newBench returns a bench of a hub with these parts; its clock, throttle and runs are new.
func (l *lab) newBench(parts Hub) *bench {
	b := &bench{lab: l, clock: newLabClock(parts.now)}
	b.ctx, b.gone = context.WithCancelCause(l.ctx)
	b.policy.Store(new(account.ReusePolicy))
	parts.now = b.clock.now
	parts.reuse = b.reuse
	b.dialect.Store(parts.settings.Dialect)
	parts.dialect = b.dialect.Load
	parts.lifetimes = b.lifetimes
	b.hub.Store(parts.renewed())
	return b
}

// renewed returns h with nothing in memory of failed logins and runs.
func (h Hub) renewed() *Hub {
	h.throttle = passwd.NewThrottle()
	h.runs = runs.New(h.output, h.now, func(r *runs.Run) {
		if !errors.Is(r.State().Err, context.Canceled) { // ended by a reset
			h.logRun(r)
		}
	})
	return &h
}

// newNamespace returns the bench of a hub of its own.
func (l *lab) newNamespace(name string) (*bench, error) {
	parts := *l.root.hub.Load()
	parts.namespace, parts.base = name, parts.base+"/ns/"+name
	parts.now = l.root.clock.real
	parts.output = results.Temporary()
	var err1, err2 error
	parts.store, err1 = account.NewMemory(l.seeds)
	parts.signer, err2 = jwt.NewSigner(l.secret, "ns "+name)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return l.newBench(parts), nil
}

// close ends all runs and removes the folders of all namespaces. The root hub's folder and store are not the lab's.
func (l *lab) close() {
	l.mu.Lock()
	spaces := l.spaces
	l.spaces = nil
	l.mu.Unlock()
	for _, b := range spaces {
		b.close()
	}
	l.root.gone(errBusy)
	l.root.hub.Load().runs.Close()
}

// close ends what a namespace does and removes its folder.
func (b *bench) close() {
	b.gone(errBusy)
	b.changing.Lock()
	defer b.changing.Unlock()
	h := b.hub.Load()
	h.runs.Close()
	if err := h.output.Close(); err != nil {
		h.log.Error("namespace", "name", h.namespace, "cause", err)
	}
}

func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.serve(w, r); err != nil {
		l.root.hub.Load().answerError(w, r, err)
	}
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) error {
	name, inner, err := splitNamespace(r)
	if err != nil {
		return err
	}
	ofSpace := name != "" && (inner.URL.Path == "" || inner.URL.Path == "/" && r.Method == http.MethodDelete)
	if ofSpace && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return redirectToPage(w, r, name)
	}
	toLab := ofSpace || inner.URL.Path == "/lab" || strings.HasPrefix(inner.URL.Path, "/lab/")
	if toLab {
		if err := l.checkKey(r); err != nil {
			return err
		}
	}
	if ofSpace {
		return l.deleteNamespace(w, r, name)
	}
	b, err := l.bench(name)
	if err != nil {
		return err
	}
	if toLab {
		return labTable().Serve(b, w, inner)
	}
	b.serveHub(w, inner)
	if inner != r {
		r.Pattern = inner.Pattern // the edge's log asks whether this was a route
	}
	return nil
}

// redirectToPage sends whoever left out the slash to the page, whose addresses are relative, as this one is: it holds
// behind whatever prefix (RFC 9110 section 10.2.2).
func redirectToPage(w http.ResponseWriter, r *http.Request, name string) error {
	w.Header().Set("Location", (&url.URL{Path: name + "/", RawQuery: r.URL.RawQuery}).String())
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// splitNamespace returns the namespace of r, "" for none, and the request as the namespace's hub is to see it: of
// /ns/a/api the path /api, of /ns/a none at all. Errors: a 404 for what can't be a name.
func splitNamespace(r *http.Request) (string, *http.Request, error) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/ns/")
	if !ok {
		return splitWellKnown(r)
	}
	name, _, _ := strings.Cut(rest, "/")
	raw, same := strings.CutPrefix(r.URL.RawPath, "/ns/"+name)
	if !isNamespace(name) || r.URL.RawPath != "" && !same {
		return "", nil, reply.Fail(http.StatusNotFound, "not_found", "A namespace is /ns/NAME with 1 to 64 of A-Z a-z 0-9 _ and - as its name.")
	}
	inner, u := new(http.Request), *r.URL
	*inner = *r
	u.Path, u.RawPath = rest[len(name):], raw
	inner.URL = &u
	return name, inner, nil
}

// splitWellKnown returns the namespace of r if its path is a well-known one, which takes the namespace behind (RFC 8414
// section 3.1): of /.well-known/x/ns/a it is a, and the path /.well-known/x.
func splitWellKnown(r *http.Request) (string, *http.Request, error) {
	path, name, ok := strings.Cut(r.URL.Path, "/ns/")
	if !ok || !strings.HasPrefix(path, "/.well-known/") || !isNamespace(name) {
		return "", r, nil
	}
	inner, u := new(http.Request), *r.URL
	*inner = *r
	u.Path, u.RawPath = path, ""
	inner.URL = &u
	return name, inner, nil
}

// isNamespace reports whether name is 1 to 64 of A-Za-z0-9_-
func isNamespace(name string) bool {
	other := func(c rune) bool {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		return !letter && !('0' <= c && c <= '9') && c != '_' && c != '-'
	}
	return 1 <= len(name) && len(name) <= maxNamespaceName && !strings.ContainsFunc(name, other)
}

// checkKey reports with a 401 that a lab request does not carry the key of the lab, where there is one.
func (l *lab) checkKey(r *http.Request) error {
	want := l.root.hub.Load().settings.LabKey
	if want == "" {
		return nil
	}
	given, _ := reply.Bearer(r)
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want)) // of one length, so that the comparison tells nothing
	if subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
		return nil
	}
	return reply.Fail(http.StatusUnauthorized, "lab_key_required", "The lab of this hub wants its key (AUTHHUB_LAB_KEY) as Authorization: Bearer KEY.")
}

// bench returns the bench of a namespace, which is made where there is none yet, or the root's for "".
// Errors: a 507 when there are too many, errBusy once the lab is closed.
func (l *lab) bench(name string) (*bench, error) {
	if name == "" {
		return l.root, nil
	}
	l.mu.RLock()
	b := l.spaces[name]
	l.mu.RUnlock()
	if b != nil {
		return b, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.spaces == nil:
		return nil, errBusy
	case l.spaces[name] != nil:
		return l.spaces[name], nil
	case len(l.spaces) >= maxNamespaces:
		return nil, reply.Fail(http.StatusInsufficientStorage, "namespace_limit",
			"There are as many namespaces as the hub holds. DELETE /ns/NAME ends one that is done with.")
	}
	b, err := l.newNamespace(name)
	if err == nil {
		l.spaces[name] = b
	}
	return b, err
}

func (l *lab) countNamespaces() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.spaces)
}

func (l *lab) deleteNamespace(w http.ResponseWriter, r *http.Request, name string) error {
	if r.Method != http.MethodDelete {
		return route.MethodNotAllowed("DELETE, GET, HEAD")
	}
	if err := refuseQuery(r); err != nil {
		return err
	}
	l.mu.Lock()
	b := l.spaces[name]
	delete(l.spaces, name)
	l.mu.Unlock()
	if b == nil {
		return reply.Fail(http.StatusNotFound, "not_found", "There is no namespace of this name. One exists from the first request to it.")
	}
	b.gone(reply.Fail(http.StatusNotFound, "not_found", "The namespace has been deleted."))
	b.close()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// labTable is all that the lab does to a bench.
var labTable = sync.OnceValue(func() *route.Table[*bench] {
	t := route.NewTable[*bench]()
	add := func(method, path, purpose string, serve labRoute) {
		if at := method + path; at != "GET/lab/requests" && at != "GET/lab/report" { // which have filters, and a time to wait
			serve = withoutQuery(serve)
		}
		t.Add(method, path, "", purpose, "", serve)
	}
	// lab_state.go
	add("GET", "/lab", "time, policy, faults, counts", (*bench).showState)
	add("POST", "/lab/reset", "back to the seeds", (*bench).reset)
	add("GET", "/lab/sessions", "the live sessions", (*bench).listSessions)
	add("POST", "/lab/sessions/{sid}/expire", "let a session's access or refresh token expire now", (*bench).expireSession)
	add("POST", "/lab/sessions/{sid}/revoke", "end a session", (*bench).revokeSession)
	add("GET", "/lab/dialect", "the description of the API that the hub speaks besides its own", (*bench).showDialect)
	add("PUT", "/lab/dialect", "have the hub speak another API besides its own", (*bench).setDialect)
	add("DELETE", "/lab/dialect", "have the hub speak its own API alone", (*bench).deleteDialect)
	add("PUT", "/lab/refresh-policy", "what a spent refresh token does: strict, grace, allow", (*bench).setPolicy)

	// lab_snapshot.go
	add("GET", "/lab/snapshot", "the whole state", (*bench).takeSnapshot)
	add("PUT", "/lab/snapshot", "put a state back", (*bench).putSnapshot)

	// lab_clock.go
	add("PUT", "/lab/clock", "advance, set or freeze the time", (*bench).setClock)

	// lab_tokens.go
	add("POST", "/lab/tokens", "a token to order, sound or with a defect", (*bench).orderToken)

	// lab_faults.go
	add("POST", "/lab/faults", "have requests delayed, refused, dropped, cut or held", (*bench).addFault)
	add("GET", "/lab/faults", "the faults and what they have hit", (*bench).listFaults)
	add("DELETE", "/lab/faults", "no more faults", (*bench).deleteFaults)
	add("DELETE", "/lab/faults/{id}", "one fault less", (*bench).deleteFault)

	// lab_requests.go, lab_expect.go, lab_report.go
	add("GET", "/lab/requests", "what came in", (*bench).listRequests)
	add("DELETE", "/lab/requests", "forget what came in", (*bench).clearRequests)
	add("POST", "/lab/expect", "wait until a statement about the requests holds", (*bench).expect)
	add("GET", "/lab/report", "how the client behaved", (*bench).showReport)
	return t
})

// withoutQuery refuses a query, where serve takes none.
func withoutQuery(serve labRoute) labRoute {
	return func(b *bench, w http.ResponseWriter, r *http.Request) error {
		if err := refuseQuery(r); err != nil {
			return err
		}
		return serve(b, w, r)
	}
}

// labRoute serves one operation of the bench that it is called on.
type labRoute = func(*bench, http.ResponseWriter, *http.Request) error

// labOperations returns the lab's lines of the index of h.
func labOperations(h *Hub) []indexLine {
	token := "none"
	if h.settings.LabKey != "" {
		token = "lab key"
	}
	lines := []indexLine{{"DELETE", "", "end this namespace", token}}
	if h.namespace == "" {
		lines[0] = indexLine{"DELETE", "/ns/{name}", "end a namespace", token}
	}
	for _, o := range labTable().Operations {
		lines = append(lines, indexLine{o.Method, o.Path, o.Purpose, token})
	}
	return lines
}
