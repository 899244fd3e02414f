// The way of a hub operation through the lab: seen, perhaps disturbed, served, noted.

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/lab/judge"
	"authhub/internal/reply"
)

// operationNames are what faults and filters may name. Whatever else a client sends is "other".
var operationNames = []string{"register", "login", "me", "refresh", "logout", "introspect", "listing", "file", "run", "other"}

// nameOf returns the name of the operation at the path of r, whatever the method: a login sent with GET is still meant
// as a login. It is "" for what the lab passes by: health, and what a browser asks for to show the page.
func (l *Lab) nameOf(r *http.Request) string {
	if name := l.Names[r.URL.Path]; slices.Contains(operationNames, name) {
		return name
	}
	switch {
	case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !tokenInAddress(r), strings.HasPrefix(r.URL.Path, "/web/"),
		slices.Contains(passedBy, r.URL.Path):
		return ""
	}
	return "other"
}

// passedBy are paths that the lab passes by. The last two are what browsers ask for when somebody opens a page or /lab.
var passedBy = []string{"/healthz", "/openapi.json", "/favicon.ico", "/.well-known/appspecific/com.chrome.devtools.json"}

// serveHub serves a hub operation, with whatever fault meets it, and notes it.
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

	everywhere, _ := strconv.ParseBool(r.URL.Query().Get("all"))
	elsewhere, _ := strconv.ParseBool(r.URL.Query().Get("others"))
	seen := &seenRequest{Exchange: judge.Exchange{Operation: operation, Method: strings.Clone(r.Method), Path: strings.Clone(r.URL.Path),
		InAddress: tokenInAddress(r), Everywhere: everywhere, Elsewhere: elsewhere}}
	if call != nil {
		seen.Path = strings.Clone(call.Path)
	} else if operation == "other" {
		seen.Path = reply.SafePath(r.URL.Path) // no route, so there may be anything in it
	}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		seen.Conn, seen.Opened, seen.Sent = c.id, c.opened, c.heardAt()
	}
	body := b.digestBody(r)
	token := b.presentedToken(w, r, operation)
	if call != nil {
		token, seen.Everywhere, seen.Elsewhere = call.Token, call.Everywhere(), call.Elsewhere()
	}
	if token != "" {
		seen.Presented = maphash.String(b.lab.identity, token)
	}
	hub, served, f, leave := b.arrive(r, seen, token, call)
	defer leave()
	answer := &tap{ResponseWriter: w, keep: operation == "login" || operation == "register" || operation == "refresh", limit: -1, call: call}
	defer func() {
		b.note(hub, seen, answer, body.Sum64(), r.Context().Err() != nil)
	}()

	if f != nil {
		if f.disturb(b, answer, served) {
			answer.finish()
			return
		}
		b.requests.update(seen, func() { hub.inspect(seen, token) }) // waiting may have changed what the token is
	}
	hub.Serve(answer, served, call)
	r.Pattern = served.Pattern
	answer.finish()
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
func (b *bench) arrive(r *http.Request, seen *seenRequest, token string, call *dialect.Call) (hub *Parts, served *http.Request, met *encounter, leave func()) {
	b.arrivals.Lock()
	defer b.arrivals.Unlock()
	hub = b.hub.Load()
	seen.Arrival = judge.Mark{Hub: hub.Now(), Machine: time.Now()}
	p := b.reuse()
	seen.Policy = judge.Policy{Allow: p.Allow, Grace: p.Grace, NoRotation: p.Keep}
	hub.inspect(seen, token)
	if call != nil || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") {
		met = b.faults.take(seen.Operation, seen.Session)
	}
	if met != nil {
		seen.fault = met.id
	}
	latest := b.clock.real()
	b.latest.Store(&latest)
	b.requests.begin(seen)
	ctx, giveUp := context.WithCancelCause(r.Context())
	if b.underWay == nil {
		b.underWay = make(map[*seenRequest]context.CancelCauseFunc)
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
func (b *bench) note(hub *Parts, seen *seenRequest, answer *tap, body uint64, left bool) {
	code := answer.code()
	if seen.fault != "" {
		reply.Note(answer, "fault", seen.fault)
	}
	if seen.User != "" {
		reply.Note(answer, "user", seen.User)
	}
	b.requests.end(seen, func() {
		seen.End.Hub, seen.End.Machine = hub.Now(), time.Now()
		seen.took = seen.End.Machine.Sub(seen.Arrival.Machine)
		seen.Body, seen.Left = body, left
		seen.Code, seen.Injected, seen.Lost = code, answer.injected, answer.dropped || answer.malformed
		if !answer.hide {
			seen.Status = answer.status
		}
		if !answer.injected {
			seen.Hub = answer.hubStatus()
			seen.Given = answer.given(hub)
		}
		seen.RetryAfter = readRetryAfter(answer.Header().Get("Retry-After"), seen.End.Machine)
		if state, ok := stateOfCode[code]; ok && !answer.injected && seen.Token != nil && seen.Token.State != "not_yet_valid" {
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
func (t *tap) given(hub *Parts) *judge.Pair {
	c, ok := t.created(hub)
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

// update changes a request that is in the record.
func (l *requestLog) update(r *seenRequest, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.noteLocked(r)
}

// digestBody returns a digest of the body, of as much as has been read of it. What changes something says part of it in
// the query. The bodies of authentication are read for it, and put back.
func (b *bench) digestBody(r *http.Request) *maphash.Hash {
	var h maphash.Hash
	h.SetSeed(b.lab.identity)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.WriteString(r.URL.RawQuery)
	}
	maphash.WriteComparable(&h, r.ContentLength)
	if read, ok := r.Body.(*replayed); ok { // by the dialect
		h.Write(read.read)
		return &h
	}
	switch {
	case r.Body == nil:
	case strings.HasPrefix(r.URL.Path, "/api/authentication/"):
		body, err := io.ReadAll(io.LimitReader(r.Body, reply.MaxBody+1))
		h.Write(body)
		rest := io.Reader(r.Body)
		if err != nil {
			rest = &broken{err}
		}
		r.Body = &replayed{io.MultiReader(bytes.NewReader(body), rest), body, r.Body}
	case r.Body != http.NoBody:
		r.Body = &replayed{io.TeeReader(r.Body, &h), nil, r.Body}
	}
	return &h
}

// replayed is a body whose beginning has been read and is read again.
type replayed struct {
	io.Reader
	read []byte
	io.Closer
}

// broken is the rest of a body that could not be read to its end.
type broken struct{ err error }

func (b *broken) Read([]byte) (int, error) { return 0, b.err }

// presentedToken returns the token that r presents to this operation, "" for none.
func (b *bench) presentedToken(w http.ResponseWriter, r *http.Request, operation string) string {
	switch operation {
	case "login", "register": // ask for none; clients send what they have
		return ""
	case "refresh":
		body, ok := r.Body.(*replayed)
		if !ok || len(body.read) > reply.MaxBody {
			return ""
		}
		copied := *r
		copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body.read)), int64(len(body.read))
		token, _ := b.lab.RefreshToken(w, &copied)
		return token
	}
	token, _ := reply.Bearer(r)
	return token
}

// inspect writes to seen whose token this is and in which state it would be found now.
func (h *Parts) inspect(seen *seenRequest, token string) {
	if token == "" {
		return
	}
	c, err := h.Signer.Open(token)
	if err != nil {
		return
	}
	s, u := h.Store.Look(c.Session, c.Subject)
	if u != nil {
		seen.User = u.Username
	}
	now := h.Now()
	seen.Session, seen.Origin = strings.Clone(c.Session), originOf(c.Session) // the record must not keep the whole token
	seen.Token = &judge.Token{Refresh: c.Kind == jwt.Refresh, Generation: c.Generation, Issued: time.UnixMilli(c.IssuedAt),
		State: stateOf(&c, &s, seen.Operation, now)}
	seen.Current = judge.Current{
		Pair:        judge.Pair{Generation: s.Generation, Issued: time.UnixMilli(s.Issued), Lifetime: time.Duration(s.AccessTTL) * time.Millisecond},
		Expired:     s.AccessFrom > s.Generation,
		RefreshOver: now.UnixMilli() >= s.Issued+s.RefreshTTL || s.RefreshFrom > s.Generation,
	}
}

// originOf tells sessions of ordered tokens by their ids.
func originOf(session string) judge.Origin {
	switch {
	case strings.HasPrefix(session, defectPrefix):
		return judge.FromDefect
	case strings.HasPrefix(session, orderedPrefix):
		return judge.FromOrder
	}
	return judge.FromLogin
}

// stateOf returns the state of a token in the order in which a hub would find fault with it.
func stateOf(c *jwt.Claims, s *account.Session, operation string, now time.Time) string {
	want := jwt.Access
	if operation == "refresh" {
		want = jwt.Refresh
	}
	err := c.Check(want, now)
	if operation == "logout" || operation == "introspect" { // which take either kind
		err = c.Check(c.Kind, now)
	}
	from := map[jwt.Kind]int{jwt.Access: s.AccessFrom, jwt.Refresh: s.RefreshFrom}[c.Kind]
	switch {
	case errors.Is(err, jwt.ErrWrongType):
		return "wrong_type"
	case errors.Is(err, jwt.ErrNotYet):
		return "not_yet_valid"
	case err != nil:
		return "expired"
	case s.ID == "" || c.Generation > s.Generation:
		return "revoked"
	case c.Generation < from:
		return "expired"
	case c.Kind == jwt.Refresh && s.Spent(c.Generation):
		return "spent"
	}
	return "valid"
}

// tokenInAddress reports whether the address carries a token: RFC 6750 section 2.3 names access_token, and a JWS
// is told by its looks.
func tokenInAddress(r *http.Request) bool {
	for name, values := range r.URL.Query() {
		switch strings.ReplaceAll(strings.ToLower(name), "_", "") {
		case "token", "accesstoken", "refreshtoken", "bearertoken", "jwt":
			return true
		}
		if slices.ContainsFunc(values, looksLikeToken) {
			return true
		}
	}
	return slices.ContainsFunc(strings.Split(r.URL.Path, "/"), looksLikeToken)
}

// looksLikeToken reports whether s has the form of a compact JWS: a header that is a JSON object, and two more parts.
func looksLikeToken(s string) bool {
	s = strings.TrimPrefix(s, "Bearer ")
	return strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 && !strings.ContainsAny(s, " /")
}

// tap passes an answer on, whole or in part, and keeps what the record wants of it.
type tap struct {
	http.ResponseWriter
	call      *dialect.Call // nil: the hub's own API
	keep      bool          // the body of a success, too
	hide      bool          // nothing passes
	limit     int           // bytes of the body that pass; -1: all
	injected  bool          // it is a fault's, not the hub's
	malformed bool          // it can't be read

	status  int
	kept    []byte
	passed  int
	pending bool // the header is still to pass
	cut     bool // something did not pass
	dropped bool // the connection is being cut
}

func (t *tap) WriteHeader(status int) {
	if t.status == 0 && status >= 200 {
		t.status = status
	}
	t.pending = t.limit >= 0 && t.Header()["Content-Length"] == nil && status >= 200
	if !t.hide && !t.pending {
		t.ResponseWriter.WriteHeader(status)
	}
}

// passHeader passes the header of an answer that is being cut. Its body comes in one piece where it has no length yet
// (reply.WriteBody): the client has to know how much that is.
func (t *tap) passHeader(body []byte) {
	if t.pending {
		t.pending = false
		if len(body) > 0 {
			t.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
		}
		t.ResponseWriter.WriteHeader(t.status)
	}
}

// Write always succeeds on what it does not pass, so that a hub goes on as if the client had it.
func (t *tap) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	if (t.keep || t.status >= 400) && len(t.kept)+len(b) <= reply.MaxBody {
		t.kept = append(t.kept, b...)
	}
	if t.hide {
		return len(b), nil
	}
	t.passHeader(b)
	if t.limit < 0 || t.passed+len(b) <= t.limit {
		t.passed += len(b)
		return t.ResponseWriter.Write(b)
	}
	t.cut = true
	_, err := t.ResponseWriter.Write(b[:t.limit-t.passed])
	t.passed = t.limit
	return len(b), err
}

// finish ends an answer, and the connection with it if something did not pass.
func (t *tap) finish() {
	t.passHeader(nil)
	if t.cut || t.hide {
		t.abort()
	}
}

// abort cuts the connection behind what has passed.
func (t *tap) abort() {
	t.dropped = true
	if t.cut {
		http.NewResponseController(t.ResponseWriter).Flush()
	}
	panic(http.ErrAbortHandler)
}

// Unwrap gives http.ResponseController the writer below.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// code returns the code of the error that was answered with; "" for none.
func (t *tap) code() string {
	var p struct {
		Code string `json:"code"`
	}
	if t.call != nil && !t.injected {
		return t.call.Result.Code
	}
	if t.status >= 400 && strings.HasSuffix(t.Header().Get("Content-Type"), "json") {
		json.Unmarshal(t.kept, &p)
	}
	return p.Code
}

// hubStatus is what the hub itself answered, which a dialect may have told with another status.
func (t *tap) hubStatus() int {
	if t.call != nil && t.status != 0 {
		return t.call.Result.Status
	}
	return t.status
}

// created returns the claims of the session that was answered with, if one was.
func (t *tap) created(hub *Parts) (jwt.Claims, bool) {
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if t.call != nil {
		c, err := hub.Signer.Open(t.call.Result.AccessToken)
		return c, err == nil && t.keep
	}
	if !t.keep || t.status >= 300 || json.Unmarshal(t.kept, &body) != nil {
		return jwt.Claims{}, false
	}
	c, err := hub.Signer.Open(body.AccessToken)
	return c, err == nil
}
