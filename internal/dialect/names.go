// Names: what the operations are, which values each takes in "in", and which values its answers have. docs/dialects.md
// has the same tables for people.

package dialect

import (
	"cmp"
	"slices"
	"strings"
)

// verb is what an operation of a dialect means.
type verb struct {
	name    string            // in "op"
	own     string            // METHOD /path of the hub's own API; "" for none
	lab     string            // the operation's name in faults and the record
	in      []string          // the values that it takes
	needs   []string          // those that it can't do without, with | between two of which either will do
	out     []string          // the values of its answer, besides those of every answer
	from    map[string]string // where the hub's own API has the values that it takes
	token   string            // as in the index: none, access, refresh, access or refresh
	purpose string
}

const ownPath = "/api/authentication/"

var (
	fromBody = map[string]string{"username": "body.username", "email": "body.email", "name": "body.name", "password": "body.password",
		"expires_in": "body.expires_in", "refresh_expires_in": "body.refresh_expires_in", "refresh_token": "body.refresh_token|authorization.Bearer"}
	fromHeader = map[string]string{"token": "authorization.Bearer"}

	ofToken     = []string{"token"}
	ofAccount   = []string{"username", "email", "name", "password"}
	ofLogin     = []string{"username", "email", "password", "expires_in", "refresh_expires_in"}
	ofRefresh   = []string{"refresh_token"}
	credentials = []string{"username|email", "password"}
)

// Values of answers.
var (
	everywhere = []string{"now", "now_ms", "now_iso", "base_url"}
	ofUser     = []string{"user", "user.id", "user.username", "user.email", "user.name", "user.role", "user.created_at", "user.created_ms"}
	looked     = append(ofUser[:len(ofUser):len(ofUser)], "claims", "expires_at", "expires_at_ms", "expires_iso")
	inspected  = append(looked[:len(looked):len(looked)], "token_kind")
	pair       = append([]string{"access_token", "refresh_token", "new_refresh_token", "token_type", "csrf_token",
		"expires_in", "expires_ms",
		"refresh_expires_in", "refresh_expires_ms", "refresh_expires_at", "refresh_expires_at_ms", "refresh_expires_iso"}, looked...)
	ofError = []string{"name", "code", "detail", "status", "title", "errors", "field", "fields", "retry_after"}
	ofClaim = append(ofUser[:len(ofUser):len(ofUser)], "auth_time", "now", "now_ms", "now_iso")
)

// verbs are all operations, with their values in "in" and where the hub's own API has each: an operation without "in"
// takes them from there.
var verbs = []verb{
	{"register", "POST " + ownPath + "register", "register", ofAccount, credentials, pair, fromBody, "none", "make an account and log in"},
	{"login", "POST " + ownPath + "login", "login", ofLogin, credentials, pair, fromBody, "none", "log in"},
	{"me", "GET " + ownPath + "me", "me", ofToken, ofToken, looked, fromHeader, "access", "the current user"},
	{"refresh", "POST " + ownPath + "refresh", "refresh", ofRefresh, ofRefresh, pair, fromBody,
		"refresh", "exchange the refresh token for a new pair"},
	{"logout", "POST " + ownPath + "logout", "logout", ofToken, ofToken, nil, fromHeader, "access or refresh", "end the session"},
	{"logout_all", "POST " + ownPath + "logout?all=true", "logout", ofToken, ofToken, nil, fromHeader,
		"access or refresh", "end all sessions of the user"},
	{"logout_others", "POST " + ownPath + "logout?others=true", "logout", ofToken, ofToken, nil, fromHeader,
		"access or refresh", "end the user's other sessions"},
	{"revoke", "POST " + ownPath + "logout", "logout", ofToken, ofToken, nil, fromHeader,
		"access or refresh", "end the session; succeeds with any other token, too"},
	{"introspect", "", "introspect", ofToken, ofToken, inspected, fromHeader, "none", "whether a token is active"},
	{"verify", "", "introspect", ofToken, ofToken, inspected, fromHeader, "none", "whether a token is active, an error if not"},
	{"document", "", "other", nil, nil, nil, nil, "none", "a fixed document"},
}

// verbNamed returns the verb of this name; nil if there is none.
func verbNamed(name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
	}
	return nil
}

// verbNames returns the names of all verbs, sorted.
func verbNames() []string {
	names := make([]string, len(verbs))
	for i := range verbs {
		names[i] = verbs[i].name
	}
	slices.Sort(names)
	return names
}

