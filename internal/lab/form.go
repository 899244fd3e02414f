// The lab's questions: JSON bodies and queries that are read strictly. A member that is null counts as absent.

package lab

import (
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
	"authhub/internal/reply"
)

// question is what a lab request says: members by name, and the faults found on reading them.
type question struct{ reply.Form }

// ask returns a question with these members.
func ask(members map[string]any) *question { return &question{reply.Form{Members: members}} }

// readStrict reads a JSON body that may have these members and no others. What is wrong with it is noted as a fault:
// after it has read the members the caller asks for Err.
func readStrict(w http.ResponseWriter, r *http.Request, mayBeEmpty bool, names ...string) (*question, error) {
	body, err := reply.ReadJSON(w, r, mayBeEmpty)
	if err != nil {
		return nil, err
	}
	in := &question{*body}
	in.only(names...)
	return in, nil
}

// readQuery reads the query like a body. The members named in numbers are numbers, the others text.
func readQuery(r *http.Request, numbers []string, names ...string) (*question, error) {
	query, err := reply.ParseQuery(r)
	if err != nil {
		return nil, err
	}
	in := ask(make(map[string]any))
	for name, values := range query {
		in.Members[name] = values[0]
		if slices.Contains(numbers, name) {
			in.Members[name] = json.Number(values[0])
		}
		if len(values) > 1 {
			in.Fault(name, "is given more than once")
		}
	}
	in.only(names...)
	return in, nil
}

// refuseMembers returns an error for a body that has any, where none is taken.
func refuseMembers(w http.ResponseWriter, r *http.Request) error {
	in, err := readStrict(w, r, true)
	if err != nil {
		return err
	}
	return in.Err()
}

// refuseQuery returns a 422 for a query, where none is taken.
func refuseQuery(r *http.Request) error {
	in, err := readQuery(r, nil)
	if err != nil {
		return err
	}
	return in.Err()
}

// only notes the members that are not of these names.
func (f *question) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.Members)) {
		if !slices.Contains(names, name) {
			f.Fault(name, "is unknown here; there are "+cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
}

// adopt takes over the faults of a part of the body.
func (f *question) adopt(part string, inner *question) {
	for _, fault := range inner.Faults {
		f.Fault(part+"."+fault.Field, fault.Detail)
	}
}

func (f *question) has(name string) bool { return f.Members[name] != nil }

// oneOf returns a member that must be one of these; absent is the first.
func (f *question) oneOf(name string, choices ...string) string {
	if !f.has(name) {
		return choices[0]
	}
	given, ok := f.Members[name].(string)
	if !ok || !slices.Contains(choices, given) {
		f.Fault(name, "must be one of "+strings.Join(choices, ", "))
		return choices[0]
	}
	return given
}

// truth returns a member that must be true or false.
func (f *question) truth(name string, absent bool) bool {
	if !f.has(name) {
		return absent
	}
	value, ok := f.Members[name].(bool)
	if !ok {
		f.Fault(name, "must be true or false")
	}
	return value
}

// whole returns a member that must be a whole number from least to most.
func (f *question) whole(name string, least, most, absent int) int {
	if !f.has(name) {
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

// span returns a member that must be a duration, not zero and from least to most. Absent is 0.
func (f *question) span(name string, least, most time.Duration) time.Duration {
	if !f.has(name) {
		return 0
	}
	given, _ := f.Members[name].(string)
	d, err := time.ParseDuration(given)
	switch {
	case err != nil || d == 0:
		f.Fault(name, `must be a duration, and not zero, such as "16m", "168h" or "250ms"`)
		return 0
	case d < least || d > most:
		f.Fault(name, fmt.Sprintf("must be from %s to %s", spell(least), spell(most)))
		return 0
	}
	return d
}

// moment returns a member that must be a time. Absent is the zero time.
func (f *question) moment(name string) time.Time {
	if !f.has(name) {
		return time.Time{}
	}
	given, _ := f.Members[name].(string)
	t, err := time.Parse(time.RFC3339, given)
	if err != nil {
		f.Fault(name, `must be a time such as "2026-01-01T00:00:00Z"`)
	}
	return t
}

// object returns a member that must be an object. Absent is nil.
func (f *question) object(name string) map[string]any {
	if !f.has(name) {
		return nil
	}
	members, ok := f.Members[name].(map[string]any)
	if !ok {
		f.Fault(name, "must be an object")
	}
	return members
}

// spell writes a duration as span reads it.
func spell(d time.Duration) string { return string(phase2.AppendDuration(nil, d)) }
