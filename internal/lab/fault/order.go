// Orders of faults: what may be asked for, and the answers that are given in place of the hub's.

package fault

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

const (
	maxFaultWait = time.Minute
	usualWithin  = 5 * time.Second
	manyTimes    = 1_000_000
)

// Order is a fault as it was ordered.
type Order struct {
	Operation string            `json:"operation"`
	Session   string            `json:"session,omitempty"`
	Skip      int               `json:"skip"`
	Times     int               `json:"times"` // 0: until deleted; with hold, of groups
	Delay     string            `json:"delay,omitempty"`
	Hold      int               `json:"hold,omitempty"`
	Within    string            `json:"within,omitempty"`
	Status    int               `json:"status,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      any               `json:"body,omitempty"`
	Drop      string            `json:"drop,omitempty"` // before, after
	Truncate  *int              `json:"truncate,omitempty"`
	Malformed bool              `json:"malformed,omitempty"`
}

// Names are the members of a fault.
var Names = []string{"operation", "session", "skip", "times", "delay", "hold", "within", "status", "headers", "body", "drop", "truncate", "malformed"}

// Read reads an order, which is for one of these operations or for all. What can't be combined is a fault of the order.
func Read(in *strict.Form, operations []string) *Fault {
	f := &Fault{gone: make(chan struct{})}
	f.Operation = in.OneOf("operation", append([]string{"*"}, operations...)...)
	if !in.Has("operation") {
		in.Fault("operation", "is missing: one of *, "+strings.Join(operations, ", "))
	}
	f.Session = in.Text("session")
	f.Skip = in.Whole("skip", 0, manyTimes, 0)
	f.Times = in.Whole("times", 0, manyTimes, 1)
	f.delay = in.Span("delay", time.Millisecond, maxFaultWait)
	f.Hold = in.Whole("hold", 2, 1_000, 0)
	f.within = in.Span("within", time.Millisecond, maxFaultWait)
	f.readOutcome(in)
	if f.Hold > 0 && f.within == 0 {
		f.within = usualWithin
	}
	if in.Has("within") && !in.Has("hold") {
		in.Fault("within", "belongs to hold")
	}
	if f.delay > 0 {
		f.Delay = strict.Spell(f.delay)
	}
	if f.within > 0 {
		f.Within = strict.Spell(f.within)
	}
	return f
}

// readOutcome reads what the requests come to in the end.
func (f *Fault) readOutcome(in *strict.Form) {
	f.Status = in.Whole("status", 200, 599, 0)
	if in.Has("drop") {
		f.Drop = in.OneOf("drop", "before", "after")
	}
	if in.Has("truncate") {
		n := in.Whole("truncate", 0, 1<<30, 0)
		f.Truncate = &n
	}
	if f.Malformed = in.Truth("malformed", false); in.Has("malformed") && !f.Malformed {
		in.Fault("malformed", "must be true, or left out")
	}
	f.readAnswer(in)

	var outcomes []string
	for _, name := range []string{"status", "drop", "malformed"} {
		if in.Has(name) {
			outcomes = append(outcomes, name)
		}
	}
	switch {
	case len(outcomes) > 1: // two answers, or one and none
		in.Fault(outcomes[1], "can't be combined with "+outcomes[0])
	case in.Has("truncate") && in.Has("drop"):
		in.Fault("truncate", "can't be combined with drop, which lets nothing through")
	case len(outcomes) == 0 && !in.Has("truncate") && !in.Has("delay") && !in.Has("hold"):
		in.Fault("status", "is missing: give at least one of delay, hold, status, drop, truncate, malformed")
	}
}

// readAnswer reads headers and body, which belong to a status.
func (f *Fault) readAnswer(in *strict.Form) {
	f.Body = in.Members["body"]
	for name, value := range in.Object("headers") {
		text, ok := value.(string)
		if !ok || !isHeaderName(name) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			in.Fault("headers", strconv.Quote(name)+" must be a header field with a string as its value, and not one of the connection's own")
			continue
		}
		if f.Headers == nil {
			f.Headers = make(map[string]string)
		}
		f.Headers[name] = text
	}
	for _, name := range []string{"headers", "body"} {
		if in.Has(name) && !in.Has("status") {
			in.Fault(name, "belongs to status")
		}
	}
	if in.Has("body") && (f.Status == http.StatusNoContent || f.Status == http.StatusNotModified) {
		in.Fault("body", "can't be sent with this status")
	}
}

// isHeaderName reports whether name is a token (RFC 9110 section 5.6.2) and not a field that frames the message.
func isHeaderName(name string) bool {
	for _, c := range []byte(name) {
		if letter := 'a' <= c|0x20 && c|0x20 <= 'z'; !letter && !('0' <= c && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	framing := []string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade"}
	return name != "" && !slices.Contains(framing, http.CanonicalHeaderKey(name))
}

// writeAnswer answers as the order says; an error without a body of its own in the shape of all errors.
func (f *Fault) writeAnswer(w http.ResponseWriter) {
	for name, value := range f.Headers {
		w.Header()[http.CanonicalHeaderKey(name)] = []string{value}
	}
	if f.Status == http.StatusUnauthorized && w.Header()["Www-Authenticate"] == nil {
		w.Header()["Www-Authenticate"] = []string{`Bearer realm="authhub"`} // RFC 9110 section 15.5.2: a 401 has one
	}
	body, isText := f.Body.(string)
	if isText && w.Header()["Content-Type"] == nil {
		w.Header()["Content-Type"] = []string{"text/plain; charset=utf-8"}
	}
	switch {
	case f.Body == nil && f.Status >= 400:
		e := reply.Fail(f.Status, "injected", "The lab's fault "+f.ID+" answers in place of the hub.")
		e.Header = nil // the order has said it
		reply.Write(w, e)
	case f.Body == nil:
		w.WriteHeader(f.Status)
	case isText:
		reply.WriteBody(w, f.Status, []byte(body))
	default:
		reply.WriteBody(w, f.Status, strict.Quote(f.Body))
	}
}
