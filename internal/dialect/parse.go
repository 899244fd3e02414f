// Parse: from the JSON of a description to a Dialect, or to all that is wrong with it.

package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxOperations = 64
	maxTTL        = 10 * 365 * 24 * time.Hour
	maxPathLength = 256
)

// verb is what an operation of a dialect means.
type verb struct {
	own     string   // METHOD /path of the hub's own API; "" for none
	lab     string   // the operation's name in faults and the record
	in      []string // the values that it takes
	purpose string
	token   string // as in the index: none, access, refresh, access or refresh
	from    map[string]string
}

const ownPath = "/api/authentication/"

var (
	fromBody   = map[string]string{"username": "body.username", "email": "body.email", "name": "body.name", "password": "body.password"}
	fromHeader = map[string]string{"token": "authorization.Bearer"}
)

// verbs are all there are. What an operation's "in" does not say comes from where the hub's own API has it.
var verbs = map[string]verb{
	"register": {"POST " + ownPath + "register", "register", []string{"username", "email", "name", "password"},
		"make an account and log in", "none", fromBody},
	"login": {"POST " + ownPath + "login", "login", []string{"username", "email", "password", "expires_in", "refresh_expires_in"},
		"log in", "none", fromBody},
	"me":            {"GET " + ownPath + "me", "me", []string{"token"}, "the current user", "access", fromHeader},
	"refresh":       {"POST " + ownPath + "refresh", "refresh", []string{"refresh_token"}, "exchange the refresh token for a new pair", "refresh", map[string]string{"refresh_token": "body.refresh_token"}},
	"logout":        {"POST " + ownPath + "logout", "logout", []string{"token"}, "end the session", "access or refresh", fromHeader},
	"logout_all":    {"POST " + ownPath + "logout?all=true", "logout", []string{"token"}, "end all sessions of the user", "access or refresh", fromHeader},
	"logout_others": {"POST " + ownPath + "logout?others=true", "logout", []string{"token"}, "end the user's other sessions", "access or refresh", fromHeader},
	"revoke":        {"POST " + ownPath + "logout", "logout", []string{"token"}, "end the session, also with a token that is dead already", "access or refresh", fromHeader},
	"introspect":    {"", "introspect", []string{"token"}, "whether a token is active", "none", fromHeader},
	"verify":        {"", "introspect", []string{"token"}, "whether a token is active, an error if not", "none", fromHeader},
	"document":      {"", "other", nil, "a fixed document", "none", nil},
}

// parser collects what is wrong.
type parser struct {
	faults Faults
}

func (p *parser) fault(path, detail string) { p.faults = append(p.faults, Fault{path, detail}) }

// node is a value of the description and where it is.
type node struct {
	p     *parser
	path  string
	value any
}

func (n node) fault(detail string) { n.p.fault(n.path, detail) }

