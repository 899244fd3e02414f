// The hub: one set of users, sessions, files and runs, and the routes to them.
//
// A request goes mux -> route -> handler -> signer, store or run -> answer. What stands between the socket and a
// hub (Host, CORS, security headers, the log line) is edge.go's.

package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"authhub/internal/reply"
)

// Hub is one whole hub. All its parts are required; hubs of one process share mux, hasher and settings.
type Hub struct {
	settings  *settings
	mux       *http.ServeMux
	hasher    *hasher
	store     *store
	signer    *signer
	throttle  *throttle
	output    *output
	runs      *runs
	namespace string // of the lab; "" for the root
	base      string // the address clients know this hub by, without a slash at the end
	now       func() time.Time
	reuse     func() reusePolicy
	rand      io.Reader
	log       *slog.Logger
}

// settings is what the operator chose, the same for every hub of the process.
type settings struct {
	accessTTL    time.Duration
	refreshTTL   time.Duration
	protectFiles bool
	protectRun   bool
	readings     string // path of the readings; "" for the embedded ones
	lab          bool
	labKey       string // that lab requests must carry; "" for none
	timeouts     timeouts
}

// newMux returns the routes of a hub.
func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, serve := range routes() {
		mux.Handle(pattern, serve)
	}
	for path, allow := range allowedMethods(maps.Keys(routes())) {
		mux.Handle(path, methodNotAllowed(allow))
	}
	return mux
}

// routes are all there are. GET routes answer HEAD as well (net/http.ServeMux).
func routes() map[string]route {
	return map[string]route{
		// auth.go
		"POST /api/authentication/register": (*Hub).register,
		"POST /api/authentication/login":    (*Hub).login,
		"GET /api/authentication/me":        (*Hub).showUser,
		"POST /api/authentication/refresh":  (*Hub).refresh,
		"POST /api/authentication/logout":   (*Hub).logout,

		// files.go, content.go
		"GET /api/files/phase2":           filesRoute((*Hub).listFiles),
		"GET /api/files/phase2/barrier":   filesRoute(serveFile(barrierFile)),
		"GET /api/files/phase2/impact":    filesRoute(serveFile(impactFile)),
		"GET /api/files/phase2/alertesph": filesRoute(serveFile(alertsFile)),

		// run.go
		"POST /api/run-ph-barrier-phase2": runRoute((*Hub).startRun),
		"GET /api/run-ph-barrier-phase2":  runRoute((*Hub).showRun),

		// web.go
		"GET /{$}":          (*Hub).showPage,
		"GET /web/{file}":   (*Hub).showAsset,
		"GET /openapi.json": (*Hub).showDescription,

		// hub.go
		"GET /api":     (*Hub).showIndex,
		"GET /healthz": (*Hub).showHealth,
	}
}

// allowedMethods returns, for each path of these "METHOD /path" patterns, the Allow header of its 405.
func allowedMethods(patterns iter.Seq[string]) map[string]string {
	methods := make(map[string][]string)
	for pattern := range patterns {
		method, path, _ := strings.Cut(pattern, " ")
		methods[path] = append(methods[path], method)
		if method == "GET" {
			methods[path] = append(methods[path], "HEAD")
		}
	}
	allow := make(map[string]string, len(methods))
	for path, m := range methods {
		slices.Sort(m)
		allow[path] = strings.Join(m, ", ")
	}
	return allow
}

// route is one operation of whichever hub it is called on.
type route func(*Hub, http.ResponseWriter, *http.Request) error

// ServeHTTP makes a route something that a ServeMux holds. It has no hub, so it is never called: the mux only
// finds routes for Hub.ServeHTTP.
func (route) ServeHTTP(http.ResponseWriter, *http.Request) { panic("a route was served without a hub") }

