// The queue of faults, as tests see it.

package lab

import (
	"net/http"

	"authhub/internal/lab/fault"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

func (b *bench) addFault(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, fault.Names...)
	if err != nil {
		return err
	}
	f := fault.Read(in, operationNames)
	if err := in.Err(); err != nil {
		return err
	}

	view, err := b.faults.Add(f)
	if err != nil {
		return err
	}

	return reply.WriteJSON(w, http.StatusCreated, view)
}

func (b *bench) listFaults(w http.ResponseWriter, _ *http.Request) error {
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"faults": b.faults.List()})
}

func (b *bench) deleteFaults(w http.ResponseWriter, _ *http.Request) error {
	b.faults.Remove("")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *bench) deleteFault(w http.ResponseWriter, r *http.Request) error {
	if !b.faults.Remove(r.PathValue("id")) {
		return reply.Fail(http.StatusNotFound, "not_found", "No fault has this id. GET /lab/faults lists the faults.")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
