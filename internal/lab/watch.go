// Middleware that records each request to a hub and injects faults.

package lab

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
	"authhub/internal/reply"
)

// operationNames are what faults and filters may name. Any other request is "other".
var operationNames = []string{"register", "login", "me", "refresh", "logout", "introspect", "listing", "file", "run", "other"}

// nameOf returns the name of the operation that r asks for. It is "" for requests that are not recorded: health, and
// what a browser asks for to show the page.
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
	case r.URL.Path == "/" && method == http.MethodGet && !withToken, strings.HasPrefix(r.URL.Path, "/web/"),
		slices.Contains(unrecorded, r.URL.Path):
		return ""
	}
	return "other"
}

// unrecorded are paths whose requests are not recorded. Browsers ask for the last two when somebody opens a page or
// /lab.
var unrecorded = []string{"/healthz", "/openapi.json", "/favicon.ico", "/.well-known/appspecific/com.chrome.devtools.json"}

// serveHub serves an operation of the hub, with the fault that meets it, and notes it.
func (b *bench) serveHub(w http.ResponseWriter, original *http.Request) {
	r := original.WithContext(original.Context()) // whose own body tells net/http whether the client waits to be asked for it
	call := b.read(w, r)
	operation := b.lab.nameOf(r)
	if call != nil {
		operation = call.Operation
	}
	if operation == "" {
		b.hub.Load().Serve(w, original, nil)
		return
	}

	body := b.digestBody(r)
	seen, token := b.look(w, r, operation, call)
	client, onConnection := r.Context().Value(connectionKey{}).(*connection)
	if onConnection {
		seen.Conn, seen.Sender = client.id, client.sender
		seen.Sent, seen.Busy = client.beganAt()
		if !seen.Browser || !r.Close { // no browser closes its connections: a proxy between opens one for each request
			seen.Opened = client.opened
		}
	}
	hub, served, f, leave := b.arrive(r, seen, token, call)
	defer leave()
	answer := b.newResponse(w, served, seen, call)
	defer func() {
		if onConnection {
			client.rests()
			client.whenUnread(func() { b.requests.Update(seen, seen.Leave) })
		}
		b.note(hub, r, seen, answer, body.Sum64(), r.Context().Err() != nil || onConnection && client.gone())
	}()

	if f != nil {
		if b.meet(f, answer.Tap, served) {
			answer.Finish()
			return
		}
		b.inspectAgain(hub, seen, token)
	}
	hub.Serve(answer.Tap, served, call)
	original.Pattern = served.Pattern
	answer.Finish()
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
		panic(http.ErrAbortHandler) // no answer, not an empty one: the client may only have closed its side
	}
	return f.Strike(answer)
}

// inspectAgain writes to seen what its token is after a wait, which may have changed it. The current pair stays that of
// the time when the client sent the request.
func (b *bench) inspectAgain(hub *Parts, seen *record.Request, token string) {
	b.requests.Update(seen, func() {
		before := seen.Current
		hub.inspect(seen, token)
		seen.Current.Pair, seen.Current.Expired = before.Pair, before.Expired
	})
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
func (b *bench) note(hub *Parts, r *http.Request, seen *record.Request, answer *response, body uint64, left bool) {
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
			seen.Hub = answer.hubStatus(r)
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
