// Package strict reads bodies and queries of the lab and refuses unknown members; a member that is null counts as
// absent.
package strict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/phase2"
	"authhub/internal/request"
)

// Form is what a lab request says: members by name, and the faults found on reading them.
type Form struct{ request.Form }

// New returns a form with these members.
func New(members map[string]any) *Form { return &Form{request.Form{Members: members}} }

// Read reads a JSON body that may have these members and no others. What is wrong with it is noted as a fault:
// after it has read the members the caller asks for Err.
func Read(w http.ResponseWriter, r *http.Request, mayBeEmpty bool, names ...string) (*Form, error) {
	body, err := request.ReadJSON(w, r, mayBeEmpty)
	if err != nil {
		return nil, err
	}
	in := &Form{*body}
	in.Only(names...)
	return in, nil
}

// ReadQuery reads the query like a body. The members named in numbers are numbers, the others text.
func ReadQuery(r *http.Request, numbers []string, names ...string) (*Form, error) {
	query, err := request.Query(r)
	if err != nil {
		return nil, err
	}
	in := New(make(map[string]any))
	for name, values := range query {
		in.Members[name] = values[0]
		if slices.Contains(numbers, name) {
			in.Members[name] = json.Number(values[0])
		}
		if len(values) > 1 {
			in.Fault(name, "is given more than once")
		}
	}
	in.Only(names...)
	return in, nil
}

// RefuseMembers returns an error for a body that has any, where none is taken.
func RefuseMembers(w http.ResponseWriter, r *http.Request) error {
	in, err := Read(w, r, true)
	if err != nil {
		return err
	}
	return in.Err()
}

// RefuseQuery returns a 422 for a query, where none is taken.
func RefuseQuery(r *http.Request) error {
	in, err := ReadQuery(r, nil)
	if err != nil {
		return err
	}
	return in.Err()
}

// Only notes a fault for each member of another name.
func (f *Form) Only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.Members)) {
		if !slices.Contains(names, name) {
			f.Fault(name, "is not a known member; there are "+cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
}

// Adopt takes over the faults of a part of the body.
func (f *Form) Adopt(part string, inner *Form) {
	for _, fault := range inner.Faults {
		f.Fault(part+"."+fault.Field, fault.Detail)
	}
}

// Has reports whether a member is there and not null.
func (f *Form) Has(name string) bool { return f.Members[name] != nil }

// OneOf returns a member that must be one of these; absent is the first.
func (f *Form) OneOf(name string, choices ...string) string {
	if !f.Has(name) {
		return choices[0]
	}
	given, ok := f.Members[name].(string)
	if !ok || !slices.Contains(choices, given) {
		f.Fault(name, "must be one of "+strings.Join(choices, ", "))
		return choices[0]
	}
	return given
}

// Truth returns a member that must be true or false.
func (f *Form) Truth(name string, absent bool) bool {
	if !f.Has(name) {
		return absent
	}
	value, ok := f.Members[name].(bool)
	if !ok {
		f.Fault(name, "must be true or false")
	}
	return value
}

// Whole returns a member that must be a whole number from least to most.
func (f *Form) Whole(name string, least, most, absent int) int {
	if !f.Has(name) {
		return absent
	}
	literal, _ := f.Members[name].(json.Number)
	n, err := strconv.Atoi(literal.String())
	if err != nil || n < least || n > most {
		f.Fault(name, fmt.Sprintf("must be a whole number from %d to %d", least, most))
		return absent
	}
	return n
}

// Span returns a member that must be a duration, not zero and from least to most. Absent is 0.
func (f *Form) Span(name string, least, most time.Duration) time.Duration {
	if !f.Has(name) {
		return 0
	}
	given, _ := f.Members[name].(string)
	d, err := time.ParseDuration(given)
	switch {
	case err != nil || d == 0:
		f.Fault(name, `must be a duration, and not zero, such as "16m", "168h" or "250ms"`)
		return 0
	case d < least || d > most:
		f.Fault(name, fmt.Sprintf("must be from %s to %s", Spell(least), Spell(most)))
		return 0
	}
	return d
}

// Moment returns a member that must be a time. Absent is the zero time.
func (f *Form) Moment(name string) time.Time {
	if !f.Has(name) {
		return time.Time{}
	}
	given, _ := f.Members[name].(string)
	t, err := time.Parse(time.RFC3339, given)
	if err != nil {
		f.Fault(name, `must be a time such as "2026-01-01T00:00:00Z"`)
	}
	return t
}

// Object returns a member that must be an object. Absent is nil.
func (f *Form) Object(name string) map[string]any {
	if !f.Has(name) {
		return nil
	}
	members, ok := f.Members[name].(map[string]any)
	if !ok {
		f.Fault(name, "must be an object")
	}
	return members
}

// Spell writes a duration as span reads it.
func Spell(d time.Duration) string { return string(phase2.AppendDuration(nil, d)) }

// Quote writes a JSON value without the escapes that only HTML needs.
func Quote(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.Encode(v) // it has come as JSON
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
