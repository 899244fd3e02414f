// Sessions and their expiries: which refreshes belong together.

package judge

// session is what the record has of one session.
type session struct {
	id        string
	user      string
	origin    Origin
	exchanges []*Exchange // in order of arrival
	refreshes []*Exchange // those of them that are refreshes
	logouts   []*Exchange // those of them that are logouts
	expiries  []*expiry   // in order of their first refresh
}

// sessionsOf returns the sessions in the order in which the record first names them.
func sessionsOf(record []*Exchange) []*session {
	var sessions []*session
	byID := make(map[string]*session)
	for _, e := range record {
		if e.Session == "" {
			continue
		}
		s := byID[e.Session]
		if s == nil {
			s = &session{id: e.Session, origin: e.Origin}
			byID[e.Session] = s
			sessions = append(sessions, s)
		}
		if e.User != "" {
			s.user = e.User
		}
		s.exchanges = append(s.exchanges, e)
		switch {
		case e.isRefresh():
			s.refreshes = append(s.refreshes, e)
		case e.Operation == "logout":
			s.logouts = append(s.logouts, e)
		}
	}
	return sessions
}

// expiry is one need for a new pair, and the refreshes for it.
//
// Refreshes with one token belong to one expiry until the successor pair has expired, has been found expired, or has
// more than half of its life behind it. A refresh with the successor's token belongs to it, too, while requests that got
// 401 with the old pair have not been sent again.
type expiry struct {
	refreshes []*Exchange // in order of arrival; the first one opened the expiry
	late      []*Exchange // with one of its tokens, after it was over
	told      bool        // as two_refreshes
}

// findExpiries sorts the refreshes of a session into expiries. A change of epoch starts afresh.
func (s *session) findExpiries() {
	from := 0 // the first expiry of the epoch
	epoch := 0
	for _, r := range s.refreshes {
		if r.Epoch != epoch {
			from, epoch = len(s.expiries), r.Epoch
		}
		s.place(r, s.expiries[from:])
	}
}

// place puts r into one of these expiries, or opens a new one.
func (s *session) place(r *Exchange, open []*expiry) {
	for i := len(open) - 1; i >= 0; i-- {
		x := open[i]
		if !x.holds(r.Token.Generation) {
			continue
		}
		switch {
		case !s.overFor(x, r):
			x.refreshes = append(x.refreshes, r)
		case r.Policy.spends():
			x.late = append(x.late, r)
		default:
			s.expiries = append(s.expiries, &expiry{refreshes: []*Exchange{r}})
		}
		return
	}
	for i := len(open) - 1; i >= 0; i-- {
		if x := open[i]; x.gave(r) != nil && s.goesOn(x, r) {
			x.refreshes = append(x.refreshes, r)
			return
		}
	}
	s.expiries = append(s.expiries, &expiry{refreshes: []*Exchange{r}})
}

// holds reports whether a refresh of x sent the refresh token of this generation.
func (x *expiry) holds(generation int) bool {
	for _, r := range x.refreshes {
		if r.Token.Generation == generation {
			return true
		}
	}
	return false
}

// successor returns the first refresh of x with the token of this generation that the hub granted, or nil.
func (x *expiry) successor(generation int) *Exchange {
	for _, r := range x.refreshes {
		if r.Token.Generation == generation && r.Given != nil && !r.Injected {
			return r
		}
	}
	return nil
}

// gave returns the refresh of x whose answer had the refresh token that r sends, or nil.
func (x *expiry) gave(r *Exchange) *Exchange {
	for _, before := range x.refreshes {
		if before.exchanged() && before.endedBefore(r) && before.Given.Generation == r.Token.Generation {
			return before
		}
	}
	return nil
}

// overFor reports whether x was over when r came with one of its tokens again.
func (s *session) overFor(x *expiry, r *Exchange) bool {
	granted := x.successor(r.Token.Generation)
	if granted == nil || !granted.endedBefore(r) {
		return false
	}
	return granted.End.until(r.Arrival) > granted.Given.Lifetime/2 || s.foundExpired(granted.Given, r)
}

// foundExpired reports whether, before r came, a token of this pair or of a later one was answered token_expired.
func (s *session) foundExpired(p *Pair, r *Exchange) bool {
	for _, e := range s.exchanges {
		if e.Token != nil && e.saw("token_expired") && e.endedBefore(r) && e.Token.isOf(p) {
			return true
		}
	}
	return false
}

// goesOn reports whether r, which sends the token that x gave, is one more refresh for x and not for a need of its own.
func (s *session) goesOn(x *expiry, r *Exchange) bool {
	granted := x.gave(r)
	if granted.End.until(r.Arrival) > granted.Given.Lifetime/2 {
		return false
	}
	reused := false
	for _, before := range x.refreshes {
		reused = reused || before.Code == "token_reused" && before.endedBefore(r)
	}
	for _, e := range s.exchanges {
		// A client that killed its session by its own race gets 401 for the new pair as well. That is no new need.
		if e.isAccess() && e.refused() && e.endedBefore(r) && e.Token.isOf(granted.Given) && !(reused && e.Code == "token_revoked") {
			return false
		}
	}
	return s.unsent(x, r) > 0
}

// place of a request: what makes it the same request, sent again with another token.
type place struct{ operation, method, path string }

func (e *Exchange) place() place { return place{e.Operation, e.Method, e.Path} }

// unsent counts the requests that got 401 with a pair older than the token of r, and had not been sent again with a
// newer one when r came. Those that have had the time for it are given up, not unsent.
func (s *session) unsent(x *expiry, r *Exchange) int {
	waiting := make(map[place]int)
	granted := x.gave(r)
	first := x.refreshes[0]
	total := 0
	for _, e := range s.exchanges {
		switch {
		case e.Arrival.Order >= r.Arrival.Order:
			return total
		case !e.isAccess():
		case e.Token.Generation > first.Token.Generation:
			if waiting[e.place()] > 0 {
				waiting[e.place()]--
				total--
			}
		case e.Token.Generation == first.Token.Generation && e.refused() && e.endedBefore(r) && min(e.End.until(r.Arrival), granted.End.until(r.Arrival)) <= reaction:
			waiting[e.place()]++
			total++
		}
	}
	return total
}
