// Package lab gives tests hubs of their own, and controls over them: clock, users, tokens, faults, snapshots, a record.
//
// With -lab its handler stands between the edge and the hubs: edge -> lab -> bench -> hub. A bench is one hub with what
// the lab adds to it: clock, refresh policy, faults, request record. The root hub has one, and so has every namespace.
// A hub knows nothing of its bench; without -lab none of this exists.
//
// lab.go owns the lab, its benches, the table of their operations, and the key.
package lab

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/record"
	"authhub/internal/lab/strict"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/results"
	"authhub/internal/route"
	"authhub/internal/runs"
)

const (
	maxNamespaces    = 10_000
	maxNamespaceName = 64
)

// Parts are what a hub is made of, and the hub that is made of them.
type Parts struct {
	Namespace string // "" for the root
	Base      string // the address that clients know the hub by
	Store     *account.Embedded
	Signer    *jwt.Signer
	Folder    *results.Folder

	Now       func() time.Time
	Policy    func() account.ReusePolicy
	Dialect   func() *dialect.Dialect                // nil: the hub speaks its own API alone
	Lifetimes func() (access, refresh time.Duration) // of the tokens of new sessions, at most

	Runs  *runs.Queue
	Serve func(w http.ResponseWriter, r *http.Request, call *dialect.Call) // call is nil for the hub's own API
}

// Host is what the process does for the lab and its hubs.
type Host struct {
	Renew         func(Parts) Parts // makes a new hub of these parts: new are Runs, Serve, and the count of failed logins
	Answer        func(w http.ResponseWriter, r *http.Request, err error)
	RenewDeadline func(w http.ResponseWriter)                  // gives an answer the whole time for writing, after a wait
	Drain         func(w http.ResponseWriter, r *http.Request) // reads what is left of the body
	RefreshToken  func(w http.ResponseWriter, r *http.Request) (string, error)
	NewID         func() string
	Hash          func(ctx context.Context, password string) (passwd.Credential, error)
	Names         map[string]string // of the hub's operations, by METHOD path
	Access        time.Duration     // the operator's lifetimes
	Refresh       time.Duration
	Dialect       *dialect.Dialect // the operator's; nil: none
	Key           string           // that lab requests carry; "" for none
	Secret        []byte           // that the keys of namespaces are derived from
	Log           *slog.Logger
}

// Lab is the handler of a process with -lab.
type Lab struct {
	Host
	ctx      context.Context // ends when the process stops; then nothing waits any longer
	seeds    []*account.User
	baseName string       // NAME of NAME.localhost, if the root hub is called so
	identity maphash.Seed // of the digests that tell whether two requests are the same
	root     *bench

	mu     sync.RWMutex
	spaces map[string]*bench // nil: closed
}

// bench is one hub and what the lab adds to it.
type bench struct {
	lab  *Lab
	ctx  context.Context
	gone context.CancelCauseFunc // lets go the requests that are held or delayed here; the cause is what an expect is answered with

	hub      atomic.Pointer[Parts] // replaced by reset; a request keeps the one it began with
	clock    *labClock
	policy   atomic.Pointer[policy]
	dialect  atomic.Pointer[dialect.Dialect]
	ordered  atomic.Pointer[lifetimes]
	faults   fault.Queue
	requests record.Log
	changing sync.Mutex // held by reset and snapshot, so that each is whole

	created time.Time
	latest  atomic.Pointer[time.Time] // arrival of the latest request; nil before the first
	judged  atomic.Pointer[judged]

	arrivals sync.Mutex // held while a request arrives, and while the state is replaced, so that it meets the one or the other
	underWay map[*record.Request]context.CancelCauseFunc
}

// New returns the lab of the hub with these parts. From now on the clock of that hub is the lab's. When ctx ends,
// nothing waits any longer.
func New(ctx context.Context, host Host, root Parts) *Lab {
	l := &Lab{Host: host, ctx: ctx, seeds: root.Store.Seeds(), identity: maphash.MakeSeed(), spaces: make(map[string]*bench)}
	if base, err := url.Parse(root.Base); err == nil {
		l.baseName = namespaceOfHost(base.Host)
	}
	l.root = l.newBench(root)
	return l
}

