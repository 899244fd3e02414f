package judge

import (
	"slices"
	"time"
)

// spare is how much of an access token's life must be left for a refresh to be early, whatever the lifetime: real
// clients refresh 10, 60 or 90 seconds ahead.
const spare = 2 * time.Minute

// refreshWithoutNeed: three early refreshes within one lifetime of the access token. A refresh is early when more
// than half of the access token's life, and more than two minutes, are left, and no request with an access token of
// that pair has been answered 401. Less often than that it is the note early_refresh: a page that keeps its access
// token in memory refreshes at every load.
//
// A refresh that two_refreshes shows is not early as well.
func (c *trial) refreshWithoutNeed(s *session) {
	early := s.earlyRefreshes()
	inHabit := make(map[*Exchange]bool)
	for i := habitual - 1; i < len(early); i++ {
		first, last := early[i-habitual+1], early[i]
		if first.Epoch == last.Epoch && first.Arrival.until(last.Arrival) <= first.Current.Lifetime {
			for _, r := range early[i-habitual+1 : i+1] {
				inHabit[r] = true
			}
		}
	}
	var once, often []*Exchange
	for _, r := range early {
		if inHabit[r] {
			often = append(often, r)
		} else {
			once = append(once, r)
		}
	}
	c.find("refresh_without_need", requests(often)+" refreshed although more than half of the access token's lifetime "+
		"(expires_in) was left, three times within one lifetime. Refresh shortly before it ends, or on a 401.", often...)
	c.note("early_refresh", requests(once)+" refreshed although more than half of the access token's lifetime "+
		"(expires_in) was left. Refresh shortly before it ends, or on a 401.", once...)
}

// habitual is how many early refreshes within a lifetime are a habit.
const habitual = 3

// earlyRefreshes returns the refreshes that nothing called for, in order. A token that is never spent may be sent again
// for each request that had met the end of the old pair. Once or twice more is another caller's.
func (s *session) earlyRefreshes() (early []*Exchange) {
	for _, x := range s.expiries {
		i := slices.IndexFunc(x.refreshes, (*Exchange).exchanged)
		if i < 0 || x.told {
			continue
		}
		last, n := x.refreshes[i], 1
		var more []*Exchange
		for _, r := range x.refreshes[i+1:] { // those racing with the first are none more
			if !r.Policy.spends() && r.exchanged() && r.follows(last) && s.isEarly(r) {
				if n >= s.met(x.refreshes[0], r) {
					more = append(more, r)
				}
				last, n = r, n+1
			}
		}
		if s.isEarly(x.refreshes[0]) && s.isEarly(x.refreshes[i]) {
			early = append(append(early, x.refreshes[i]), more...)
		} else if len(more) >= habitual {
			early = append(early, more...)
		}
	}
	return early
}

// isEarly reports whether the access token was good for long when r came.
func (s *session) isEarly(r *Exchange) bool {
	life := r.Current.Lifetime
	left := life - r.Arrival.Hub.Sub(r.Current.Issued)
	if e := s.given[r.Current.Generation]; e != nil && e.endedBefore(r) { // a client may measure by its own clock
		left = min(left, life-r.Arrival.Machine.Sub(e.End.Machine))
	}
	return !r.Current.Expired && left > life/2 && left > spare &&
		!s.refused.before(r.Current.Generation, r) && !s.revoked.before(r.Current.Generation, r)
}
