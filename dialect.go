// What the hub does for a dialect: it serves its own API to it, and looks at tokens without using them.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/reply"
)

// serveCall serves a request of a dialect.
func (h *Hub) serveCall(w http.ResponseWriter, r *http.Request, call *dialect.Call) {
	access, refresh := h.lifetimes()
	call.Serve(w, r, dialect.Host{
		API:        http.HandlerFunc(h.serveOwn),
		Introspect: http.HandlerFunc(h.serveIntrospection),
		Base:       h.baseOf(r),
		Now:        h.now(),
		MaxAccess:  access,
		MaxRefresh: refresh,
		NewID:      h.newID,
	})
}

// serveIntrospection answers with the user, the claims and the kind of the token in Authorization if it is active.
func (h *Hub) serveIntrospection(w http.ResponseWriter, r *http.Request) {
	if err := h.introspect(w, r); err != nil {
		h.answerError(w, r, err)
	}
}

func (h *Hub) introspect(w http.ResponseWriter, r *http.Request) error {
	token, err := reply.Bearer(r)
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
	s, u, err := h.store.Live(r.Context(), refOf(&c))
	switch {
	case err != nil:
		return err
	case c.Generation > s.Generation:
		return account.ErrRevoked
	case c.Kind == jwt.Refresh && s.Spent(c.Generation) && !h.reuse().Allow:
		return account.ErrReused
	case c.Kind == jwt.Access && c.Generation < s.AccessFrom, c.Kind == jwt.Refresh && c.Generation < s.RefreshFrom:
		return jwt.ErrExpired
	}

	return reply.WriteJSON(w, http.StatusOK, map[string]any{
		"user": json.RawMessage(u.Record()), "claims": json.RawMessage(c.AppendJSON(nil)), "kind": c.Kind.String()})
}

// baseOf returns the address of this hub as the client of r knows it: the base URL, or the host that the client has
// asked where the operator has named none; by the name of the namespace as host, or by its path.
func (h *Hub) baseOf(r *http.Request) string {
	base, err := url.Parse(h.base)
	if err != nil {
		return h.base
	}
	byHost := h.namespace != "" && strings.EqualFold(namespaceOfHost(r.Host), h.namespace)
	if byHost || !h.settings.namedBase {
		base.Host = r.Host
	}
	if byHost {
		base.Path = strings.TrimSuffix(base.Path, "/ns/"+h.namespace)
	}
	return base.String()
}

// namespaceOfHost returns NAME of NAME.localhost:PORT; "" for any other host.
func namespaceOfHost(host string) string {
	name, _, _ := strings.Cut(host, ":")
	name, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), ".localhost")
	if !ok || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// printDialect writes the description of a built-in dialect, to be copied and changed.
func printDialect(w io.Writer, name string) error {
	description, ok := dialect.Builtin(name)
	if !ok {
		return fmt.Errorf("-print-dialect: there is no dialect %q; there are %s (%w)", name, strings.Join(dialect.Names(), ", "), flags.ErrMisuse)
	}
	_, err := w.Write(description)
	return err
}
