// Expectations: statements about the request record that a test waits for.

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

var stopping = reply.Fail(http.StatusServiceUnavailable, "busy", "The hub is stopping. Start it again.")

const (
	maxExpectWait = 30 * time.Second
	usualWait     = 5 * time.Second
	maxNearest    = 10
	noLimit       = MaxRequests + 1
)

// expectation is a statement about how many requests there are of a kind.
type expectation struct {
	Filter
	Count  map[string]int `json:"count"` // one of exactly, at_least, at_most
	Within string         `json:"within"`

	least, most int
	Patience    time.Duration `json:"-"`
}

// miss is a request that comes near to what was expected.
type miss struct {
	Request View     `json:"request"`
	Differs []string `json:"differs"`
}

// ReadExpectation reads count and within of an expectation of the requests that meet f.
func ReadExpectation(in *strict.Form, f Filter) (*expectation, error) {
	e := &expectation{Filter: f, Patience: in.Span("within", time.Millisecond, maxExpectWait), most: noLimit}
	if e.Patience == 0 {
		e.Patience = usualWait
	}
	e.Within = strict.Spell(e.Patience)
	count := strict.New(in.Object("count"))
	if !in.Has("count") {
		count.Members = map[string]any{"at_least": 1}
	}
	if len(count.Members) != 1 {
		in.Fault("count", "must have exactly one of exactly, at_least, at_most")
	}
	for name := range count.Members {
		n := 1
		if in.Has("count") {
			n = count.Whole(name, 0, MaxRequests, 0)
		}
		switch name {
		case "exactly":
			e.least, e.most = n, n
		case "at_least":
			e.least = n
		case "at_most":
			e.most = n
		default:
			in.Fault("count."+name, "is not a known member; there are exactly, at_least, at_most")
		}
		e.Count = map[string]int{name: n}
	}
	in.Adopt("count", count)
	return e, in.Err()
}

// Outcome is what an expectation came to.
type Outcome struct {
	Held     bool
	Requests []View
	nearest  []miss // unless it held
}

// watch is an expectation that waits. It looks at each request that changes, and never again at the whole record: those
// who wait cost other requests next to nothing.
type watch struct {
	*expectation
	met     map[*Request]struct{} // the requests that meet the filter
	settled chan struct{}         // closed when it is certain whether the expectation holds
	certain bool
}

// look takes notice of a request that is new or has changed.
func (w *watch) look(r *Request) {
	if w.meets(r) {
		w.met[r] = struct{}{}
	} else {
		delete(w.met, r)
	}
	if n := len(w.met); !w.certain && (n > w.most || n >= w.least && w.most == noLimit) {
		w.certain = true
		close(w.settled)
	}
}

// Await returns as soon as it is certain whether e holds, at the latest when ctx ends. When the hub ends
// it returns why, a 503 or the 404 of a deleted namespace.
func (l *Log) Await(ctx, hub context.Context, e *expectation) (*Outcome, error) {
	for {
		w := l.watch(e)
		select {
		case <-w.settled:
		case <-ctx.Done():
		case <-hub.Done():
			l.unwatch(w)
			var gone *reply.Error
			if errors.As(context.Cause(hub), &gone) {
				return nil, gone
			}
			return nil, stopping // by a signal, of which Go 1.26 makes the cause
		}
		l.unwatch(w)
		if o := l.check(e, ctx.Err() != nil); o != nil {
			return o, nil
		} // else the record has been cleared in between
	}
}

// watch begins to watch for e.
func (l *Log) watch(e *expectation) *watch {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &watch{expectation: e, met: make(map[*Request]struct{}), settled: make(chan struct{})}
	for _, r := range l.ring {
		w.look(r)
	}
	if e.least == 0 && e.most == noLimit && !w.certain { // nothing is enough
		w.certain = true
		close(w.settled)
	}
	if l.watches == nil {
		l.watches = make(map[*watch]struct{})
	}
	l.watches[w] = struct{}{}
	return w
}

func (l *Log) unwatch(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watches, w)
}

