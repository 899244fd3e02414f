// Errors: what a description says of them, and what the client gets for one of the hub.

package dialect

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"authhub/internal/reply"
)

// Codes are the codes of all errors that a dialect may meet: the hub's own, and those of the dialect itself.
var Codes = []string{
	"malformed_body", "token_missing", "token_malformed", "token_expired", "token_revoked", "token_reused", "token_wrong_type",
	"invalid_credentials", "account_disabled", "method_not_allowed", "username_taken", "email_taken", "body_too_large",
	"unsupported_media_type", "invalid_field", "too_many_attempts", "internal", "store_unavailable", "busy", "user_limit", "disk_full",
	"when_missing", "when_unknown", "csrf_mismatch",
}

// entry is one entry of "errors". A more general entry may say what it leaves out.
type entry struct {
	op, pattern  string // op "": of all operations; pattern: a code, its beginning and *, *, or invalid_field.NAME
	status       int
	name, detail string
	headers      []header
	body         template
}

// fits reports whether e is for an error; field is the code with the first field at fault behind it.
func (e *entry) fits(op, code, field string) bool {
	return (e.op == "" || e.op == op) && (matches(e.pattern, code) || matches(e.pattern, field))
}

// known reports whether a pattern fits any error. Fields are called as in "in".
func known(pattern string) bool {
	field, isField := strings.CutPrefix(pattern, "invalid_field.")
	return isField && slices.Contains(slices.Concat(ofAccount, ofLogin, ofRefresh), field) ||
		slices.ContainsFunc(Codes, func(code string) bool { return matches(pattern, code) })
}

func matches(pattern, code string) bool {
	beginning, open := strings.CutSuffix(pattern, "*")
	return pattern == code || open && strings.HasPrefix(code, beginning)
}

// parseErrors reads the entries and sorts them, the most special one first: those of an operation before those of all,
// then the longer pattern before the shorter.
func (d *Dialect) parseErrors(n node, t *templates) []*entry {
	o := n.object(nil)
	if o == nil {
		return nil
	}
	var all []*entry
	scoped := make(map[string]*templates) // by operation
	for _, name := range o.names {
		at, _ := n.member(o, name)
		e := new(entry)
		op, pattern, hasOp := strings.Cut(name, ":")
		if !hasOp {
			op, pattern = "", name
		}
		if e.op, e.pattern = op, pattern; hasOp && !slices.ContainsFunc(d.operations, func(o *operation) bool { return o.verb.name == op }) {
			at.fault("begins with an operation that \"operations\" does not have")
		}
		switch {
		case pattern == "not_found":
			at.fault("can't be changed: not_found is the hub's own answer to a path that nobody describes")
		case !known(pattern):
			at.fault("names no error: CODE, BEGINNING*, * or invalid_field.NAME, with OPERATION: before it for those of one operation; codes are " + strings.Join(Codes, ", "))
		}
		if scoped[op] == nil {
			scoped[op] = t.in(d.scopeOfErrors(op))
		}
		at.parseEntry(e, scoped[op])
		all = append(all, e)
	}
	sort.SliceStable(all, func(i, j int) bool { return rank(all[i]) > rank(all[j]) })
	return all
}

func rank(e *entry) int {
	r := len(e.pattern)
	if !strings.HasSuffix(e.pattern, "*") {
		r += 1000
	}
	if e.op != "" {
		r += 10000
	}
	return r
}

func (n node) parseEntry(e *entry, t *templates) {
	o := n.object([]string{"status", "name", "detail", "headers", "body"})
	if o == nil {
		return
	}
	if at, ok := n.member(o, "status"); ok {
		e.status = at.status(func(s int) bool { return s == 200 || s >= 400 && s <= 599 }, "200, or a status from 400 to 599")
	}
	if at, ok := n.member(o, "name"); ok {
		e.name = at.plainText()
	}
	if at, ok := n.member(o, "detail"); ok {
		e.detail = at.plainText()
	}
	if at, ok := n.member(o, "headers"); ok {
		e.headers = parseHeaders(at, t)
	}
	if at, ok := n.member(o, "body"); ok {
		e.body, _ = t.compile(at.path, at.value)
	}
}

// plainText returns a text that is sent as it is, and reports what looks like a value or a template in it.
func (n node) plainText() string {
	s := n.text()
	if strings.Contains(s, "${") || s != "" && strings.ContainsRune("$@", rune(s[0])) && isToken(s[1:]) {
		n.fault(`is a plain text, so it can't name values or templates; these go into "body" and "headers"`)
	}
	return s
}

