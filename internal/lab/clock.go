// The lab's clock: the one value that a hub takes its time from, and how a test turns it.
//
// Everything a hub does with time follows it. What keeps the process alive (time-outs of sockets, the delays of
// faults, how long an expectation waits) goes by the machine's clock.

package lab

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

// labClock tells the real time, an offset from it, or a time at which it stands.
type labClock struct {
	real     func() time.Time
	changing sync.Mutex
	setting  atomic.Pointer[clockSetting] // never nil
}

// clockSetting is immutable.
type clockSetting struct {
	offset time.Duration // to the real time, unless frozen
	frozen bool
	at     time.Time // if frozen
}

// The hub's time stays within what tokens, files and ISO 8601 with four digits can say.
var (
	earliestTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latestTime   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newLabClock(real func() time.Time) *labClock {
	c := &labClock{real: real}
	c.set(clockSetting{})
	return c
}

func (c *labClock) now() time.Time { return c.setting.Load().time(c.real) }

// set puts a setting in the place of the one there is.
func (c *labClock) set(s clockSetting) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.setting.Store(&s)
}

func (s *clockSetting) time(real func() time.Time) time.Time {
	if s.frozen {
		return s.at
	}
	return real().Add(s.offset)
}

// clockView is the clock as clients see it.
type clockView struct {
	Now      string `json:"now"`
	Real     string `json:"real"`
	OffsetMS int64  `json:"offset_ms"`
	Frozen   bool   `json:"frozen"`
}

func (c *labClock) view() clockView {
	real := c.real()
	now := c.setting.Load().time(func() time.Time { return real })
	return clockView{reply.FormatTime(now), reply.FormatTime(real), now.Sub(real).Milliseconds(), c.setting.Load().frozen}
}

func (b *bench) setClock(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, "advance", "at", "frozen")
	if err != nil {
		return err
	}

	b.arrivals.Lock()
	before := b.clock.now()
	err = b.clock.change(in)
	if err == nil && b.clock.now().Before(before.Truncate(time.Millisecond)) { // clients know it in milliseconds
		b.requests.StartEpoch(before)
	}
	b.arrivals.Unlock()
	if err != nil {
		return err
	}

	return reply.WriteJSON(w, http.StatusOK, b.clock.view())
}

// change does as in says, or nothing. Of several at once each takes effect.
func (c *labClock) change(in *strict.Form) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	old, real := *c.setting.Load(), c.real()
	now := old.time(func() time.Time { return real })
	frozen := in.Truth("frozen", old.frozen)
	advance := in.Span("advance", earliestTime.Sub(latestTime), latestTime.Sub(earliestTime))
	switch at := in.Moment("at"); {
	case !in.Has("at") && !in.Has("advance") && !in.Has("frozen"):
		in.Fault("advance", "is missing: give advance, at or frozen")
	case in.Has("at") && in.Has("advance"):
		in.Fault("advance", "can't be given together with at")
	case in.Has("at"):
		now = at
	}
	now = now.Add(advance)
	if len(in.Faults) == 0 && !canTell(now) {
		field := "advance"
		if in.Has("at") {
			field = "at"
		}
		in.Fault(field, "leads out of the years 1970 to 2199")
	}
	if err := in.Err(); err != nil {
		return err
	}
	if frozen {
		c.setting.Store(&clockSetting{frozen: true, at: now})
	} else {
		c.setting.Store(&clockSetting{offset: now.Sub(real)})
	}
	return nil
}
