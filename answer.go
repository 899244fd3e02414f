// Answers and questions in JSON: the one writer, the one reader, and the error shape (RFC 9457).
//
// Everything below the handlers speaks in errors; this file alone turns them into statuses.

package main

import (
	"bytes"
	"context"
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

// httpError is an error with its place in the contract: what a client gets to see.
type httpError struct {
	Status int
	Code   string // stable, for programs
	Detail string // for people: what was wrong and what to do
	Fields []fieldError
	Hint   string      // what the listing says, too
	Header http.Header // further header fields of the answer, e.g. Retry-After
}

// fieldError says what is wrong with one member of a body or parameter of a query.
type fieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (e *httpError) Error() string { return e.Code + ": " + e.Detail }

// problem is the body of an error answer (RFC 9457 section 3.1; "code", "errors" and "hint" are extension members).
type problem struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Code   string       `json:"code"`
	Detail string       `json:"detail"`
	Errors []fieldError `json:"errors,omitempty"`
	Hint   string       `json:"hint,omitempty"`
}

func (e *httpError) problem() *problem {
	title := http.StatusText(e.Status)
	if title == "" {
		title = strconv.Itoa(e.Status)
	}
	return &problem{title, e.Status, e.Code, e.Detail, e.Fields, e.Hint}
}

func fail(status int, code, detail string) *httpError {
	return &httpError{Status: status, Code: code, Detail: detail}
}

// invalid is the answer to well-formed input with faults in it. There is at least one.
func invalid(faults ...fieldError) *httpError {
	return &httpError{Status: 422, Code: "invalid_field", Detail: faults[0].Field + ": " + faults[0].Detail, Fields: faults}
}

// taken is the answer to a registration of what another account has.
func taken(field, detail string) *httpError {
	e := fail(http.StatusConflict, field+"_taken", detail)
	e.Fields = []fieldError{{field, detail}}
	return e
}

// retryAfter is the answer to a client that should come again; d is rounded up to whole seconds.
func retryAfter(status int, code, detail string, d time.Duration) *httpError {
	e := fail(status, code, detail)
	e.Header = http.Header{"Retry-After": {strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))}}
	return e
}

// unauthorized is a 401 with the challenge of RFC 6750 section 3.
func unauthorized(code, detail string) *httpError {
	e := fail(http.StatusUnauthorized, code, detail)
	challenge := `Bearer realm="authhub"`
	if strings.HasPrefix(code, "token_") && code != "token_missing" { // section 3.1: no error code where no token came
		challenge += `, error="invalid_token", error_description="` + detail + `"`
	}
	e.Header = http.Header{"Www-Authenticate": {challenge}}
	return e
}

// answerFor turns any error into what the client is told. An error that nothing here knows is the hub's own
// fault: a 500 with a fixed text, whose cause belongs in the log.
func answerFor(err error) *httpError {
	var known *httpError
	if errors.As(err, &known) {
		return known
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.answer
		}
	}
	return fail(http.StatusInternalServerError, "internal", "Something went wrong inside the hub. Its log says what.")
}

// sentinels are the errors of the rooms below, with their places in the contract.
var sentinels = []struct {
	err    error
	answer *httpError // shared, so never written to
}{
	{errTokenMissing, unauthorized("token_missing", "This operation needs a token: Authorization: Bearer TOKEN.")},
	{errTokenMalformed, unauthorized("token_malformed", "The token is not one that this hub issued: its form or its signature is wrong.")},
	{errTokenNotYet, unauthorized("token_malformed", "The token is not valid yet (its nbf is in the future).")},
	{errTokenExpired, unauthorized("token_expired", "The token has expired. Refresh, or log in again.")},
	{errTokenWrongType, unauthorized("token_wrong_type", "The token is of the wrong type for this operation (access or refresh).")},
	{errRevoked, unauthorized("token_revoked", "The session of this token has ended. Log in again.")},
	{errReused, unauthorized("token_reused", "This refresh token was spent before, so its session has been ended. Log in again.")},
	{errDisabled, fail(403, "account_disabled", "The account is disabled.")},
	{errUsernameTaken, taken("username", "The user name is taken. Choose another one.")},
	{errEmailTaken, taken("email", "The e-mail address belongs to another account.")},
	{errUserLimit, fail(507, "user_limit", "The hub holds as many users as it can.")},
	{errDiskFull, fail(507, "disk_full", "The disk is full. Free some space; if the store has failed (see /healthz), restart the hub then.")},
	{errStoreFailed, fail(503, "store_unavailable", "The store could not write and takes no changes until the hub is restarted. Reading goes on.")},
	{errBusy, fail(503, "busy", "The hub has as much work waiting as it takes on. Try again.")},
	{errReplaced, fail(503, "busy", "The hub was reset, or a snapshot put back, while this request was under way. Nothing of it remains.")},
}