// object returns the members of n, which may have these names only, or any for nil. It returns nil if n is no object.
func (n node) object(names []string) *object {
	o, ok := n.value.(*object)
	if !ok {
		n.fault("must be an object")
		return nil
	}
	for _, name := range o.names {
		if names != nil && !slices.Contains(names, name) {
			n.p.fault(join(n.path, name), "is unknown here; there are "+cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	return o
}

// member returns a member of o, which is the value of n, and whether it is there.
func (n node) member(o *object, name string) (node, bool) {
	value, ok := o.members[name]
	return node{n.p, join(n.path, name), value}, ok
}

func (n node) text() string {
	s, ok := n.value.(string)
	if !ok || s == "" {
		n.fault("must be a string with something in it")
	}
	return s
}

// oneOf returns a text that must be one of these; "" if it is not.
func (n node) oneOf(choices ...string) string {
	if s, ok := n.value.(string); ok && slices.Contains(choices, s) {
		return s
	}
	n.fault("must be one of " + strings.Join(choices, ", "))
	return ""
}

func (n node) truth() bool {
	v, ok := n.value.(bool)
	if !ok {
		n.fault("must be true or false")
	}
	return v
}

// status returns a status of which fits reports whether it is allowed.
func (n node) status(fits func(int) bool, must string) int {
	literal, _ := n.value.(json.Number)
	status, err := strconv.Atoi(literal.String())
	if err != nil || !fits(status) {
		n.fault("must be " + must)
		return 0
	}
	return status
}

func (n node) duration() time.Duration {
	s, _ := n.value.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Millisecond || d > maxTTL {
		n.fault(`must be a duration from 1ms to ten years, such as "5m" or "24h"`)
	}
	return d
}

// Parse reads a description. Its error is Faults: all that is wrong, each with its path.
func Parse(description []byte) (*Dialect, error) {
	tree, fault := parseTree(description)
	if fault != nil {
		return nil, Faults{*fault}
	}
	d := &Dialect{rotation: true}
	p := new(parser)
	d.parse(node{p, "", tree})
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	var indented bytes.Buffer
	json.Indent(&indented, bytes.TrimSpace(description), "", "  ") // it is JSON
	d.description = append(indented.Bytes(), '\n')
	return d, nil
}

func (d *Dialect) parse(root node) {
	o := root.object([]string{"name", "templates", "operations", "errors", "cookies", "lifetimes", "rotation", "claims"})
	if o == nil {
		return
	}
	named, _ := o.members["templates"].(*object)
	t := &templates{p: root.p, source: named, compiled: make(map[string]template), sizes: make(map[string]int), echoes: make(map[string]sources)}
	if name, ok := root.member(o, "name"); !ok {
		root.p.fault("name", "is missing: what this dialect is called")
	} else if d.name = name.text(); !isToken(d.name) || len(d.name) > 64 {
		name.fault("must be 1 to 64 of letters, digits, - and _")
	}
	if operations, ok := root.member(o, "operations"); ok {
		d.parseOperations(operations, t)
	} else {
		root.p.fault("operations", "is missing: an array of what clients may ask for")
	}
	if cookies, ok := root.member(o, "cookies"); ok {
		d.cookies = parseCookies(cookies)
	}
	d.answerWithoutCookies()
	if errors, ok := root.member(o, "errors"); ok {
		d.errors = d.parseErrors(errors, t)
	}
	if rotation, ok := root.member(o, "rotation"); ok {
		d.rotation = rotation.truth()
	}
	if lifetimes, ok := root.member(o, "lifetimes"); ok {
		d.parseLifetimes(lifetimes)
	}
	if claims, ok := root.member(o, "claims"); ok {
		d.parseClaims(claims, t)
	}
	if templates, ok := root.member(o, "templates"); ok && templates.object(nil) != nil {
		for _, name := range named.names {
			t.named(join("templates", name), name)
		}
	}
	d.echoes = t.echoes
}

func (d *Dialect) parseOperations(n node, t *templates) {
	all, ok := n.value.([]any)
	if !ok || len(all) == 0 || len(all) > maxOperations {
		n.fault(fmt.Sprintf("must be an array of 1 to %d operations", maxOperations))
		return
	}
	for i, value := range all {
		at := node{n.p, fmt.Sprintf("%s[%d]", n.path, i), value}
		op := parseOperation(at, t)
		if op == nil {
			continue
		}
		for j, earlier := range d.operations {
			if earlier.covers(op) {
				at.p.fault(at.path+".on", fmt.Sprintf("is never reached: operations[%d] takes the same requests; give it a \"when\" or put this one before it", j))
			}
		}
		d.operations = append(d.operations, op)
	}
}

func parseOperation(n node, t *templates) *operation {
	o := n.object([]string{"op", "on", "when", "in", "status", "headers", "out", "inactive"})
	if o == nil {
		return nil
	}
	op := new(operation)
	if named, ok := n.member(o, "op"); ok {
		op.op = named.oneOf(slices.Sorted(maps.Keys(verbs))...)
	} else {
		n.p.fault(join(n.path, "op"), "is missing: one of "+strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	op.verb = verbs[op.op]
	if op.op == "" {
		return nil
	}
	if on, ok := n.member(o, "on"); ok {
		op.parseOn(on)
	} else {
		n.p.fault(join(n.path, "on"), `is missing: METHOD /path, such as "POST /login"`)
	}
	if when, ok := n.member(o, "when"); ok {
		op.parseWhen(when)
	}
	in, _ := n.member(o, "in")
	op.parseIn(in)
	op.parseOut(n, o, t)
	return op
}

// parseOut reads what the operation answers.
func (op *operation) parseOut(n node, o *object, t *templates) {
	if status, ok := n.member(o, "status"); ok {
		op.status = status.status(func(s int) bool { return s >= 200 && s <= 299 && s != 205 && s != 206 }, "a status from 200 to 299 (not 205, 206)")
	}
	if headers, ok := n.member(o, "headers"); ok {
		op.headers = parseHeaders(headers, t)
	}
	if out, ok := n.member(o, "out"); ok {
		op.out, _ = t.compile(out.path, out.value)
		if op.status == http.StatusNoContent {
			out.fault("can't be with status 204, which has no body")
		}
	}
	if op.op == "document" && op.out == nil {
		n.p.fault(join(n.path, "out"), "is missing: the document")
	}
	op.inactive = literal(`{"active":false}`)
	if inactive, ok := n.member(o, "inactive"); ok {
		if op.inactive, _ = t.compile(inactive.path, inactive.value); op.op != "introspect" {
			inactive.fault("belongs to introspect")
		}
	}
	switch {
	case op.out != nil:
	case op.op == "introspect":
		op.out = members("sub=user.id", "username=user.username", "iat=claims.iat", "exp=claims.exp", "token_type=token_kind")
		op.out = append(op.out.(record), recordPart{[]byte(`"active":`), literal("true")})
	case op.op == "verify":
		op.out = literal("{}")
	}
}

// members returns the template of an object with these members, each NAME or NAME=VALUE.
func members(names ...string) record {
	all := make(record, len(names))
	for i, name := range names {
		name, value, _ := strings.Cut(name, "=")
		all[i] = recordPart{append(encode(name), ':'), named{cmp.Or(value, name)}}
	}
	return all
}

// answerWithoutCookies takes the tokens that travel in cookies out of those answers that are as the hub has them.
func (d *Dialect) answerWithoutCookies() {
	if d.cookies == nil {
		return
	}
	names := []string{"token_type", "expires_in", "refresh_expires_in", "user"}
	if d.cookies.refresh == nil {
		names = append([]string{"refresh_token"}, names...)
	}
	if d.cookies.access == nil {
		names = append([]string{"access_token"}, names...)
	}
	for _, op := range d.operations {
		if op.out == nil && (op.op == "register" || op.op == "login" || op.op == "refresh") {
			op.out = members(names...)
		}
	}
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// parseOn reads METHOD /path.
func (op *operation) parseOn(n node) {
	s, _ := n.value.(string)
	method, path, ok := strings.Cut(s, " ")
	switch {
	case !ok || !slices.Contains(methods, method) || !strings.HasPrefix(path, "/") || len(path) > maxPathLength:
		n.fault(`must be METHOD /path with a method of ` + strings.Join(methods, ", ") + `, such as "POST /login"`)
	case strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`?#%"<>\^|`, c) }):
		n.fault("has a path with characters that none has as it is; put conditions on the query into \"when\"")
	case path == "/lab" || path == "/ns" || strings.HasPrefix(path, "/lab/") || strings.HasPrefix(path, "/ns/"):
		n.fault("is a path of the lab (/lab, /ns), which no dialect may take")
	}
	op.method, op.path = method, path
	op.segments = split(path)
	for i, segment := range op.segments {
		if !strings.ContainsAny(segment, "{}") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(segment, "{"), "}")
		if segment != "{"+name+"}" || !isToken(name) || slices.Contains(op.segments[:i], segment) {
			n.fault(`has a part that is no {name} of its own; write "/tenants/{tenant}/login"`)
		}
	}
}

// split returns the parts of a path between its slashes. One slash at the end does not count.
func split(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
}

// parseWhen reads what a request must have besides.
func (op *operation) parseWhen(n node) {
	o := n.object(nil)
	if o == nil {
		return
	}
	for _, name := range o.names {
		at, _ := n.member(o, name)
		c := condition{where: name}
		var fault string
		if c.from, fault = parseSources(name, false); fault != "" {
			at.fault(fault)
			continue
		}
		switch v := at.value.(type) {
		case string:
			c.want = v
		case json.Number:
			c.want = v.String()
		case bool:
			c.want = strconv.FormatBool(v)
		default:
			at.fault("must be the value to be had: a string, a number, true or false")
		}
		op.when = append(op.when, c)
	}
}

// parseIn reads where the values come from; what it does not say comes from where the hub's own API has it.
func (op *operation) parseIn(n node) {
	op.in, op.from = make(map[string]sources), make(map[string]string)
	o, given := n.value.(*object)
	switch {
	case given:
		n.object(append([]string{}, op.verb.in...))
	case n.value != nil:
		n.fault("must be an object")
	}
	for _, name := range op.verb.in {
		from, path := op.verb.from[name], n.path
		if given {
			at, ok := n.member(o, name)
			if !ok {
				continue
			}
			from, path = at.text(), at.path
		}
		if from == "" {
			continue
		}
		s, fault := parseSources(from, strings.HasSuffix(name, "expires_in"))
		if fault != "" {
			n.p.fault(path, fault)
		}
		op.in[name], op.from[name] = s, from
		for _, place := range s.places {
			if place.kind == "path" && !slices.Contains(op.segments, "{"+place.path[0]+"}") {
				n.p.fault(path, "path."+clip(place.path[0])+" names no {part} of \"on\"")
			}
		}
	}
}

// parseLifetimes reads those of tokens of sessions that begin from now on.
func (d *Dialect) parseLifetimes(n node) {
	o := n.object([]string{"access", "refresh"})
	if o == nil {
		return
	}
	if access, ok := n.member(o, "access"); ok {
		d.access = access.duration()
	}
	if refresh, ok := n.member(o, "refresh"); ok {
		d.refresh = refresh.duration()
	}
}

// ownClaims are what the hub itself says in its tokens.
var ownClaims = []string{"iss", "sub", "sid", "jti", "iat", "exp", "nbf", "username", "role", "gen"}

const maxClaims = 64 // parts

// parseClaims reads what access tokens say besides.
func (d *Dialect) parseClaims(n node, t *templates) {
	o := n.object(nil)
	if o == nil {
		return
	}
	for _, name := range o.names {
		if slices.Contains(ownClaims, name) {
			n.p.fault(join(n.path, name), "is said by the hub itself")
		}
	}
	compiled, size := t.compile(n.path, o)
	if size > maxClaims {
		n.fault(fmt.Sprintf("must have at most %d parts: tokens travel in a header", maxClaims))
	}
	d.claims = compiled
}