// check returns the outcome, or nil if that is not certain yet and this is not the last look.
func (l *Log) check(e *expectation, last bool) *Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.allLocked()
	o := &Outcome{Requests: e.matches(all)}
	found := len(o.Requests)
	switch {
	case found > e.most || last && found < e.least:
		o.nearest = e.nearest(all)
	case last || found >= e.least && e.most == noLimit:
		o.Held = true
	default:
		return nil
	}
	return o
}

// WriteUnmet answers 409 with what was expected and what there is instead.
func (e *expectation) WriteUnmet(w http.ResponseWriter, o *Outcome) error {
	unmet := reply.Fail(http.StatusConflict, "expectation_failed", fmt.Sprintf("Expected %s, found %s.", e.spell(), spellFound(o.Requests)))
	body, err := json.Marshal(struct {
		*reply.Error
		Expected *expectation `json:"expected"`
		Found    int          `json:"found"`
		Requests []View       `json:"requests"`
		Nearest  []miss       `json:"nearest"`
	}{unmet, e, len(o.Requests), o.Requests, o.nearest})
	if err != nil {
		return err
	}
	w.Header()["Content-Type"] = []string{"application/problem+json"}
	reply.WriteBody(w, unmet.Status, append(body, '\n'))
	return nil
}

// spell says for people what is expected: "exactly 1 refresh within 200ms".
func (e *expectation) spell() string {
	n, word := e.most, "at most"
	switch {
	case e.least == e.most:
		word = "exactly"
	case e.most == noLimit:
		n, word = e.least, "at least"
	}
	return fmt.Sprintf("%s %d %s within %s", word, n, e.spellFilter(n), e.Within)
}

// spellFilter says for people which requests: "refresh with status 401 of demo".
func (f *Filter) spellFilter(n int) string {
	what := f.Operation
	switch {
	case what == "" && n == 1:
		what = "request"
	case what == "":
		what = "requests"
	}
	if f.Status != 0 {
		what += fmt.Sprintf(" with status %d", f.Status)
	}
	if f.Code != "" {
		what += " with code " + f.Code
	}
	if f.User != "" {
		what += " of " + f.User
	}
	if f.Session != "" {
		what += " in session " + f.Session
	}
	if f.After != 0 {
		what += fmt.Sprintf(" after request %d", f.After)
	}
	return what
}

// spellFound says for people how many requests there are, and which: "5 (requests 7 to 11)".
func spellFound(requests []View) string {
	n := len(requests)
	switch {
	case n == 0:
		return "0"
	case n == 1:
		return fmt.Sprintf("1 (request %d)", requests[0].Seq)
	case requests[n-1].Seq-requests[0].Seq == n-1:
		return fmt.Sprintf("%d (requests %d to %d)", n, requests[0].Seq, requests[n-1].Seq)
	}
	seqs := make([]string, 0, maxNearest)
	for _, r := range requests[max(0, n-maxNearest):] {
		seqs = append(seqs, strconv.Itoa(r.Seq))
	}
	first := ""
	if n > maxNearest {
		first = "…, "
	}
	return fmt.Sprintf("%d (requests %s%s and %s)", n, first, strings.Join(seqs[:len(seqs)-1], ", "), seqs[len(seqs)-1])
}

// nearest returns the latest of the requests that miss the fewest members of the filter. One of another operation
// is further off than one that only came out differently.
func (f *Filter) nearest(all []*Request) []miss {
	nearest := []miss{}
	distance := func(differs []string) int {
		if differs[0] == "operation" {
			return len(differs) + len(FilterNames)
		}
		return len(differs)
	}
	for _, r := range slices.Backward(all) {
		differs := f.differs(r)
		if len(differs) == 0 {
			continue
		}
		switch {
		case len(nearest) > 0 && distance(differs) > distance(nearest[0].Differs):
			continue
		case len(nearest) > 0 && distance(differs) < distance(nearest[0].Differs):
			nearest = nearest[:0]
		}
		if len(nearest) < maxNearest {
			nearest = append(nearest, miss{r.view(), differs})
		}
	}
	slices.Reverse(nearest)
	return nearest
}
