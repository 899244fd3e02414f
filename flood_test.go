// Floods: more of everything than a hub takes. Memory and disk stay bounded, and who is refused is told why.

package main

import (
	"fmt"
	"io"
	"net/http/httptest"
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
	for i := h.store.CountUsers(); i < maxUsers; i++ {
		u := account.UserRecord{ID: fmt.Sprintf("%022d", i), Username: fmt.Sprintf("%s%06d", longest, i), Role: "user", Hash: hash}
		users, sessions = append(users, u), append(sessions, account.Session{ID: u.ID, User: u.ID, RefreshTTL: 1 << 50})
	}
	if err := h.store.ReplaceAll(t.Context(), users, sessions); err != nil {
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

// TestSessionFlood: one user's logins hold a bounded number of sessions, the oldest make room.
func TestSessionFlood(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	oldest := h.login("demo")
	second := h.login("demo")
	admin := h.login("admin")
	for range 998 {
		h.login("demo")
	}
	h.me(oldest.access).want(200)
	h.login("demo")
	h.me(oldest.access).want(401, "token_revoked")
	h.refreshWith(oldest.refresh).want(401, "token_revoked")
	h.me(second.access).want(200)
	h.me(admin.access).want(200)
	if _, sessions := h.store.Contents(); len(sessions) != 1_001 {
		t.Errorf("%d sessions", len(sessions))
	}
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

// TestUploadFlood: bodies that wait on the disk have a number that they don't exceed.
func TestUploadFlood(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "-dir", t.TempDir())
	rest := make(chan struct{})
	answers := make(chan int, maxUploads)
	for range maxUploads {
		go func() {
			r := httptest.NewRequest("POST", runPath, &drip{now: strings.NewReader(fourReadings), rest: rest})
			r.Host = "hub.test"
			r.Header.Set("Content-Type", "text/csv")
			w := httptest.NewRecorder()
			h.handler.ServeHTTP(w, r)
			answers <- w.Code
		}()
	}
	eventually(t, "all bodies are half there", func() bool { return h.runs.uploads.Load() == maxUploads })
	h.runOn(fourReadings).want(503, "busy")
	h.post(runPath, nil).want(200) // without a body there is room
	close(rest)
	for range maxUploads {
		if status := <-answers; status != 200 {
			t.Errorf("an upload that was let in: %d", status)
		}
	}
	h.runOn(fourReadings).want(200)
	if names := mustList(t, h.output.path); len(names) != resultFiles {
		t.Errorf("left behind: %v", names)
	}
}

// drip is a body that doesn't end before it may.
type drip struct {
	now  io.Reader
	rest <-chan struct{}
}

func (d *drip) Read(p []byte) (int, error) {
	n, err := d.now.Read(p)
	if err == io.EOF {
		<-d.rest
	}
	return n, err
}

// TestAnEndedRunIsNotJoined: a client that hears of the end of a run and asks again gets another one.
func TestAnEndedRunIsNotJoined(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	heard := make(chan *run, 1)
	h.runs.report = func(ended *run, _ error) {
		if ended.id == "first" {
			again, err := h.runs.start("second", ended.parameters, ended.input)
			if err != nil {
				t.Error(err)
			}
			heard <- again
		}
	}
	p, _ := readParameters(nil)
	first, err := h.runs.start("first", p, h.ownReadings())
	if err != nil {
		t.Fatal(err)
	}
	if again := <-heard; again == first {
		t.Error("the run that has ended is joined")
	}
	<-first.done
}

// TestQueriesThatCannotBeRead are refused, not read as far as they go.
func TestQueriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	for _, query := range []string{"?low=7;high=8", "?low=%zz", "?all=true;x", "?all=%", "?" + strings.Repeat("a&", 20_000)} {
		h.post(runPath+query, nil).want(422, "invalid_field")
		h.post(logoutPath+query, nil, bearerOf(h.login("demo").access)...).want(422, "invalid_field")
	}
}
