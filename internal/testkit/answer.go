// What an answer of a hub must be.

package testkit

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Want fails the test unless an answer with this status, header and body has the status wanted and, where one is given,
// this problem code in the shape of RFC 9457.
func Want(t testing.TB, status int, header http.Header, body []byte, wanted int, code ...string) {
	t.Helper()
	if status != wanted {
		t.Fatalf("status %d, want %d: %s", status, wanted, body)
	}
	if len(code) == 0 {
		return
	}
	if got := JSON(t, body)["code"]; got != code[0] {
		t.Fatalf("code %v, want %q: %s", got, code[0], body)
	}
	if got := header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q of a problem", got)
	}
	if status == http.StatusUnauthorized && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer ") {
		t.Errorf("WWW-Authenticate %q", header.Get("WWW-Authenticate"))
	}
}

// JSON returns the members of a JSON object.
func JSON(t testing.TB, body []byte) (members map[string]any) {
	t.Helper()
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return members
}
