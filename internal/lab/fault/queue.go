// Package fault makes operations fail as a test has ordered, before they begin or after their work is committed.
//
// Faults stand in a queue. A request is taken by the first fault that matches it and is not spent; a fault that still
// skips counts the request and leaves it to the next fault. What a fault does comes in this order: delay, hold, then at
// most one outcome, the answer of which may be cut. Waiting is real time, and ends when the client leaves, the fault is
// deleted or the hub stops. The package knows no hub.
package fault

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"authhub/internal/reply"
)

// MaxFaults is how many faults a queue holds. When it is full, a spent fault makes room for a new one.
const MaxFaults = 1_000

// Fault is a fault in the queue. Its order does not change; its counts are under Queue.mu.
type Fault struct {
	Order
	ID            string
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

// View is a fault as clients see it.
type View struct {
	ID string `json:"id"`
	Order
	Hits    int  `json:"hits"`
	Left    *int `json:"left"` // null: until deleted
	Waiting int  `json:"waiting"`
}

// Queue holds the faults of one hub, in the order in which they were added.
type Queue struct {
	mu     sync.Mutex
	faults []*Fault
	made   int
}

// Add puts f at the end of the queue and returns it as clients see it. Where there are many, those that are spent make
// room; else a 507.
func (q *Queue) Add(f *Fault) (View, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.faults) >= MaxFaults {
		i := slices.IndexFunc(q.faults, (*Fault).spentLocked)
		if i < 0 {
			return View{}, reply.Fail(http.StatusInsufficientStorage, "fault_limit", "The lab has 1,000 unspent faults and takes no more. DELETE /lab/faults deletes them.")
		}
		q.faults = slices.Delete(q.faults, i, i+1)
	}
	q.made++
	f.ID = "f" + strconv.Itoa(q.made)
	q.faults = append(q.faults, f)
	return f.viewLocked(), nil
}

func (f *Fault) spentLocked() bool {
	return f.Times > 0 && f.used >= f.Times && f.group == nil && f.waiting == 0
}

// Encounter is one request's meeting with a fault.
type Encounter struct {
	*Fault
	group *group
	queue *Queue
}

// Take returns the fault that this request meets, or nil.
func (q *Queue) Take(operation, session string) *Encounter {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range q.faults {
		if f.Operation != "*" && f.Operation != operation || f.Session != "" && f.Session != session {
			continue
		}
		if met := f.takeLocked(); met != nil {
			met.queue = q
			return met
		}
	}
	return nil
}

func (f *Fault) takeLocked() *Encounter {
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
		return &Encounter{Fault: f}
	}
	if f.group == nil {
		f.group = &group{open: make(chan struct{})}
	}
	met := &Encounter{Fault: f, group: f.group}
	if f.group.joined++; f.group.joined == f.Hold {
		f.group = nil // full: the next request begins another one
	}
	return met
}

// Wait delays and holds the request, and reports whether its client is still there. It ends with hub at the latest.
func (e *Encounter) Wait(hub context.Context, answer http.ResponseWriter, client context.Context) bool {
	http.NewResponseController(answer).SetReadDeadline(time.Time{}) // the body may come after the wait, which is not the client's doing
	pause := func(d time.Duration, open <-chan struct{}) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-open:
		case <-timer.C:
		case <-e.gone:
		case <-client.Done():
		case <-hub.Done():
		}
	}
	if e.delay > 0 {
		pause(e.delay, nil)
	}
	if e.Hold > 0 {
		e.queue.arrive(e)
		pause(e.within, e.group.open)
		e.queue.leave(e, client.Err() != nil)
	}
	return client.Err() == nil
}

// Strike does to a request what its fault says before the operation, and reports whether that was all: then it has been
// answered. Else answer is set up for what happens after it. It panics with http.ErrAbortHandler to cut the connection.
func (e *Encounter) Strike(answer *Tap) bool {
	if e.Truncate != nil {
		answer.Limit = *e.Truncate
	}
	switch {
	case e.Drop == "before":
		answer.abort()
	case e.Status != 0:
		answer.Injected = true
		e.writeAnswer(answer)
		return true
	case e.Malformed:
		answer.Injected, answer.Malformed = true, true
		reply.WriteBody(answer, http.StatusOK, []byte(`{"access_token":"eyJ`))
		return true
	case e.Drop == "after":
		answer.Hide = true
	}
	return false
}

// arrive counts a request as waiting, and opens the way if it is the last of its group.
func (q *Queue) arrive(e *Encounter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.waiting++
	if e.group.arrived++; e.group.arrived == e.Hold {
		e.group.openLocked()
	}
}

// leave counts a request as waiting no more. If its client has gone, its place in the group is free again. If it has
// waited for as long as it may, the whole group goes.
func (q *Queue) leave(e *Encounter, clientGone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.waiting--
	if e.group.opened {
		return
	}
	if clientGone && e.Fault.group == e.group {
		e.group.arrived--
		e.group.joined--
		return
	}
	e.group.openLocked()
	if e.Fault.group == e.group {
		e.Fault.group = nil
	}
}

// Remove takes away the fault of that id, or all for "", and lets go what they hold. It reports whether there was one.
func (q *Queue) Remove(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.faults)
	q.faults = slices.DeleteFunc(q.faults, func(f *Fault) bool {
		if id == "" || f.ID == id {
			close(f.gone)
			return true
		}
		return false
	})
	return len(q.faults) < before
}

// Reset counts ids from 1 again.
func (q *Queue) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made = 0
}

// Orders returns the faults that are not spent, as orders of what is left of them.
func (q *Queue) Orders() []json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	orders := []json.RawMessage{}
	for _, f := range q.faults {
		o := f.Order
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

// List returns the faults as they stand.
func (q *Queue) List() []View {
	q.mu.Lock()
	defer q.mu.Unlock()
	views := make([]View, len(q.faults))
	for i, f := range q.faults {
		views[i] = f.viewLocked()
	}
	return views
}

func (f *Fault) viewLocked() View {
	v := View{ID: f.ID, Order: f.Order, Hits: f.hits, Waiting: f.waiting}
	if f.Times > 0 {
		left := (f.Times - f.used) * max(1, f.Hold)
		if f.group != nil {
			left += f.Hold - f.group.joined
		}
		v.Left = &left
	}
	return v
}
