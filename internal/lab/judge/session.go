// Sessions: what the record has of each, and what the rules look up in it.

package judge

import (
	"cmp"
	"math"
	"sort"
	"time"
)

// session is what the record has of one session.
type session struct {
	id        string
	user      string
	origin    Origin
	exchanges []*Exchange // in order of arrival
	refreshes []*Exchange // those of them that are refreshes
	logouts   []*Exchange // those of them that are logouts
	lastUse   *Exchange   // the last with an access token
	useBefore *Exchange   // the last but one, not counting those without a break between
	expiries  []*expiry   // in order of their first refresh
	over      *Exchange   // the first to be told that the session had ended
	raced     *Exchange   // the refresh by which the client's own race has ended the session

	expired      earliest          // answers token_expired
	refused      earliest          // answers 401 to an access token, but token_revoked
	revoked      earliest          // answers token_revoked to an access token
	misplaced    []*Exchange       // answered 401 since a token was in the address, or sent for the other
	used         earliest          // answers to an access token
	given        map[int]*Exchange // by generation: the last answer that gave the pair
	firstRefused map[int]*Exchange // by generation: the first request with its access token that was answered 401
	firstSpent   map[int]*Exchange // by generation: the first refresh that exchanged its refresh token
}

// sessionsOf returns the sessions in the order in which the record first names them.
func sessionsOf(record []*Exchange) []*session {
	var sessions []*session
	byID := make(map[string]*session)
	for _, e := range record {
		if e.isIntrospection() {
			if s := byID[e.Session]; s != nil && e.refused() && e.Code != "token_revoked" && e.Token != nil && !e.Token.Refresh {
				s.refused.add(e)
			}
			continue
		}
		if s := byID[e.Addressed]; s != nil && e.refused() {
			s.misplaced = append(s.misplaced, e)
		}
		if e.Session == "" {
			continue
		}
		s := byID[e.Session]
		if s == nil {
			s = &session{id: e.Session, origin: e.Origin,
				given: make(map[int]*Exchange), firstRefused: make(map[int]*Exchange), firstSpent: make(map[int]*Exchange)}
			byID[e.Session] = s
			sessions = append(sessions, s)
		}
		s.add(e)
	}
	for _, s := range sessions {
		s.expired.sort()
		s.refused.sort()
		s.revoked.sort()
		s.used.sort()
		s.findBursts()
	}
	return sessions
}

func (s *session) add(e *Exchange) {
	s.user = cmp.Or(e.User, s.user)
	s.exchanges = append(s.exchanges, e)
	switch {
	case e.isRefresh():
		s.refreshes = append(s.refreshes, e)
		if e.exchanged() && s.firstSpent[e.Token.Generation] == nil {
			s.firstSpent[e.Token.Generation] = e
		}
	case e.Operation == "logout":
		s.logouts = append(s.logouts, e)
	}
	if s.over == nil && e.Hub == 401 && (e.Code == "token_revoked" || e.Code == "token_reused") {
		s.over = e
	}
	if e.Given != nil {
		s.given[e.Given.Generation] = e
	}
	if e.Token != nil && e.saw("token_expired") {
		s.expired.add(e)
	}
	if e.refused() && e.Code == "token_wrong_type" {
		s.misplaced = append(s.misplaced, e)
	}
	if !e.isAccess() {
		return
	}
	s.used.add(e)
	if !e.refused() {
		return
	}
	if s.firstRefused[e.Token.Generation] == nil {
		s.firstRefused[e.Token.Generation] = e
	}
	answers := &s.refused
	if e.Code == "token_revoked" {
		answers = &s.revoked
	}
	answers.add(e)
}

// stall is how long a client may be held up by its machine between two requests that it sends without a break.
const stall = 250 * time.Millisecond

// findBursts finds the bursts in which the client's requests come without a break (stall).
func (s *session) findBursts() {
	first, burst := 0, ends{}
	for i, e := range s.exchanges {
		if i > 0 && (burst.until(&e.sentAt) > stall || e.Epoch != s.exchanges[i-1].Epoch) {
			s.endBurst(first, i, burst.quick)
			first, burst = i, ends{}
		}
		burst.add(e)
	}
	s.endBurst(first, len(s.exchanges), burst.quick)
}

// endBurst notes a burst. One that goes on for long without keeping the client's connections busy is no queue.
func (s *session) endBurst(from, next int, end Mark) {
	burst, took := s.exchanges[from:next], time.Duration(0)
	for _, e := range burst {
		took += e.took()
	}
	span := end.Machine.Sub(burst[0].sentAt.Machine)
	queued, first := span <= reaction || took >= span/4, true
	for _, e := range burst {
		if queued && e.isSingle() && end.Order > e.End.Order { // which connection waits for which is not known
			e.free = end
		}
		if e.isAccess() && (e.Token.State == "valid" || e.refused()) { // an open operation tells nobody that it has expired
			if (first || !queued) && !e.waited {
				s.useBefore = s.lastUse
			}
			s.lastUse, first = e, false
		}
	}
}

// goesOnAfter reports whether an access token of the session was used twice when e had been answered. Once it is used
// by somebody who has not heard of e.
func (s *session) goesOnAfter(e *Exchange) bool { return s.useBefore != nil && s.useBefore.follows(e) }

// beganAfter reports whether the session began after e had arrived. Nothing is known of nil.
func (s *session) beganAfter(e *Exchange) bool {
	return s != nil && e != nil && s.exchanges[0].Arrival.Order > e.Arrival.Order
}

// from returns the exchanges from first on; none for nil.
func (s *session) from(first *Exchange) []*Exchange {
	if first == nil {
		return nil
	}
	return s.exchanges[sort.Search(len(s.exchanges), func(i int) bool { return s.exchanges[i].Arrival.Order >= first.Arrival.Order }):]
}

// earliest tells when the first answer of some kind came to a token of a generation or of a later one.
type earliest []answerTo

type answerTo struct {
	generation int
	order      int // of the first answer to this generation or a later one, once sorted
}

func (l *earliest) add(e *Exchange) { *l = append(*l, answerTo{e.Token.Generation, e.End.Order}) }

func (l earliest) sort() {
	sort.Slice(l, func(i, j int) bool { return l[i].generation < l[j].generation })
	first := math.MaxInt
	for i := len(l) - 1; i >= 0; i-- {
		first = min(first, l[i].order)
		l[i].order = first
	}
}

// before reports whether such an answer came before r was sent.
func (l earliest) before(generation int, r *Exchange) bool {
	i := sort.Search(len(l), func(i int) bool { return l[i].generation >= generation })
	return i < len(l) && l[i].order < r.Arrival.Order
}
