// Authentication: register, login, the current user, refresh, logout.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/request"
)

func (h *Hub) register(w http.ResponseWriter, r *http.Request) error {
	in, err := request.ReadForm(w, r, false)
	if err != nil {
		return err
	}

	u, password, err := readRegistration(in)
	if err != nil {
		return err
	}

	u.Credential, err = h.hasher.Hash(r.Context(), h.rand, password)
	if err != nil {
		return err
	}
	now := h.now()
	u.ID, u.Created = h.newID(), now.UnixMilli()
	access, refresh := h.lifetimes()
	s := u.NewSession(h.newID(), now, access, refresh)
	if err := h.store.Register(r.Context(), u, s); err != nil {
		return err
	}

	return h.writeSession(w, http.StatusCreated, &s, u, now)
}

// readRegistration checks what a new user says of itself.
func readRegistration(in *request.Form) (*account.User, string, error) {
	u := &account.User{Username: in.Text("username"), Email: in.Text("email"), Name: in.Text("name"), Role: "user"}
	nameField, serving := "username", ""
	if u.Username == "" && u.Email != "" {
		u.Username, nameField, serving = u.Email, "email", " to serve as the user name"
	}
	switch {
	case u.Username == "" && len(in.Faults) == 0:
		in.Fault("username", "is required (or an email)")
	case account.FaultOf("username", u.Username) != "":
		in.Fault(nameField, account.FaultOf("username", u.Username)+serving)
	}
	password := in.Text("password")
	for _, m := range [][2]string{{"email", u.Email}, {"name", u.Name}, {"password", password}} {
		if fault := account.FaultOf(m[0], m[1]); fault != "" {
			in.Fault(m[0], fault)
		}
	}
	return u, password, in.Err()
}

func (h *Hub) login(w http.ResponseWriter, r *http.Request) error {
	in, err := request.ReadForm(w, r, false)
	if err != nil {
		return err
	}

	name, email, password := in.Text("username"), in.Text("email"), in.Text("password")
	if name == "" && email == "" {
		in.Fault("username", "is required (or an email)")
	}
	if password == "" {
		in.Fault("password", "is required")
	}
	access, refresh := h.lifetimes()
	access, refresh = in.Lifetime("expires_in", access), in.Lifetime("refresh_expires_in", refresh)
	if err := in.Err(); err != nil {
		return err
	}

	u, err := h.checkPassword(r, cmp.Or(name, email), password)
	if err != nil {
		if u != nil { // a name that nobody has may be a password in the wrong field
			reply.Note(w, "user", u.Username)
		}
		return err
	}
	now := h.now()
	s := u.NewSession(h.newID(), now, access, refresh)
	if err := h.store.StartSession(r.Context(), s); err != nil {
		return err
	}

	return h.writeSession(w, http.StatusOK, &s, u, now)
}

// checkPassword returns the user whose name or e-mail address login is, and an error unless password is right. Many
// forms have one field for both, and call it one or the other.
func (h *Hub) checkPassword(r *http.Request, login, password string) (*account.User, error) {
	u, err := h.store.UserNamed(r.Context(), login) // first: a store that is away is no attempt, and holds up no other
	if err != nil {
		return nil, err
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	attempt, err := h.throttle.Begin(r.Context(), account.Fold(login), address, h.now)
	if err != nil {
		return nil, err
	}

	var c *passwd.Credential // of nobody: Verify does the same work for it
	if u != nil {
		c = &u.Credential
	}
	right, err := h.hasher.Verify(r.Context(), c, password)
	h.throttle.End(attempt, right, err, h.now())

	switch {
	case err != nil:
		return nil, err
	case !right:
		return u, reply.Fail(http.StatusUnauthorized, "invalid_credentials", "The user name or the password is wrong. Check both.")
	case u.Disabled:
		return u, account.ErrDisabled
	}
	return u, nil
}

func (h *Hub) showUser(w http.ResponseWriter, r *http.Request) error {
	u, err := h.authenticate(r)
	if err != nil {
		return err
	}

	reply.WriteBody(w, http.StatusOK, u.Record())
	return nil
}

func (h *Hub) refresh(w http.ResponseWriter, r *http.Request) error {
	token, err := refreshTokenOf(w, r)
	if err != nil {
		return err
	}

	c, err := h.signer.Open(token)
	if err != nil {
		return err
	}
	now := h.now()
	if err := c.Check(jwt.Refresh, now); err != nil {
		return err
	}

	policy := h.reuse()
	s, u, err := h.store.Rotate(r.Context(), refOf(&c), c.Generation, now, policy)
	if err != nil {
		return err
	}

	if policy.Keep {
		access := h.accessClaims(&s, u, now)
		appendRefresh := func(b []byte) []byte { return append(b, token...) }
		h.writePair(w, http.StatusOK, u, &access, appendRefresh, s.AccessTTL, c.ExpiresAt-now.UnixMilli())
		return nil
	}
	return h.writeSession(w, http.StatusOK, &s, u, now)
}

// refreshTokenOf returns the token of the body or, where there is none, of the Authorization header: clients that
// add their access token to every request still mean the one in the body.
func refreshTokenOf(w http.ResponseWriter, r *http.Request) (string, error) {
	in, err := request.ReadForm(w, r, true)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"refresh_token", "refreshToken"} {
		token := in.Text(name)
		if err := in.Err(); err != nil {
			return "", err
		}
		if token != "" {
			return token, nil
		}
	}
	if r.Header["Authorization"] == nil {
		return "", refreshTokenMissing
	}
	return request.Bearer(r)
}

