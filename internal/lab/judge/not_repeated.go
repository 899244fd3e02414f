package judge

import "slices"

// notRepeated is a note: a refresh succeeded, and requests from before it that got token_expired were not sent again
// with the new token within two seconds. Their callers have been left with the 401. The refresh is shown, too.
func (c *trial) notRepeated(s *session) {
	for _, x := range s.expiries {
		granted := x.success
		if granted == nil || x.told {
			continue
		}
		left := slices.DeleteFunc(s.abandoned(granted), func(e *Exchange) bool { return c.isSentAnew(e, granted) })
		if len(left) > 0 && c.timeIsUp(granted) && !slices.ContainsFunc(left, func(e *Exchange) bool { return !c.timeIsUp(e) }) {
			c.note("not_repeated", requests(left)+" got token_expired and did not come again with the new access token. "+
				"Repeat every request that waited for the refresh, with the token that it gave.", append(left, granted)...)
		}
	}
}

// isSentAnew reports whether e was sent again in time after a refresh, in a session in which the user logged in
// meanwhile.
func (c *trial) isSentAnew(e, granted *Exchange) bool {
	for _, next := range c.record[c.after(granted):] {
		switch {
		case !inTime(granted, next):
			return false
		case next.Session != e.Session && next.isAccess() && next.goesTo(e) && c.isOf(next, e) && mayBeSame(e, next):
			return true
		}
	}
	return false
}

// abandoned returns the requests that met the end of the pair that granted exchanged, and were not sent again in time.
// Of those of one address the latest count as left: they found the refresh under way. What came after one was refused
// and before a refresh may be its caller, who tries once more, and so may what came behind a refresh that failed. What
// waited for a refresh that failed may have been given up with it (giveUp). What was sent again with the new refresh
// token is wrong_token_type.
func (s *session) abandoned(granted *Exchange) []*Exchange {
	var unsent pending
	var last *Exchange // refresh
	failed := 0        // refreshes, each with the next one right behind it
	after := func(e *Exchange) bool { return e.Arrival.Order > granted.End.Order }
	for _, e := range s.from(s.firstRefused[granted.Current.Generation]) {
		switch {
		case after(e) && len(unsent.left) == 0, after(e) && e.Arrival.Machine.Sub(granted.End.Machine) > reaction+longest:
			return unsent.leftBehind(failed)
		case e.Operation == "logout" && e.Arrival.Order > granted.Arrival.Order && inTime(granted, e):
			return nil
		case e.isRefresh():
			if last != nil && !last.exchanged() && last.endedBefore(e) {
				switch {
				case unsent.giveUp(last):
					failed = 0
				case !after(e) && last.End.until(&e.sentAt) <= stall:
					failed++
				}
			}
			last = e
		case !e.isAccess() && e.Code != "token_wrong_type":
		case e.Token.Generation > granted.Current.Generation, after(e) && e.Code == "token_wrong_type":
			unsent.drop(e, func(before *Exchange) bool {
				return before.endedBefore(e) && (inTime(granted, e) || inTime(before, e))
			})
		case e.saw("token_expired") && !after(e) && granted.End.until(&e.End) <= apart && e.Token.isOf(&granted.Current.Pair):
			unsent.drop(e, func(before *Exchange) bool {
				serial := !e.Browser && e.before != nil && (last == nil || last.endedBefore(before))
				isSame := before.endedBefore(e) && e.asksFor(before)
				if last != nil && !last.exchanged() && last.endedBefore(e) { // it failed, so that callers may try again
					return isSame || before.Arrival.Order < last.End.Order
				}
				return isSame && (serial || e.follows(before))
			})
			unsent.add(e)
		}
	}
	return unsent.leftBehind(failed)
}

// leftBehind returns what is left. That is nothing if each may be of a caller whose own refresh failed, while the next
// caller waited for that (a lock): the others of them were sent again.
func (p *pending) leftBehind(failed int) []*Exchange {
	if len(p.left) <= failed && len(p.left) < len(p.all) {
		return nil
	}
	return p.left
}

// giveUp drops what had come before a refresh failed, if the next one may be for a 401 that came since that was sent.
// It reports whether it is.
func (p *pending) giveUp(failed *Exchange) bool {
	if !slices.ContainsFunc(p.left, func(e *Exchange) bool { return e.End.Order > failed.Arrival.Order }) {
		return false
	}
	p.left = slices.DeleteFunc(p.left, func(e *Exchange) bool { return e.Arrival.Order < failed.End.Order })
	return true
}
