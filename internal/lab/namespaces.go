// The namespaces that there are, for somebody who looks for the one of a failed test.

package lab

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"authhub/internal/lab/strict"
	"authhub/internal/reply"
	"authhub/internal/route"
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
	slices.SortFunc(views, func(a, b namespaceView) int {
		return cmp.Or(b.latestRaw.Compare(a.latestRaw), cmp.Compare(b.Created, a.Created), cmp.Compare(a.Name, b.Name))
	})
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"namespaces": views})
}

// all returns the namespaces as they are now.
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