var refreshTokenMissing = reply.Fail(http.StatusUnauthorized, "token_missing",
	"This operation needs the refresh token: as refresh_token in the body, or Authorization: Bearer TOKEN.")

func (h *Hub) logout(w http.ResponseWriter, r *http.Request) error {
	token, err := request.Bearer(r)
	if err != nil {
		return err
	}
	all, others, err := readScope(r)
	if err != nil {
		return err
	}

	c, err := h.signer.Open(token) // an expired one will do: who logs out late still wants to be out
	if err != nil {
		return err
	}
	if others {
		err = h.store.EndOthers(r.Context(), refOf(&c))
	} else {
		err = h.store.EndSession(r.Context(), refOf(&c), all)
	}
	if err != nil {
		return err
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readScope reads the query of a logout: all or others, once, or nothing.
func readScope(r *http.Request) (all, others bool, err error) {
	query, err := request.Query(r)
	if err != nil {
		return false, false, err
	}
	for name, values := range query {
		value, err := strconv.ParseBool(values[0])
		switch {
		case name != "all" && name != "others":
			return false, false, reply.Invalid(name, "is no parameter of a logout; there are all and others")
		case err != nil || len(values) > 1:
			return false, false, reply.Invalid(name, "must be true or false, once")
		case name == "all":
			all = value
		default:
			others = value
		}
	}
	if all && others {
		return false, false, reply.Invalid("others", "can't be true together with all: this session ends too, or it doesn't")
	}
	return all, others, nil
}

// authenticate returns the user of the request's access token.
func (h *Hub) authenticate(r *http.Request) (*account.User, error) {
	token, err := request.Bearer(r)
	if err != nil {
		return nil, err
	}
	c, err := h.signer.Open(token)
	if err != nil {
		return nil, err
	}
	if err := c.Check(jwt.Access, h.now()); err != nil {
		return nil, err
	}
	return h.ownerOf(r.Context(), &c)
}

// ownerOf returns the user of a token that is sound and has not expired by its claims, if its session lives and the
// token is good for anything in it. Errors: account.ErrRevoked, ErrDisabled, ErrReused, jwt.ErrExpired, and those of a
// store that can't answer.
func (h *Hub) ownerOf(ctx context.Context, c *jwt.Claims) (*account.User, error) {
	s, u, err := h.store.Live(ctx, refOf(c))
	if err != nil {
		return nil, err
	}
	switch {
	case c.Generation > s.Generation: // the snapshot that was just restored predates this token's rotation
		return nil, account.ErrRevoked
	case c.Kind == jwt.Refresh && s.Spent(c.Generation) && !h.reuse().Allow:
		return nil, account.ErrReused
	case c.Generation < s.From(c.Kind):
		return nil, jwt.ErrExpired
	}
	return u, nil
}

// Operations of these groups ask for an access token where the operator says so with -protect.
const (
	ofFiles = "files"
	ofRun   = "run"
)

// tokenFor returns the token that operations of this group ask for.
func (s *settings) tokenFor(group string) string {
	switch {
	case group == ofFiles && s.ProtectFiles, group == ofRun && s.ProtectRun:
		return "access"
	case group == ofFiles, group == ofRun:
		return "none"
	}
	return group
}

// filesRoute and runRoute guard an operation as the operator asked with -protect.
func filesRoute(serve hubHandler) hubHandler { return guarded(serve, ofFiles) }
func runRoute(serve hubHandler) hubHandler   { return guarded(serve, ofRun) }

// guarded asks for an access token where the group of the operation is protected.
func guarded(serve hubHandler, group string) hubHandler {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		if h.settings.tokenFor(group) == "access" {
			if _, err := h.authenticate(r); err != nil {
				return err
			}
		}
		return serve(h, w, r)
	}
}

// refOf returns which session a token is of.
func refOf(c *jwt.Claims) account.SessionRef {
	return account.SessionRef{User: c.Subject, Session: c.Session}
}

// newID returns 128 random bits in base64url.
func (h *Hub) newID() string {
	var id [16]byte
	if _, err := io.ReadFull(h.rand, id[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// accessClaims returns what the access token of s says, with what the dialect adds.
func (h *Hub) accessClaims(s *account.Session, u *account.User, now time.Time) jwt.Claims {
	c := s.Claims(jwt.Access, u)
	c.More = h.dialect().Claims(u.Record(), time.UnixMilli(s.Created), now)
	return c
}

// writeSession answers with the current pair of s. Where grace gives a pair again, less is left of its lifetimes.
func (h *Hub) writeSession(w http.ResponseWriter, status int, s *account.Session, u *account.User, now time.Time) error {
	access, refresh := h.accessClaims(s, u, now), s.Claims(jwt.Refresh, u)
	age := now.UnixMilli() - s.Issued
	appendRefresh := func(b []byte) []byte { return h.signer.Append(b, &refresh) }
	h.writePair(w, status, u, &access, appendRefresh, s.AccessTTL-age, s.RefreshTTL-age)
	return nil
}

// writePair answers with two tokens and how many milliseconds are left of them. The body is put together by hand,
// since encoding/json took a fourteenth of a refresh's CPU time: nothing in it needs an escape but the user record,
// and that is JSON already.
func (h *Hub) writePair(w http.ResponseWriter, status int, u *account.User, access *jwt.Claims, appendRefresh func([]byte) []byte, accessLeft, refreshLeft int64) {
	buffer := pairBuffers.Get().(*[]byte)
	b := (*buffer)[:0]
	b = h.signer.Append(append(b, `{"access_token":"`...), access)
	b = appendRefresh(append(b, `","refresh_token":"`...))
	b = jwt.AppendSeconds(append(b, `","token_type":"Bearer","expires_in":`...), max(0, accessLeft))
	b = jwt.AppendSeconds(append(b, `,"refresh_expires_in":`...), max(0, refreshLeft))
	b = append(append(b, `,"user":`...), bytes.TrimSuffix(u.Record(), []byte("\n"))...)
	b = append(b, "}\n"...)
	reply.WriteBody(w, status, b)
	*buffer = b
	pairBuffers.Put(buffer)
}

// pairBuffers keeps the bodies of answers that have left. A new one for each was 1,024 of the 2,241 bytes of a login.
var pairBuffers = sync.Pool{New: func() any { return new([]byte) }}

// serveIntrospection answers with the user, the claims and the kind of the token in Authorization if it is active.
func (h *Hub) serveIntrospection(w http.ResponseWriter, r *http.Request) {
	if err := h.introspect(w, r); err != nil {
		h.answerError(w, r, err)
	}
}

func (h *Hub) introspect(w http.ResponseWriter, r *http.Request) error {
	token, err := request.Bearer(r)
	if err != nil {
		return err
	}
	c, err := h.signer.Open(token)
	if err != nil {
		return err
	}
	if err := c.Check(c.Kind, h.now()); err != nil {
		return err
	}
	u, err := h.ownerOf(r.Context(), &c)
	if err != nil {
		return err
	}

	return reply.WriteJSON(w, http.StatusOK, map[string]any{
		"user": json.RawMessage(u.Record()), "claims": json.RawMessage(c.AppendJSON(nil)), "kind": c.Kind.String()})
}
