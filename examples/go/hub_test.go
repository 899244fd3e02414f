// Tests of a Go client against a real hub: one process, a namespace for each test, all of them in parallel.
//
//	go test ./...          builds the hub first; AUTHHUB=/path/to/authhub uses that binary
//
// The standard library and authhub/hubtest, which is in the clone that go.mod names.

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"authhub/hubtest"
)

func login(t *testing.T, hub *hubtest.Hub) *Client {
	t.Helper()
	c := &Client{Base: hub.URL}
	if err := c.Login("demo", "demo-password"); err != nil {
		t.Fatal(err)
	}
	return c
}

// The same user name in each: they would be in each other's way on one hub.
func TestRegister(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := &Client{Base: hubtest.Start(t).URL}
			if err := c.Register("kim", "a good password"); err != nil {
				t.Fatal(err)
			}
			if u, err := c.Me(); err != nil || u.Username != "kim" {
				t.Errorf("Me: %v, %v", u, err)
			}
		})
	}
}

func TestExpiredTokenIsRefreshed(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	c := login(t, hub)
	hub.Advance(16 * time.Minute)

	if u, err := c.Me(); err != nil || u.Username != "demo" {
		t.Errorf("Me: %v, %v", u, err)
	}
	hub.NoFindings()
}

func TestRaceForTheRefresh(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	c := login(t, hub)
	hub.Advance(16 * time.Minute)
	hub.Fault(`{"operation":"me","hold":8}`) // all get their 401 at the same moment

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Me(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	hub.Expect(`{"operation":"refresh","count":{"exactly":1},"within":"100ms"}`)
	hub.NoFindings()
}

func TestSessionEndsAfterALostRefresh(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	c := login(t, hub)
	hub.Advance(16 * time.Minute)
	hub.Fault(`{"operation":"refresh","drop":"after"}`)

	if _, err := c.Me(); err == nil {
		t.Fatal("Me succeeds without an answer to its refresh")
	}
	if _, err := c.Me(); !errors.Is(err, ErrSessionEnded) { // strict rotation: the token was spent
		t.Errorf("Me: %v", err)
	}
}

// What a client meets when its tokens are not what they should be.
func TestTokensWithADefect(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{"none", ""},
		{"expired", "token_expired"},
		{"not_yet_valid", "token_malformed"},
		{"wrong_key", "token_malformed"},
		{"alg_none", "token_malformed"},
		{"wrong_type", "token_wrong_type"},
		{"truncated", "token_malformed"},
		{"tampered", "token_malformed"},
		{"revoked", "token_revoked"},
	} {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			hub := hubtest.Start(t)
			var minted struct{ Token string }
			hub.Lab("POST", "/tokens", map[string]string{"user": "demo", "defect": row[0]}, &minted)
			c := &Client{Base: hub.URL}

			err := c.send("GET", "me", minted.Token, nil, new(User))

			problem := &Error{}
			errors.As(err, &problem)
			if problem.Code != row[1] {
				t.Errorf("code %q, not %q", problem.Code, row[1])
			}
		})
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	c := login(t, hub)
	var before json.RawMessage
	hub.Lab("GET", "/snapshot", nil, &before)
	first, err := c.Me()
	if err != nil {
		t.Fatal(err)
	}

	hub.Lab("POST", "/reset", nil, nil) // the session is gone
	if _, err := c.Me(); err == nil {
		t.Error("a session survives a reset")
	}
	hub.Lab("PUT", "/snapshot", before, nil) // and is back

	if again, err := c.Me(); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("Me: %v, %v", again, err)
	}
}
