// Package request reads what requests bring: bodies of JSON and forms, queries, and bearer tokens.
package request

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
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"authhub/internal/reply"
)

const MaxBody = 64 << 10 // bytes of a JSON or form body

// Form is what a body said: members by name, from JSON or from a form, and the faults found on reading them.
type Form struct {
	Members map[string]any // a JSON value, or a string from a form
	Faults  []reply.FieldError
}

// ReadForm reads the body of r: JSON or application/x-www-form-urlencoded, at most 64 KiB, in UTF-8.
// An absent body is an empty form where that is allowed. The query is never looked at: what a client puts there
// ends in logs and histories.
func ReadForm(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*Form, error) {
	body, err := readBody(w, r, MaxBody)
	if err != nil {
		return nil, err
	}
	if mayBeEmpty && len(body) == 0 {
		return &Form{}, nil
	}
	if err := CheckCoding(r); err != nil {
		return nil, err
	}
	mediaType, err := mediaTypeOf(r)
	switch {
	case err == nil && mediaType == "application/json":
		members, err := parseObject(body)
		return &Form{Members: members}, err
	case err == nil && mediaType == "application/x-www-form-urlencoded":
		members, err := parseURLEncoded(body)
		return &Form{Members: members}, err
	}
	return nil, reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Send the body as application/json or application/x-www-form-urlencoded, and say so in Content-Type.")
}

// ReadJSON reads a JSON body of at most 64 KiB. It may leave out Content-Type but must not name another media type.
func ReadJSON(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*Form, error) {
	body, err := ReadRawJSON(w, r, MaxBody)
	if err != nil || mayBeEmpty && len(body) == 0 {
		return &Form{}, err
	}
	members, err := parseObject(body)
	return &Form{Members: members}, err
}

// CheckCoding refuses a body in a content coding such as gzip (RFC 9110 section 15.5.16): the hub takes bodies as they
// are.
func CheckCoding(r *http.Request) error {
	coding := r.Header.Get("Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") {
		return nil
	}
	e := reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as it is, without Content-Encoding.")
	e.Header = http.Header{"Accept-Encoding": {"identity"}}
	return e
}

// ReadRawJSON reads a body that says that it is JSON, or does not say what it is. An empty body may say anything.
func ReadRawJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := readBody(w, r, limit)
	if err == nil && len(body) > 0 {
		err = checkJSON(r)
	}
	if err == nil {
		err = checkText(body)
	}
	return body, err
}

// checkJSON returns a 415 if the body says that it is something else than JSON, or JSON in a content coding.
func checkJSON(r *http.Request) error {
	if err := CheckCoding(r); err != nil || r.Header["Content-Type"] == nil {
		return err
	}
	if mediaType, err := mediaTypeOf(r); err != nil || mediaType != "application/json" {
		return reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as application/json, and say so in Content-Type.")
	}
	return nil
}

// mediaTypeOf returns what Content-Type says, without parameters. Nearly every client has none.
func mediaTypeOf(r *http.Request) (string, error) {
	given := r.Header.Get("Content-Type")
	if given == "application/json" {
		return given, nil
	}
	mediaType, _, err := mime.ParseMediaType(given)
	return mediaType, err
}

// readBody returns the whole body, or the answer to one that is too large, too slow or cut short.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var body []byte
	var err error
	if r.ContentLength < 0 { // not told
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	} else {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	}
	if err != nil {
		return nil, BodyError(err)
	}
	return body, nil
}

// BodyError is the answer to a body that could not be read to its end: the client's doing, one way or another.
func BodyError(err error) error {
	var tooMuch *http.MaxBytesError
	if errors.As(err, &tooMuch) {
		return tooLarge(tooMuch.Limit)
	}
	return malformed("The body ended too early.")
}

