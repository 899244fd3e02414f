package judge

import "slices"

// notRepeated is a note: a refresh succeeded, and requests from before it that got token_expired were not sent again
// within two seconds. Their callers have been left with the 401. The refresh is shown, too.
func (c *trial) notRepeated(s *session) {
	for _, x := range s.expiries {
		granted := x.success
		if granted == nil || x.told {
			continue
		}
		left := s.abandoned(granted)
		if len(left) > 0 && c.timeIsUp(granted) && !slices.ContainsFunc(left, func(e *Exchange) bool { return !c.timeIsUp(e) }) {
			c.note("not_repeated", requests(left)+" got token_expired and did not come again after the refresh. "+
				"Repeat every request that waited for the refresh.", append(left, granted)...)
		}
	}
}

// abandoned returns the requests that met the end of the pair that granted exchanged, and were not sent again in time.
// Where as many are left as of another caller's, the latest count as left: they found the refresh under way.
func (s *session) abandoned(granted *Exchange) []*Exchange {
	waiting := make(map[place][]*Exchange)
	after := func(e *Exchange) bool { return e.Arrival.Order > granted.End.Order }
	for _, e := range s.from(s.firstRefused[granted.Current.Generation]) {
		p := e.place()
		switch {
		case after(e) && len(waiting) == 0, after(e) && e.Arrival.Machine.Sub(granted.End.Machine) > reaction+longest:
			return flatten(waiting)
		case e.Operation == "logout" && e.Arrival.Order > granted.Arrival.Order && inTime(granted, e):
			return nil
		case !e.isAccess():
		case e.Token.Generation > granted.Current.Generation:
			if w := waiting[p]; len(w) > 0 && (inTime(granted, e) || inTime(w[0], e)) {
				waiting[p] = w[1:]
			}
			if len(waiting[p]) == 0 {
				delete(waiting, p)
			}
		case e.saw("token_expired") && !after(e) && e.Token.isOf(&granted.Current.Pair):
			waiting[p] = append(withoutRepeated(waiting[p], e), e)
		}
	}
	return flatten(waiting)
}

func flatten(waiting map[place][]*Exchange) (all []*Exchange) {
	for _, requests := range waiting {
		all = append(all, requests...)
	}
	return all
}

// withoutRepeated returns the requests but for the first one that e, the same request, followed: its caller has tried
// once more.
func withoutRepeated(requests []*Exchange, e *Exchange) []*Exchange {
	i := slices.IndexFunc(requests, e.follows)
	if i < 0 {
		return requests
	}
	return slices.Delete(requests, i, i+1)
}
