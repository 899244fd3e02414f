// Faults: what goes wrong, on demand, at the edge of an operation: before it, or after its work is committed.
//
// Faults stand in a queue. A request is taken by the first one that matches it and is not spent; a fault that still
// skips counts the request and leaves it to the next one. What a fault does comes in this order: delay, hold, then
// at most one outcome, the answer of which may be cut. Waiting is real time, and ends when the client leaves, the fault is deleted or the hub
// stops.

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/reply"
)

const maxFaults = 1_000

// fault is one in the queue. What it was ordered to do does not change; its counts are under faultQueue.mu.
type fault struct {
	faultOrder
	id            string
	delay, within time.Duration
	gone          chan struct{} // closed when it is deleted

	skipped int
	used    int // requests, or with hold groups, out of Times
	hits    int
	waiting int
	group   *group // that still takes members; nil: none
}

// group is requests that are to go together.
type group struct {
	joined, arrived int
	opened          bool
	open            chan struct{} // closed when they may go
}

func (g *group) openLocked() {
	if !g.opened {
		g.opened = true
		close(g.open)
	}
}

// faultView is a fault as clients see it.
type faultView struct {
	ID string `json:"id"`
	faultOrder
	Hits    int  `json:"hits"`
	Left    *int `json:"left"` // null: until deleted
	Waiting int  `json:"waiting"`
}

type faultQueue struct {
	mu     sync.Mutex
	faults []*fault
	made   int
}

// add puts f at the end of the queue. Where there are many, those that are spent make room; else a 507.
func (q *faultQueue) add(f *fault) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.faults) >= maxFaults {
		i := slices.IndexFunc(q.faults, (*fault).spentLocked)
		if i < 0 {
			return reply.Fail(http.StatusInsufficientStorage, "fault_limit", "There are as many faults as the lab holds. DELETE /lab/faults takes them away.")
		}
		q.faults = slices.Delete(q.faults, i, i+1)
	}
	q.made++
	f.id = "f" + strconv.Itoa(q.made)
	q.faults = append(q.faults, f)
	return nil
}

func (f *fault) spentLocked() bool {
	return f.Times > 0 && f.used >= f.Times && f.group == nil && f.waiting == 0
}

// encounter is one request's meeting with a fault.
type encounter struct {
	*fault
	group *group
}

// take returns the fault that this request meets, or nil.
func (q *faultQueue) take(operation, session string) *encounter {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range q.faults {
		if f.Operation != "*" && f.Operation != operation || f.Session != "" && f.Session != session {
			continue
		}
		if met := f.takeLocked(); met != nil {
			return met
		}
	}
	return nil
}

func (f *fault) takeLocked() *encounter {
	switch {
	case f.group == nil && f.Times > 0 && f.used >= f.Times:
		return nil
	case f.skipped < f.Skip:
		f.skipped++
		return nil
	}
	f.hits++
	if f.group == nil {
		f.used++
	}
	if f.Hold == 0 {
		return &encounter{fault: f}
	}
	if f.group == nil {
		f.group = &group{open: make(chan struct{})}
	}
	met := &encounter{f, f.group}
	if f.group.joined++; f.group.joined == f.Hold {
		f.group = nil // full: the next request begins another one
	}
	return met
}

// disturb does to a request what its fault says before the operation, and reports whether that was all: then it has
// been answered, or its client has gone. Else answer is set up for what happens after it.
func (e *encounter) disturb(b *bench, answer *tap, r *http.Request) bool {
	http.NewResponseController(answer).SetReadDeadline(time.Time{}) // the body may come after the wait, which is not the client's doing
	stays := e.wait(b, r.Context())
	if stays && e.Truncate != nil {
		answer.limit = *e.Truncate
	}
	b.lab.RenewDeadline(answer)
	switch {
	case errors.Is(context.Cause(r.Context()), account.ErrReplaced):
		b.lab.Answer(answer, r, account.ErrReplaced)
		return true
	case !stays:
		return true
	case e.Drop == "before":
		answer.abort()
	case e.Status != 0:
		answer.injected = true
		e.writeAnswer(answer)
		return true
	case e.Malformed:
		answer.injected, answer.malformed = true, true
		reply.WriteBody(answer, http.StatusOK, []byte(`{"access_token":"eyJ`))
		return true
	case e.Drop == "after":
		answer.hide = true
	}
	return false
}

