package record

import (
	"testing"

	"authhub/internal/lab/judge"
)

// TestWaitingExpectationsAreCheap: while many wait, a request looks at each of them and not at the whole record.
func TestWaitingExpectationsAreCheap(t *testing.T) {
	l := new(Log)
	for range MaxRequests {
		l.Begin(&Request{Exchange: judge.Exchange{Operation: "me"}})
	}
	e := &expectation{Filter: Filter{Operation: "refresh"}, least: 1, most: noLimit}
	for range 40 {
		w := l.watch(e)
		defer l.unwatch(w)
	}
	alone := testing.AllocsPerRun(100, func() { l.Begin(&Request{Exchange: judge.Exchange{Operation: "login"}}) })
	if alone > 5 {
		t.Errorf("a request makes %v allocations, so somebody copies the record", alone)
	}
	w := l.watch(e)
	r := &Request{Exchange: judge.Exchange{Operation: "refresh"}}
	l.Begin(r)
	<-w.settled
	l.Clear()
	if len(w.met) != 0 {
		t.Error("a cleared request still counts")
	}
	l.End(r, func() {})
	if len(w.met) != 0 {
		t.Error("a request that was cleared away counts when it ends")
	}
}
