// Questions and answers in JSON: the reader and the writer of bodies, and the shape of errors (RFC 9457).

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Error is an error with its place in the contract, and the body of the answer to it (RFC 9457 section 3.1; code,
// errors and hint are extension members).
type httpError struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Code   string       `json:"code"`   // stable, for programs
	Detail string       `json:"detail"` // for people: what was wrong and what to do
	Fields []fieldError `json:"errors,omitempty"`
	Hint   string       `json:"hint,omitempty"` // as in the listing
	Header http.Header  `json:"-"`              // further header fields of the answer, for example Retry-After
}

// fieldError says what is wrong with one member of a body or one parameter of a query.
type fieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (e *httpError) Error() string { return e.Code + ": " + e.Detail }

// fail returns the error of this status. A 401 gets the challenge of RFC 6750 section 3.
func fail(status int, code, detail string) *httpError {
	e := &httpError{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
	if e.Title == "" {
		e.Title = strconv.Itoa(status)
	}
	if status == http.StatusUnauthorized {
		e.Header = http.Header{"Www-Authenticate": {challenge(code, detail)}}
	}
	return e
}

// challenge returns the value of WWW-Authenticate. Where no token came it has no error code (RFC 6750 section 3.1).
func challenge(code, detail string) string {
	const realm = `Bearer realm="authhub"`
	if !strings.HasPrefix(code, "token_") || code == "token_missing" {
		return realm
	}
	return realm + `, error="invalid_token", error_description="` + detail + `"`
}

// invalid returns the 422 for well-formed input whose member or parameter of this name is wrong.
func invalid(field, detail string) *httpError {
	return invalidFields([]fieldError{{field, detail}})
}

func invalidFields(faults []fieldError) *httpError {
	e := fail(http.StatusUnprocessableEntity, "invalid_field", faults[0].Field+": "+faults[0].Detail)
	e.Fields = faults
	return e
}

// retryAfter returns an error for a client that should come again after d, which is rounded up to whole seconds.
func retryAfter(status int, code, detail string, d time.Duration) *httpError {
	e := fail(status, code, detail)
	e.Header = http.Header{"Retry-After": {strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))}}
	return e
}

// asError returns the *Error that err is or wraps. Any other error is a defect of the hub: a 500 with a fixed text,
// whose cause belongs in the log.
func asError(err error) *httpError {
	var known *httpError
	if errors.As(err, &known) {
		return known
	}
	return fail(http.StatusInternalServerError, "internal", "Something went wrong inside the hub. Its log says what.")
}

// writeError answers with asError(err).
func writeError(w http.ResponseWriter, err error) {
	e := asError(err)
	header := w.Header()
	for name, values := range e.Header {
		header[name] = values
	}
	if e.Code == "busy" && header["Retry-After"] == nil {
		header["Retry-After"] = []string{"1"}
	}
	header["Content-Type"] = problemType
	body, _ := json.Marshal(e) // strings and numbers: it can't fail
	writeBody(w, e.Status, append(body, '\n'))
}

var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
)

// writeJSON answers with v. It is marshalled before the first byte goes out.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	writeBody(w, status, append(body, '\n'))
	return nil
}

// writeBody answers with a complete body. It is JSON, and no cache may store it, unless the header says otherwise.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	if header["Content-Type"] == nil {
		header["Content-Type"] = jsonType
	}
	if header["Cache-Control"] == nil {
		header["Cache-Control"] = noStore
	}
	if len(body) > countedBody {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(status)
	w.Write(body) // if the client has gone, there is nobody to tell
}

// countedBody is the longest body that net/http counts by itself. Left to it, Content-Length costs nothing; as a ninth
// field it makes the header map grow, 760 bytes and five allocations where GET me has 620 and five without.
const countedBody = 2048

const maxBody = 64 << 10 // bytes of a JSON or form body

// form is what a body said: members by name, from JSON or from a form, and the faults found on reading them.
type form struct {
	Members map[string]any // a JSON value, or a string from a form
	Faults  []fieldError
}

// readForm reads the body of r: JSON or application/x-www-form-urlencoded, at most 64 KiB, in UTF-8.
// An absent body is an empty form where that is allowed. The query is never looked at: what a client puts there
// ends in logs and histories.
func readForm(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*form, error) {
	body, err := readBody(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	if mayBeEmpty && len(body) == 0 {
		return &form{}, nil
	}
	if err := checkCoding(r); err != nil {
		return nil, err
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && mediaType == "application/json":
		members, err := parseObject(body)
		return &form{Members: members}, err
	case err == nil && mediaType == "application/x-www-form-urlencoded":
		members, err := parseURLEncoded(body)
		return &form{Members: members}, err
	}
	return nil, fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Send the body as application/json or application/x-www-form-urlencoded, and say so in Content-Type.")
}

// readJSON reads a JSON body of at most 64 KiB. It may leave out Content-Type but must not name another media type.
func readJSON(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*form, error) {
	body, err := readBody(w, r, maxBody)
	if err != nil || mayBeEmpty && len(body) == 0 {
		return &form{}, err
	}
	if err := checkJSON(r); err != nil {
		return nil, err
	}
	members, err := parseObject(body)
	return &form{Members: members}, err
}

// checkCoding refuses a body in a content coding such as gzip (RFC 9110 section 15.5.16): the hub takes bodies as they are.
func checkCoding(r *http.Request) error {
	coding := r.Header.Get("Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") {
		return nil
	}
	e := fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as it is, without Content-Encoding.")
	e.Header = http.Header{"Accept-Encoding": {"identity"}}
	return e
}

// checkJSON returns a 415 if the body says that it is something else than JSON, or JSON in a content coding.
func checkJSON(r *http.Request) error {
	if err := checkCoding(r); err != nil || r.Header["Content-Type"] == nil {
		return err
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as application/json, and say so in Content-Type.")
	}
	return nil
}

// readBody returns the whole body, or the answer to one that is too large, too slow or cut short.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead) // ReadFrom wants that much room to find the end
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		return nil, bodyError(err)
	}
	return body.Bytes(), nil
}

