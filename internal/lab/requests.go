// The request record: what came in, for tests to look at, to wait for (expect.go) and to judge (report.go).
//
// A request is noted when it arrives and completed when it has been answered, so that one that is held can be seen
// waiting. Of a token the record keeps what it was, never the token.

package lab

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"authhub/internal/account"
	"authhub/internal/jwt"
	"authhub/internal/lab/judge"
	"authhub/internal/reply"
)

const maxRequests = 10_000

// seenRequest is one request. Its fields are written under requestLog.mu once it is in the record.
type seenRequest struct {
	judge.Exchange
	fault   string // id
	took    time.Duration
	dropped bool // from the record: it is cleared, or has been overwritten
}

// seenToken is what the record says of a token.
type seenToken struct {
	Kind       *string `json:"kind"`
	Generation *int    `json:"generation"`
	State      string  `json:"state"` // valid, expired, not_yet_valid, spent, revoked, wrong_type, malformed
}

// token returns what r presented, or nil.
func (r *seenRequest) token() *seenToken {
	switch t := r.Token; {
	case t != nil:
		kind, generation := jwt.Access.String(), t.Generation
		if t.Refresh {
			kind = jwt.Refresh.String()
		}
		return &seenToken{&kind, &generation, t.State}
	case r.Presented != 0:
		return &seenToken{State: "malformed"}
	}
	return nil
}

// requestView is a request as clients see it.
type requestView struct {
	Seq        int        `json:"seq"`
	At         string     `json:"at"`
	Operation  string     `json:"operation"`
	Method     string     `json:"method"`
	Path       string     `json:"path"`
	Status     *int       `json:"status"`
	Code       *string    `json:"code"`
	DurationMS *float64   `json:"duration_ms"`
	User       *string    `json:"user"`
	Session    *string    `json:"session"`
	Token      *seenToken `json:"token"`
	Fault      *string    `json:"fault"`
}

func (r *seenRequest) view() requestView {
	v := requestView{Seq: r.Seq, At: reply.FormatTime(r.Arrival.Hub), Operation: r.Operation, Method: r.Method, Path: r.Path,
		Status: known(r.Status), User: known(r.User), Session: known(r.Session), Token: r.token(), Fault: known(r.fault)}
	if r.Status != 0 {
		v.Code = known(r.Code)
	}
	if r.answered() {
		ms := float64(r.took.Microseconds()) / 1000
		v.DurationMS = &ms
	}
	return v
}

// answered reports whether r is over, with an answer or without.
func (r *seenRequest) answered() bool { return r.End.Order > 0 }

// known returns nil, JSON's null, for a zero value.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// requestLog is a ring of the latest requests in the order of their arrival. It grows as it fills: an idle namespace
// costs nothing.
type requestLog struct {
	mu          sync.Mutex
	ring        []*seenRequest
	oldest      int // index of the oldest, once the ring is full
	seq         int
	tick        int
	overwritten int
	epochs      []judge.Mark  // that are over
	policy      judge.Policy  // of the latest request
	changed     chan struct{} // closed at the next change; nil while nobody waits
	version     int           // counts changes
	watches     map[*watch]struct{}
}

// begin notes an arrival.
func (l *requestLog) begin(r *seenRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seq > 0 && r.Policy != l.policy { // set, or a dialect's
		l.startEpochLocked(r.Arrival.Hub)
	}
	l.policy = r.Policy
	l.seq++
	l.tick++
	r.Seq, r.Arrival.Order, r.Epoch = l.seq, l.tick, len(l.epochs)
	if len(l.ring) < maxRequests {
		l.ring = append(l.ring, r)
	} else {
		l.dropLocked(l.ring[l.oldest])
		l.ring[l.oldest] = r
		l.oldest = (l.oldest + 1) % maxRequests
		l.overwritten++
	}
	l.noteLocked(r)
}

// end completes r with what complete writes to it.
func (l *requestLog) end(r *seenRequest, complete func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	complete()
	l.tick++
	r.End.Order = l.tick
	l.noteLocked(r)
}

// startEpoch notes that the clock was put back: the report compares nothing across it.
func (l *requestLog) startEpoch(hub time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startEpochLocked(hub)
}

