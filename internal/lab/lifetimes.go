// The lifetimes of the tokens of new sessions.

package lab

import (
	"cmp"
	"net/http"
	"time"

	"authhub/internal/account"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

// lifetimes are what a test has set; 0 stands for a lifetime that it has not set.
type lifetimes struct{ access, refresh time.Duration }

// lifetimesView is lifetimes as clients see and set them.
type lifetimesView struct {
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
}

// readLifetimes reads lifetimes. What is absent stays as it is in old.
func readLifetimes(in *strict.Form, old lifetimes) lifetimes {
	if !in.Has("access") && !in.Has("refresh") && len(in.Faults) == 0 {
		in.Fault("access", "is missing: give access, refresh or both")
	}
	return lifetimes{
		cmp.Or(in.Span("access", time.Millisecond, account.MaxTTL), old.access),
		cmp.Or(in.Span("refresh", time.Millisecond, account.MaxTTL), old.refresh),
	}
}

func (b *bench) setLifetimes(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, "access", "refresh")
	if err != nil {
		return err
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	set := readLifetimes(in, *b.ordered.Load())
	if err := in.Err(); err != nil {
		return err
	}

	b.ordered.Store(&set)
	return reply.WriteJSON(w, http.StatusOK, b.viewLifetimes())
}

// lifetimes returns the lifetimes of the tokens of new sessions: what a test has set, else those of a dialect that a
// test has set, else the operator's, which include those of the process's own dialect (package flags).
func (b *bench) lifetimes() (access, refresh time.Duration) {
	access, refresh = b.lab.Access, b.lab.Refresh
	if d := b.dialect.Load(); d != nil && d != b.lab.Dialect {
		ofAccess, ofRefresh := d.Lifetimes()
		access, refresh = cmp.Or(ofAccess, access), cmp.Or(ofRefresh, refresh)
	}
	set := b.ordered.Load()
	return cmp.Or(set.access, access), cmp.Or(set.refresh, refresh)
}

func (b *bench) viewLifetimes() lifetimesView {
	access, refresh := b.lifetimes()
	return lifetimesView{strict.Spell(access), strict.Spell(refresh)}
}

// viewSet returns what a test has set, without the other lifetimes.
func viewSet(set lifetimes) *lifetimesView {
	view := new(lifetimesView)
	if set.access > 0 {
		view.Access = strict.Spell(set.access)
	}
	if set.refresh > 0 {
		view.Refresh = strict.Spell(set.refresh)
	}
	return view
}

// members returns the lifetimes as the members of a body.
func (v *lifetimesView) members() map[string]any {
	members := make(map[string]any)
	if v.Access != "" {
		members["access"] = v.Access
	}
	if v.Refresh != "" {
		members["refresh"] = v.Refresh
	}
	return members
}
