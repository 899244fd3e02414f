// Command authhub is a test hub for authentication and a file service for the results of pH barrier runs.
//
// main.go owns the process (start, signals, exit codes) and the hub: its operations, the index, the lab that it stands
// in. A request goes edge -> lab -> dialect -> table of operations -> handler -> signer, store or runs -> answer.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/edge"
	"authhub/internal/engine"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/lab"
	"authhub/internal/listen"
	"authhub/internal/logs"
	"authhub/internal/passwd"
	"authhub/internal/ready"
	"authhub/internal/reply"
	"authhub/internal/results"
	"authhub/internal/route"
	"authhub/internal/runs"
	"authhub/internal/tour"
	"authhub/web"
)

func main() {
	os.Exit(cli(untilSignalled(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is what the operator asked for, and what tests put in its place.
type program struct {
	settings
	now    func() time.Time
	rand   io.Reader
	rounds int // of password hashes at rest
}

func newProgram(args []string) (*program, error) {
	o, err := flags.Parse(args, os.Getenv)
	return &program{settings{Options: o, timeouts: listen.UsualTimeouts()}, time.Now, rand.Reader, passwd.DurableRounds}, err
}

// untilSignalled returns a context that ends with the first signal to stop. A second one, as from a terminal and from
// the parent process that passes it on, changes nothing, and neither does a reader of stdout or stderr who goes away.
func untilSignalled() context.Context {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, func() { time.AfterFunc(3*listen.Grace, stop) }) // from then on one kills a hub that hangs
	return ctx
}

// cli runs the program and returns its exit status: 0, 1, or 2 for misuse.
func cli(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := newProgram(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, flags.Usage)
		return 0
	case err != nil:
	case o.Version:
		fmt.Fprintln(stdout, "authhub", flags.Version())
		return 0
	case o.PrintDialect != "":
		err = flags.WriteDialect(stdout, o.PrintDialect)
	case o.Check != "":
		err = ready.Check(ctx, o.Check)
	case o.Import != "":
		err = importJournal(ctx, o, stdout, logs.New(o.LogFormat, o.LogLevel, stderr).Hub)
	case o.Tour:
		err = runTour(ctx, o, stdout)
	default:
		err = serve(ctx, o, stdin, stdout, stderr)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "authhub:", err)
	if errors.Is(err, flags.ErrMisuse) {
		return 2
	}
	return 1
}

// serve runs the hub until ctx ends or, if so asked, standard input does.
func serve(ctx context.Context, o *program, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listener, err := listen.Open(o.Options)
	if err != nil {
		return err
	}
	defer listener.Close()
	if o.namedBase = o.BaseURL != ""; !o.namedBase {
		o.BaseURL = ready.Address(listener.Addr().(*net.TCPAddr))
	}
	to := logs.New(o.LogFormat, o.LogLevel, stderr)
	log := to.Hub
	if o.Readings != "" {
		if _, err := os.Stat(o.Readings); err != nil {
			log.Warn("there are no readings yet", "cause", err) // they may come before the first run does
		}
	}

	hub, closeHub, err := openHub(ctx, o, log)
	if err != nil && ctx.Err() != nil {
		return nil // told to stop while it waited for a store
	}
	if err != nil {
		return err
	}
	defer closeHub()
	if err := ready.Prepare(o.ReadyFile); err != nil {
		return err
	}
	f := o.frontOf(ctx, hub)
	defer f.close()
	if o.Run {
		if err := hub.runOnce(ctx, f.queue); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if o.ExitWithStdin {
		go func() { io.Copy(io.Discard, stdin); stop() }()
	}
	return o.answer(ctx, listener, f, stdout, stderr, to)
}

// answer serves f on listener until ctx ends, and announces the hub once it is served.
func (o *program) answer(ctx context.Context, listener net.Listener, f front, stdout, stderr io.Writer, to logs.Logs) error {
	bound := listener.Addr().(*net.TCPAddr)
	if o.Lab {
		listener = lab.Listen(listener)
	}
	server := listen.Start(listener, listen.Config{Handler: o.edgeOf(f, bound, to), Timeouts: o.timeouts, ConnContext: lab.WithConnection, Log: to.Hub})
	notice := ready.Notice{Options: o.Options, Bound: bound}
	if err := notice.Announce(stdout, stderr, to); err != nil {
		return err
	}
	defer notice.Withdraw()
	return server.Wait(ctx)
}

// front is what stands behind the edge: the hub, or the lab in front of it.
type front struct {
	http.Handler
	queue       *runs.Queue // of the root hub
	credentials func(*http.Request) bool
	close       func()
}

// frontOf returns the front of the hub that o asks for.
func (o *program) frontOf(ctx context.Context, hub *Hub) front {
	if o.Lab {
		l := openLab(ctx, hub)
		return front{l, l.Runs(), l.UsesCookies, l.Close}
	}
	cookies := func(*http.Request) bool { return o.Dialect != nil && o.Dialect.UsesCookies() }
	return front{hub, hub.runs, cookies, func() {}}
}

// edgeOf returns f behind its edge. A proxy may change Host, so the origin of the base URL is allowed by name.
func (o *program) edgeOf(f front, bound *net.TCPAddr, to logs.Logs) http.Handler {
	base, _ := url.Parse(o.BaseURL)
	origins := append(o.CORS, base.Scheme+"://"+base.Host)
	return edge.New(edge.Config{Next: f, Loopback: bound.IP.IsLoopback(), BaseHost: base.Host, Origins: origins,
		Credentials: f.credentials, Log: to.Requests, Panics: to.Alarms})
}

// runTour plays the story against the hub at -base-url or, where none is given, against one of its own, in memory.
// The error says which answer was not as it has to be.
func runTour(ctx context.Context, o *program, out io.Writer) error {
	if o.BaseURL != "" {
		return tour.Play(ctx, o.BaseURL, out)
	}
	own := *o
	own.Addr, own.Ephemeral, own.LogFormat, own.Dialect = "127.0.0.1:0", true, "off", nil // the story is in the hub's own API
	return tour.PlayOwn(ctx, out, func(ctx context.Context, stdout io.Writer) error {
		return serve(ctx, &own, strings.NewReader(""), stdout, io.Discard)
	})
}

// Hub is one whole hub. All its parts are required; hubs of one process share settings, operations and hasher.
type Hub struct {
	settings      *settings
	operations    *route.Table[*Hub]
	hasher        *passwd.Hasher
	store         account.Store
	signer        *jwt.Signer
	secret        []byte // what the signer's keys are derived from
	throttle      *passwd.Throttle
	output        *results.Folder // of this hub alone; with shared, only for uploads
	shared        *engine.Files   // nil: this hub shares its files with no other
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

// settings are what the operator chose, the same for every hub of the process.
type settings struct {
	*flags.Options
	timeouts  listen.Timeouts
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

	// main.go, the health in store.go
	t.Add("GET", "/api", "index", "this index", "none", (*Hub).showIndex)
	t.Add("GET", "/healthz", "", "ready and able to store", "none", (*Hub).showHealth)
	t.Add("GET", "/openapi.json", "", "the description of all operations for programs (OpenAPI 3.1)", "none", forLab(web.ServeDescription))
	t.Add("GET", "/{$}", "", "the page for people", "none", forLab(web.ServePage))
	t.Add("GET", "/web/{file}", "", "", "none", (*Hub).showAsset)
	return t
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
	err := h.operations.Serve(h, w, r)
	if e, ok := err.(*reply.Error); ok && e.Code == "not_found" && !h.settings.Lab && ofLab(r.URL.Path) {
		err = reply.Fail(http.StatusNotFound, "not_found", "The lab is off. To use /lab and /ns, start the hub with -lab.")
	}
	if err != nil {
		h.answerError(w, r, err)
	}
}

// ofLab reports whether a path is one of those that only a hub with a lab has.
func ofLab(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "lab" || first == "ns"
}

// renewWriteDeadline gives an answer the whole time there is for writing one, after a wait that has used up some of it.
func (h *Hub) renewWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.settings.timeouts.Write)) // not every writer has deadlines
}

// showIndex lists the operations of the hub, of its dialect and of the lab.
func (h *Hub) showIndex(w http.ResponseWriter, r *http.Request) error {
	index := route.Index{BaseURL: h.base, Name: "authhub", Version: flags.Version()}
	for _, o := range h.operations.Operations {
		o.Token = h.settings.tokenFor(o.Token)
		index.Add(o)
	}
	if d := h.dialect(); d != nil {
		for _, o := range d.Operations() {
			index.Add(route.Operation{Method: o.Method, Path: o.Path, Purpose: o.Purpose + " (" + d.Name() + ")", Token: o.Token})
		}
	}
	if h.labOperations != nil {
		index.Add(h.labOperations(h.namespace)...)
	}
	return reply.WriteJSON(w, http.StatusOK, index)
}

// forLab serves what differs where the hub has a lab.
func forLab(serve func(w http.ResponseWriter, r *http.Request, lab bool) error) hubHandler {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error { return serve(w, r, h.settings.Lab) }
}

// showAsset serves a part of the page.
func (h *Hub) showAsset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	if name == "dialect.json" {
		return h.showSpoken(w)
	}
	return web.ServeAsset(w, r, name)
}

