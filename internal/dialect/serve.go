// Serve: from a call to the hub's own API and back.

package dialect

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/reply"
)

// Host is what stands behind a dialect.
type Host struct {
	// API serves the hub's own API.
	API http.Handler
	// Introspect answers with {"user":{…},"claims":{…}} for the token in Authorization, of either kind, if it is
	// active, and with the hub's own error if it is not. That is no use of the token.
	Introspect http.Handler
	Base       string // address of the hub as the client knows it, without a slash at the end
	Now        time.Time
	// The longest lifetimes that login grants. A client that asks for longer gets these: it can't know them.
	MaxAccess, MaxRefresh time.Duration
	NewID                 func() string
}

// Serve has the hub do what the call asks for, and answers w in the dialect. r is the client's request.
func (c *Call) Serve(w http.ResponseWriter, r *http.Request, host Host) {
	given := c.ask(w, r, host)
	v := c.commonValues(host)
	c.Result.Status = given.status
	if given.status >= 400 && !c.forgives(given) {
		c.dialect.writeError(w, c, given, v)
		return
	}
	c.answer(w, given, host, v)
}

// forgives reports whether the client is not told of an error: RFC 7009 section 2.2 for revoke, RFC 7662 section 2.2
// for introspect. A hub that can't do its work is another matter.
func (c *Call) forgives(given *recorder) bool {
	switch c.op() {
	case "revoke":
		return c.in["token"] != nil && given.status == http.StatusUnauthorized
	case "introspect":
		return c.refused == nil && given.status < 500
	}
	return false
}

// ask returns the hub's own answer.
func (c *Call) ask(w http.ResponseWriter, r *http.Request, host Host) *recorder {
	given := &recorder{client: w, header: make(http.Header)}
	switch {
	case c.refused != nil:
		reply.Write(given, c.refused)
	case c.op() == "document":
		given.status = http.StatusOK
	case c.called.verb.own == "":
		host.Introspect.ServeHTTP(given, c.ownRequest(r, "POST /", host))
	default:
		host.API.ServeHTTP(given, c.ownRequest(r, c.called.verb.own, host))
	}
	return given
}

// ownRequest returns the request of the hub's own API that the call stands for. Nothing of the client's own request is
// in it but where it comes from, and that it may be given up.
func (c *Call) ownRequest(r *http.Request, on string, host Host) *http.Request {
	method, target, _ := strings.Cut(on, " ")
	path, query, _ := strings.Cut(target, "?")
	own := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Proto: r.Proto, ProtoMajor: r.ProtoMajor,
		ProtoMinor: r.ProtoMinor, Host: r.Host, RemoteAddr: r.RemoteAddr, Header: make(http.Header), Body: http.NoBody, RequestURI: target}
	if slices.Contains(c.called.verb.in, "token") {
		if c.in["token"] != nil {
			own.Header.Set("Authorization", "Bearer "+cmp.Or(c.Token, "?")) // a number, say, is no token
			if given := r.Header["Authorization"]; c.from["token"].kind == "authorization" && len(given) > 1 {
				own.Header["Authorization"] = append(own.Header["Authorization"], given[1:]...) // the hub refuses two
			}
		}
		return own.WithContext(r.Context())
	}
	in := maps.Clone(c.in)
	limit(in, "expires_in", host.MaxAccess)
	limit(in, "refresh_expires_in", host.MaxRefresh)
	body := encode(in)
	own.Header.Set("Content-Type", "application/json")
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return own.WithContext(r.Context())
}

// limit lowers a lifetime to the longest that login grants.
func limit(in map[string]any, name string, most time.Duration) {
	if asked, ok := in[name].(float64); ok && most > 0 && asked > most.Seconds() {
		in[name] = most.Seconds()
	}
}

// answer tells the client of a success.
func (c *Call) answer(w http.ResponseWriter, given *recorder, host Host, v values) {
	op, body, status := c.called, given.body, given.status
	var pair bool
	switch op.verb.name {
	case "introspect", "verify", "me":
		if given.status < 300 {
			c.addLooked(v, given.body)
		}
	case "register", "login", "refresh":
		pair = true
		c.addPair(v, given.body, host)
	}
	out := op.out
	switch {
	case status >= 400 && op.verb.name == "introspect":
		out, status = op.inactive, http.StatusOK
	case status >= 400: // revoke, with a token that the hub never issued
		status = http.StatusNoContent
	}
	if op.status != 0 {
		status = op.status
	} else if out != nil && status == http.StatusNoContent {
		status = http.StatusOK
	}
	if given.status < 400 {
		given.copyHeader(w)
	}
	w.Header().Set("Cache-Control", "no-store")
	c.writeCookies(w.Header(), pair, host, v)
	if out != nil {
		w.Header().Set("Content-Type", "application/json")
		body = write(out, v)
	}
	setHeaders(w.Header(), op.headers, v)
	writeBody(w, status, body)
}

// writeCookies sets the cookies with a new pair, and clears them at logout.
func (c *Call) writeCookies(h http.Header, pair bool, host Host, v values) {
	if c.dialect.cookies == nil {
		return
	}
	base, _ := url.Parse(host.Base)
	switch {
	case pair:
		c.dialect.cookies.set(h, base.Path, v)
	case c.called.verb.lab == "logout" && c.op() != "logout_others":
		c.dialect.cookies.clear(h, base.Path)
	}
}