func methodNotAllowed(allow string) route {
	return func(_ *Hub, _ http.ResponseWriter, r *http.Request) error {
		e := reply.Fail(http.StatusMethodNotAllowed, "method_not_allowed", "This path takes "+allow+".")
		e.Header = http.Header{"Allow": {allow}}
		return e
	}
}

// filesRoute and runRoute guard an operation as the operator asked with -protect.
func filesRoute(serve route) route {
	return guarded(serve, func(s *settings) bool { return s.protectFiles })
}

func runRoute(serve route) route {
	return guarded(serve, func(s *settings) bool { return s.protectRun })
}

// guarded asks for an access token where the operation is protected.
func guarded(serve route, protected func(*settings) bool) route {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		if protected(h.settings) {
			if _, _, err := h.authenticate(r); err != nil {
				return err
			}
		}
		return serve(h, w, r)
	}
}

// ServeHTTP answers r. A path that the mux would have cleaned is not found: nothing here redirects.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, pattern := h.mux.Handler(r)
	serve, ok := found.(route)
	if !ok {
		reply.Write(w, reply.Fail(http.StatusNotFound, "not_found", "There is nothing at this path. GET /api lists what there is."))
		return
	}
	r.Pattern = pattern
	if err := serve(h, w, r); err != nil {
		h.answerError(w, r, err)
	}
}

// answerError is the one place where an error becomes an answer.
func (h *Hub) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if givenUp(r, err) {
		err = errBusy // most likely nobody listens; who does must not take an empty 200 for success
		if cause := context.Cause(r.Context()); errors.Is(cause, errReplaced) {
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
	reply.Write(w, e)
}

// renewWriteDeadline gives an answer the whole time there is for writing one, after a wait that has used up some of it.
func (h *Hub) renewWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.settings.timeouts.write)) // not every writer has deadlines
}

// operation is one line of the index.
type operation struct {
	Method  string `json:"method"`
	Href    string `json:"href"`
	Purpose string `json:"purpose"`
	Token   string `json:"token"`
}

func (h *Hub) showIndex(w http.ResponseWriter, r *http.Request) error {
	files, run := "none", "none"
	if h.settings.protectFiles {
		files = "access"
	}
	if h.settings.protectRun {
		run = "access"
	}
	operations := []operation{
		{"POST", "/api/authentication/register", "make an account and log in", "none"},
		{"POST", "/api/authentication/login", "log in", "none"},
		{"GET", "/api/authentication/me", "the current user", "access"},
		{"POST", "/api/authentication/refresh", "exchange the refresh token for a new pair", "refresh"},
		{"POST", "/api/authentication/logout", "end the session (?all=true: all of the user's)", "access or refresh"},
		{"GET", "/api/files/phase2", "which of the three files are available", files},
		{"GET", "/api/files/phase2/barrier", barrierFile.name(), files},
		{"GET", "/api/files/phase2/impact", impactFile.name(), files},
		{"GET", "/api/files/phase2/alertesph", alertsFile.name(), files},
		{"POST", "/api/run-ph-barrier-phase2", "produce the three files", run},
		{"GET", "/api/run-ph-barrier-phase2", "the current or latest run", run},
		{"GET", "/api", "this index", "none"},
		{"GET", "/healthz", "ready and able to store", "none"},
		{"GET", "/openapi.json", "the description of all of this for programs (OpenAPI 3.1)", "none"},
		{"GET", "/", "the page for people", "none"},
	}
	if h.settings.lab {
		operations = append(operations, labOperations(h)...)
	}
	for i := range operations {
		operations[i].Href = h.base + operations[i].Href
	}
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"name": "authhub", "version": version(), "base_url": h.base, "operations": operations})
}

func (h *Hub) showHealth(w http.ResponseWriter, r *http.Request) error {
	if err := h.store.ready(); err != nil {
		return err
	}
	return reply.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// givenUp reports whether err only says that the request has been given up, by its client or by the lab.
func givenUp(r *http.Request, err error) bool {
	ended := r.Context().Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(r.Context())))
}