func tooLarge(limit int64) *reply.Error {
	return reply.Fail(http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than "+strconv.FormatInt(limit, 10)+" bytes. Send a smaller one.")
}

func malformed(detail string) *reply.Error {
	return reply.Fail(http.StatusBadRequest, "malformed_body", detail)
}

// parseObject reads exactly one JSON object (RFC 8259). Numbers stay as they were written.
func parseObject(body []byte) (map[string]any, error) {
	if err := checkText(body); err != nil {
		return nil, err
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

// checkText refuses JSON that is not text: bytes that are not UTF-8, and escapes of half a surrogate pair, which
// encoding/json would all read as U+FFFD, so that two different passwords become equal (RFC 8259 section 8.2).
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return malformed("The body is not valid UTF-8.")
	}
	for rest := body; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 == len(rest) {
			return nil
		}
		rest = rest[i:]
		if first := escapedUnit(rest); !utf16.IsSurrogate(first) {
			rest = rest[2:]
		} else if utf16.DecodeRune(first, escapedUnit(rest[6:])) != unicode.ReplacementChar {
			rest = rest[12:]
		} else {
			return malformed(`The body has half a surrogate pair (\ud800 to \udfff), which stands for no character.`)
		}
	}
}

// escapedUnit returns the code unit of the \uXXXX that text begins with, or -1.
func escapedUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// Query returns the parameters of r's query. One that can't be read whole is refused, not read in part.
func Query(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, reply.Invalid("query", "must be name=value pairs with & between them, percent-encoded")
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

// space passes over what may stand between the tokens of JSON (RFC 8259 section 2), which mostly is nothing.
func (s *cutter) space() {
	if s.rest != "" && s.rest[0] <= ' ' {
		s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	}
}

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
	s.rest, s.bad = rest, s.bad || !ok || !closed || needsEscape(text)
	s.space()
	return text
}

// needsEscape reports whether valid UTF-8 has an escape or what has to be one. It looks at bytes, since a token is
// long.
func needsEscape(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] == '\\' {
			return true
		}
	}
	return false
}

// parseURLEncoded reads a form body. Of a name that comes twice the first value counts.
func parseURLEncoded(body []byte) (map[string]any, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, malformed("The body is not valid application/x-www-form-urlencoded.")
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

// Fault records what is wrong with a field; the first finding counts.
func (f *Form) Fault(field, detail string) {
	if slices.ContainsFunc(f.Faults, func(e reply.FieldError) bool { return e.Field == field }) {
		return
	}
	f.Faults = append(f.Faults, reply.FieldError{Field: field, Detail: detail})
}

// Text returns a member that must be a string; absent and null are "".
func (f *Form) Text(name string) string {
	switch v := f.Members[name].(type) {
	case nil:
	case string:
		return v
	default:
		f.Fault(name, "must be a string")
	}
	return ""
}

// Lifetime returns a member in seconds, fractions allowed, as whole milliseconds (rounded up): above 0 and at
// most limit. Absent and null are limit itself.
func (f *Form) Lifetime(name string, limit time.Duration) time.Duration {
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
		f.Fault(name, "must be a number of seconds above 0 and at most "+strconv.FormatFloat(limit.Seconds(), 'f', -1, 64))
		return limit
	}
	return time.Duration(math.Ceil(seconds*1000)) * time.Millisecond
}

// Err returns the 422 for the faults found so far, or nil.
func (f *Form) Err() error {
	if len(f.Faults) == 0 {
		return nil
	}
	e := reply.Invalid(f.Faults[0].Field, f.Faults[0].Detail)
	e.Fields = f.Faults
	return e
}

var (
	tokenMissing   = reply.Fail(http.StatusUnauthorized, "token_missing", "This operation needs a token: Authorization: Bearer TOKEN.")
	tokenAmbiguous = reply.Fail(http.StatusUnauthorized, "token_malformed", "The request has more than one Authorization header. Send one.")
)

// Bearer returns the token of the Authorization header (RFC 6750 section 2.1; the scheme in any case, RFC 9110
// section 11.1). The other places of RFC 6750, form and address, are not looked at.
func Bearer(r *http.Request) (string, error) {
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