// commonValues returns the values that every answer may name.
func (c *Call) commonValues(host Host) values {
	v := make(values)
	v.addMoment("now", host.Now)
	v["base_url"] = host.Base
	for name, from := range c.dialect.echoes {
		v[name], _ = c.asked.value(from)
	}
	return v
}

// addMoment adds a time in whole seconds, in milliseconds and as text.
func (v values) addMoment(name string, t time.Time) {
	v[name], v[name+"_ms"] = whole(t.Unix()), whole(t.UnixMilli())
	v[strings.TrimSuffix(name, "_at")+"_iso"] = reply.FormatTime(t)
}

func whole(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// addPair adds what the hub says of a new pair of tokens.
func (c *Call) addPair(v values, body []byte, host Host) {
	var given map[string]json.RawMessage
	json.Unmarshal(body, &given) // the hub has written it
	for _, name := range []string{"access_token", "refresh_token", "token_type"} {
		v[name] = plain(given[name])
	}
	if v["refresh_token"] != c.Token {
		v["new_refresh_token"] = v["refresh_token"]
	}
	c.Result.AccessToken, _ = v["access_token"].(string)
	v.addLifetime("", given["expires_in"])
	v.addLifetime("refresh_", given["refresh_expires_in"])
	v.addExpiry("refresh_", claimsOf(v["refresh_token"]))
	v.addUser(given["user"])
	v.addClaims(claimsOf(v["access_token"]))
	if c.dialect.cookies != nil && c.dialect.cookies.csrf != nil {
		v["csrf_token"] = host.NewID()
	}
}

// addLifetime adds how long a token lives, in whole seconds (at least 1, since 0 means for ever to some clients) and
// in milliseconds.
func (v values) addLifetime(prefix string, seconds json.RawMessage) {
	if lives, err := strconv.ParseFloat(string(seconds), 64); err == nil {
		v[prefix+"expires_in"] = whole(max(1, int64(lives)))
		v[prefix+"expires_ms"] = whole(int64(math.Round(lives * 1000)))
	}
}

// addExpiry adds when a token of these claims expires.
func (v values) addExpiry(prefix string, claims map[string]json.RawMessage) {
	if until, err := strconv.ParseFloat(string(claims["exp"]), 64); err == nil {
		v.addMoment(prefix+"expires_at", time.UnixMilli(int64(math.Round(until*1000))))
	}
}

// addLooked adds what the hub says of a user and, if it is asked for that, of a token.
func (c *Call) addLooked(v values, body []byte) {
	if c.op() == "me" {
		v.addUser(body)
		v.addClaims(claimsOf(c.Token))
		return
	}
	var looked struct {
		User   json.RawMessage            `json:"user"`
		Claims map[string]json.RawMessage `json:"claims"`
		Kind   string                     `json:"kind"`
	}
	json.Unmarshal(body, &looked) // the hub has written it
	v.addUser(looked.User)
	v.addClaims(looked.Claims)
	v["token_kind"] = looked.Kind
}

// addUser adds the user's record and its members; those that are empty are not there.
func (v values) addUser(user json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(user, &members) != nil {
		return
	}
	v["user"] = json.RawMessage(bytes.TrimSpace(user))
	for name, value := range members {
		if p := plain(value); p != nil && p != "" {
			v["user."+name] = p
		}
	}
	created, _ := v["user.created_at"].(string)
	if t, err := time.Parse(time.RFC3339, created); err == nil {
		v["user.created_ms"] = whole(t.UnixMilli())
	}
}

// addClaims adds what a token says, times in whole seconds, and when it expires.
func (v values) addClaims(claims map[string]json.RawMessage) {
	if claims == nil {
		return
	}
	v.addExpiry("", claims)
	for name, value := range claims {
		if name == "iat" || name == "exp" || name == "nbf" {
			number, _, _ := strings.Cut(string(value), ".")
			value = json.RawMessage(number)
			claims[name] = value
		}
		v["claims."+name] = plain(value)
	}
	v["claims"] = json.RawMessage(encode(claims))
	v["auth_time"] = v["claims.auth_time"]
}

// claimsOf returns the claims of a token, without checking its signature, which the hub does; nil if it is no token.
func claimsOf(token any) map[string]json.RawMessage {
	text, _ := token.(string)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]json.RawMessage
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return nil
	}
	return claims
}

// plain returns JSON as a value of templates.
func plain(value json.RawMessage) any {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return value
}

// Claims returns what the dialect adds to the claims of an access token, as JSON members with a comma before each; nil
// for nothing. user is the user's record, began when the session began.
func (d *Dialect) Claims(user []byte, began, now time.Time) []byte {
	if d == nil || d.claims == nil {
		return nil
	}
	v := make(values)
	v.addMoment("now", now)
	v.addUser(user)
	v["auth_time"] = whole(began.Unix())
	members := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(write(d.claims, v)), []byte("{")), []byte("}"))
	if len(members) == 0 {
		return nil
	}
	return append([]byte(","), members...)
}