// writeError answers with an error of the hub, as the description has it, and in the hub's shape where that has no
// body.
func (d *Dialect) writeError(w http.ResponseWriter, c *Call, given *recorder, v values) {
	var p reply.Error
	json.Unmarshal(given.body, &p) // the hub has written it
	c.Result.Code = p.Code
	field := p.Code
	if len(p.Fields) > 0 {
		field += "." + p.Fields[0].Field
	}
	if c.called != nil {
		c.translate(&p)
	}
	merged := entry{status: given.status, name: p.Code, detail: p.Detail}
	var fields []header
	for _, e := range slices.Backward(d.errors) { // the most special one last, so that it counts
		if !e.fits(c.op(), p.Code, field) {
			continue
		}
		merged.overlay(e)
		fields = append(fields, e.headers...)
	}
	v["name"], v["code"], v["detail"] = merged.name, p.Code, merged.detail
	p.Title = cmp.Or(http.StatusText(merged.status), strconv.Itoa(merged.status))
	p.Status, p.Code, p.Detail = merged.status, merged.name, merged.detail
	v.errorValues(&p, given.header.Get("Retry-After"))
	given.copyHeader(w)
	if challenge, ok := strings.CutPrefix(w.Header().Get("WWW-Authenticate"), "Bearer "); ok {
		w.Header().Set("WWW-Authenticate", c.scheme()+" "+challenge)
	}
	setHeaders(w.Header(), fields, v)
	body := append(encode(p), '\n')
	if merged.body != nil {
		body = write(merged.body, v)
		if !slices.ContainsFunc(fields, func(f header) bool { return f.name == "Content-Type" }) {
			w.Header().Set("Content-Type", "application/json")
		}
	}
	writeBody(w, merged.status, body)
}

// overlay takes over what e says.
func (into *entry) overlay(e *entry) {
	if e.status != 0 {
		into.status = e.status
	}
	if e.name != "" {
		into.name = e.name
	}
	if e.detail != "" {
		into.detail = e.detail
	}
	if e.body != nil {
		into.body = e.body
	}
}

// errorValues adds what the bodies of errors may name.
func (v values) errorValues(p *reply.Error, retryAfter string) {
	v["title"], v["status"] = p.Title, json.Number(strconv.Itoa(p.Status))
	if seconds, err := strconv.Atoi(retryAfter); err == nil {
		v["retry_after"] = json.Number(strconv.Itoa(seconds))
	}
	if len(p.Fields) == 0 {
		return
	}
	byField := make(map[string][]string)
	for _, f := range p.Fields {
		byField[f.Field] = append(byField[f.Field], f.Detail)
	}
	v["field"] = p.Fields[0].Field
	v["errors"], v["fields"] = json.RawMessage(encode(p.Fields)), json.RawMessage(encode(byField))
}

// translate puts what the hub says of its own members and headers into the client's names and units.
func (c *Call) translate(p *reply.Error) {
	for i := range p.Fields {
		c.translateField(&p.Fields[i], p.Code)
	}
	switch {
	case p.Code == "token_missing":
		p.Detail = "This operation needs a token: " + words(slices.Concat(c.called.in["token"].places, c.called.in["refresh_token"].places)) + "."
	case len(p.Fields) > 0 && p.Fields[0].Detail != p.Detail: // else it is a sentence that names no member
		p.Detail = p.Fields[0].Field + ": " + p.Fields[0].Detail
	}
}

// translateField translates one field of an error with this code.
func (c *Call) translateField(f *reply.FieldError, code string) {
	name, other := c.nameOf(f.Field), c.nameOf("email")
	switch s := c.called.in[f.Field]; {
	case f.Field == "username" && c.in["username"] == nil && c.in["email"] == nil:
		f.Detail = "is required"
		if name != other {
			f.Detail += " (or " + other + ")"
		}
	case s.unit != 0:
		f.Detail = "must be a number of " + s.unitName() + " above 0" // one that is too high becomes the highest
	case strings.HasSuffix(code, "_taken") && name != f.Field:
		f.Detail = "belongs to another account"
	}
	f.Field = name
}

// scheme returns the scheme of the Authorization header in which the client sends its token; Bearer if it sends none.
func (c *Call) scheme() string {
	if c.called != nil {
		for _, p := range c.called.in["token"].places {
			if p.kind == "authorization" {
				return p.path[0]
			}
		}
	}
	return "Bearer"
}

// nameOf returns what the client calls a value: as it has sent it, or where the hub looks first. User name and e-mail
// address stand for each other.
func (c *Call) nameOf(value string) string {
	for _, name := range []string{value, map[string]string{"username": "email", "email": "username"}[value]} {
		if from, ok := c.from[name]; ok {
			return from.name()
		}
		if s, ok := c.called.in[name]; ok {
			return s.places[0].name()
		}
	}
	return value
}