// writeError answers with the problem of e.
func writeError(w http.ResponseWriter, e *httpError) {
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	if e.Code == "busy" && e.Header.Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := json.Marshal(e.problem()) // strings and numbers: it can't fail
	writeBody(w, e.Status, problemType, append(body, '\n'))
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
	writeBody(w, status, jsonType, append(body, '\n'))
	return nil
}

// writeBody answers with body, which stands complete. What the hub says of users and sessions is nobody's to keep.
func writeBody(w http.ResponseWriter, status int, contentType []string, body []byte) {
	header := w.Header()
	header["Content-Type"] = contentType
	if header["Cache-Control"] == nil {
		header["Cache-Control"] = noStore
	}
	if len(body) > countedBody {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(status)
	w.Write(body) // a client that has gone is its own affair
}

// countedBody is the longest body that net/http counts by itself. Left to it, Content-Length costs nothing; as a ninth
// field it makes the header map grow, 760 bytes and five allocations where GET me has 620 and five without.
const countedBody = 2048

const maxBody = 64 << 10 // bytes of a JSON or form body

// form is what a body said: members by name, from JSON or from a form, and the faults found on reading them.
type form struct {
	members map[string]any // a JSON value, or a string from a form
	faults  []fieldError
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
		return &form{members: members}, err
	case err == nil && mediaType == "application/x-www-form-urlencoded":
		members, err := parseURLEncoded(body)
		return &form{members: members}, err
	}
	return nil, fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Send the body as application/json or application/x-www-form-urlencoded, and say so in Content-Type.")
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
		return nil, invalid(fieldError{"query", "must be name=value pairs with & between them, percent-encoded"})
	}
	return query, nil
}

// parseStrings reads the object that nearly every client sends, of nothing but strings without escapes, in a fifth of
// the time of encoding/json. Of any other body, valid UTF-8 as well, it reports false.
func parseStrings(body string) (map[string]any, bool) {
	s := scanner{rest: body}
	members := make(map[string]any)
	s.space()
	s.literal("{")
	for more := true; more; s.rest, more = strings.CutPrefix(s.rest, ",") {
		s.space()
		name := s.plainString()
		s.space()
		s.literal(":")
		s.space()
		members[name] = s.plainString()
		s.space()
	}
	s.literal("}")
	s.space()
	return members, !s.bad && s.rest == ""
}

// space passes over what may stand between the tokens of JSON (RFC 8259 section 2).
func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

// plainString cuts a string without escapes.
func (s *scanner) plainString() string {
	s.literal(`"`)
	text := s.text()
	s.bad = s.bad || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' }) // RFC 8259 section 7
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
	if slices.ContainsFunc(f.faults, func(e fieldError) bool { return e.Field == field }) {
		return
	}
	f.faults = append(f.faults, fieldError{field, detail})
}

// text returns a member that must be a string; absent and null are "".
func (f *form) text(name string) string {
	switch v := f.members[name].(type) {
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
	switch v := f.members[name].(type) {
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
	if len(f.faults) == 0 {
		return nil
	}
	return invalid(f.faults...)
}

// givenUp reports whether err only says that the request has been given up, by its client or by the lab.
func givenUp(r *http.Request, err error) bool {
	ended := r.Context().Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(r.Context())))
}
