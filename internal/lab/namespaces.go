// The namespaces: how a request finds its namespace, how one is made, listed and deleted.

package lab

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"

	"authhub/internal/lab/strict"
	"authhub/internal/reply"
	"authhub/internal/route"
	"authhub/internal/runs"
)

// namespaceView is a namespace as clients see it.
type namespaceView struct {
	Name      string  `json:"name"`
	Created   string  `json:"created_at"`
	Latest    *string `json:"last_request_at"` // null: none has come yet
	Requests  int     `json:"requests"`        // in the record
	Findings  int     `json:"findings"`
	Page      string  `json:"page"`
	latestRaw time.Time
}

// serveNamespaces answers GET /ns.
func (l *Lab) serveNamespaces(w http.ResponseWriter, r *http.Request) error {
	if err := l.checkKey(r); err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return route.MethodNotAllowed("GET, HEAD")
	}
	if err := strict.RefuseQuery(r); err != nil {
		return err
	}

	views := []namespaceView{}
	for name, b := range l.all() {
		views = append(views, b.viewNamespace(name))
	}
	sort.Slice(views, func(i, j int) bool {
		a, b := &views[i], &views[j]
		return cmp.Or(b.latestRaw.Compare(a.latestRaw), cmp.Compare(b.Created, a.Created), cmp.Compare(a.Name, b.Name)) < 0
	})
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"namespaces": views})
}

// all returns a copy of the namespaces by name.
func (l *Lab) all() map[string]*bench {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return maps.Clone(l.spaces)
}

func (b *bench) viewNamespace(name string) namespaceView {
	v := namespaceView{Name: name, Created: reply.FormatTime(b.created), Requests: b.requests.Count(), Findings: b.countFindings(), Page: b.hub.Load().Base + "/"}
	if latest := b.latest.Load(); latest != nil {
		at := reply.FormatTime(*latest)
		v.Latest, v.latestRaw = &at, *latest
	}
	return v
}

// judged is what a verdict came to.
type judged struct {
	version  int // of the record that was judged
	findings int
	final    bool // nothing about it was open
}

// countFindings judges the record, unless it is the one that was judged last.
func (b *bench) countFindings() int {
	version := b.requests.CurrentVersion()
	if known := b.judged.Load(); known != nil && known.final && known.version == version {
		return known.findings
	}
	verdict, _, _, _ := b.verdict()
	b.judged.Store(&judged{version, len(verdict.Findings), verdict.Open == 0})
	return len(verdict.Findings)
}

// redirectToPage sends a client that left out the slash to the page. The address is relative, like those in the page,
// so that it holds behind any prefix (RFC 9110 section 10.2.2).
func redirectToPage(w http.ResponseWriter, r *http.Request, name string) error {
	w.Header().Set("Location", (&url.URL{Path: name + "/", RawQuery: r.URL.RawQuery}).String())
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// split returns the namespace of r, by the host or by the path, and the request as the namespace's hub is to see it.
// Errors: as splitNamespace.
func (l *Lab) split(r *http.Request) (string, *http.Request, error) {
	if name := namespaceOfHost(r.Host); name != "" && name != l.baseName && isNamespace(name) {
		return name, r, nil
	}
	return splitNamespace(r)
}

// namespaceOfHost returns NAME of NAME.localhost:PORT; "" for any other host (RFC 6761 section 6.3).
func namespaceOfHost(host string) string {
	name, _, _ := strings.Cut(host, ":")
	name, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), ".localhost")
	if !ok || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// BaseOf returns the address of a hub as the client of r knows it: the base URL, or the host that the client has asked
// where the operator has not named a base URL; by the name of the namespace as host, or by its path.
func BaseOf(r *http.Request, base, namespace string, named bool) string {
	address, err := url.Parse(base)
	if err != nil {
		return base
	}
	byHost := namespace != "" && strings.EqualFold(namespaceOfHost(r.Host), namespace)
	if byHost || !named {
		address.Host = r.Host
	}
	if byHost {
		address.Path = strings.TrimSuffix(address.Path, "/ns/"+namespace)
	}
	return address.String()
}

// splitNamespace returns the namespace of r, "" for none, and the request as the namespace's hub is to see it: of
// /ns/a/api the path /api, of /ns/a none at all. Errors: a 404 for what can't be a name.
func splitNamespace(r *http.Request) (string, *http.Request, error) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/ns/")
	if !ok {
		return splitWellKnown(r)
	}
	name, _, _ := strings.Cut(rest, "/")
	raw, same := strings.CutPrefix(r.URL.RawPath, "/ns/"+name)
	if !isNamespace(name) || r.URL.RawPath != "" && (!same || raw != "" && raw[0] != '/') { // %2F belongs to the name
		return "", nil, reply.Fail(http.StatusNotFound, "not_found", "The path of a namespace is /ns/NAME. NAME is 1 to 64 of A-Z a-z 0-9 _ and -.")
	}
	inner, u := new(http.Request), *r.URL
	*inner = *r
	u.Path, u.RawPath = rest[len(name):], raw
	inner.URL = &u
	return name, inner, nil
}

// splitWellKnown returns the namespace of r if its path is a well-known one, which takes the namespace behind (RFC 8414
// section 3.1): of /.well-known/x/ns/a it is a, and the path /.well-known/x.
func splitWellKnown(r *http.Request) (string, *http.Request, error) {
	path, name, ok := strings.Cut(r.URL.Path, "/ns/")
	if !ok || !strings.HasPrefix(path, "/.well-known/") || !isNamespace(name) {
		return "", r, nil
	}
	inner, u := new(http.Request), *r.URL
	*inner = *r
	u.Path, u.RawPath = path, ""
	inner.URL = &u
	return name, inner, nil
}

// isNamespace reports whether name is 1 to 64 of A-Za-z0-9_-
func isNamespace(name string) bool {
	other := func(c rune) bool {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		return !letter && !('0' <= c && c <= '9') && c != '_' && c != '-'
	}
	return 1 <= len(name) && len(name) <= maxNamespaceName && !strings.ContainsFunc(name, other)
}

func (l *Lab) deleteNamespace(w http.ResponseWriter, r *http.Request, name string) error {
	if r.Method != http.MethodDelete {
		return route.MethodNotAllowed("DELETE, GET, HEAD")
	}
	if err := refuseExtras(w, r); err != nil {
		return err
	}
	l.mu.Lock()
	b := l.spaces[name]
	delete(l.spaces, name)
	l.mu.Unlock()
	if b == nil {
		return reply.Fail(http.StatusNotFound, "not_found", "No namespace has this name. The first request to a namespace makes it.")
	}
	b.gone(reply.Fail(http.StatusNotFound, "not_found", "The namespace has been deleted."))
	b.close()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (l *Lab) countNamespaces() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.spaces)
}

// bench returns the bench of a namespace, which is made where there is none yet, or the root's for "".
// Errors: a 507 when there are too many, runs.ErrBusy once the lab is closed.
func (l *Lab) bench(name string) (*bench, error) {
	if name == "" {
		return l.root, nil
	}
	l.mu.RLock()
	b := l.spaces[name]
	l.mu.RUnlock()
	if b != nil {
		return b, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.spaces == nil:
		return nil, runs.ErrBusy
	case l.spaces[name] != nil:
		return l.spaces[name], nil
	case len(l.spaces) >= maxNamespaces:
		return nil, reply.Fail(http.StatusInsufficientStorage, "namespace_limit",
			"There are as many namespaces as the hub holds. DELETE /ns/NAME ends one that is done with.")
	}
	b, err := l.newNamespace(name)
	if err == nil {
		l.spaces[name] = b
	}
	return b, err
}
