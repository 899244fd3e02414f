package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"authhub/internal/account"
)

// outage is a store whose engine does not answer.
type outage struct {
	account.Store
	err error
}

func (s outage) Register(context.Context, *account.User, account.Session) error { return s.err }
func (s outage) UserNamed(context.Context, string) (*account.User, error)       { return nil, s.err }
func (s outage) StartSession(context.Context, account.Session) error            { return s.err }
func (s outage) EndSession(context.Context, account.SessionRef, bool) error     { return s.err }
func (s outage) Ready(context.Context) error                                    { return s.err }
func (s outage) Live(context.Context, account.SessionRef) (account.Session, *account.User, error) {
	return account.Session{}, nil, s.err
}
func (s outage) Rotate(context.Context, account.SessionRef, int, time.Time, account.ReusePolicy) (account.Session, *account.User, error) {
	return account.Session{}, nil, s.err
}

// TestOutageOfTheStore: an engine that does not answer is a 503 that passes, never a wrong password, an ended session or a
// failed login.
func TestOutageOfTheStore(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	demo, sound := h.login("demo"), h.store
	for _, err := range []error{account.ErrUnavailable, account.ErrUnknown} {
		h.Hub.store = outage{sound, err}
		var answers []*answer
		for range 15 { // more than the throttle allows to fail
			answers = append(answers, h.post(loginPath, right("demo")), h.post(loginPath, guessAt("demo")))
		}
		answers = append(answers, h.me(demo.access), h.refreshWith(demo.refresh), h.post(logoutPath, nil, bearerOf(demo.access)...),
			h.post(registerPath, right("newcomer")), h.get("/healthz"))
		for _, a := range answers {
			if a.want(503, "store_unavailable"); a.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", a.body)
			}
		}
		h.Hub.store = sound
		h.post(loginPath, right("demo")).want(http.StatusOK)
		h.me(demo.access).want(http.StatusOK)
	}
	h.refreshWith(demo.refresh).want(http.StatusOK)
}
