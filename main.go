// Command authhub is a test hub for authentication and a file service for the results of pH barrier runs.
//
// This file owns the process: start, the line on stdout, the welcome, signals, exit codes.

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/disk"
	"authhub/internal/edge"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/lab"
	"authhub/internal/logs"
	"authhub/internal/passwd"
	"authhub/internal/results"
	"authhub/internal/runs"
	"authhub/internal/tour"
)

// timeouts are how long the hub waits for its clients.
type timeouts struct {
	header, idle time.Duration
	read         time.Duration // for a whole request, or for the next part of a long body
	write        time.Duration // for a whole answer, or for the next part of a long one
	upload       time.Duration // for the longest body
}

func usualTimeouts() timeouts {
	return timeouts{header: 10 * time.Second, idle: 2 * time.Minute, read: 30 * time.Second, write: time.Minute, upload: 10 * time.Minute}
}

const (
	shutdownTimeout = 5 * time.Second

	goodLabKey = 16 // bytes of a key that nobody guesses

	maxHeader = 12 << 10 // net/http reads 4 KiB more than it is told, which makes the 16 KiB of the contract
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
	return &program{settings{Options: o, timeouts: usualTimeouts()}, time.Now, rand.Reader, passwd.DurableRounds}, err
}

// untilSignalled returns a context that ends with the first signal to stop. A second one, as from a terminal and from
// the parent process that passes it on, changes nothing, and neither does a reader of stdout or stderr who goes away.
func untilSignalled() context.Context {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, func() { time.AfterFunc(3*shutdownTimeout, stop) }) // from then on one kills a hub that hangs
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
		fmt.Fprintln(stdout, "authhub", version())
		return 0
	case o.PrintDialect != "":
		err = printDialect(stdout, o.PrintDialect)
	case o.Check != "":
		err = checkHealth(ctx, o.Check)
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
	listener, err := o.bind()
	if err != nil {
		return err
	}
	defer listener.Close()
	bound := listener.Addr().(*net.TCPAddr)
	to := logs.New(o.LogFormat, o.LogLevel, stderr)
	log := to.Hub
	if o.Readings != "" {
		if _, err := os.Stat(o.Readings); err != nil {
			log.Warn("there are no readings yet", "cause", err) // they may come before the first run does
		}
	}

	hub, closeHub, err := openHub(o, log)
	if err != nil {
		return err
	}
	defer closeHub()
	if o.ReadyFile != "" {
		os.Remove(o.ReadyFile) // what an earlier hub wrote is not true any more
	}
	var front http.Handler = hub
	queue := hub.runs
	credentials := func(*http.Request) bool { return o.Dialect != nil && o.Dialect.UsesCookies() }
	if o.Lab {
		lab := openLab(ctx, hub)
		defer lab.Close()
		front, queue, credentials = lab, lab.Runs(), lab.UsesCookies
	}
	if o.Run {
		if err := hub.runOnce(ctx, queue); err != nil || ctx.Err() != nil {
			return err
		}
	}

	server := o.newServer(front, credentials, bound, to)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if o.ExitWithStdin {
		go func() { io.Copy(io.Discard, stdin); stop() }()
	}
	if err := o.announce(stdout, stderr, to, bound); err != nil {
		return err
	}
	defer o.removeReady()

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping")
	shutDown(server, shutdownTimeout)
	return nil
}

// newServer returns the server of front, behind its edge. Pages of the base URL itself may use the hub whatever Host
// a proxy between makes of it.
func (o *program) newServer(front http.Handler, credentials func(*http.Request) bool, bound *net.TCPAddr, to logs.Logs) *http.Server {
	base, _ := url.Parse(o.BaseURL)
	origins := append(o.CORS, base.Scheme+"://"+base.Host)
	return &http.Server{
		Handler: edge.New(edge.Config{Next: front, Loopback: bound.IP.IsLoopback(), BaseHost: base.Host, Origins: origins,
			Credentials: credentials, Log: to.Requests, Panics: to.Alarms}),
		ReadHeaderTimeout: o.timeouts.header,
		ReadTimeout:       o.timeouts.read,
		WriteTimeout:      o.timeouts.write,
		IdleTimeout:       o.timeouts.idle,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       lab.WithConnection,

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the edge as well
		ErrorLog:                     slog.NewLogLogger(to.Hub.Handler(), slog.LevelWarn),
	}
}

// shutDown lets requests under way end, for a while.
func shutDown(server *http.Server, patience time.Duration) {
	grace, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		server.Close() // the connections that are left had their time
	}
}

