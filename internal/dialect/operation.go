// Operations: what a description says of each, and which requests they are.

package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// operation is one thing that clients may ask for.
type operation struct {
	verb     *verb
	method   string
	path     string
	segments []string // of the path; {name} stands for any
	when     []condition
	in       map[string]sources
	status   int // 0: as the hub has it
	headers  []header
	out      template // nil: as the hub has it
	inactive template // of introspect
}

// condition is what a request must have to be an operation.
type condition struct {
	where string
	from  sources
	want  string
}

// parseOperation reads an operation; nil if what it means can't be told.
func (d *Dialect) parseOperation(n node, t *templates) *operation {
	o := n.object([]string{"op", "on", "when", "in", "status", "headers", "out", "inactive"})
	if o == nil {
		return nil
	}
	op := new(operation)
	if named, ok := n.member(o, "op"); ok {
		op.verb = verbNamed(named.oneOf(verbNames()...))
	} else {
		n.p.fault(join(n.path, "op"), "is missing: one of "+strings.Join(verbNames(), ", "))
	}
	if op.verb == nil {
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
	if in, ok := n.member(o, "in"); ok {
		op.parseIn(in)
	} else {
		op.takeOwn()
	}
	op.parseOut(n, o, t.in(d.scopeOf(op, n.path, t.claims)))
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
	if op.verb.name == "document" && op.out == nil && op.status != http.StatusNoContent {
		n.p.fault(join(n.path, "out"), `is missing: the document, or "status": 204 for none`)
	}
	op.inactive = literal(`{"active":false}`)
	if inactive, ok := n.member(o, "inactive"); ok {
		if op.verb.name != "introspect" {
			inactive.fault("belongs to introspect")
		}
		dead := *t.scope
		dead.of, dead.names = `"inactive"`, everywhere
		op.inactive, _ = t.in(&dead).compile(inactive.path, inactive.value)
	}
	switch {
	case op.out != nil:
	case op.verb.name == "introspect":
		op.out = members("sub=user.id", "username=user.username", "iat=claims.iat", "exp=claims.exp", "token_type=token_kind")
		op.out = append(op.out.(record), recordPart{[]byte(`"active":`), literal("true")})
	case op.verb.name == "verify":
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
		if op.out == nil && (op.verb.name == "register" || op.verb.name == "login" || op.verb.name == "refresh") {
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
		n.fault("has characters that a path can't contain; put conditions on the query into \"when\"")
	case path == "/lab" || path == "/ns" || strings.HasPrefix(path, "/lab/") || strings.HasPrefix(path, "/ns/"):
		n.fault("is a path of the lab (/lab, /ns), which no dialect may take")
	}
	op.method, op.path = method, path
	op.segments = split(path)
	for i, segment := range op.segments {
		if !strings.ContainsAny(segment, "{}") && !strings.HasPrefix(segment, ":") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(segment, "{"), "}")
		if segment != "{"+name+"}" || !isToken(name) || slices.Contains(op.segments[:i], segment) {
			n.fault(`has a wrong part: one that stands for any text is in braces, is all that is between two slashes and has a name of its own, as in "/tenants/{tenant}/login"`)
		}
	}
}

// params returns the names of the parts in braces.
func (op *operation) params() []string {
	var names []string
	for _, segment := range op.segments {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// split returns the parts of a path between its slashes. One slash at the end does not count.
func split(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
}

// parseWhen reads "when", the conditions of a request.
func (op *operation) parseWhen(n node) {
	o := n.object(nil)
	if o == nil {
		return
	}
	for _, name := range o.names {
		at, _ := n.member(o, name)
		c := condition{where: name}
		var fault string
		if c.from, fault = op.parseSources(name, false); fault != "" {
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

// takeOwn takes the values from where the hub's own API has them.
func (op *operation) takeOwn() {
	op.in = make(map[string]sources)
	for _, name := range op.verb.in {
		if from := op.verb.from[name]; from != "" {
			op.in[name], _ = parseSources(from, isTime(name))
		}
	}
}

// parseIn reads where the values come from.
func (op *operation) parseIn(n node) {
	op.in = make(map[string]sources)
	o := n.object(append([]string{}, op.verb.in...))
	if o == nil {
		return
	}
	for _, name := range o.names {
		at, _ := n.member(o, name)
		var fault string
		if op.in[name], fault = op.parseSources(at.text(), isTime(name)); fault != "" {
			at.fault(fault)
		}
	}
	op.checkNeeds(n)
}

// checkNeeds reports values that the operation can't do without and "in" does not have.
func (op *operation) checkNeeds(n node) {
	for _, need := range op.verb.needs {
		name, other, _ := strings.Cut(need, "|")
		_, has := op.in[name]
		if _, hasOther := op.in[other]; has || hasOther {
			continue
		}
		either := ""
		if other != "" {
			either = " (or " + other + ")"
		}
		example, _, _ := strings.Cut(op.verb.from[name], "|")
		n.p.fault(join(n.path, name), fmt.Sprintf("is missing%s, and %s can't do without it: say where the client sends it, such as %q", either, op.verb.name, example))
	}
}

// isTime reports whether a value that operations take is a number of seconds.
func isTime(name string) bool { return strings.HasSuffix(name, "expires_in") }

// parseSources reads the places of a value of op.
func (op *operation) parseSources(text string, isTime bool) (sources, string) {
	s, fault := parseSources(text, isTime)
	for _, place := range s.places {
		if fault == "" && place.kind == "path" && !slices.Contains(op.params(), place.path[0]) {
			fault = noPart(place.path[0], op.params())
		}
	}
	return s, fault
}

// covers reports whether every request that is later is also op, so that later never gets one.
func (op *operation) covers(later *operation) bool {
	if op.method != later.method || len(op.segments) != len(later.segments) {
		return false
	}
	for i, segment := range op.segments {
		if segment != later.segments[i] && !strings.HasPrefix(segment, "{") {
			return false
		}
	}
	for _, c := range op.when {
		if !slices.ContainsFunc(later.when, func(other condition) bool { return other.where == c.where && other.want == c.want }) {
			return false
		}
	}
	return true
}

// conflict says what to do about a later operation that op covers.
func (op *operation) conflict(later *operation) string {
	switch {
	case !later.covers(op):
		return `takes the same requests; put this one before it`
	case op.when == nil:
		return `takes the same requests; give one of them a "when" and put that one first`
	}
	return `has the same "when"; change one of them or remove it`
}

// match returns the parts of a path that the operation's path names; false if the path is another one.
func (op *operation) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(op.segments) {
		return nil, false
	}
	var params map[string]string
	for i, want := range op.segments {
		if name, ok := strings.CutPrefix(want, "{"); ok && segments[i] != "" {
			if params == nil {
				params = make(map[string]string)
			}
			params[strings.TrimSuffix(name, "}")] = segments[i]
		} else if want != segments[i] {
			return nil, false
		}
	}
	return params, true
}

// readsBody reports whether any value or condition may stand in a body.
func (op *operation) readsBody() bool {
	inBody := func(s sources) bool {
		return slices.ContainsFunc(s.places, func(p place) bool { return p.kind == "body" })
	}
	for _, s := range op.in {
		if inBody(s) {
			return true
		}
	}
	return slices.ContainsFunc(op.when, func(c condition) bool { return inBody(c.from) })
}

// unmet returns the first value that the operation is chosen by and the request lacks, and whether it has another one.
func (op *operation) unmet(q *question) (lacks string, differs bool) {
	for _, c := range op.when {
		switch v, _ := q.value(c.from); {
		case v == nil:
			lacks = cmp.Or(lacks, words(c.from.places))
		case fmt.Sprint(v) != c.want:
			differs = true
		}
	}
	return lacks, differs
}

// wanted returns what the conditions of these operations look at.
func wanted(at []*operation) []string {
	var names []string
	for _, op := range at {
		for _, c := range op.when {
			names = append(names, words(c.from.places))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
