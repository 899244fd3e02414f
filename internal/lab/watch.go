// Middleware that records each request to a hub and injects faults.

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
	"authhub/internal/reply"
)

// operationNames are what faults and filters may name. Any other request is "other".
var operationNames = []string{"register", "login", "me", "refresh", "logout", "introspect", "listing", "file", "run", "other"}

// nameOf returns the name of the operation that r asks for. It is "" for what the lab passes by: health, and what a
// browser asks for to show the page.
func (l *Lab) nameOf(r *http.Request) string {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if name := l.Names[method+" "+r.URL.Path]; slices.Contains(operationNames, name) {
		return name
	}
	_, withToken := tokenInAddress(r)
	switch {
	case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !withToken, strings.HasPrefix(r.URL.Path, "/web/"),
		slices.Contains(passedBy, r.URL.Path):
		return ""
	}
	return "other"
}

// passedBy are paths that the lab passes by. The last two are what browsers ask for when somebody opens a page or /lab.
var passedBy = []string{"/healthz", "/openapi.json", "/favicon.ico", "/.well-known/appspecific/com.chrome.devtools.json"}

// serveHub serves an operation of the hub, with the fault that meets it, and notes it.
func (b *bench) serveHub(w http.ResponseWriter, r *http.Request) {
	call := b.read(w, r)
	operation := b.lab.nameOf(r)
	if call != nil {
		operation = call.Operation
	}
	if operation == "" {
		b.hub.Load().Serve(w, r, nil)
		return
	}

	body := b.digestBody(r)
	seen, token := b.look(w, r, operation, call)
	client, onConnection := r.Context().Value(connectionKey{}).(*connection)
	if onConnection {
		seen.Conn, seen.Opened, seen.Sent = client.id, client.opened, client.beganAt()
	}
	hub, served, f, leave := b.arrive(r, seen, token, call)
	defer leave()
	keep := operation == "login" || operation == "register" || operation == "refresh"
	answer := &response{&fault.Tap{ResponseWriter: w, Keep: keep, Limit: -1}, call}
	answer.Settle = func() {
		if operation == "logout" || answer.fails() {
			linger(served.Context(), seen.Arrival.Machine)
		}
	}
	defer func() {
		if onConnection {
			client.whenUnread(func() { b.requests.Update(seen, func() { seen.Left = true }) })
		}
		b.note(hub, seen, answer, body.Sum64(), r.Context().Err() != nil || onConnection && client.gone())
	}()

	if f != nil {
		if b.meet(f, answer.Tap, served) {
			answer.Finish()
			return
		}
		b.requests.Update(seen, func() { // waiting may have changed what the token is
			before := seen.Current
			hub.inspect(seen, token)
			seen.Current.Pair, seen.Current.Expired = before.Pair, before.Expired // of when the client sent it
		})
	}
	hub.Serve(answer.Tap, served, call)
	r.Pattern = served.Pattern
	answer.Finish()
}

// overlap is how long the answer to a logout, and one that is an error, takes at least.
const overlap = 5 * time.Millisecond

