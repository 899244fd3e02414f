// The refresh policy: what a spent refresh token does, and whether refresh tokens rotate.

package lab

import (
	"net/http"
	"time"

	"authhub/internal/account"
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

// view returns p as a snapshot has it, so that readPolicy reads the same.
func (p policy) view() policyView {
	v := viewPolicy(p.ReusePolicy)
	if p.rotates {
		v.Rotation = &p.rotates
	}
	return v
}

// members returns the policy as the members of a body.
func (v policyView) members() map[string]any {
	members := map[string]any{"reuse": v.Reuse}
	if v.Grace != "" {
		members["grace"] = v.Grace
	}
	if v.Rotation != nil {
		members["rotation"] = *v.Rotation
	}
	return members
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

	b.changePolicy(func() { b.policy.Store(&p) })
	return reply.WriteJSON(w, http.StatusOK, viewPolicy(b.reuse()))
}

// changePolicy changes the policy or the dialect. With another policy in force the report starts afresh, also if the
// former one returns before the next request.
func (b *bench) changePolicy(change func()) {
	b.arrivals.Lock()
	defer b.arrivals.Unlock()
	before := b.reuse()
	change()
	if b.reuse() != before {
		b.requests.StartEpoch(b.clock.now())
	}
}

// reuse returns the refresh policy in force: the one that was set, without rotation where the dialect has none and the
// test has not asked for it.
func (b *bench) reuse() account.ReusePolicy {
	p := b.policy.Load()
	inForce := p.ReusePolicy
	inForce.Keep = p.Keep || !p.rotates && !b.dialect.Load().Rotation()
	return inForce
}