// scope is a part of a description whose templates may name the same values.
type scope struct {
	of, at  string   // what it belongs to, as faults tell it, and its path: me, operations[2]
	names   []string // of values
	claims  []string // the NAMEs of claims.NAME; nil for any
	params  []string // the NAMEs of path.NAME
	request bool     // whether there is a request whose values may be named
}

// hubClaims are what every access token of the hub says; ownClaims, what no description may say in the hub's place.
var (
	hubClaims = []string{"iss", "sub", "sid", "jti", "iat", "exp", "username", "role"}
	ownClaims = append(hubClaims[:len(hubClaims):len(hubClaims)], "nbf", "gen")
)

// scopeOfErrors returns the scope of the errors of operations of this name; "" stands for all operations.
func (d *Dialect) scopeOfErrors(op string) *scope {
	return &scope{of: `"errors"`, at: "errors", names: slices.Concat(ofError, everywhere), params: d.params(op), request: true}
}

// params returns the NAMEs of path.NAME of operations of this name; "" stands for all operations.
func (d *Dialect) params(op string) []string {
	var all []string
	for _, o := range d.operations {
		if op == "" || op == o.verb.name {
			all = append(all, o.params()...)
		}
	}
	return all
}

// scopeOf returns the scope of the answers of op. A token that was not made just now may have been ordered from the
// lab, with any claims.
func (d *Dialect) scopeOf(op *operation, at string, claims []string) *scope {
	s := &scope{of: op.verb.name, at: at, names: slices.Concat(op.verb.out, everywhere), params: op.params(), request: true}
	if !slices.Contains(s.names, "access_token") {
		return s
	}
	s.claims = slices.Concat(hubClaims, claims)
	if d.cookies == nil || d.cookies.csrf == nil {
		s.names = slices.DeleteFunc(s.names, func(name string) bool { return name == "csrf_token" })
	}
	return s
}

// lacks returns what is wrong with naming a value at this path; "" for nothing.
func (s *scope) lacks(path, name string) string {
	of, value := s.of, "$"+clip(name)
	if !strings.HasPrefix(path, s.at) {
		of += " (" + s.at + ")"
	}
	kind, rest, _ := strings.Cut(name, ".")
	_, fault := parsePlace(name)
	isClaim := kind == "claims" && isToken(rest)
	switch {
	case slices.Contains(s.names, name), fault == "" && s.request && (kind != "path" || slices.Contains(s.params, rest)):
		return ""
	case isClaim && slices.Contains(s.names, "claims"):
		if s.claims == nil || slices.Contains(s.claims, rest) {
			return ""
		}
		return value + " is no value of " + of + "; claims are " + strings.Join(hubClaims, ", ") + ` and those of "claims"`
	case fault == "" && s.request:
		return noPart(rest, s.params)
	case name == "csrf_token" && slices.Contains(s.names, "access_token"):
		return value + " is no value of " + of + ` without "csrf" in "cookies"`
	}
	value += " is no value of " + of + "; "
	if meant := mistyped(name, s.names); meant != "" {
		value += "did you mean $" + meant + "? There"
	} else if slices.Contains(s.names, kind) && !slices.ContainsFunc(s.names, func(other string) bool { return strings.HasPrefix(other, kind+".") }) {
		value += "$" + kind + " has no members to pick; there"
	} else {
		value += "there"
	}
	all := strings.Join(s.names, ", ")
	if slices.Contains(s.names, "claims") {
		all += ", claims.NAME"
	}
	if s.request {
		all += ", and those of the request such as body.NAME (write $$ for a text that begins with $)"
	}
	return value + " are " + all
}

// mistyped returns the first of names that differs from name by one character, or by two neighbours in the wrong
// order; "" if there is none.
func mistyped(name string, names []string) string {
	for _, other := range names {
		short, long := name, other
		if len(short) > len(long) {
			short, long = long, short
		}
		i := 0
		for i < len(short) && short[i] == long[i] {
			i++
		}
		a, b := short[i:], long[i:]
		switch {
		case len(b) == len(a)+1 && a == b[1:], // one more
			len(b) == len(a) && a != "" && a[1:] == b[1:],                                    // another
			len(b) == len(a) && len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]: // two swapped
			return other
		}
	}
	return ""
}

// noPart is the fault of path.NAME where the path has parts of these names only.
func noPart(name string, params []string) string {
	return "path." + clip(name) + ` names no {part} of "on", which has ` + cmp.Or(strings.Join(params, ", "), "none")
}
