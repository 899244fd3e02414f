// Package record keeps the requests that came in, so that tests can look at them and wait for them (expect.go).
//
// A request is noted when it arrives and completed when it has been answered, so that one that is held can be seen
// waiting. Of a token the record keeps what it was, never the token.
package record

import (
	"slices"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/jwt"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

const MaxRequests = 10_000

// Request is one request. Its fields are written under Log.mu once it is in the record.
type Request struct {
	judge.Exchange
	Sender  *Client // nil: unknown
	Fault   string  // id
	Took    time.Duration
	dropped bool // from the record: it is cleared, or has been overwritten
}

// Leave notes that the client has closed the connection without reading the answer. Who does so a second later has read
// it: some pools reset the connections that they have no more use for.
func (r *Request) Leave() {
	if r.End.Order == 0 || time.Since(r.End.Machine) < time.Second {
		r.Left = true
	}
}

// Token is what the record says of a token.
type Token struct {
	Kind       *string `json:"kind"`
	Generation *int    `json:"generation"`
	State      string  `json:"state"` // valid, expired, not_yet_valid, spent, revoked, wrong_type, malformed
}

// token returns what r presented, or nil.
func (r *Request) token() *Token {
	switch t := r.Token; {
	case t != nil:
		kind, generation := jwt.Access.String(), t.Generation
		if t.Refresh {
			kind = jwt.Refresh.String()
		}
		return &Token{&kind, &generation, t.State}
	case r.Presented != 0:
		return &Token{State: "malformed"}
	}
	return nil
}

// View is a request as clients see it.
type View struct {
	Seq        int      `json:"seq"`
	At         string   `json:"at"`
	Operation  string   `json:"operation"`
	Method     string   `json:"method"`
	Path       string   `json:"path"`
	Status     *int     `json:"status"`
	Code       *string  `json:"code"`
	DurationMS *float64 `json:"duration_ms"`
	User       *string  `json:"user"`
	Session    *string  `json:"session"`
	Token      *Token   `json:"token"`
	Fault      *string  `json:"fault"`
}

func (r *Request) view() View {
	v := View{Seq: r.Seq, At: reply.FormatTime(r.Arrival.Hub), Operation: r.Operation, Method: r.Method, Path: r.Path,
		Status: Known(r.Status), Code: Known(r.code()), User: Known(r.User), Session: Known(r.Session), Token: r.token(), Fault: Known(r.Fault)}
	if r.answered() {
		ms := float64(r.Took.Microseconds()) / 1000
		v.DurationMS = &ms
	}
	return v
}

// code returns the code of the error that reached the client; "" for none.
func (r *Request) code() string {
	if r.Status == 0 {
		return ""
	}
	return r.Code
}

// answered reports whether r is over, with an answer or without.
func (r *Request) answered() bool { return r.End.Order > 0 }

// Known returns nil, JSON's null, for a zero value.
func Known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Log is a ring of the latest requests in the order of their arrival. It grows as it fills: an idle namespace
// costs nothing.
type Log struct {
	mu          sync.Mutex
	ring        []*Request
	oldest      int // index of the oldest, once the ring is full
	seq         int
	tick        int
	overwritten int
	epochs      []judge.Mark  // that are over
	changed     chan struct{} // closed at the next change; nil while nobody waits
	version     int           // counts changes
	watches     map[*watch]struct{}
	clients     map[string]*Client // by session that it has used; as many at most as there are requests
}

// Begin notes an arrival.
func (l *Log) Begin(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.tick++
	r.Seq, r.Arrival.Order, r.Epoch = l.seq, l.tick, len(l.epochs)
	if len(l.ring) < MaxRequests {
		l.ring = append(l.ring, r)
	} else {
		l.dropLocked(l.ring[l.oldest])
		l.ring[l.oldest] = r
		l.oldest = (l.oldest + 1) % MaxRequests
		l.overwritten++
	}
	l.noteLocked(r)
}

// End completes r with what complete writes to it.
func (l *Log) End(r *Request, complete func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	complete()
	l.meetLocked(r)
	l.tick++
	r.End.Order = l.tick
	l.noteLocked(r)
}

// StartEpoch notes that the clock was put back or the policy changed: the report compares nothing across it.
func (l *Log) StartEpoch(hub time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs = append(l.epochs, judge.Mark{Hub: hub, Machine: time.Now()})
	l.version++
}

// changedLocked returns what is closed at the next change.
func (l *Log) changedLocked() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// CurrentVersion returns a number that differs after each change.
func (l *Log) CurrentVersion() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// noteLocked tells of a change of r those who wait for it.
func (l *Log) noteLocked(r *Request) {
	if !r.dropped {
		for w := range l.watches {
			w.look(r)
		}
	}
	l.announceLocked()
}

// dropLocked tells those who wait that r is not in the record any more.
func (l *Log) dropLocked(r *Request) {
	r.dropped = true
	for w := range l.watches {
		delete(w.met, r)
	}
}

func (l *Log) announceLocked() {
	l.version++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Clear forgets all requests; those under way stay forgotten when they end.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.ring {
		l.dropLocked(r)
	}
	l.ring, l.oldest, l.overwritten = nil, 0, 0
	l.announceLocked()
}

// Reset is Clear, and counts from 1 again.
func (l *Log) Reset() {
	l.Clear()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq, l.epochs, l.clients = 0, nil, nil
}

// allLocked returns the requests in the order of their arrival.
func (l *Log) allLocked() []*Request {
	return append(slices.Clone(l.ring[l.oldest:]), l.ring[:l.oldest]...)
}

// Count returns how many requests the record holds.
func (l *Log) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring)
}

