// Answers: their headers, and what the hub has answered.

package dialect

import (
	"maps"
	"net/http"
	"slices"
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
		case canonical == "Set-Cookie":
			at.fault("is set by \"cookies\"")
			continue
		case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Access-Control-"):
			at.fault("is set by the hub itself")
			continue
		}
		all = append(all, header{canonical, at.headerText(t)})
	}
	return all
}

// headerText returns a text that fits into one line; nil for null. The text "$name" is a value as in "out".
func (n node) headerText(t *templates) text {
	if n.value == nil {
		return nil
	}
	s, ok := n.value.(string)
	if !ok || strings.ContainsFunc(s, isControl) {
		n.fault("must be a text of one line, or null to leave the header out")
		return nil
	}
	rest, isTemplate := strings.CutPrefix(s, "@")
	if isTemplate && !strings.HasPrefix(rest, "@") {
		n.fault(`can't be a template: a header is one text (write "@@" for one that begins with @)`)
		return nil
	}
	if isTemplate {
		s = rest
	}
	if name, ok := valueName(s); ok {
		value := t.names(n.path, name)
		t.limit(n.path, value.size())
		return text{{value: value}}
	}
	compiled, _ := t.text(n.path, s)
	return compiled
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
