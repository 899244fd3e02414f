// claims.go owns the payload of a token: what it says, how it is written and how it is read back.

package jwt

import (
	"strconv"
	"strings"
	"time"
)

const issuer = "authhub"

// Claims is what a token says. Times are milliseconds since the Unix epoch: NumericDate allows fractions
// (RFC 7519 section 2), and lifetimes may be shorter than a second.
type Claims struct {
	Kind       Kind
	Subject    string // user id
	Session    string
	Generation int // which rotation of the session the token belongs to; 0 for the first pair
	IssuedAt   int64
	ExpiresAt  int64
	NotBefore  int64  // 0: none; the hub issues it only to order, in the lab
	Username   string // access tokens only
	Role       string // access tokens only
	More       []byte // further members as JSON, with a comma before each; Open passes over them
}

// Check reports why a token of these claims can't serve as a token of kind want at now: ErrWrongType,
// ErrNotYet, ErrExpired, or nil.
func (c *Claims) Check(want Kind, now time.Time) error {
	ms := now.UnixMilli()
	switch {
	case c.Kind != want:
		return ErrWrongType
	case ms < c.NotBefore: // RFC 7519 section 4.1.5
		return ErrNotYet
	case ms >= c.ExpiresAt: // RFC 7519 section 4.1.4: not accepted on or after
		return ErrExpired
	}
	return nil
}

// AppendJSON writes the payload. The order is fixed and every string is of a set that needs no escape, so that
// the scanner below reads it back without a general JSON parser.
func (c *Claims) AppendJSON(b []byte) []byte {
	b = append(b, `{"iss":"`+issuer+`","sub":"`...)
	b = append(b, c.Subject...)
	b = append(b, `","sid":"`...)
	b = append(b, c.Session...)
	b = append(b, `","jti":"`...)
	b = append(b, c.Session...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(c.Generation), 10)
	b = append(b, c.Kind.letter())
	b = append(b, `","iat":`...)
	b = AppendSeconds(b, c.IssuedAt)
	b = append(b, `,"exp":`...)
	b = AppendSeconds(b, c.ExpiresAt)
	if c.Kind == Access {
		b = append(b, `,"username":"`...)
		b = append(b, c.Username...)
		b = append(b, `","role":"`...)
		b = append(b, c.Role...)
		b = append(b, '"')
	} else {
		b = append(b, `,"gen":`...)
		b = strconv.AppendInt(b, int64(c.Generation), 10)
	}
	if c.NotBefore != 0 {
		b = append(b, `,"nbf":`...)
		b = AppendSeconds(b, c.NotBefore)
	}
	return append(append(b, c.More...), '}')
}

// parseClaims reads a payload whose signature has been checked. Members after the known ones are passed over;
// anything else that AppendJSON would not have written is ErrMalformed.
func parseClaims(payload string, k Kind) (Claims, error) {
	c := Claims{Kind: k}
	s := scanner{rest: payload}

	s.literal(`{"iss":"` + issuer + `","sub":"`)
	c.Subject = s.text()
	s.literal(`,"sid":"`)
	c.Session = s.text()
	s.literal(`,"jti":"`)
	c.Generation = s.generation(c.Session, k.letter())
	s.literal(`,"iat":`)
	c.IssuedAt = s.seconds()
	s.literal(`,"exp":`)
	c.ExpiresAt = s.seconds()
	if k == Access {
		s.literal(`,"username":"`)
		c.Username = s.text()
		s.literal(`,"role":"`)
		c.Role = s.text()
	} else {
		s.literal(`,"gen":`)
		if int64(c.Generation)*1000 != s.seconds() {
			s.bad = true
		}
	}
	if strings.HasPrefix(s.rest, `,"nbf":`) {
		s.literal(`,"nbf":`)
		c.NotBefore = s.seconds()
	}

	if s.bad || s.rest != "}" && !strings.HasPrefix(s.rest, ",") {
		return Claims{}, ErrMalformed
	}
	return c, nil
}

// scanner cuts a payload into its parts; bad is set at the first part that is not what was asked for.
type scanner struct {
	rest string
	bad  bool
}

func (s *scanner) literal(want string) {
	rest, ok := strings.CutPrefix(s.rest, want)
	s.rest, s.bad = rest, s.bad || !ok
}

// text cuts up to the closing quote, which it consumes. Escapes never occur in what the hub issues.
func (s *scanner) text() string {
	text, rest, ok := strings.Cut(s.rest, `"`)
	s.rest, s.bad = rest, s.bad || !ok || strings.Contains(text, `\`)
	return text
}

// generation reads the token id SESSION.GENERATION followed by the letter of the kind.
func (s *scanner) generation(session string, letter byte) int {
	id, ok := strings.CutPrefix(s.text(), session)
	id, dot := strings.CutPrefix(id, ".")
	if !ok || !dot || len(id) < 2 || id[len(id)-1] != letter {
		s.bad = true
		return 0
	}
	digits := id[:len(id)-1]
	n, err := strconv.ParseUint(digits, 10, 31)
	s.bad = s.bad || err != nil || digits[0] == '0' && n > 0 || len(digits) > 1 && n == 0
	return int(n)
}

// seconds reads a number as AppendSeconds writes it, as milliseconds. Any other way to write it is bad.
func (s *scanner) seconds() int64 {
	number := s.rest
	rest, negative := strings.CutPrefix(s.rest, "-")
	s.rest = rest
	ms, _ := s.digits(16)
	s.bad = s.bad || ms > 1<<50
	ms *= 1000
	if rest, ok := strings.CutPrefix(s.rest, "."); ok {
		s.rest = rest
		fraction, n := s.digits(3)
		ms += fraction * [...]int64{0, 100, 10, 1}[n]
	}
	if negative {
		ms = -ms
	}
	var buf [32]byte
	if string(AppendSeconds(buf[:0], ms)) != number[:len(number)-len(s.rest)] {
		s.bad = true
	}
	return ms
}

// digits cuts as many digits as there are, but at most n, and returns their value and how many there were.
func (s *scanner) digits(n int) (value int64, count int) {
	for count < n && count < len(s.rest) && '0' <= s.rest[count] && s.rest[count] <= '9' {
		value = value*10 + int64(s.rest[count]-'0')
		count++
	}
	s.rest = s.rest[count:]
	return value, count
}

// AppendSeconds writes milliseconds as seconds, with decimals only where there are any.
func AppendSeconds(b []byte, ms int64) []byte {
	if ms < 0 {
		b, ms = append(b, '-'), -ms
	}
	b = strconv.AppendInt(b, ms/1000, 10)
	if f := ms % 1000; f != 0 {
		b = append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return b
}