// bodyError is the answer to a body that could not be read to its end: the client's doing, one way or another.
func bodyError(err error) error {
	var tooMuch *http.MaxBytesError
	if errors.As(err, &tooMuch) {
		return tooLarge(tooMuch.Limit)
	}
	return malformed("The body could not be read to its end.")
}

func tooLarge(limit int64) *httpError {
	return fail(http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than "+strconv.FormatInt(limit, 10)+" bytes.")
}

func malformed(detail string) *httpError {
	return fail(http.StatusBadRequest, "malformed_body", detail)
}

// parseObject reads exactly one JSON object (RFC 8259). Numbers stay as they were written.
func parseObject(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, malformed("The body is not valid UTF-8.")
	}
	if members, ok := parseStrings(string(body)); ok {
		return members, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil || members == nil {
		return nil, malformed("The body is not a JSON object.")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, malformed("Something follows the JSON object.")
	}
	return members, nil
}

// parseQuery returns the parameters of r's query. One that can't be read whole is refused, not read in part.
func parseQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("query", "must be name=value pairs with & between them, percent-encoded")
	}
	return query, nil
}

// parseStrings reads the object that nearly every client sends, of nothing but strings without escapes, in a fifth of
// the time of encoding/json. It takes valid UTF-8, and reports false for any other body.
func parseStrings(body string) (map[string]any, bool) {
	s := cutter{rest: body}
	members := make(map[string]any)
	s.cut("{")
	for more := true; more; s.rest, more = strings.CutPrefix(s.rest, ",") {
		name := s.cutString()
		s.cut(":")
		members[name] = s.cutString()
	}
	s.cut("}")
	return members, !s.bad && s.rest == ""
}

// cutter cuts an object into its parts; bad is set at the first part that is not the one asked for.
type cutter struct {
	rest string
	bad  bool
}

// space passes over what may stand between the tokens of JSON (RFC 8259 section 2).
func (s *cutter) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

// cut cuts one token and the space around it.
func (s *cutter) cut(token string) {
	s.space()
	rest, ok := strings.CutPrefix(s.rest, token)
	s.rest, s.bad = rest, s.bad || !ok
	s.space()
}

// cutString cuts a string without escapes and control characters (RFC 8259 section 7), and the space around it.
func (s *cutter) cutString() string {
	s.space()
	opened, ok := strings.CutPrefix(s.rest, `"`)
	text, rest, closed := strings.Cut(opened, `"`)
	s.rest, s.bad = rest, s.bad || !ok || !closed || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '\\' })
	s.space()
	return text
}

// parseURLEncoded reads a form body. Of a name that comes twice the first value counts.
func parseURLEncoded(body []byte) (map[string]any, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, malformed("The body is not a well-formed form.")
	}
	members := make(map[string]any, len(values))
	for name, v := range values {
		if !utf8.ValidString(v[0]) {
			return nil, malformed("The body is not valid UTF-8.")
		}
		members[name] = v[0]
	}
	return members, nil
}

// fault records what is wrong with a field; the first finding counts.
func (f *form) fault(field, detail string) {
	if slices.ContainsFunc(f.Faults, func(e fieldError) bool { return e.Field == field }) {
		return
	}
	f.Faults = append(f.Faults, fieldError{field, detail})
}

// text returns a member that must be a string; absent and null are "".
func (f *form) text(name string) string {
	switch v := f.Members[name].(type) {
	case nil:
	case string:
		return v
	default:
		f.fault(name, "must be a string")
	}
	return ""
}

// lifetime returns a member in seconds, fractions allowed, as whole milliseconds (rounded up): above 0 and at
// most limit. Absent and null are limit itself.
func (f *form) lifetime(name string, limit time.Duration) time.Duration {
	var literal string
	switch v := f.Members[name].(type) {
	case nil:
		return limit
	case json.Number:
		literal = v.String()
	case string:
		literal = v
	}
	seconds, err := strconv.ParseFloat(literal, 64)
	if err != nil || !json.Valid([]byte(literal)) || !(seconds > 0 && seconds <= limit.Seconds()) {
		f.fault(name, "must be a number of seconds above 0 and at most "+strconv.FormatFloat(limit.Seconds(), 'f', -1, 64))
		return limit
	}
	return time.Duration(math.Ceil(seconds*1000)) * time.Millisecond
}

// err returns the 422 for the faults found so far, or nil.
func (f *form) err() error {
	if len(f.Faults) == 0 {
		return nil
	}
	return invalidFields(f.Faults)
}

var (
	tokenMissing   = fail(http.StatusUnauthorized, "token_missing", "This operation needs a token: Authorization: Bearer TOKEN.")
	tokenAmbiguous = fail(http.StatusUnauthorized, "token_malformed", "The request has more than one Authorization header, and only one can be meant.")
)

// bearer returns the token of the Authorization header (RFC 6750 section 2.1; the scheme in any case, RFC 9110
// section 11.1). The other places of RFC 6750, form and address, are not looked at.
func bearer(r *http.Request) (string, error) {
	given := r.Header["Authorization"]
	if len(given) == 0 {
		return "", tokenMissing
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", tokenMissing
	}
	if len(given) > 1 {
		return "", tokenAmbiguous
	}
	if token = strings.TrimLeft(token, " "); token == "" {
		return "", tokenMissing
	}
	return token, nil
}