// showSpoken tells the page what to ask for in the dialect, or null.
func (h *Hub) showSpoken(w http.ResponseWriter) error {
	var spoken any
	if d := h.dialect(); d != nil {
		spoken = map[string]any{"name": d.Name(), "operations": d.Operations()}
	}
	return reply.WriteJSON(w, http.StatusOK, spoken)
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
		Drain:         h.settings.timeouts.Drain,
		RefreshToken:  refreshTokenOf,
		NewID:         h.newID,
		Hash: func(ctx context.Context, password string) (passwd.Credential, error) {
			return h.hasher.Hash(ctx, h.rand, password)
		},
		Names:   make(map[string]string),
		Access:  h.settings.AccessTTL,
		Refresh: h.settings.RefreshTTL,
		Dialect: h.settings.Dialect,
		Key:     h.settings.LabKey,
		Secret:  h.secret,
		Log:     h.log,
	}
	for _, o := range h.operations.Operations {
		host.Names[o.Method+" "+o.Path] = o.Name
	}
	l = lab.New(ctx, host, lab.Parts{Base: h.base, Store: h.embedded(), Signer: h.signer, Folder: h.output, Now: h.now})
	return l
}

// renewed makes a hub of these parts, which shares with h what hubs of one process share.
func (h *Hub) renewed(p lab.Parts, labOperations func(string) []route.Operation) lab.Parts {
	made := *h
	made.namespace, made.base, made.store, made.signer, made.output = p.Namespace, p.Base, p.Store, p.Signer, p.Folder
	made.now, made.reuse, made.dialect, made.lifetimes = p.Now, p.Policy, p.Dialect, p.Lifetimes
	made.hasher, made.throttle, made.labOperations = h.hasher.Share(), passwd.NewThrottle(), labOperations
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

// serveCall serves a request of a dialect.
func (h *Hub) serveCall(w http.ResponseWriter, r *http.Request, call *dialect.Call) {
	access, refresh := h.lifetimes()
	call.Serve(w, r, dialect.Host{
		API:        http.HandlerFunc(h.serveOwn),
		Introspect: http.HandlerFunc(h.serveIntrospection),
		Base:       lab.BaseOf(r, h.base, h.namespace, h.settings.namedBase),
		Now:        h.now(),
		MaxAccess:  access,
		MaxRefresh: refresh,
		NewID:      h.newID,
	})
}
