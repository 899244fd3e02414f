// Sessions: what a session is, which ones a user has, and when they are over.

package account

import (
	"math"
	"slices"
	"time"

	"authhub/internal/jwt"
)

// Session is one login and all its rotations. Times are milliseconds since the Unix epoch, lifetimes milliseconds.
type Session struct {
	ID         string `json:"id"`
	User       string `json:"user"`
	Created    int64  `json:"created"`
	AccessTTL  int64  `json:"access_ttl"`
	RefreshTTL int64  `json:"refresh_ttl"`
	Generation int    `json:"gen"`    // of the current pair
	Issued     int64  `json:"issued"` // when the current pair was

	// Tokens of generations below these count as expired, whatever their time: the lab's doing.
	AccessFrom  int `json:"access_from,omitempty"`
	RefreshFrom int `json:"refresh_from,omitempty"`
}

// OverAt is when the last token of the session expires.
func (s *Session) OverAt() int64 { return s.Issued + max(s.AccessTTL, s.RefreshTTL) }

// sessionList is the sessions of one user.
type sessionList struct {
	oldestFirst []*Session
	noneOverTil int64 // milliseconds since the Unix epoch; before it no session of the list is over
}

// ReusePolicy says what becomes of a refresh token that is used a second time. The zero value, the only one
// outside the lab, ends the session (RFC 9700 section 4.14.2).
type ReusePolicy struct {
	Grace time.Duration // so long after it was spent, a token gets the same successor pair again
	Allow bool          // a spent token rotates like the current one
}

// forgives reports whether the spent token of generation gen may pass at now.
func (p ReusePolicy) forgives(current *Session, gen int, now time.Time) bool {
	return p.Allow || p.Grace > 0 && gen == current.Generation-1 && now.UnixMilli()-current.Issued < p.Grace.Milliseconds()
}

func (s *Embedded) addSession(started *Session) {
	s.sessions[started.ID] = started
	of := s.ofUser[started.User]
	if of == nil {
		of = &sessionList{noneOverTil: math.MaxInt64}
		s.ofUser[started.User] = of
	}
	of.oldestFirst = append(of.oldestFirst, started)
	of.noneOverTil = min(of.noneOverTil, started.OverAt())
}

func (s *Embedded) removeSession(ended *Session) {
	delete(s.sessions, ended.ID)
	of := s.ofUser[ended.User]
	i := slices.Index(of.oldestFirst, ended)
	of.oldestFirst = slices.Delete(of.oldestFirst, i, i+1)
	if len(of.oldestFirst) == 0 {
		delete(s.ofUser, ended.User)
	}
}

// dropExpired removes the sessions of a user that are over. That is no change to anybody, so the journal does
// not hear of it; the next compaction leaves them out.
func (s *Embedded) dropExpired(userID string, ms int64) {
	of := s.ofUser[userID]
	if of == nil || ms < of.noneOverTil {
		return
	}
	of.noneOverTil = math.MaxInt64
	for _, one := range slices.Clone(of.oldestFirst) {
		if ms >= one.OverAt() {
			s.removeSession(one)
		} else {
			of.noneOverTil = min(of.noneOverTil, one.OverAt())
		}
	}
}

// sweep looks at a few sessions, wherever the map's order begins, and drops those that are over: enough, at a
// few per start of a session, that what has expired never outweighs what lives.
func (s *Embedded) sweep(ms int64) {
	looked := 0
	for _, any := range s.sessions {
		if ms >= any.OverAt() {
			s.removeSession(any)
		}
		if looked++; looked == 4 {
			return
		}
	}
}

// Claims returns what the current token of this kind says.
func (s *Session) Claims(k jwt.Kind, u *User) jwt.Claims {
	c := jwt.Claims{Kind: k, Subject: u.ID, Session: s.ID, Generation: s.Generation, IssuedAt: s.Issued,
		ExpiresAt: s.Issued + s.RefreshTTL, Username: u.Username, Role: u.Role}
	if k == jwt.Access {
		c.ExpiresAt = s.Issued + s.AccessTTL
	}
	return c
}
