package judge

import (
	"fmt"
	"time"
)

// tolerance is how much earlier than asked a request may come: timers of clients fire a little early.
const tolerance = 50 * time.Millisecond

// retryAfterIgnored: a request was sent again sooner than the answer to it had asked for with Retry-After (RFC 9110
// section 10.2.3). The answer that asked is shown, too. The same request is one to the same path and of the same session
// or, without a token, with the same body. What left before that answer is no retry (Exchange.follows).
func (c *trial) retryAfterIgnored() {
	type key struct {
		place
		session string
		body    uint64
	}
	asked := make(map[key]*Exchange)
	early, before := newGroups(), newGroups()
	for _, e := range c.record {
		k := key{e.place(), e.Session, 0}
		if e.Token == nil {
			k.session, k.body = "", e.Body^e.Presented
		}
		last := asked[k]
		if last != nil && e.hurries(last) {
			before.add(k.session, last)
			early.add(k.session, e)
		}
		if last != nil && (e.follows(last) || e.received() && e.Status < 400) {
			delete(asked, k)
		}
		if e.received() && e.Status >= 400 && e.RetryAfter > 0 {
			asked[k] = e
		}
	}
	for i, shown := range early.each {
		c.find("retry_after_ignored", fmt.Sprintf("%s came sooner than the answer before had asked for (Retry-After: %s). "+
			"Wait that long before the next try.", requests(shown), before.each[i][0].RetryAfter.Round(time.Second)),
			append(shown, before.each[i]...)...)
	}
}

// hurries reports whether e repeats before sooner than its answer had asked for.
func (e *Exchange) hurries(before *Exchange) bool {
	return e.Epoch == before.Epoch && e.follows(before) && before.End.until(e.Arrival) < before.RetryAfter-tolerance
}
