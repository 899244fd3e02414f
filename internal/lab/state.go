// The state of a bench: what it is, back to the seeds, its sessions, its refresh policy.

package lab

import (
	"context"
	"errors"
	"net/http"
	"time"

	"authhub/internal/account"
	"authhub/internal/jwt"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/record"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

// policyView is a refresh policy as clients see and set it.
type policyView struct {
	Reuse    string `json:"reuse"` // strict, grace, allow
	Grace    string `json:"grace,omitempty"`
	Rotation *bool  `json:"rotation,omitempty"` // false: the refresh token stays; true only in snapshots
}

// viewPolicy returns p as clients see it.
func viewPolicy(p account.ReusePolicy) policyView {
	switch {
	case p.Keep:
		return policyView{Reuse: "strict", Rotation: new(bool)}
	case p.Allow:
		return policyView{Reuse: "allow"}
	case p.Grace > 0:
		return policyView{Reuse: "grace", Grace: strict.Spell(p.Grace)}
	}
	return policyView{Reuse: "strict"}
}

// policy is a refresh policy that a test has set.
type policy struct {
	account.ReusePolicy
	rotates bool // said so, which comes before a dialect without rotation
}

// view returns p so that readPolicy reads the same.
func (p policy) view() policyView {
	v := viewPolicy(p.ReusePolicy)
	if p.rotates {
		v.Rotation = &p.rotates
	}
	return v
}

const maxGrace = 24 * time.Hour

// readPolicy reads a policy. A grace of no time at all would be strict.
func readPolicy(in *strict.Form) policy {
	p := policy{rotates: in.Truth("rotation", false)}
	p.Grace = in.Span("grace", time.Millisecond, maxGrace)
	reuse := in.OneOf("reuse", "strict", "grace", "allow")
	p.Allow, p.Keep = reuse == "allow", in.Has("rotation") && !p.rotates
	switch {
	case !in.Has("reuse") && !in.Has("rotation"):
		in.Fault("reuse", "is missing: one of strict, grace, allow")
	case p.Keep && reuse != "strict":
		in.Fault("reuse", "has no meaning without rotation, which spends no token")
	case reuse == "grace" && !in.Has("grace"):
		in.Fault("grace", `is missing: a duration such as "10s"`)
	case reuse != "grace" && in.Has("grace"):
		in.Fault("grace", `belongs to "reuse":"grace"`)
	}
	return p
}

func (b *bench) setPolicy(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, "reuse", "grace", "rotation")
	if err != nil {
		return err
	}
	p := readPolicy(in)
	if err := in.Err(); err != nil {
		return err
	}

	b.policy.Store(&p)
	return reply.WriteJSON(w, http.StatusOK, viewPolicy(b.reuse()))
}

func (b *bench) showState(w http.ResponseWriter, _ *http.Request) error {
	h := b.hub.Load()
	faults := b.faults.List()
	counts := map[string]int{"users": h.Store.CountUsers(), "sessions": len(b.liveSessions()),
		"requests": b.requests.Count(), "faults": len(faults)}
	if b == b.lab.root {
		counts["namespaces"] = b.lab.countNamespaces()
	}
	return reply.WriteJSON(w, http.StatusOK, struct {
		Namespace *string        `json:"namespace"`
		BaseURL   string         `json:"base_url"`
		Time      clockView      `json:"time"`
		Policy    policyView     `json:"policy"`
		Dialect   *string        `json:"dialect"` // its name
		Lifetimes lifetimesView  `json:"lifetimes"`
		Faults    []fault.View   `json:"faults"`
		Counts    map[string]int `json:"counts"`
	}{record.Known(h.Namespace), h.Base, b.clock.view(), viewPolicy(b.reuse()), record.Known(b.dialect.Load().Name()), b.viewLifetimes(), faults, counts})
}

