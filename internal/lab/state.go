// The state of a bench: what it is, and how reset and snapshots replace it.

package lab

import (
	"context"
	"net/http"

	"authhub/internal/account"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/record"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

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