// bind opens the socket and settles what depends on where it is: the base URL, and whether the lab wants a key.
func (o *program) bind() (net.Listener, error) {
	listener, err := net.Listen("tcp", o.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use; choose another address with -addr (port 0 picks a free one)", o.Addr)
	}
	if err != nil {
		return nil, err
	}
	bound := listener.Addr().(*net.TCPAddr)
	if o.namedBase = o.BaseURL != ""; !o.namedBase {
		o.BaseURL = addressOf(bound)
	}
	if o.Lab && strings.TrimSpace(o.LabKey) == "" && !bound.IP.IsLoopback() {
		listener.Close()
		return nil, fmt.Errorf("-lab on %s, which is not a loopback address: set AUTHHUB_LAB_KEY (%w)", o.Addr, flags.ErrMisuse)
	}
	return listener, nil
}

// addressOf returns the base URL of a socket. One bound to every address is reached from here by loopback.
func addressOf(bound *net.TCPAddr) string {
	ip := bound.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return "http://" + net.JoinHostPort(ip.String(), fmt.Sprint(bound.Port))
}

// openHub returns the hub that o asks for, and what releases everything it holds.
func openHub(o *program, log *slog.Logger) (*Hub, func(), error) {
	users, err := o.readUsers()
	if err != nil {
		return nil, nil, err
	}
	h := &Hub{settings: &o.settings, operations: newOperations(), throttle: passwd.NewThrottle(), base: o.BaseURL, now: o.now, rand: o.rand, log: log}
	h.reuse = func() account.ReusePolicy { return account.ReusePolicy{Keep: !o.Dialect.Rotation()} } // RFC 9700: a spent refresh token ends its session
	h.lifetimes = func() (access, refresh time.Duration) { return o.AccessTTL, o.RefreshTTL }
	h.dialect = func() *dialect.Dialect { return o.Dialect }
	release := func() error { return nil }
	secret := []byte(o.Secret)
	if o.Ephemeral {
		h.hasher, h.output = passwd.NewHasher(passwd.EphemeralRounds), results.Temporary()
		if h.store, err = account.NewMemory(users); err == nil && len(secret) == 0 {
			secret = make([]byte, flags.MinSecret)
			rand.Read(secret)
		}
	} else {
		h.hasher = passwd.NewHasher(o.rounds)
		secret, release, err = h.openDir(o, users, secret)
	}
	if err != nil {
		return nil, nil, err
	}
	h.secret = secret
	if h.signer, err = jwt.NewSigner(secret, ""); err != nil {
		return nil, nil, err
	}
	h.runs = runs.New(h.output, h.now, h.logRun)
	return h, func() {
		h.runs.Close()
		if err := errors.Join(h.output.Close(), h.store.Close(), release()); err != nil {
			log.Error("stop", "cause", err)
		}
	}, nil
}

// openDir opens what DIR holds, alone: secret, journal and phase2. The lock is given back with release.
func (h *Hub) openDir(o *program, users []*account.User, secret []byte) (_ []byte, release func() error, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	locked, err := disk.Lock(o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name another folder with -dir, or keep nothing with -ephemeral", err)
	}
	if len(secret) == 0 {
		secret, err = openSecret(filepath.Join(o.Dir, "secret"))
	}
	if err == nil {
		h.store, err = account.Open(locked, filepath.Join(o.Dir, "journal"), users, h.log)
	}
	if err != nil {
		locked.Unlock()
		return nil, nil, err
	}
	h.output = results.Open(filepath.Join(o.Dir, "phase2"))
	if err := h.output.Err(); err != nil { // logins do not need it
		h.log.Warn("the three files are unavailable until a run succeeds", "cause", err)
	}
	return secret, locked.Unlock, nil
}

// openSecret returns the secret in the file at path, made with mode 0600 where there is none.
func openSecret(path string) ([]byte, error) {
	stored, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := make([]byte, flags.MinSecret)
		rand.Read(random)
		stored = []byte(hex.EncodeToString(random))
		return stored, disk.ReplaceFile(disk.OS{}, path, append(stored, '\n'), 0o600)
	}
	stored = bytes.TrimRight(stored, "\r\n") // so that AUTHHUB_SECRET="$(cat DIR/secret)" is the same
	if err == nil && len(stored) < flags.MinSecret {
		err = fmt.Errorf("%s holds fewer than %d bytes; put it back, or delete it to end all sessions", path, flags.MinSecret)
	}
	return stored, err
}

// readUsers returns the seeds: those of -users, or the demo accounts.
func (o *program) readUsers() ([]*account.User, error) {
	if o.Users == "" {
		f, err := embedded.Open(embeddedUsers)
		if err != nil {
			return nil, err
		}
		return account.ParseSeeds(f)
	}
	f, err := os.Open(o.Users)
	if err != nil {
		return nil, fmt.Errorf("-users: %w", err)
	}
	defer f.Close()
	users, err := account.ParseSeeds(f)
	if err != nil {
		return nil, fmt.Errorf("-users: %s: %w", o.Users, err)
	}
	return users, nil
}

