// What a hub answers, and what it must be.

package testkit

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Answer is an answer of a hub, its body read.
type Answer struct {
	T      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Want fails the test unless the answer has this status and, where one is given, this problem code in the shape of
// RFC 9457.
func (a *Answer) Want(status int, code ...string) *Answer {
	a.T.Helper()
	if a.Status != status {
		a.T.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	if len(code) == 0 {
		return a
	}
	if got := a.Text("code"); got != code[0] {
		a.T.Fatalf("code %q, want %q: %s", got, code[0], a.Body)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		a.T.Errorf("Content-Type %q of a problem", got)
	}
	if got := a.Header.Get("WWW-Authenticate"); status == http.StatusUnauthorized && !strings.HasPrefix(got, "Bearer ") {
		a.T.Errorf("WWW-Authenticate %q", got)
	}
	return a
}

// WantField is Want for a 422 invalid_field with one fault, in this field.
func (a *Answer) WantField(field string) *Answer {
	a.T.Helper()
	faults := a.Want(http.StatusUnprocessableEntity, "invalid_field").List("errors")
	if len(faults) != 1 || faults[0]["field"] != field {
		a.T.Errorf("faults %v, want one in %s", faults, field)
	}
	return a
}

// WantBody fails the test unless the answer has this status and its body begins so.
func (a *Answer) WantBody(status int, begins string) {
	a.T.Helper()
	if a.Status != status || !strings.HasPrefix(string(a.Body), begins) {
		a.T.Errorf("%d %s, want %d %s", a.Status, a.Body, status, begins)
	}
}

// JSON returns the members of the body.
func (a *Answer) JSON() (members map[string]any) {
	a.T.Helper()
	if err := json.Unmarshal(a.Body, &members); err != nil {
		a.T.Fatalf("%v: %s", err, a.Body)
	}
	return members
}

// Text returns a member of the body that is a string, or "".
func (a *Answer) Text(member string) string {
	a.T.Helper()
	s, _ := a.JSON()[member].(string)
	return s
}

// List returns a member of the body that is a list of objects.
func (a *Answer) List(member string) (list []map[string]any) {
	a.T.Helper()
	items, ok := a.JSON()[member].([]any)
	if !ok {
		a.T.Fatalf("no list %s: %s", member, a.Body)
	}
	for _, item := range items {
		list = append(list, item.(map[string]any))
	}
	return list
}

// Pair is the two tokens that register, login and refresh give.
type Pair struct{ Access, Refresh string }

// Pair returns the tokens of the body.
func (a *Answer) Pair() Pair {
	a.T.Helper()
	return Pair{a.Text("access_token"), a.Text("refresh_token")}
}
