// Package reply writes answers and errors (RFC 9457).
package reply

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an error with its place in the contract, and the body of the answer to it (RFC 9457 section 3.1; code,
// errors and hint are extension members).
type Error struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Code   string       `json:"code"`   // stable, for programs
	Detail string       `json:"detail"` // for people: what was wrong and what to do
	Fields []FieldError `json:"errors,omitempty"`
	Hint   string       `json:"hint,omitempty"` // as in the listing
	Header http.Header  `json:"-"`              // further header fields of the answer, for example Retry-After
}

// FieldError says what is wrong with one member of a body or one parameter of a query.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Fail returns the error of this status. A 401 gets the challenge of RFC 6750 section 3.
func Fail(status int, code, detail string) *Error {
	e := &Error{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
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

// Invalid returns the 422 for well-formed input whose member or parameter of this name is wrong.
func Invalid(field, detail string) *Error {
	e := Fail(http.StatusUnprocessableEntity, "invalid_field", field+": "+detail)
	e.Fields = []FieldError{{field, detail}}
	return e
}

// RetryAfter returns an error for a client that should come again after d, which is rounded up to whole seconds.
func RetryAfter(status int, code, detail string, d time.Duration) *Error {
	e := Fail(status, code, detail)
	e.Header = http.Header{"Retry-After": {strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))}}
	return e
}

// As returns the *Error that err is or wraps. Any other error is a defect of the hub: a 500 with a fixed text,
// whose cause belongs in the log.
func As(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return Fail(http.StatusInternalServerError, "internal", "Something went wrong inside the hub. Its log says what.")
}

// Write answers with As(err).
func Write(w http.ResponseWriter, err error) {
	e := As(err)
	header := w.Header()
	for name, values := range e.Header {
		header[name] = values
	}
	if e.Code == "busy" && header["Retry-After"] == nil {
		header["Retry-After"] = []string{"1"}
	}
	header["Content-Type"] = problemType
	Note(w, "code", e.Code)
	body, _ := json.Marshal(e) // strings and numbers: it can't fail
	WriteBody(w, e.Status, append(body, '\n'))
}

// Note tells the log why a request was refused: the first value of a name counts. It finds the log's line at the
// bottom of the ResponseWriters that stand one upon the other.
func Note(w http.ResponseWriter, name, value string) {
	for {
		switch at := w.(type) {
		case interface{ Note(name, value string) }:
			at.Note(name, value)
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = at.Unwrap()
		default:
			return
		}
	}
}

var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
)

// WriteJSON answers with v. It is marshalled before the first byte goes out.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	WriteBody(w, status, append(body, '\n'))
	return nil
}

// WriteBody answers with a complete body. It is JSON, and no cache may store it, unless the header says otherwise.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
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

// FormatTime writes ISO 8601 in UTC with exactly three decimals.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