// Runs returns the queue of the root hub.
func (l *Lab) Runs() *runs.Queue { return l.root.hub.Load().Runs }

// newBench returns a bench of a hub with these parts, whose clock, policy, dialect and lifetimes are the bench's.
func (l *Lab) newBench(parts Parts) *bench {
	b := &bench{lab: l, clock: newLabClock(parts.Now)}
	b.ctx, b.gone = context.WithCancelCause(l.ctx)
	b.policy.Store(new(policy))
	b.dialect.Store(l.Dialect)
	b.ordered.Store(new(lifetimes))
	b.created = b.clock.real()
	parts.Now = b.clock.now
	parts.Policy = b.reuse
	parts.Dialect, parts.Lifetimes = b.dialect.Load, b.lifetimes
	parts = l.Renew(parts)
	b.hub.Store(&parts)
	return b
}

// newNamespace returns the bench of a hub of its own.
func (l *Lab) newNamespace(name string) (*bench, error) {
	store, err := account.NewMemory(l.seeds)
	if err != nil {
		return nil, err
	}
	signer, err := jwt.NewSigner(l.Secret, "ns "+name)
	if err != nil {
		return nil, err
	}
	return l.newBench(Parts{Namespace: name, Base: l.root.hub.Load().Base + "/ns/" + name, Store: store, Signer: signer,
		Folder: results.Temporary(), Now: l.root.clock.real}), nil
}

// Close ends all runs and removes the folders of all namespaces. The root hub's folder and store are not the lab's.
func (l *Lab) Close() {
	l.mu.Lock()
	spaces := l.spaces
	l.spaces = nil
	l.mu.Unlock()
	for _, b := range spaces {
		b.close()
	}
	l.root.gone(runs.ErrBusy)
	l.root.hub.Load().Runs.Close()
}

// close ends what a namespace does and removes its folder.
func (b *bench) close() {
	b.gone(runs.ErrBusy)
	b.changing.Lock()
	defer b.changing.Unlock()
	h := b.hub.Load()
	h.Runs.Close()
	if err := h.Folder.Close(); err != nil {
		b.lab.Log.Error("namespace", "name", h.Namespace, "cause", err)
	}
}

func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.serve(w, r); err != nil {
		l.Answer(w, r, err)
	}
}

func (l *Lab) serve(w http.ResponseWriter, r *http.Request) error {
	name, inner, err := l.split(r)
	if err != nil {
		return err
	}
	if name != "" {
		reply.Note(w, "ns", name)
	}
	if name == "" && inner.URL.Path == "/ns" {
		return l.serveNamespaces(w, r)
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

// checkKey reports with a 401 that a lab request does not carry the key of the lab, where there is one.
func (l *Lab) checkKey(r *http.Request) error {
	if l.Key == "" {
		return nil
	}
	given, _ := request.Bearer(r)
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(l.Key)) // of one length, so that the comparison tells nothing
	if subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
		return nil
	}
	return reply.Fail(http.StatusUnauthorized, "lab_key_required", "The lab of this hub has a key. Send the value of AUTHHUB_LAB_KEY as Authorization: Bearer KEY.")
}

