// The hub: one set of users, sessions, files and runs, and the routes to them.
//
// A request goes mux -> route -> handler -> signer, store or run -> answer. What stands between the socket and a
// hub (Host, CORS, security headers, the log line) is edge.go's.

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/lab"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/results"
	"authhub/internal/route"
	"authhub/internal/runs"
	"authhub/web"
)

// Hub is one whole hub. All its parts are required; hubs of one process share settings, operations and hasher.
type Hub struct {
	settings      *settings
	operations    *route.Table[*Hub]
	hasher        *passwd.Hasher
	store         account.Store
	signer        *jwt.Signer
	secret        []byte // what the signer's keys are derived from
	throttle      *passwd.Throttle
	output        *results.Folder
	runs          *runs.Queue
	namespace     string // of the lab; "" for the root
	base          string // the address clients know this hub by, without a slash at the end
	now           func() time.Time
	reuse         func() account.ReusePolicy
	lifetimes     func() (access, refresh time.Duration)   // of the tokens of new sessions, at most
	dialect       func() *dialect.Dialect                  // nil: the hub speaks its own API alone
	labOperations func(namespace string) []route.Operation // for the index; nil without -lab
	rand          io.Reader
	log           *slog.Logger
}

// embedded returns the store of a hub that has a lab: -lab is refused with any other.
func (h *Hub) embedded() *account.Embedded { return h.store.(*account.Embedded) }

// settings is what the operator chose, the same for every hub of the process.
type settings struct {
	*flags.Options
	timeouts  timeouts
	namedBase bool // the operator has named the base URL: addresses in answers keep to it
}

// hubHandler serves one operation of the hub that it is called on.
type hubHandler = func(*Hub, http.ResponseWriter, *http.Request) error

// newOperations returns all that a hub does. The index, the lab and the test of openapi.json read the table.
func newOperations() *route.Table[*Hub] {
	t := route.NewTable[*Hub]()
	// auth.go
	t.Add("POST", "/api/authentication/register", "register", "make an account and log in", "none", (*Hub).register)
	t.Add("POST", "/api/authentication/login", "login", "log in", "none", (*Hub).login)
	t.Add("GET", "/api/authentication/me", "me", "the current user", "access", (*Hub).showUser)
	t.Add("POST", "/api/authentication/refresh", "refresh", "exchange the refresh token for a new pair", "refresh", (*Hub).refresh)
	t.Add("POST", "/api/authentication/logout", "logout", "end the session (?all=true: all of the user's, ?others=true: all others)", "access or refresh", (*Hub).logout)

	// files.go
	t.Add("GET", "/api/files/phase2", "listing", "which of the three files are available", ofFiles, filesRoute((*Hub).listFiles))
	t.Add("GET", "/api/files/phase2/barrier", "file", results.Barrier.Name(), ofFiles, filesRoute(serveFile(results.Barrier)))
	t.Add("GET", "/api/files/phase2/impact", "file", results.Impact.Name(), ofFiles, filesRoute(serveFile(results.Impact)))
	t.Add("GET", "/api/files/phase2/alertesph", "file", results.Alerts.Name(), ofFiles, filesRoute(serveFile(results.Alerts)))

	// run.go
	t.Add("POST", "/api/run-ph-barrier-phase2", "run", "produce the three files", ofRun, runRoute((*Hub).startRun))
	t.Add("GET", "/api/run-ph-barrier-phase2", "run", "the current or latest run", ofRun, runRoute((*Hub).showRun))

	// main.go
	t.Add("GET", "/api", "index", "this index", "none", (*Hub).showIndex)
	t.Add("GET", "/healthz", "", "ready and able to store", "none", (*Hub).showHealth)
	t.Add("GET", "/openapi.json", "", "the description of all of this for programs (OpenAPI 3.1)", "none", (*Hub).showDescription)
	t.Add("GET", "/{$}", "", "the page for people", "none", (*Hub).showPage)
	t.Add("GET", "/web/{file}", "", "", "none", (*Hub).showAsset)
	return t
}

// Operations of these groups ask for an access token where the operator says so with -protect.
const (
	ofFiles = "files"
	ofRun   = "run"
)

// tokenFor returns the token that operations of this group ask for.
func (s *settings) tokenFor(group string) string {
	switch {
	case group == ofFiles && s.ProtectFiles, group == ofRun && s.ProtectRun:
		return "access"
	case group == ofFiles, group == ofRun:
		return "none"
	}
	return group
}

// filesRoute and runRoute guard an operation as the operator asked with -protect.
func filesRoute(serve hubHandler) hubHandler { return guarded(serve, ofFiles) }
func runRoute(serve hubHandler) hubHandler   { return guarded(serve, ofRun) }

// guarded asks for an access token where the group of the operation is protected.
func guarded(serve hubHandler, group string) hubHandler {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		if h.settings.tokenFor(group) == "access" {
			if _, _, err := h.authenticate(r); err != nil {
				return err
			}
		}
		return serve(h, w, r)
	}
}

// ServeHTTP answers a request of the dialect, where that describes its path, or else of the hub's own API.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d := h.dialect(); d != nil {
		if call := d.Read(w, r); call != nil {
			h.serveCall(w, r, call)
			return
		}
	}
	h.serveOwn(w, r)
}

// serveOwn answers a request of the hub's own API.
func (h *Hub) serveOwn(w http.ResponseWriter, r *http.Request) {
	if err := h.operations.Serve(h, w, r); err != nil {
		h.answerError(w, r, err)
	}
}

