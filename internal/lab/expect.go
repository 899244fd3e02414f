// Expectations: statements about the request record that a test waits for.

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"authhub/internal/reply"
	"authhub/internal/runs"
)

const (
	maxExpectWait = 30 * time.Second
	usualWait     = 5 * time.Second
	maxNearest    = 10
	noLimit       = maxRequests + 1
)

// expectation is a statement about how many requests there are of a kind.
type expectation struct {
	filter
	Count  map[string]int `json:"count"` // one of exactly, at_least, at_most
	Within string         `json:"within"`

	least, most int
	within      time.Duration
}

// miss is a request that comes near to what was expected.
type miss struct {
	Request requestView `json:"request"`
	Differs []string    `json:"differs"`
}

func (b *bench) expect(w http.ResponseWriter, r *http.Request) error {
	in, err := readStrict(w, r, false, append([]string{"count", "within"}, filterNames...)...)
	if err != nil {
		return err
	}
	e, err := b.readExpectation(in)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(r.Context(), e.within)
	defer cancel()
	found, err := b.requests.await(ctx, b.ctx, e)
	if err != nil {
		return err
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}

	b.lab.RenewDeadline(w)
	if found.held {
		return reply.WriteJSON(w, http.StatusOK, struct {
			Found    int           `json:"found"`
			Requests []requestView `json:"requests"`
		}{len(found.requests), found.requests})
	}
	return e.writeUnmet(w, found)
}

func (b *bench) readExpectation(in *question) (*expectation, error) {
	e := &expectation{filter: b.readFilter(in), within: in.span("within", time.Millisecond, maxExpectWait), most: noLimit}
	if e.within == 0 {
		e.within = usualWait
	}
	e.Within = spell(e.within)
	count := ask(in.object("count"))
	if !in.has("count") {
		count.Members = map[string]any{"at_least": 1}
	}
	if len(count.Members) != 1 {
		in.Fault("count", "must have exactly one of exactly, at_least, at_most")
	}
	for name := range count.Members {
		n := 1
		if in.has("count") {
			n = count.whole(name, 0, maxRequests, 0)
		}
		switch name {
		case "exactly":
			e.least, e.most = n, n
		case "at_least":
			e.least = n
		case "at_most":
			e.most = n
		default:
			in.Fault("count."+name, "is unknown here; there are exactly, at_least, at_most")
		}
		e.Count = map[string]int{name: n}
	}
	in.adopt("count", count)
	return e, in.Err()
}

// outcome is what an expectation came to.
type outcome struct {
	held     bool
	requests []requestView
	nearest  []miss // unless it held
}

// await returns as soon as it is certain whether e holds, at the latest when ctx ends. When the hub ends
// it returns why, runs.ErrBusy or the 404 of a deleted namespace.
func (l *requestLog) await(ctx, hub context.Context, e *expectation) (*outcome, error) {
	for {
		o, changed := l.check(e, ctx.Err() != nil)
		if o != nil {
			return o, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-hub.Done():
			var gone *reply.Error
			if errors.As(context.Cause(hub), &gone) {
				return nil, gone
			}
			return nil, runs.ErrBusy // the process is stopping, by a signal of which Go 1.26 makes the cause
		}
	}
}

// check returns the outcome or, if that is not certain yet and this is not the last look, what is closed at the next change.
func (l *requestLog) check(e *expectation, last bool) (*outcome, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.allLocked()
	o := &outcome{requests: e.matches(all)}
	found := len(o.requests)
	switch {
	case found > e.most || last && found < e.least:
		o.nearest = e.nearest(all)
	case last || found >= e.least && e.most == noLimit:
		o.held = true
	default:
		return nil, l.changedLocked()
	}
	return o, nil
}

// writeUnmet answers 409 with what was expected and what there is instead.
func (e *expectation) writeUnmet(w http.ResponseWriter, o *outcome) error {
	unmet := reply.Fail(http.StatusConflict, "expectation_failed", fmt.Sprintf("Expected %s, found %d.", e.spell(), len(o.requests)))
	body, err := json.Marshal(struct {
		*reply.Error
		Expected *expectation  `json:"expected"`
		Found    int           `json:"found"`
		Requests []requestView `json:"requests"`
		Nearest  []miss        `json:"nearest"`
	}{unmet, e, len(o.requests), o.requests, o.nearest})
	if err != nil {
		return err
	}
	w.Header()["Content-Type"] = []string{"application/problem+json"}
	reply.WriteBody(w, unmet.Status, append(body, '\n'))
	return nil
}

// spell says the count for people.
func (e *expectation) spell() string {
	switch {
	case e.least == e.most:
		return fmt.Sprintf("exactly %d within %s", e.least, e.Within)
	case e.most == noLimit:
		return fmt.Sprintf("at least %d within %s", e.least, e.Within)
	}
	return fmt.Sprintf("at most %d within %s", e.most, e.Within)
}

// nearest returns the latest of the requests that miss the fewest members of the filter. One of another operation
// is further off than one that only came out differently.
func (f *filter) nearest(all []*seenRequest) []miss {
	nearest := []miss{}
	distance := func(differs []string) int {
		if differs[0] == "operation" {
			return len(differs) + len(filterNames)
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
