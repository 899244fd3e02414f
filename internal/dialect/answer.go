// Answers: headers, and what an error looks like.

package dialect

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"authhub/internal/reply"
)

// header is one field of an answer: a text, or the removal of what the hub says.
type header struct {
	name  string
	value text // nil: left out
}

// ownHeaders are what a description may not touch: framing, and what other members of it or the hub's edge decide.
var ownHeaders = []string{"Connection", "Content-Encoding", "Content-Length", "Date", "Keep-Alive", "Set-Cookie", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Vary", "X-Content-Type-Options", "Content-Security-Policy", "Cross-Origin-Resource-Policy"}

// parseHeaders reads fields by name: a text with values in it, or null to leave a field out.
func parseHeaders(n node, t *templates) []header {
	o := n.object(nil)
	if o == nil {
		return nil
	}
	var all []header
	for _, name := range o.names {
		at, _ := n.member(o, name)
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			at.fault("is no name that a header can have")
			continue
		case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Access-Control-"):
			at.fault("is decided elsewhere: cookies by \"cookies\", the others by the hub")
			continue
		}
		all = append(all, header{canonical, at.headerText(t)})
	}
	return all
}

// headerText returns a text that fits into one line; nil for null.
func (n node) headerText(t *templates) text {
	if n.value == nil {
		return nil
	}
	s, ok := n.value.(string)
	if !ok || strings.ContainsFunc(s, isControl) {
		n.fault("must be a text of one line, or null to leave the header out")
		return nil
	}
	switch compiled := t.text(n.path, s).(type) {
	case text:
		return compiled
	default:
		return text{{literal: s}}
	}
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// setHeaders writes fields to an answer and has pages of other origins read them. A value that is not there leaves its
// field out; control characters in values are dropped.
func setHeaders(h http.Header, all []header, v values) {
	for _, field := range all {
		h.Del(field.name)
		if field.value == nil {
			continue
		}
		value, ok := field.value.string(v)
		if !ok {
			continue
		}
		h.Set(field.name, strings.Map(func(c rune) rune {
			if isControl(c) {
				return -1
			}
			return c
		}, value))
		if exposed := h.Get("Access-Control-Expose-Headers"); exposed != "" {
			h.Set("Access-Control-Expose-Headers", exposed+", "+field.name)
		}
	}
}

// Codes are the codes of all errors that a dialect may meet: the hub's own, and those of the dialect itself.
var Codes = []string{
	"malformed_body", "token_missing", "token_malformed", "token_expired", "token_revoked", "token_reused", "token_wrong_type",
	"invalid_credentials", "account_disabled", "method_not_allowed", "username_taken", "email_taken", "body_too_large",
	"unsupported_media_type", "invalid_field", "too_many_attempts", "internal", "store_unavailable", "busy", "user_limit", "disk_full",
	"when_missing", "when_unknown", "csrf_mismatch",
}

// entry is what "errors" says of some errors. What it leaves out, a less special entry may say.
type entry struct {
	op, pattern  string // op "": of all operations; pattern: a code, its beginning and *, or *
	status       int
	name, detail string
	headers      []header
	body         template
}

func (e *entry) fits(op, code string) bool {
	return (e.op == "" || e.op == op) && matches(e.pattern, code)
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
		if e.op, e.pattern = op, pattern; hasOp && !slices.ContainsFunc(d.operations, func(o *operation) bool { return o.op == op }) {
			at.fault("begins with an operation that \"operations\" does not have")
		}
		if !slices.ContainsFunc(Codes, func(code string) bool { return matches(pattern, code) }) {
			at.fault("names no error: CODE, BEGINNING* or *, with OPERATION: before it for those of one operation; codes are " + strings.Join(Codes, ", "))
		}
		if scoped[op] == nil {
			scoped[op] = t.in(d.scopeOfErrors(op))
		}
		at.parseEntry(e, scoped[op])
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return rank(b) - rank(a) })
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
		e.name = at.text()
	}
	if at, ok := n.member(o, "detail"); ok {
		e.detail = at.text()
	}
	if at, ok := n.member(o, "headers"); ok {
		e.headers = parseHeaders(at, t)
	}
	if at, ok := n.member(o, "body"); ok {
		e.body, _ = t.compile(at.path, at.value)
	}
}

// writeError answers with an error of the hub, as the description has it, and as the hub does where that says nothing.
func (d *Dialect) writeError(w http.ResponseWriter, c *Call, given *recorder, v values) {
	var p reply.Error
	json.Unmarshal(given.body, &p) // the hub has written it
	c.Result.Code = p.Code
	merged := entry{status: given.status, name: p.Code, detail: p.Detail}
	var fields []header
	for _, e := range slices.Backward(d.errors) { // the most special one last, so that it counts
		if !e.fits(c.op(), p.Code) {
			continue
		}
		merged.overlay(e)
		fields = append(fields, e.headers...)
	}
	c.errorValues(v, &p, &merged, given.header.Get("Retry-After"))
	given.copyHeader(w)
	setHeaders(w.Header(), fields, v)
	body := given.body
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

// errorValues adds what the bodies of errors may name. Fields are called as the client calls them.
func (c *Call) errorValues(v values, p *reply.Error, e *entry, retryAfter string) {
	v["name"], v["code"], v["detail"], v["title"] = e.name, p.Code, e.detail, http.StatusText(e.status)
	v["status"] = json.Number(strconv.Itoa(e.status))
	if seconds, err := strconv.Atoi(retryAfter); err == nil {
		v["retry_after"] = json.Number(strconv.Itoa(seconds))
	}
	if len(p.Fields) == 0 {
		return
	}
	byField := make(map[string][]string)
	for i := range p.Fields {
		field := &p.Fields[i].Field
		if from := c.from[*field]; len(from.path) > 0 {
			*field = strings.Join(from.path, ".")
		}
		byField[*field] = append(byField[*field], p.Fields[i].Detail)
	}
	v["errors"], v["fields"] = json.RawMessage(encode(p.Fields)), json.RawMessage(encode(byField))
}

// recorder is a ResponseWriter that keeps an answer. What the hub notes for its log goes to the client's own writer.
type recorder struct {
	client http.ResponseWriter
	header http.Header
	status int
	body   []byte
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) Unwrap() http.ResponseWriter { return a.client }

func (a *recorder) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

func (a *recorder) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, b...)
	return len(b), nil
}

// copyHeader copies the header of the hub's answer, but for the length of its body.
func (a *recorder) copyHeader(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Del("Content-Length")
}

// write returns what a template says; null if that is nothing.
func write(t template, v values) []byte {
	b, ok := t.write(nil, v)
	if !ok {
		b = []byte("null")
	}
	return append(b, '\n')
}

// writeBody answers with a complete body.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	if status == http.StatusNoContent {
		w.Header().Del("Content-Type")
		w.WriteHeader(status)
		return
	}
	reply.WriteBody(w, status, body)
}