// runOnce is a run before anybody can ask for one.
func (h *Hub) runOnce(ctx context.Context, queue *runs.Queue) error {
	p, _ := readParameters(nil)
	r, err := queue.Start(h.newID(), p, h.ownReadings())
	if err != nil {
		return err
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		return nil
	}
	if err := r.State().Err; err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	return nil
}

// logRun logs the end of a run.
func (h *Hub) logRun(r *runs.Run) {
	state := r.State()
	err := state.Err
	switch {
	case err == nil:
		h.log.Info("run succeeded", "id", r.ID, "source", r.Input.Name, "accepted", state.Screening.Accepted, "rows", state.Screening.Rows)
	case runError(err).Code == "internal":
		h.log.Error("run failed", "id", r.ID, "source", r.Input.Name, "cause", err)
	default:
		h.log.Warn("run failed", "id", r.ID, "source", r.Input.Name, "cause", err)
	}
}

// announce tells the world that the hub listens: the ready file, a welcome, and the one line on stdout, after which
// both of the others are there.
func (o *program) announce(stdout, stderr io.Writer, to logs.Logs, bound *net.TCPAddr) error {
	if o.ReadyFile != "" {
		if err := disk.ReplaceFile(disk.OS{}, o.ReadyFile, []byte(o.BaseURL+"\n"), 0o644); err != nil {
			return fmt.Errorf("-ready-file: %w", err)
		}
	}
	demo := o.Users == ""
	if o.LogFormat == "text" {
		fmt.Fprint(stderr, o.welcome(demo, addressOf(bound)))
	} else {
		to.Hub.Info("ready", "base_url", o.BaseURL, "addr", bound.String())
	}
	if !bound.IP.IsLoopback() && demo {
		to.Alarms.Warn("the demo accounts, whose passwords everybody knows, can be used from the network; see -users", "addr", bound.String())
	}
	if !bound.IP.IsLoopback() && o.Lab && len(o.LabKey) < goodLabKey {
		to.Alarms.Warn(fmt.Sprintf("AUTHHUB_LAB_KEY can be guessed; one of %d random bytes or more can't", goodLabKey), "addr", bound.String())
	}
	fmt.Fprintln(stdout, o.BaseURL)
	return nil
}

// removeReady takes the ready file away with the hub, unless a later hub has written it since.
func (o *program) removeReady() {
	if stands, err := os.ReadFile(o.ReadyFile); err == nil && string(stands) == o.BaseURL+"\n" {
		os.Remove(o.ReadyFile)
	}
}

func (o *program) welcome(demo bool, address string) string {
	state := "State is kept in " + o.Dir + "."
	if o.Ephemeral {
		state = "Nothing is kept after it stops."
	}
	if address != o.BaseURL {
		state = "It listens on " + address + ".\n" + state
	}
	if !demo {
		return fmt.Sprintf("authhub is ready at %s\n%s\nOperations: %s/api\n", o.BaseURL, state, o.BaseURL)
	}
	return fmt.Sprintf(`authhub is ready at %[1]s
%[2]s
Accounts: demo / demo-password, admin / admin-password, disabled / disabled-password
Open it in a browser, or try:
  curl -s %[1]s/api/authentication/login -d username=demo -d password=demo-password
  curl -s -X POST %[1]s/api/run-ph-barrier-phase2
  curl -s %[1]s/api/files/phase2
`, o.BaseURL, state)
}

// checkHealth asks the hub at base, which may be the address of its health itself, whether it is ready.
func checkHealth(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := flags.Address(base); err != nil {
		return fmt.Errorf("-check: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(strings.TrimRight(base, "/"), "/healthz")+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	return nil
}

// runTour plays the story against the hub at -base-url or, where none is given, against one of its own, in memory.
// The error says which answer was not as it has to be.
func runTour(ctx context.Context, o *program, out io.Writer) error {
	if o.BaseURL != "" {
		return tour.Play(ctx, o.BaseURL, out)
	}
	ctx, stop := context.WithCancel(ctx)
	own := *o
	own.Addr, own.Ephemeral, own.LogFormat = "127.0.0.1:0", true, "off"
	line, announced := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, &own, strings.NewReader(""), announced, io.Discard)
		announced.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	var base string
	_, err := fmt.Fscanln(line, &base)
	if err == nil {
		err = tour.Play(ctx, base, out)
	}
	stop()
	return errors.Join(err, <-ended)
}

// version is the module's version as the go command recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
