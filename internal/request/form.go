// form.go owns what a body said, and the faults found in it.

package request

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"authhub/internal/reply"
)

// Form is what a body said: members by name, from JSON or from a form, and the faults found on reading them.
type Form struct {
	Members map[string]any // a JSON value, or a string from a form
	Faults  []reply.FieldError
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

// Fault records what is wrong with a field; the first finding counts. Copied into each of 54 callers, it and
// the dialects' parser.fault were 41 kB of the binary.
//
//go:noinline
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
