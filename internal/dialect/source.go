// Sources: where a value of a request comes from.

package dialect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"authhub/internal/request"
)

// sources are the places where one value may stand, in the order in which they are looked at.
type sources struct {
	places []place
	unit   float64 // seconds that a number there stands for; 0 for a value that is no time
}

// place is where a value may stand: body.user.name, query.grant_type, header.X-Key, cookie.sid, path.tenant,
// authorization.Bearer, basic.username.
type place struct {
	kind string
	path []string
}

// name returns what the client calls the value there.
func (p place) name() string {
	if p.kind == "authorization" {
		return "Authorization"
	}
	return strings.Join(p.path, ".")
}

// words tells where a value stands.
func (p place) words() string {
	switch name := p.name(); p.kind {
	case "query":
		return "the query parameter " + name
	case "path":
		return "the part " + name + " of the path"
	case "authorization":
		return "Authorization: " + p.path[0] + " TOKEN"
	case "basic":
		return "the " + name + " of HTTP Basic"
	case "body":
		return name + " in the body"
	default:
		return "the " + p.kind + " " + name
	}
}

// words tells where a value may stand.
func words(places []place) string {
	all := make([]string, len(places))
	for i, p := range places {
		all[i] = p.words()
	}
	return strings.Join(all, ", or ")
}

// unitName returns the unit of a time there.
func (s sources) unitName() string {
	for name, unit := range units {
		if unit == s.unit {
			return name
		}
	}
	return ""
}

// placeKinds are the kinds of places, with how many names each takes; 0 for any number.
var placeKinds = map[string]int{"body": 0, "query": 1, "header": 1, "cookie": 1, "path": 1, "authorization": 1, "basic": 1}

// units are the units of times, in seconds.
var units = map[string]float64{"minutes": 60, "seconds": 1, "milliseconds": 0.001}

// parseSources reads places with | between them and, of a time, " in UNIT" behind. What is wrong is reported as text.
func parseSources(text string, isTime bool) (sources, string) {
	var s sources
	text, unit, given := strings.Cut(text, " in ")
	if s.unit = units[unit]; given && (s.unit == 0 || !isTime) {
		return s, `may say "in minutes", "in seconds" or "in milliseconds" for expires_in and refresh_expires_in, and nothing for others`
	}
	if isTime && !given {
		s.unit = 1
	}
	for part := range strings.SplitSeq(text, "|") {
		p, fault := parsePlace(part)
		if fault != "" {
			return s, fault
		}
		s.places = append(s.places, p)
	}
	return s, ""
}

func parsePlace(text string) (place, string) {
	kind, rest, _ := strings.Cut(text, ".")
	names, known := placeKinds[kind]
	if !known || rest == "" {
		return place{}, "must be body.NAME, query.NAME, header.NAME, cookie.NAME, path.NAME, authorization.SCHEME or basic.username|basic.password, with | between several"
	}
	p := place{kind, []string{rest}}
	if names == 0 {
		p.path = strings.Split(rest, ".")
	}
	switch {
	case (kind == "header" || kind == "cookie" || kind == "authorization") && !isToken(rest):
		return p, "names a " + kind + " with characters that none can have"
	case kind == "basic" && rest != "username" && rest != "password":
		return p, "must be basic.username or basic.password"
	}
	return p, ""
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c < 0x7f && strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	})
}

// question is a request as sources read it.
type question struct {
	r      *http.Request
	params map[string]string // of the path
	query  url.Values
	body   map[string]any // JSON as encoding/json gives it, or the texts of a form
	raw    []byte
	parsed bool // body, or that it can't be read
}

// value returns the first value that is there: a string, json.Number, bool, map or slice. An empty string and null are
// not there. It also returns the place, whose kind is "" when no place has a value.
func (q *question) value(s sources) (any, place) {
	for _, p := range s.places {
		if v := q.at(p); v != nil && v != "" {
			return v, p
		}
	}
	return nil, place{}
}

func (q *question) at(p place) any {
	name := p.path[0]
	switch p.kind {
	case "query":
		return q.query.Get(name)
	case "header":
		return q.r.Header.Get(name)
	case "path":
		return q.params[name]
	case "cookie":
		if c, err := q.r.Cookie(name); err == nil {
			return c.Value
		}
	case "authorization":
		return q.credentials(name)
	case "basic":
		return q.basic(name)
	case "body":
		if !q.parsed { // no operation at the path takes values from it, but the answer repeats some
			q.parseBody()
		}
		if v, ok := q.body[strings.Join(p.path, ".")]; ok { // forms know no nesting
			return v
		}
		return descend(q.body, p.path)
	}
	return nil
}

// credentials returns what follows this scheme in the Authorization header (RFC 9110 section 11.4), without regard
// to the scheme's case.
func (q *question) credentials(scheme string) string {
	given, rest, _ := strings.Cut(q.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(given, scheme) {
		return ""
	}
	return strings.TrimLeft(rest, " ")
}

// basic returns a part of RFC 7617 credentials.
func (q *question) basic(part string) string {
	decoded, err := base64.StdEncoding.DecodeString(q.credentials("Basic"))
	if err != nil || !utf8.Valid(decoded) {
		return ""
	}
	username, password, _ := strings.Cut(string(decoded), ":")
	if part == "password" {
		return password
	}
	return username
}

// descend returns the member at path; a number names an element of an array.
func descend(members map[string]any, path []string) any {
	var value any = members
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// seconds returns value, which is in this unit, as a number of seconds. A value that is no number stays as it is: the
// hub refuses it and says why.
func seconds(value any, unit float64) any {
	text, _ := value.(string)
	if number, ok := value.(json.Number); ok {
		text = number.String()
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !json.Valid([]byte(text)) || math.IsInf(n*unit, 0) {
		return value
	}
	return n * unit
}

// readBody reads the body of a request once and keeps it.
func (q *question) readBody(w http.ResponseWriter) error {
	var err error
	if q.r.Body != nil {
		q.raw, err = io.ReadAll(http.MaxBytesReader(w, q.r.Body, request.MaxBody))
	}
	if err != nil {
		return request.BodyError(err)
	}
	return nil
}

// parseBody reads a form or JSON, as Content-Type says. JSON needs none, since many clients leave it out, may have a
// type of its own (application/vnd.api+json, application/x-amz-json-1.1), and may be called text/plain, which needs no
// preflight (Fetch Standard, CORS-safelisted request-header).
func (q *question) parseBody() error {
	q.parsed = true
	if len(q.raw) == 0 {
		return nil
	}
	copied := *q.r
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(q.raw)), int64(len(q.raw))
	mediaType, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	if mediaType == "" || mediaType == "text/plain" || strings.Contains(mediaType, "json") {
		copied.Header = copied.Header.Clone()
		copied.Header.Set("Content-Type", "application/json")
	}
	form, err := request.ReadForm(nil, &copied, true)
	if err == nil {
		q.body = form.Members
	}
	return err
}