// wait delays and holds the request. It reports whether its client is still there.
func (e *encounter) wait(b *bench, client context.Context) bool {
	pause := func(d time.Duration, open <-chan struct{}) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-open:
		case <-timer.C:
		case <-e.gone:
		case <-client.Done():
		case <-b.ctx.Done():
		}
	}
	if e.delay > 0 {
		pause(e.delay, nil)
	}
	if e.Hold > 0 {
		b.faults.arrive(e)
		pause(e.within, e.group.open)
		b.faults.leave(e, client.Err() != nil)
	}
	return client.Err() == nil
}

// arrive counts a request as waiting, and opens the way if it is the last of its group.
func (q *faultQueue) arrive(e *encounter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.waiting++
	if e.group.arrived++; e.group.arrived == e.Hold {
		e.group.openLocked()
	}
}

// leave counts a request as waiting no more. If its client has gone, its place in the group is free again; if its
// patience is at an end, so is the group's: all go.
func (q *faultQueue) leave(e *encounter, clientGone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.waiting--
	if e.group.opened {
		return
	}
	if clientGone && e.fault.group == e.group {
		e.group.arrived--
		e.group.joined--
		return
	}
	e.group.openLocked()
	if e.fault.group == e.group {
		e.fault.group = nil
	}
}

// remove takes away the fault of that id, or all for "", and lets go what they hold. It reports whether there was one.
func (q *faultQueue) remove(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.faults)
	q.faults = slices.DeleteFunc(q.faults, func(f *fault) bool {
		if id == "" || f.id == id {
			close(f.gone)
			return true
		}
		return false
	})
	return len(q.faults) < before
}

// reset counts ids from 1 again.
func (q *faultQueue) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made = 0
}

// orders returns those that are not spent, as orders of what is left of them.
func (q *faultQueue) orders() []json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	orders := []json.RawMessage{}
	for _, f := range q.faults {
		o := f.faultOrder
		o.Skip -= f.skipped
		if o.Times > 0 {
			o.Times -= f.used
		}
		if f.Times == 0 || o.Times > 0 {
			line, _ := json.Marshal(o) // it has come as JSON
			orders = append(orders, line)
		}
	}
	return orders
}

// list returns the faults as they stand.
func (q *faultQueue) list() []faultView {
	q.mu.Lock()
	defer q.mu.Unlock()
	views := make([]faultView, len(q.faults))
	for i, f := range q.faults {
		views[i] = f.viewLocked()
	}
	return views
}

func (f *fault) viewLocked() faultView {
	v := faultView{ID: f.id, faultOrder: f.faultOrder, Hits: f.hits, Waiting: f.waiting}
	if f.Times > 0 {
		left := (f.Times - f.used) * max(1, f.Hold)
		if f.group != nil {
			left += f.Hold - f.group.joined
		}
		v.Left = &left
	}
	return v
}

func (b *bench) addFault(w http.ResponseWriter, r *http.Request) error {
	in, err := readStrict(w, r, false, faultNames...)
	if err != nil {
		return err
	}
	f := readFault(in)
	if err := in.Err(); err != nil {
		return err
	}

	if err := b.faults.add(f); err != nil {
		return err
	}

	b.faults.mu.Lock()
	view := f.viewLocked()
	b.faults.mu.Unlock()
	return reply.WriteJSON(w, http.StatusCreated, view)
}

func (b *bench) listFaults(w http.ResponseWriter, _ *http.Request) error {
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"faults": b.faults.list()})
}

func (b *bench) deleteFaults(w http.ResponseWriter, _ *http.Request) error {
	b.faults.remove("")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *bench) deleteFault(w http.ResponseWriter, r *http.Request) error {
	if !b.faults.remove(r.PathValue("id")) {
		return reply.Fail(http.StatusNotFound, "not_found", "There is no fault of this id. GET /lab/faults lists them.")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
