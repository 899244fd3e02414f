// The record of requests, as tests look at it and wait for it.

package lab

import (
	"context"
	"net/http"

	"authhub/internal/lab/record"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

func (b *bench) listRequests(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.ReadQuery(r, []string{"status", "after"}, record.FilterNames...)
	if err != nil {
		return err
	}
	f := b.readFilter(in)
	if err := in.Err(); err != nil {
		return err
	}

	matching, overwritten := b.requests.List(&f)

	return reply.WriteJSON(w, http.StatusOK, struct {
		Requests    []record.View `json:"requests"`
		Overwritten int           `json:"overwritten"`
	}{matching, overwritten})
}

func (b *bench) clearRequests(w http.ResponseWriter, _ *http.Request) error {
	b.requests.Clear()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readFilter reads a filter. A user may be given by name or id.
func (b *bench) readFilter(in *strict.Form) record.Filter {
	f := record.ReadFilter(in, operationNames)
	store := b.hub.Load().Store
	if u := store.UserByID(f.User); u != nil && store.UserByLogin(f.User) == nil {
		f.User = u.Username
	}
	return f
}

func (b *bench) expect(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, append([]string{"count", "within"}, record.FilterNames...)...)
	if err != nil {
		return err
	}
	e, err := record.ReadExpectation(in, b.readFilter(in))
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(r.Context(), e.Patience)
	defer cancel()
	found, err := b.requests.Await(ctx, b.ctx, e)
	if err != nil {
		return err
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}

	b.lab.RenewDeadline(w)
	if found.Held {
		return reply.WriteJSON(w, http.StatusOK, struct {
			Found    int           `json:"found"`
			Requests []record.View `json:"requests"`
		}{len(found.Requests), found.Requests})
	}
	return e.WriteUnmet(w, found)
}
