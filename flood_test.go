// Floods: more of everything than a hub takes. Memory and disk stay bounded, and who is refused is told why.

package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"authhub/internal/account"
)

// TestUserLimit fills a store to the last user and measures what they hold.
func TestUserLimit(t *testing.T) {
	h := newTestHub(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const maxUsers = 100_000
	hash := "$pbkdf2-sha256$i=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	longest := strings.Repeat("n", 58) // with six digits the longest user name there is
	var users []account.UserRecord
	var sessions []account.Session
	for i := h.embedded().CountUsers(); i < maxUsers; i++ {
		u := account.UserRecord{ID: fmt.Sprintf("%022d", i), Username: fmt.Sprintf("%s%06d", longest, i), Role: "user", Hash: hash}
		users, sessions = append(users, u), append(sessions, account.Session{ID: u.ID, User: u.ID, RefreshTTL: 1 << 50})
	}
	if err := h.embedded().ReplaceAll(t.Context(), users, sessions); err != nil {
		t.Fatal(err)
	}
	users, sessions = nil, nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapInuse - before.HeapInuse) / maxUsers
	t.Logf("%d users with a session each hold %d bytes each", maxUsers, each)
	if each > 3_000 {
		t.Errorf("%d bytes a user", each)
	}

	h.post(registerPath, right("one-too-many")).want(507, "user_limit")
	h.post(registerPath, right("demo")).want(409, "username_taken")
	h.login("demo")
}

// TestLongNames: what no account can have is refused before it costs a hash or is remembered.
func TestLongNames(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	hashed := false
	derive := h.hasher.KDF
	h.hasher.KDF = func(password string, salt []byte, n int) ([]byte, error) {
		hashed = true
		return derive(password, salt, n)
	}
	long := strings.Repeat("n", 30_000)
	h.post(registerPath, right(long)).want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": "password-1", "email": long + "@a.test"}).want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": "password-1", "name": long}).want(422, "invalid_field")
	h.post(registerPath, map[string]string{"username": "name", "password": long}).want(422, "invalid_field")
	if hashed {
		t.Error("a registration that can't be was hashed")
	}
}
