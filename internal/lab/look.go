// What the record sees of a request and of its token.

package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
	"authhub/internal/request"
)

// look returns what the record says of a request before it is served, and the token that it presents ("" for none).
// call is what it means in a dialect, or nil. digestBody has read the body.
func (b *bench) look(w http.ResponseWriter, r *http.Request, operation string, call *dialect.Call) (*record.Request, string) {
	everywhere, _ := strconv.ParseBool(r.URL.Query().Get("all"))
	elsewhere, _ := strconv.ParseBool(r.URL.Query().Get("others"))
	seen := &record.Request{Exchange: judge.Exchange{Operation: operation, Method: strings.Clone(r.Method), Path: strings.Clone(r.URL.Path),
		Query:      maphash.String(b.lab.identity, r.URL.RawQuery+" "+r.Header.Get("Range")) + uint64(r.ContentLength),
		Everywhere: everywhere, Elsewhere: elsewhere, Browser: isBrowser(r)}}
	var addressed string
	if addressed, seen.InAddress = tokenInAddress(r); addressed != "" {
		c, _ := b.hub.Load().Signer.Open(addressed)
		seen.Addressed = strings.Clone(c.Session)
	}
	token := b.presentedToken(w, r, operation)
	if call != nil {
		seen.Path, token = strings.Clone(call.Path), call.Token
		seen.Everywhere, seen.Elsewhere = call.Everywhere(), call.Elsewhere()
	} else if operation == "other" {
		seen.Path = request.SafePath(r.URL.Path) // no route, so there may be anything in it
	}
	if isUnset(token) {
		seen.Presented = judge.Unset
	} else if token != "" {
		seen.Presented = maphash.String(b.lab.identity, token)
	}
	return seen, token
}

// isBrowser reports whether a browser sent r. What only names itself so has connections of its own kind (jsdom, an API
// client of Playwright, PowerShell). Browsers say to this machine from where they fetch (Fetch Metadata section 2.4),
// while Node says in which mode only; of WebKit, whose version in the agent has been 605 since 2018, that is not sure.
func isBrowser(r *http.Request) bool {
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "Mozilla/") &&
		(r.Header["Sec-Fetch-Site"] != nil || strings.Contains(agent, "AppleWebKit/605") || !request.IsLoopback(r.Host))
}

// digestBody returns a digest of the body. A run says part of what it does in the query. The bodies of authentication
// are read for it, and put back. Of others it is the opening, which is whole when the answer begins; of those that the
// client sends when it is asked for them (Expect) the length.
func (b *bench) digestBody(r *http.Request) *maphash.Hash {
	var h maphash.Hash
	h.SetSeed(b.lab.identity)
	if read, ok := r.Body.(*replayed); ok { // by the dialect
		h.Write(inOrder(read.read))
		return &h
	}
	authentication := strings.HasPrefix(r.URL.Path, "/api/authentication/")
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !authentication {
		h.WriteString(r.URL.RawQuery)
	}
	if !authentication {
		h.WriteString(strconv.FormatInt(r.ContentLength, 10))
	}
	switch {
	case r.Body == nil:
	case authentication:
		body, err := io.ReadAll(io.LimitReader(r.Body, request.MaxBody+1))
		h.Write(inOrder(body))
		rest := io.Reader(r.Body)
		if err != nil {
			rest = &broken{err}
		}
		r.Body = &replayed{io.MultiReader(bytes.NewReader(body), rest), body, r.Body}
	case r.Body != http.NoBody && r.Header["Expect"] == nil:
		r.Body = &opening{r.Body, &h, request.MaxBody}
	}
	return &h
}

// inOrder returns a body with its members in order, if it is a JSON object, or as it is: some languages give them in
// another order each time.
func inOrder(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) == nil {
		if ordered, err := json.Marshal(members); err == nil {
			return ordered
		}
	}
	return body
}

// opening is a body whose first bytes are digested as they are read.
type opening struct {
	io.ReadCloser
	digest *maphash.Hash
	left   int // bytes that are still to come; 0: no more, the body may be shorter
}

func (o *opening) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	first := min(n, o.left)
	o.digest.Write(p[:first])
	if o.left -= first; err != nil {
		o.left = 0
	}
	return n, err
}

// complete reads what is left of the opening, for a second at most: nobody reads the body of a request whose connection
// a fault cuts.
func (o *opening) complete(w http.ResponseWriter) {
	if o.left > 0 {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
		io.CopyN(io.Discard, o, int64(o.left))
	}
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
		if !ok || len(body.read) > request.MaxBody {
			return ""
		}
		copied := *r
		copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body.read)), int64(len(body.read))
		token, _ := b.lab.RefreshToken(w, &copied)
		return token
	}
	token, _ := request.Bearer(r)
	return token
}

// inspect writes to seen whose token this is and in which state it would be found now.
func (h *Parts) inspect(seen *record.Request, token string) {
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

// originOf returns where the tokens of a session come from, by the prefix of its id.
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
	switch {
	case errors.Is(err, jwt.ErrWrongType):
		return "wrong_type"
	case errors.Is(err, jwt.ErrNotYet):
		return "not_yet_valid"
	case err != nil:
		return "expired"
	case s.ID == "" || c.Generation > s.Generation:
		return "revoked"
	case c.Generation < s.From(c.Kind):
		return "expired"
	case c.Kind == jwt.Refresh && s.Spent(c.Generation):
		return "spent"
	}
	return "valid"
}

// tokenInAddress reports whether the address carries a token, and returns one that it carries, if it looks like one of
// ours: RFC 6750 section 2.3 names access_token, and any other is told by its looks (jwt.Resembles).
func tokenInAddress(r *http.Request) (token string, found bool) {
	query, err := url.QueryUnescape(r.URL.RawQuery)
	if err != nil {
		query = r.URL.RawQuery
	}
	if token := cmp.Or(tokenIn(query), tokenIn(r.URL.Path)); token != "" {
		return token, true
	}
	for name, values := range r.URL.Query() {
		switch strings.ReplaceAll(strings.ToLower(name), "_", "") {
		case "accesstoken", "refreshtoken", "bearertoken":
			found = found || slices.ContainsFunc(values, mayBeToken)
		}
	}
	return "", found
}

// mayBeToken reports whether a text has the characters of a bearer token (RFC 6750 section 2.1), and stands for one.
func mayBeToken(s string) bool {
	return s != "" && !isUnset(s) && !strings.ContainsAny(s, " []{}$<>:")
}

// isUnset reports whether a text is what clients write for a variable without a value. A token, which is longer, is not
// copied for that.
func isUnset(s string) bool {
	return len(s) <= len("undefined") && slices.Contains(unset, strings.ToLower(s))
}

var unset = []string{"undefined", "null", "false", "nan", "none"}

// tokenIn returns the first part of a text that has the form of a token of a hub, or "".
func tokenIn(text string) string {
	outside := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.", r)
	}
	for part := range strings.FieldsFuncSeq(text, outside) {
		if jwt.Resembles(part) {
			return part
		}
	}
	return ""
}