// labTable is all that the lab does to a bench.
var labTable = sync.OnceValue(func() *route.Table[*bench] {
	t := route.NewTable[*bench]()
	for _, o := range []struct {
		method, path, purpose string
		serve                 labRoute
	}{
		// state.go
		{"GET", "/lab", "time, policy, faults, counts", (*bench).showState},
		{"POST", "/lab/reset", "back to the accounts of the start", (*bench).reset},

		// sessions.go
		{"GET", "/lab/sessions", "the live sessions", (*bench).listSessions},
		{"POST", "/lab/sessions/{sid}/expire", "make a session's access or refresh token expire now", (*bench).expireSession},
		{"POST", "/lab/sessions/{sid}/revoke", "end a session", (*bench).revokeSession},

		// dialect.go, policy.go, lifetimes.go
		{"GET", "/lab/dialect", "the description of the API that the hub speaks besides its own", (*bench).showDialect},
		{"PUT", "/lab/dialect", "make the hub speak another API besides its own", (*bench).setDialect},
		{"DELETE", "/lab/dialect", "make the hub speak its own API only", (*bench).deleteDialect},
		{"PUT", "/lab/refresh-policy", "what a spent refresh token does: strict, grace, allow; or no rotation", (*bench).setPolicy},
		{"PUT", "/lab/lifetimes", "how long the tokens of new sessions live", (*bench).setLifetimes},

		// users.go
		{"GET", "/lab/users", "all users", (*bench).listUsers},
		{"GET", "/lab/users/{username}", "one user", (*bench).showUser},
		{"PUT", "/lab/users/{username}", "make or change a user", (*bench).putUser},
		{"DELETE", "/lab/users/{username}", "delete a user and its sessions", (*bench).deleteUser},

		// snapshot.go
		{"GET", "/lab/snapshot", "the whole state", (*bench).takeSnapshot},
		{"PUT", "/lab/snapshot", "put a state back", (*bench).putSnapshot},

		// clock.go
		{"PUT", "/lab/clock", "advance, set or freeze the time", (*bench).setClock},

		// tokens.go
		{"POST", "/lab/tokens", "mint a token, sound or with a defect", (*bench).orderToken},

		// faults.go
		{"POST", "/lab/faults", "add a fault: delay, refuse, drop, cut or hold requests", (*bench).addFault},
		{"GET", "/lab/faults", "the faults and what they have hit", (*bench).listFaults},
		{"DELETE", "/lab/faults", "delete all faults", (*bench).deleteFaults},
		{"DELETE", "/lab/faults/{id}", "delete a fault", (*bench).deleteFault},

		// requests.go, report.go
		{"GET", "/lab/requests", "the requests that came in", (*bench).listRequests},
		{"DELETE", "/lab/requests", "empty the record of requests", (*bench).clearRequests},
		{"POST", "/lab/expect", "wait until a statement about the requests holds", (*bench).expect},
		{"GET", "/lab/report", "how the client behaved", (*bench).showReport},
	} {
		if at := o.method + o.path; at != "GET/lab/requests" && at != "GET/lab/report" { // which have filters, and a time to wait
			o.serve = withoutQuery(o.serve)
		}
		t.Add(o.method, o.path, "", o.purpose, "", o.serve)
	}
	return t
})

// withoutQuery refuses a query, and members of the body of a DELETE, where serve takes none.
func withoutQuery(serve labRoute) labRoute {
	return func(b *bench, w http.ResponseWriter, r *http.Request) error {
		if err := refuseExtras(w, r); err != nil {
			return err
		}
		return serve(b, w, r)
	}
}

// refuseExtras returns a 422 for a query and, of a DELETE, for members of the body: somebody may mean to delete less.
func refuseExtras(w http.ResponseWriter, r *http.Request) error {
	err := strict.RefuseQuery(r)
	if err == nil && r.Method == http.MethodDelete {
		err = strict.RefuseMembers(w, r)
	}
	return err
}

// labRoute serves one operation of the bench that it is called on.
type labRoute = func(*bench, http.ResponseWriter, *http.Request) error

// Operations returns the lab's operations on the hub of a namespace, for its index.
func (l *Lab) Operations(namespace string) []route.Operation {
	token := "none"
	if l.Key != "" {
		token = "lab key"
	}
	operations := []route.Operation{{Method: "DELETE", Purpose: "end this namespace"}}
	if namespace == "" {
		operations[0] = route.Operation{Method: "DELETE", Path: "/ns/{name}", Purpose: "end a namespace"}
		operations = append(operations, route.Operation{Method: "GET", Path: "/ns", Purpose: "the namespaces, the latest request first"})
	}
	operations = append(operations, labTable().Operations...)
	for i := range operations {
		operations[i].Token = token
	}
	return operations
}