// Filter is a statement about one request. A zero member says nothing.
type Filter struct {
	Operation string `json:"operation,omitempty"`
	Session   string `json:"session,omitempty"`
	User      string `json:"user,omitempty"`
	Status    int    `json:"status,omitempty"`
	Code      string `json:"code,omitempty"`
	After     int    `json:"after,omitempty"`
}

// FilterNames are the members of a filter.
var FilterNames = []string{"operation", "session", "user", "status", "code", "after"}

// differences tell for each of FilterNames whether a request does not meet it.
var differences = [...]func(*Filter, *Request) bool{
	func(f *Filter, r *Request) bool { return f.Operation != "" && f.Operation != r.Operation },
	func(f *Filter, r *Request) bool { return f.Session != "" && f.Session != r.Session },
	func(f *Filter, r *Request) bool { return f.User != "" && account.Fold(f.User) != account.Fold(r.User) },
	func(f *Filter, r *Request) bool { return f.Status != 0 && f.Status != r.Status },
	func(f *Filter, r *Request) bool { return f.Code != "" && f.Code != r.code() },
	func(f *Filter, r *Request) bool { return r.Seq <= f.After },
}

// ReadFilter reads a filter; operations are the names that it may use.
func ReadFilter(in *strict.Form, operations []string) Filter {
	f := Filter{Session: in.Text("session"), User: in.Text("user"), Status: in.Whole("status", 100, 599, 0),
		Code: in.Text("code"), After: in.Whole("after", 0, 1<<53, 0)}
	if in.Has("operation") {
		f.Operation = in.OneOf("operation", operations...)
	}
	return f
}

// differs returns the names of the members of f that r does not meet.
func (f *Filter) differs(r *Request) []string {
	var names []string
	for i, differs := range differences {
		if differs(f, r) {
			names = append(names, FilterNames[i])
		}
	}
	return names
}

// meets reports whether r meets f.
func (f *Filter) meets(r *Request) bool {
	for _, differs := range differences {
		if differs(f, r) {
			return false
		}
	}
	return true
}

// matches returns the requests that meet f.
func (f *Filter) matches(all []*Request) []View {
	views := []View{}
	for _, r := range all {
		if f.meets(r) {
			views = append(views, r.view())
		}
	}
	return views
}

// Update changes a request that is in the record.
func (l *Log) Update(r *Request, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.noteLocked(r)
}

// List returns the requests that meet f, and how many have been overwritten.
func (l *Log) List(f *Filter) (matching []View, overwritten int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.matches(l.allLocked()), l.overwritten
}

// Exchanges returns a copy of the record, and a channel that is closed when it changes.
func (l *Log) Exchanges() (record []*judge.Exchange, ended []judge.Mark, overwritten int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	copies := make([]judge.Exchange, len(l.ring))
	for i, r := range l.allLocked() {
		copies[i] = r.Exchange
		copies[i].Client = r.Sender.identity()
		record = append(record, &copies[i])
	}
	return record, slices.Clone(l.epochs), l.overwritten, l.changedLocked()
}