// linger lets an answer wait for a moment (overlap). The hub takes a tenth of a millisecond for it, and what the client
// has sent at the same time over other connections would look as if it had been sent after the answer. Short waits: a
// process that had to stand still for one of them hears what came meanwhile before the last.
func linger(ctx context.Context, since time.Time) {
	if time.Since(since) >= overlap {
		return
	}
	for range overlap / time.Millisecond {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// meet lets a request meet its fault, and reports whether that was all: then it has been answered, or nobody waits for
// an answer.
func (b *bench) meet(f *fault.Encounter, answer *fault.Tap, r *http.Request) bool {
	stays := f.Wait(b.ctx, answer, r.Context())
	b.lab.RenewDeadline(answer)
	switch {
	case errors.Is(context.Cause(r.Context()), account.ErrReplaced):
		b.lab.Answer(answer, r, account.ErrReplaced)
		return true
	case !stays:
		return true
	}
	return f.Strike(answer)
}

// read returns what r means in the dialect in force, or nil.
func (b *bench) read(w http.ResponseWriter, r *http.Request) *dialect.Call {
	d := b.dialect.Load()
	if d == nil {
		return nil
	}
	call := d.Read(w, r)
	if call != nil {
		r.Body = &replayed{bytes.NewReader(call.Body), call.Body, r.Body}
	}
	return call
}

// arrive notes a request and returns the hub and the fault that it meets, and the request that ends with the state of
// that hub. leave is to be called when it is done.
func (b *bench) arrive(r *http.Request, seen *record.Request, token string, call *dialect.Call) (hub *Parts, served *http.Request, met *fault.Encounter, leave func()) {
	b.arrivals.Lock()
	defer b.arrivals.Unlock()
	hub = b.hub.Load()
	seen.Arrival = judge.Mark{Hub: hub.Now(), Machine: time.Now()}
	p := b.reuse()
	seen.Policy = judge.Policy{Allow: p.Allow, Grace: p.Grace, NoRotation: p.Keep}
	hub.inspect(seen, token)
	if call != nil || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") {
		met = b.faults.Take(seen.Operation, seen.Session)
	}
	if met != nil {
		seen.Fault = met.ID
	}
	latest := b.clock.real()
	b.latest.Store(&latest)
	b.requests.Begin(seen)
	ctx, giveUp := context.WithCancelCause(r.Context())
	if b.underWay == nil {
		b.underWay = make(map[*record.Request]context.CancelCauseFunc)
	}
	b.underWay[seen] = giveUp
	return hub, r.WithContext(ctx), met, func() {
		b.arrivals.Lock()
		defer b.arrivals.Unlock()
		delete(b.underWay, seen)
		giveUp(nil)
	}
}

// note completes the record of a request, even of one whose connection is being cut. left says that the client had
// gone before it was answered.
func (b *bench) note(hub *Parts, seen *record.Request, answer *response, body uint64, left bool) {
	code := answer.code()
	if seen.Fault != "" {
		reply.Note(answer, "fault", seen.Fault)
	}
	if seen.User != "" {
		reply.Note(answer, "user", seen.User)
	}
	b.requests.End(seen, func() {
		seen.End.Hub, seen.End.Machine = hub.Now(), time.Now()
		seen.Took = seen.End.Machine.Sub(seen.Arrival.Machine)
		seen.Body, seen.Left = body, left
		seen.Code, seen.Injected, seen.Lost = code, answer.Injected, answer.Dropped || answer.Malformed
		if !answer.Hide {
			seen.Status = answer.Status
		}
		if !answer.Injected {
			seen.Hub = answer.hubStatus()
			seen.Given = answer.given(hub)
		}
		seen.RetryAfter = readRetryAfter(answer.Header().Get("Retry-After"), seen.End.Machine)
		if state, ok := stateOfCode[code]; ok && !answer.Injected && seen.Token != nil && seen.Token.State != "not_yet_valid" {
			token := *seen.Token // the report may be looking at it
			token.State = state
			seen.Token = &token
		}
		if c, ok := answer.created(hub); ok {
			seen.Session, seen.User = strings.Clone(c.Session), strings.Clone(c.Username)
		}
	})
}

// given returns the pair that was answered with, or nil.
func (a *response) given(hub *Parts) *judge.Pair {
	c, ok := a.created(hub)
	if !ok {
		return nil
	}
	return &judge.Pair{Generation: c.Generation, Issued: time.UnixMilli(c.IssuedAt), Lifetime: time.Duration(c.ExpiresAt-c.IssuedAt) * time.Millisecond}
}

// readRetryAfter returns how long from now a client is asked to wait, in seconds or until a date (RFC 9110 section
// 10.2.3); 0 if it isn't.
func readRetryAfter(value string, now time.Time) time.Duration {
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	seconds, _ := strconv.Atoi(value)
	return time.Duration(min(max(0, seconds), 1<<30)) * time.Second
}

// stateOfCode is what the hub's judgement says of a token. It counts more than a look at the token beforehand, which
// another request may have overtaken.
var stateOfCode = map[string]string{
	"token_malformed": "malformed", "token_expired": "expired", "token_revoked": "revoked", "token_reused": "spent", "token_wrong_type": "wrong_type",
}

func (b *broken) Read([]byte) (int, error) { return 0, b.err }

// answer is what the record wants to know of an answer.
type response struct {
	*fault.Tap
	call *dialect.Call // nil: the hub's own API
}

// code returns the code of the error that was answered with; "" for none.
func (a *response) code() string {
	var p struct {
		Code string `json:"code"`
	}
	if a.call != nil && !a.Injected {
		return a.call.Result.Code
	}
	if a.Status >= 400 && strings.HasSuffix(a.Header().Get("Content-Type"), "json") {
		json.Unmarshal(a.Kept, &p)
	}
	return p.Code
}

// fails reports whether the client does not get what it asked for.
func (a *response) fails() bool {
	return a.Status >= 400 || a.Dropped || a.Malformed || a.call != nil && a.call.Result.Code != ""
}

// hubStatus is what the hub itself answered, which a dialect may have told with another status.
func (a *response) hubStatus() int {
	if a.call != nil && a.Status != 0 {
		return a.call.Result.Status
	}
	return a.Status
}

// created returns the claims of the session that was answered with, if one was.
func (a *response) created(hub *Parts) (jwt.Claims, bool) {
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if a.call != nil {
		c, err := hub.Signer.Open(a.call.Result.AccessToken)
		return c, err == nil && a.Keep
	}
	if !a.Keep || a.Status >= 300 || json.Unmarshal(a.Kept, &body) != nil {
		return jwt.Claims{}, false
	}
	c, err := hub.Signer.Open(body.AccessToken)
	return c, err == nil
}
