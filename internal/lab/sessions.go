// The live sessions: how tests list, expire and revoke them.

package lab

import (
	"errors"
	"net/http"
	"time"

	"authhub/internal/account"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

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
	k := readKind(in, "token")
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
