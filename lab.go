// The lab: hubs for tests, and everything about them that a test may want to turn.
//
// With -lab this handler stands between the edge and the hubs: edge -> lab -> bench -> Hub. A bench is one hub with
// what the lab adds to it: clock, refresh policy, faults, request record. The root hub has one, and so has every
// namespace. A hub knows nothing of its bench; without -lab none of this exists.
//
// This file owns the namespaces, the routes and the key.

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"hash/maphash"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"authhub/internal/reply"
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
	seeds    []*user
	identity maphash.Seed // of the digests that tell whether two requests are the same
	mux      *http.ServeMux
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
	policy   atomic.Pointer[reusePolicy]
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
		secret:   hub.signer.keys[accessToken].key,
		seeds:    hub.store.seedUsers(),
		identity: maphash.MakeSeed(),
		mux:      newLabMux(),
		spaces:   make(map[string]*bench),
	}
	l.root = l.newBench(*hub)
	return l
}

// newBench returns a bench of a hub with these parts; its clock, throttle and runs are new.
func (l *lab) newBench(parts Hub) *bench {
	b := &bench{lab: l, clock: newLabClock(parts.now)}
	b.ctx, b.gone = context.WithCancelCause(l.ctx)
	b.policy.Store(new(reusePolicy))
	parts.now = b.clock.now
	parts.reuse = func() reusePolicy { return *b.policy.Load() }
	b.hub.Store(parts.renewed())
	return b
}

// renewed returns h with nothing in memory of failed logins and runs.
func (h Hub) renewed() *Hub {
	h.throttle = newThrottle()
	h.runs = newRuns(h.output, h.now, func(r *run, err error) {
		if !errors.Is(err, context.Canceled) { // ended by a reset
			h.logRun(r, err)
		}
	})
	return &h
}

// newNamespace returns the bench of a hub of its own.
func (l *lab) newNamespace(name string) (*bench, error) {
	parts := *l.root.hub.Load()
	parts.namespace, parts.base = name, parts.base+"/ns/"+name
	parts.now = l.root.clock.real
	parts.output = temporaryOutput()
	var err1, err2 error
	parts.store, err1 = newStore(l.seeds)
	parts.signer, err2 = newSigner(l.secret, "ns "+name)
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
	l.root.hub.Load().runs.close()
}

// close ends what a namespace does and removes its folder.
func (b *bench) close() {
	b.gone(errBusy)
	b.changing.Lock()
	defer b.changing.Unlock()
	h := b.hub.Load()
	h.runs.close()
	if err := h.output.close(); err != nil {
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
		return b.serveLab(w, inner)
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
		return "", r, nil
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

// isNamespace reports whether name is 1 to 64 of A-Za-z0-9_-
func isNamespace(name string) bool { return isWord(name, 1, maxNamespaceName, "_-") }

// checkKey reports with a 401 that a lab request does not carry the key of the lab, where there is one.
func (l *lab) checkKey(r *http.Request) error {
	want := l.root.hub.Load().settings.labKey
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
		return methodNotAllowed("DELETE, GET, HEAD")(nil, w, r)
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

// labRoute is one operation of whichever bench it is called on.
type labRoute func(*bench, http.ResponseWriter, *http.Request) error

// ServeHTTP makes a labRoute something that a ServeMux holds, as route's does.
func (labRoute) ServeHTTP(http.ResponseWriter, *http.Request) {
	panic("a lab route was served without a bench")
}

// labEntry is a route and what the index says of it.
type labEntry struct {
	serve   labRoute
	purpose string
}

// labRoutes are all there are.
func labRoutes() map[string]labEntry {
	return map[string]labEntry{
		// lab_state.go
		"GET /lab":                        {(*bench).showState, "time, policy, faults, counts"},
		"POST /lab/reset":                 {(*bench).reset, "back to the seeds"},
		"GET /lab/sessions":               {(*bench).listSessions, "the live sessions"},
		"POST /lab/sessions/{sid}/expire": {(*bench).expireSession, "let a session's access or refresh token expire now"},
		"POST /lab/sessions/{sid}/revoke": {(*bench).revokeSession, "end a session"},
		"PUT /lab/refresh-policy":         {(*bench).setPolicy, "what a spent refresh token does: strict, grace, allow"},

		// lab_snapshot.go
		"GET /lab/snapshot": {(*bench).takeSnapshot, "the whole state"},
		"PUT /lab/snapshot": {(*bench).putSnapshot, "put a state back"},

		// lab_clock.go
		"PUT /lab/clock": {(*bench).setClock, "advance, set or freeze the time"},

		// lab_tokens.go
		"POST /lab/tokens": {(*bench).orderToken, "a token to order, sound or with a defect"},

		// lab_faults.go
		"POST /lab/faults":        {(*bench).addFault, "have requests delayed, refused, dropped, cut or held"},
		"GET /lab/faults":         {(*bench).listFaults, "the faults and what they have hit"},
		"DELETE /lab/faults":      {(*bench).deleteFaults, "no more faults"},
		"DELETE /lab/faults/{id}": {(*bench).deleteFault, "one fault less"},

		// lab_requests.go, lab_expect.go, lab_report.go
		"GET /lab/requests":    {(*bench).listRequests, "what came in"},
		"DELETE /lab/requests": {(*bench).clearRequests, "forget what came in"},
		"POST /lab/expect":     {(*bench).expect, "wait until a statement about the requests holds"},
		"GET /lab/report":      {(*bench).showReport, "how the client behaved"},
	}
}

func newLabMux() *http.ServeMux {
	mux := http.NewServeMux()
	routes := labRoutes()
	for pattern, entry := range routes {
		mux.Handle(pattern, entry.serve)
	}
	for path, allow := range allowedMethods(maps.Keys(routes)) {
		mux.Handle(path, labRoute(func(_ *bench, w http.ResponseWriter, r *http.Request) error {
			return methodNotAllowed(allow)(nil, w, r)
		}))
	}
	return mux
}

// labOperations returns the lab's lines of the index of h.
func labOperations(h *Hub) []operation {
	token := "none"
	if h.settings.labKey != "" {
		token = "lab key"
	}
	operations := []operation{{"DELETE", "", "end this namespace", token}}
	if h.namespace == "" {
		operations[0] = operation{"DELETE", "/ns/{name}", "end a namespace", token}
	}
	for pattern, entry := range labRoutes() {
		method, path, _ := strings.Cut(pattern, " ")
		operations = append(operations, operation{method, path, entry.purpose, token})
	}
	slices.SortFunc(operations, func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.Href, b.Href), cmp.Compare(a.Method, b.Method))
	})
	return operations
}

// serveLab answers a lab request.
func (b *bench) serveLab(w http.ResponseWriter, r *http.Request) error {
	found, pattern := b.lab.mux.Handler(r)
	serve, ok := found.(labRoute)
	if !ok {
		return reply.Fail(http.StatusNotFound, "not_found", "There is nothing at this path. GET /api lists what there is.")
	}
	_, path, _ := strings.Cut(pattern, " ")
	if path != "" && pattern != "GET /lab/requests" { // which reads its own; without a method it is a 405
		if err := refuseQuery(r); err != nil {
			return err
		}
	}
	given := strings.Split(r.URL.Path, "/")
	for i, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") && i < len(given) {
			r.SetPathValue(strings.Trim(part, "{}"), given[i])
		}
	}
	return serve(b, w, r)
}