func (b *bench) reset(w http.ResponseWriter, r *http.Request) error {
	if err := strict.RefuseMembers(w, r); err != nil {
		return err
	}

	b.changing.Lock()
	defer b.changing.Unlock()
	if err := b.replace(r.Context(), &state{dialect: b.lab.Dialect}); err != nil {
		return err
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replace puts a state in the place of the one there is, under b.changing. Requests under way are given up with
// account.ErrReplaced: they change nothing from now on (account.Embedded), and are in no record.
func (b *bench) replace(ctx context.Context, s *state) error {
	b.arrivals.Lock()
	defer b.arrivals.Unlock()
	for _, giveUp := range b.underWay {
		giveUp(account.ErrReplaced)
	}
	b.faults.Remove("")
	old := b.hub.Load()
	renewed := b.lab.Renew(*old)
	b.hub.Store(&renewed)
	old.Runs.Close()
	if err := s.publish(old.Folder); err != nil {
		return err
	}
	b.clock.set(s.clock)
	b.policy.Store(&s.policy)
	b.dialect.Store(s.dialect)
	b.ordered.Store(&s.lifetimes)
	if err := old.Store.ReplaceAll(ctx, s.users, s.sessions); err != nil {
		return err
	}
	b.requests.Reset()
	b.faults.Reset()
	for _, f := range s.faults {
		if _, err := b.faults.Add(f); err != nil {
			return err
		}
	}
	return nil
}

// sessionView is a session as the lab shows it.
type sessionView struct {
	ID         string    `json:"id"`
	User       string    `json:"user"`
	Created    string    `json:"created"`
	Generation int       `json:"generation"`
	Expiry     string    `json:"expiry"` // of its last token
	Access     tokenView `json:"access"`
	Refresh    tokenView `json:"refresh"`
}

// tokenView is one of the two current tokens of a session.
type tokenView struct {
	Expiry  string `json:"expiry"`
	Expired bool   `json:"expired"` // by time or by order
}

func (h *Parts) viewSession(s *account.Session) sessionView {
	now := h.Now().UnixMilli()
	token := func(ttl int64, from int) tokenView {
		expiry := s.Issued + ttl
		if s.Generation < from { // by order; when that was nobody remembers
			expiry = min(expiry, now)
		}
		return tokenView{reply.FormatTime(time.UnixMilli(expiry)), expiry <= now}
	}
	v := sessionView{ID: s.ID, Created: reply.FormatTime(time.UnixMilli(s.Created)), Generation: s.Generation,
		Access: token(s.AccessTTL, s.AccessFrom), Refresh: token(s.RefreshTTL, s.RefreshFrom)}
	v.Expiry = max(v.Access.Expiry, v.Refresh.Expiry) // in one form, so that the later one is the greater
	if u := h.Store.UserByID(s.User); u != nil {
		v.User = u.Username
	}
	return v
}

// liveSessions returns the sessions that are not over, oldest first.
func (b *bench) liveSessions() []sessionView {
	h := b.hub.Load()
	_, sessions := h.Store.Contents()
	now := h.Now().UnixMilli()
	views := []sessionView{}
	for _, s := range sessions {
		if now < s.OverAt() {
			views = append(views, h.viewSession(&s))
		}
	}
	return views
}

func (b *bench) listSessions(w http.ResponseWriter, _ *http.Request) error {
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"sessions": b.liveSessions()})
}

func (b *bench) expireSession(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, true, "token")
	if err != nil {
		return err
	}
	k := jwt.Access
	if in.OneOf("token", "access", "refresh") == "refresh" {
		k = jwt.Refresh
	}
	if err := in.Err(); err != nil {
		return err
	}

	h := b.hub.Load()
	s, err := h.Store.Expire(r.Context(), r.PathValue("sid"), k)
	if errors.Is(err, account.ErrRevoked) {
		return noSession()
	}
	if err != nil {
		return err
	}

	return reply.WriteJSON(w, http.StatusOK, h.viewSession(&s))
}

func (b *bench) revokeSession(w http.ResponseWriter, r *http.Request) error {
	if err := strict.RefuseMembers(w, r); err != nil {
		return err
	}

	store, id := b.hub.Load().Store, r.PathValue("sid")
	s, _ := store.Look(id, "")
	if s.ID == "" {
		return noSession()
	}
	if err := store.EndSession(r.Context(), s.Ref(), false); err != nil {
		return err
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

func noSession() error {
	return reply.Fail(http.StatusNotFound, "not_found", "No live session has this id. GET /lab/sessions lists the live sessions.")
}
