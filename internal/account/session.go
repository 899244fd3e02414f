// session.go owns what a session is, when it is over, and what its tokens say.

package account

import (
	"time"

	"authhub/internal/jwt"
)

// Session is one login and all its rotations. Times are milliseconds since the Unix epoch, lifetimes are milliseconds.
type Session struct {
	ID         string `json:"id"`
	User       string `json:"user"`
	Created    int64  `json:"created"`
	AccessTTL  int64  `json:"access_ttl"`
	RefreshTTL int64  `json:"refresh_ttl"`
	Generation int    `json:"gen"`    // of the current pair
	Issued     int64  `json:"issued"` // when the current pair was

	// By how many generations the refresh token is behind the access token. Without rotation it stays
	// (ReusePolicy.Keep).
	Behind int `json:"behind,omitempty"`

	// By how many generations more than one the refresh token spent last is behind the pair that it gave: those issued
	// while it stayed.
	Skipped int `json:"skipped,omitempty"`

	// Tokens of generations below these count as expired, whatever their time. Only the lab sets them.
	AccessFrom  int `json:"access_from,omitempty"`
	RefreshFrom int `json:"refresh_from,omitempty"`
}

// NewSession returns a session of the user that begins at now.
func (u *User) NewSession(id string, now time.Time, access, refresh time.Duration) Session {
	ms := now.UnixMilli()
	return Session{ID: id, User: u.ID, Created: ms, AccessTTL: access.Milliseconds(), RefreshTTL: refresh.Milliseconds(), Issued: ms}
}

// refreshGeneration returns the generation of the refresh token that is not spent.
func (s *Session) refreshGeneration() int { return s.Generation - s.Behind }

// Spent reports whether the refresh token of generation has been exchanged for another one.
func (s *Session) Spent(generation int) bool { return generation < s.refreshGeneration() }

// From returns the first generation whose token of this kind has not been expired by order.
func (s *Session) From(k jwt.Kind) int {
	if k == jwt.Refresh {
		return s.RefreshFrom
	}
	return s.AccessFrom
}

// OverAt returns when the last token of the session expires.
func (s *Session) OverAt() int64 { return s.Issued + max(s.AccessTTL, s.RefreshTTL) }

// ReusePolicy says what becomes of a refresh token that is used a second time. The zero value ends the session (RFC
// 9700 section 4.14.2). Only the lab sets another one.
type ReusePolicy struct {
	Grace time.Duration // for this long after it was spent, a token gets the same successor pair again
	Allow bool          // a spent token rotates like the current one
	Keep  bool          // no rotation: a refresh issues an access token, and the refresh token stays
}

// forgives reports whether the spent token of generation gen may pass at now.
func (p ReusePolicy) forgives(current *Session, gen int, now time.Time) bool {
	return p.Allow || p.Grace > 0 && gen == current.Generation-1-current.Skipped && now.UnixMilli()-current.Issued < p.Grace.Milliseconds()
}

// Exchange returns the session as the refresh token of generation leaves it at now: with its next pair current, or as
// it is where policy gives the same pair again. Errors: ErrReused if the token was spent before and policy does not
// forgive that, so that the session has to end; ErrRevoked for a token that was never issued; jwt.ErrExpired.
func (s Session) Exchange(generation int, now time.Time, policy ReusePolicy) (Session, error) {
	switch {
	case generation > s.Generation:
		return s, ErrRevoked
	case generation < s.RefreshFrom:
		return s, jwt.ErrExpired
	case s.Spent(generation) && !policy.forgives(&s, generation, now):
		return s, ErrReused
	case s.Spent(generation) && !policy.Allow && !policy.Keep:
		return s, nil
	}
	s.Generation++
	s.Issued, s.Behind, s.Skipped = now.UnixMilli(), 0, s.Behind
	if policy.Keep {
		s.Behind, s.Skipped = s.Generation-generation, 0
	}
	return s, nil
}

// Claims returns what the current token of this kind says.
func (s *Session) Claims(k jwt.Kind, u *User) jwt.Claims {
	c := jwt.Claims{Kind: k, Subject: u.ID, Session: s.ID, Generation: s.Generation, IssuedAt: s.Issued,
		ExpiresAt: s.Issued + s.RefreshTTL, Username: u.Username, Role: u.Role}
	if k == jwt.Refresh {
		c.Generation = s.refreshGeneration()
	} else {
		c.ExpiresAt = s.Issued + s.AccessTTL
	}
	return c
}

// Ref returns what finds the session again.
func (s *Session) Ref() SessionRef { return SessionRef{s.User, s.ID} }
