// Orders of faults: what may be asked for, and the answers that are given in place of the hub's.

package lab

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/reply"
)

const (
	maxFaultWait = time.Minute
	usualWithin  = 5 * time.Second
	manyTimes    = 1_000_000
)

// faultOrder is a fault as it was ordered.
type faultOrder struct {
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

// faultNames are the members of a fault.
var faultNames = []string{"operation", "session", "skip", "times", "delay", "hold", "within", "status", "headers", "body", "drop", "truncate", "malformed"}

// readFault reads an order. What can't be combined is a fault of the order.
func readFault(in *question) *fault {
	f := &fault{gone: make(chan struct{})}
	f.Operation = in.oneOf("operation", append([]string{"*"}, operationNames...)...)
	if !in.has("operation") {
		in.Fault("operation", "is missing: one of *, "+strings.Join(operationNames, ", "))
	}
	f.Session = in.Text("session")
	f.Skip = in.whole("skip", 0, manyTimes, 0)
	f.Times = in.whole("times", 0, manyTimes, 1)
	f.delay = in.span("delay", time.Millisecond, maxFaultWait)
	f.Hold = in.whole("hold", 2, 1_000, 0)
	f.within = in.span("within", time.Millisecond, maxFaultWait)
	f.readOutcome(in)
	if f.Hold > 0 && f.within == 0 {
		f.within = usualWithin
	}
	if in.has("within") && !in.has("hold") {
		in.Fault("within", "belongs to hold")
	}
	for name, d := range map[*string]time.Duration{&f.Delay: f.delay, &f.Within: f.within} {
		if d > 0 {
			*name = spell(d)
		}
	}
	return f
}

// readOutcome reads what the requests come to in the end.
func (f *fault) readOutcome(in *question) {
	f.Status = in.whole("status", 200, 599, 0)
	if in.has("drop") {
		f.Drop = in.oneOf("drop", "before", "after")
	}
	if in.has("truncate") {
		n := in.whole("truncate", 0, 1<<30, 0)
		f.Truncate = &n
	}
	if f.Malformed = in.truth("malformed", false); in.has("malformed") && !f.Malformed {
		in.Fault("malformed", "must be true, or left out")
	}
	f.readAnswer(in)

	var outcomes []string
	for _, name := range []string{"status", "drop", "malformed"} {
		if in.has(name) {
			outcomes = append(outcomes, name)
		}
	}
	switch {
	case len(outcomes) > 1: // two answers, or one and none
		in.Fault(outcomes[1], "can't be combined with "+outcomes[0])
	case in.has("truncate") && in.has("drop"):
		in.Fault("truncate", "can't be combined with drop, which lets nothing through")
	case len(outcomes) == 0 && !in.has("truncate") && !in.has("delay") && !in.has("hold"):
		in.Fault("status", "is missing: give at least one of delay, hold, status, drop, truncate, malformed")
	}
}

// readAnswer reads headers and body, which belong to a status.
func (f *fault) readAnswer(in *question) {
	f.Body = in.Members["body"]
	for name, value := range in.object("headers") {
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
		if in.has(name) && !in.has("status") {
			in.Fault(name, "belongs to status")
		}
	}
	if in.has("body") && (f.Status == http.StatusNoContent || f.Status == http.StatusNotModified) {
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
func (f *fault) writeAnswer(w http.ResponseWriter) {
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
		e := reply.Fail(f.Status, "injected", "The lab's fault "+f.id+" answers in place of the hub.")
		e.Header = nil // the order has said it
		reply.Write(w, e)
	case f.Body == nil:
		w.WriteHeader(f.Status)
	case isText:
		reply.WriteBody(w, f.Status, []byte(body))
	default:
		reply.WriteBody(w, f.Status, quote(f.Body))
	}
}