func (l *requestLog) startEpochLocked(hub time.Time) {
	l.epochs = append(l.epochs, judge.Mark{Hub: hub, Machine: time.Now()})
	l.version++
}

// changedLocked returns what is closed at the next change.
func (l *requestLog) changedLocked() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// currentVersion returns a number that is another one after each change.
func (l *requestLog) currentVersion() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// noteLocked tells of a change of r those who wait for it.
func (l *requestLog) noteLocked(r *seenRequest) {
	if !r.dropped {
		for w := range l.watches {
			w.look(r)
		}
	}
	l.announceLocked()
}

// dropLocked tells those who wait that r is not in the record any more.
func (l *requestLog) dropLocked(r *seenRequest) {
	r.dropped = true
	for w := range l.watches {
		delete(w.met, r)
	}
}

func (l *requestLog) announceLocked() {
	l.version++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// clear forgets all requests; those under way stay forgotten when they end.
func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.ring {
		l.dropLocked(r)
	}
	l.ring, l.oldest, l.overwritten = nil, 0, 0
	l.announceLocked()
}

// reset is clear, and counts from 1 again.
func (l *requestLog) reset() {
	l.clear()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq, l.epochs = 0, nil
}

// allLocked returns the requests in the order of their arrival.
func (l *requestLog) allLocked() []*seenRequest {
	return append(slices.Clone(l.ring[l.oldest:]), l.ring[:l.oldest]...)
}

func (l *requestLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring)
}

// filter is a statement about one request; zero members say nothing.
type filter struct {
	Operation string `json:"operation,omitempty"`
	Session   string `json:"session,omitempty"`
	User      string `json:"user,omitempty"`
	Status    int    `json:"status,omitempty"`
	After     int    `json:"after,omitempty"`
}

var filterNames = []string{"operation", "session", "user", "status", "after"}

// readFilter reads a filter. A user may be given by name or id.
func (b *bench) readFilter(in *question) filter {
	f := filter{Session: in.Text("session"), User: in.Text("user"), Status: in.whole("status", 100, 599, 0), After: in.whole("after", 0, 1<<53, 0)}
	if in.has("operation") {
		f.Operation = in.oneOf("operation", operationNames...)
	}
	store := b.hub.Load().Store
	if u := store.UserByID(f.User); u != nil && store.UserByLogin(f.User) == nil {
		f.User = u.Username
	}
	return f
}

// differs returns the names of the members of f that r does not meet.
func (f *filter) differs(r *seenRequest) []string {
	var names []string
	note := func(differs bool, name string) {
		if differs {
			names = append(names, name)
		}
	}
	note(f.Operation != "" && f.Operation != r.Operation, "operation")
	note(f.Session != "" && f.Session != r.Session, "session")
	note(f.User != "" && account.Fold(f.User) != account.Fold(r.User), "user")
	note(f.Status != 0 && f.Status != r.Status, "status")
	note(r.Seq <= f.After, "after")
	return names
}

// meets reports whether r meets f.
func (f *filter) meets(r *seenRequest) bool {
	return (f.Operation == "" || f.Operation == r.Operation) && (f.Status == 0 || f.Status == r.Status) && r.Seq > f.After &&
		(f.Session == "" || f.Session == r.Session) && (f.User == "" || account.Fold(f.User) == account.Fold(r.User))
}

// matches returns the requests that meet f.
func (f *filter) matches(all []*seenRequest) []requestView {
	views := []requestView{}
	for _, r := range all {
		if f.meets(r) {
			views = append(views, r.view())
		}
	}
	return views
}

func (b *bench) listRequests(w http.ResponseWriter, r *http.Request) error {
	in, err := readQuery(r, []string{"status", "after"}, filterNames...)
	if err != nil {
		return err
	}
	f := b.readFilter(in)
	if err := in.Err(); err != nil {
		return err
	}

	l := &b.requests
	l.mu.Lock()
	matching, overwritten := f.matches(l.allLocked()), l.overwritten
	l.mu.Unlock()

	return reply.WriteJSON(w, http.StatusOK, struct {
		Requests    []requestView `json:"requests"`
		Overwritten int           `json:"overwritten"`
	}{matching, overwritten})
}

func (b *bench) clearRequests(w http.ResponseWriter, _ *http.Request) error {
	b.requests.clear()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
