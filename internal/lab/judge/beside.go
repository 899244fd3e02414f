// Requests that a client had under way side by side.

package judge

import (
	"slices"
	"time"
)

// findBeside marks the exchanges that were under way on several connections at the same time. A session is a client,
// and so is what asks for the same without one.
func findBeside(record []*Exchange) {
	type client struct {
		session, operation string
		presented          uint64
	}
	latest := make(map[client]*Exchange) // to end, so far
	open := make(map[int64]bool)         // connections that have had a request
	spans := make([]span, 0, len(record))
	for _, e := range record {
		spans = append(spans, span{e, e.leftAt(open[e.Conn])})
		open[e.Conn] = true
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range spans {
		who := client{session: s.Session}
		if who.session == "" {
			who.operation, who.presented = s.Operation, s.Presented
		}
		last := latest[who]
		if last != nil && last.Conn != s.Conn && (last.End.Order == 0 || last.End.Machine.After(s.from)) {
			last.beside, s.beside = true, true
		}
		if last == nil || last.End.Order > 0 && (s.End.Order == 0 || s.End.Machine.After(last.End.Machine)) {
			latest[who] = s.Exchange
		}
	}
}

// span is an exchange and when its client began it.
type span struct {
	*Exchange
	from time.Time
}

// leftAt returns when the client began e: when it opened the connection, if it did so for e.
func (e *Exchange) leftAt(again bool) time.Time {
	sent := e.sent().Machine
	if !again && !e.Opened.IsZero() && sent.Sub(e.Opened) <= apart {
		return e.Opened
	}
	return sent
}