// answerError is the one place where an error becomes an answer.
func (h *Hub) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if givenUp(r, err) {
		err = errBusy // most likely nobody listens; who does must not take an empty 200 for success
		if cause := context.Cause(r.Context()); errors.Is(cause, account.ErrReplaced) {
			err = cause
		}
	}
	e := answerFor(err)
	switch e.Code {
	case "internal":
		h.log.Error(e.Code, "operation", r.Pattern, "cause", err)
	case "store_unavailable", "disk_full":
		h.log.Warn(e.Code, "operation", r.Pattern, "cause", err)
	}
	h.noteUser(w, r)
	reply.Write(w, e)
}

// noteUser tells the log whose access token a refused request carries.
func (h *Hub) noteUser(w http.ResponseWriter, r *http.Request) {
	token, err := reply.Bearer(r)
	if err != nil {
		return
	}
	if c, err := h.signer.Open(token); err == nil && c.Username != "" {
		reply.Note(w, "user", c.Username)
	}
}

// renewWriteDeadline gives an answer the whole time there is for writing one, after a wait that has used up some of it.
func (h *Hub) renewWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.settings.timeouts.write)) // not every writer has deadlines
}

// indexLine is one line of the index.
type indexLine struct {
	Method  string `json:"method"`
	Href    string `json:"href"`
	Purpose string `json:"purpose"`
	Token   string `json:"token"`
}

func (h *Hub) showIndex(w http.ResponseWriter, r *http.Request) error {
	var lines []indexLine
	for _, o := range h.operations.Operations {
		if o.Purpose != "" {
			lines = append(lines, indexLine{o.Method, strings.TrimSuffix(o.Path, "{$}"), o.Purpose, h.settings.tokenFor(o.Token)})
		}
	}
	if d := h.dialect(); d != nil {
		for _, o := range d.Operations() {
			lines = append(lines, indexLine{o.Method, o.Path, o.Purpose + " (" + d.Name() + ")", o.Token})
		}
	}
	if h.labOperations != nil {
		for _, o := range h.labOperations(h.namespace) {
			lines = append(lines, indexLine{o.Method, o.Path, o.Purpose, o.Token})
		}
	}
	for i := range lines {
		lines[i].Href = h.base + lines[i].Href
	}
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"name": "authhub", "version": version(), "base_url": h.base, "operations": lines})
}

func (h *Hub) showHealth(w http.ResponseWriter, r *http.Request) error {
	if err := h.store.Ready(r.Context()); err != nil {
		return err
	}
	return reply.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// givenUp reports whether err only says that the request has been given up, by its client or by the lab.
func givenUp(r *http.Request, err error) bool {
	ended := r.Context().Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(r.Context())))
}

func (h *Hub) showPage(w http.ResponseWriter, r *http.Request) error {
	return web.Serve(w, r, "index.html")
}

// showAsset serves a part of the page. The description has an address of its own.
func (h *Hub) showAsset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	if name == web.Description || name == web.WithoutLab {
		return reply.Fail(http.StatusNotFound, "not_found", "The page has no such part.")
	}
	return web.Serve(w, r, name)
}

func (h *Hub) showDescription(w http.ResponseWriter, r *http.Request) error {
	if h.settings.Lab {
		return web.Serve(w, r, web.Description)
	}
	return web.Serve(w, r, web.WithoutLab)
}

// openLab returns the lab of the hub h.
func openLab(ctx context.Context, h *Hub) *lab.Lab {
	var l *lab.Lab
	host := lab.Host{
		Renew: func(p lab.Parts) lab.Parts {
			return h.renewed(p, func(namespace string) []route.Operation { return l.Operations(namespace) })
		},
		Answer:        h.answerError,
		RenewDeadline: h.renewWriteDeadline,
		RefreshToken:  refreshTokenOf,
		NewID:         h.newID,
		Names:         make(map[string]string),
		Access:        h.settings.AccessTTL,
		Refresh:       h.settings.RefreshTTL,
		Dialect:       h.settings.Dialect,
		Key:           h.settings.LabKey,
		Secret:        h.secret,
		Log:           h.log,
	}
	for _, o := range h.operations.Operations {
		host.Names[o.Path] = o.Name
	}
	l = lab.New(ctx, host, lab.Parts{Base: h.base, Store: h.embedded(), Signer: h.signer, Folder: h.output, Now: h.now})
	return l
}

// renewed makes a hub of these parts, which shares with h what hubs of one process share.
func (h *Hub) renewed(p lab.Parts, labOperations func(string) []route.Operation) lab.Parts {
	made := *h
	made.namespace, made.base, made.store, made.signer, made.output = p.Namespace, p.Base, p.Store, p.Signer, p.Folder
	made.now, made.reuse, made.dialect, made.lifetimes = p.Now, p.Policy, p.Dialect, p.Lifetimes
	made.throttle, made.labOperations = passwd.NewThrottle(), labOperations
	made.runs = runs.New(p.Folder, p.Now, func(r *runs.Run) {
		if !errors.Is(r.State().Err, context.Canceled) { // ended by a reset
			h.logRun(r)
		}
	})
	p.Runs = made.runs
	p.Serve = func(w http.ResponseWriter, r *http.Request, call *dialect.Call) {
		if call != nil {
			made.serveCall(w, r, call)
		} else {
			made.serveOwn(w, r)
		}
	}
	return p
}
