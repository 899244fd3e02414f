// Tokens: compact JWS (RFC 7515 section 7.1) signed with HMAC-SHA256, in the two types this hub issues.
//
// This file owns the form of a token and its keys. It knows no sessions: whether a good token's session still
// lives is the store's to say. Not implemented, on purpose: any other algorithm, header member or serialization
// (RFC 8725 sections 3.1 and 3.11).

package main

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The ways in which a token can be refused without asking the store.
var (
	errTokenMalformed = errors.New("the token is not one of this hub's: its form or its signature is wrong")
	errTokenNotYet    = errors.New("the token is not valid yet (nbf)")
	errTokenExpired   = errors.New("the token has expired")
	errTokenWrongType = errors.New("the token is of the other type")
)

const issuer = "authhub"

// A kind tells access tokens from refresh tokens; it selects header and key.
type kind int

const (
	accessToken kind = iota
	refreshToken
)

func (k kind) String() string { return [...]string{"access", "refresh"}[k] }

// The only two headers there are, and their encoded forms with the dot behind them.
const (
	accessHeader  = `{"alg":"HS256","typ":"at+jwt"}`
	refreshHeader = `{"alg":"HS256","typ":"rt+jwt"}`
)

var encodedHeaders = [...]string{
	accessToken:  tokenEncoding.EncodeToString([]byte(accessHeader)) + ".",
	refreshToken: tokenEncoding.EncodeToString([]byte(refreshHeader)) + ".",
}

// Unpadded base64url (RFC 7515 section 2); Strict refuses stray last bits.
var tokenEncoding = base64.RawURLEncoding.Strict()

const encodedMACLen = 43 // 32 bytes in unpadded base64

// claims is what a token says. Times are milliseconds since the Unix epoch: NumericDate allows fractions
// (RFC 7519 section 2), and lifetimes may be shorter than a second.
type claims struct {
	Kind       kind
	Subject    string // user id
	Session    string
	Generation int // which rotation of the session the token belongs to; 0 for the first pair
	IssuedAt   int64
	ExpiresAt  int64
	NotBefore  int64  // 0: none; the hub issues it only to order, in the lab
	Username   string // access tokens only
	Role       string // access tokens only
}

// check reports why a token of these claims can't serve as a token of kind want at now: errTokenWrongType,
// errTokenNotYet, errTokenExpired, or nil.
func (c *claims) check(want kind, now time.Time) error {
	ms := now.UnixMilli()
	switch {
	case c.Kind != want:
		return errTokenWrongType
	case ms < c.NotBefore: // RFC 7519 section 4.1.5
		return errTokenNotYet
	case ms >= c.ExpiresAt: // RFC 7519 section 4.1.4: not accepted on or after
		return errTokenExpired
	}
	return nil
}

// appendJSON writes the payload. The order is fixed and every string is of a set that needs no escape, so that
// the scanner below reads it back without a general JSON parser.
func (c *claims) appendJSON(b []byte) []byte {
	b = append(b, `{"iss":"`+issuer+`","sub":"`...)
	b = append(b, c.Subject...)
	b = append(b, `","sid":"`...)
	b = append(b, c.Session...)
	b = append(b, `","jti":"`...)
	b = append(b, c.Session...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(c.Generation), 10)
	b = append(b, "ar"[c.Kind])
	b = append(b, `","iat":`...)
	b = appendSeconds(b, c.IssuedAt)
	b = append(b, `,"exp":`...)
	b = appendSeconds(b, c.ExpiresAt)
	if c.Kind == accessToken {
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
		b = appendSeconds(b, c.NotBefore)
	}
	return append(b, '}')
}

// parseClaims reads a payload whose signature has been checked. Members after the known ones are passed over;
// anything else that appendJSON would not have written is errTokenMalformed.
func parseClaims(payload string, k kind) (claims, error) {
	c := claims{Kind: k}
	s := scanner{rest: payload}

	s.literal(`{"iss":"` + issuer + `","sub":"`)
	c.Subject = s.text()
	s.literal(`,"sid":"`)
	c.Session = s.text()
	s.literal(`,"jti":"`)
	c.Generation = s.generation(c.Session, "ar"[k])
	s.literal(`,"iat":`)
	c.IssuedAt = s.seconds()
	s.literal(`,"exp":`)
	c.ExpiresAt = s.seconds()
	if k == accessToken {
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
		return claims{}, errTokenMalformed
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
	id, ok := strings.CutPrefix(s.text(), session+".")
	if !ok || len(id) < 2 || id[len(id)-1] != letter {
		s.bad = true
		return 0
	}
	digits := id[:len(id)-1]
	n, err := strconv.ParseUint(digits, 10, 31)
	s.bad = s.bad || err != nil || digits[0] == '0' && n > 0 || len(digits) > 1 && n == 0
	return int(n)
}

// seconds reads a number as appendSeconds writes it, as milliseconds. Any other way to write it is bad.
func (s *scanner) seconds() int64 {
	end := strings.IndexAny(s.rest, ",}")
	if end < 0 {
		s.bad = true
		return 0
	}
	number := s.rest[:end]
	s.rest = s.rest[end:]
	whole, fraction, _ := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > 1<<50 || n < -(1<<50) || len(fraction) > 3 {
		s.bad = true
		return 0
	}
	thousandths, err := strconv.ParseUint((fraction + "000")[:3], 10, 16)
	ms := int64(thousandths)
	if strings.HasPrefix(whole, "-") {
		ms = -ms
	}
	ms += n * 1000
	var buf [24]byte
	if err != nil || string(appendSeconds(buf[:0], ms)) != number {
		s.bad = true
	}
	return ms
}

// appendSeconds writes milliseconds as seconds, with decimals only where there are any.
func appendSeconds(b []byte, ms int64) []byte {
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

// signer issues and opens the tokens of one hub.
type signer struct {
	keys [2]macKey
}

// newSigner derives the two keys from secret by HKDF-SHA256 (RFC 5869). hub names the hub within the process;
// hubs of different names share no key.
func newSigner(secret []byte, hub string) (*signer, error) {
	s := new(signer)
	for k := range s.keys {
		key, err := hkdf.Key(sha256.New, secret, nil, "authhub "+kind(k).String()+" token v1 "+hub, sha256.Size)
		if err != nil {
			return nil, err
		}
		s.keys[k].key = key
	}
	return s, nil
}

// appendToken appends the token that says c to b.
func (s *signer) appendToken(b []byte, c *claims) []byte {
	var buf [512]byte
	return s.appendSigned(b, c.Kind, c.appendJSON(buf[:0]))
}

// signPayload returns the token of this kind with exactly these payload bytes.
func (s *signer) signPayload(k kind, payload []byte) string {
	return string(s.appendSigned(nil, k, payload))
}

func (s *signer) appendSigned(b []byte, k kind, payload []byte) []byte {
	start := len(b)
	b = append(b, encodedHeaders[k]...)
	b = tokenEncoding.AppendEncode(b, payload)
	mac := s.keys[k].sum(b[start:])
	return tokenEncoding.AppendEncode(append(b, '.'), mac[:])
}

// open returns the claims of a token that this hub issued, byte for byte, or errTokenMalformed. It checks
// neither time nor kind nor session: see claims.check.
func (s *signer) open(token string) (claims, error) {
	k := accessToken
	if strings.HasPrefix(token, encodedHeaders[refreshToken]) {
		k = refreshToken
	} else if !strings.HasPrefix(token, encodedHeaders[accessToken]) {
		return claims{}, errTokenMalformed
	}
	dot := len(token) - encodedMACLen - 1
	start := len(encodedHeaders[k])
	if dot < start || token[dot] != '.' {
		return claims{}, errTokenMalformed
	}

	state := s.keys[k].state()
	defer s.keys[k].states.Put(state)
	state.message = append(state.message[:0], token...)
	mac := state.sumOf(state.message[:dot])
	var encoded [encodedMACLen]byte
	tokenEncoding.Encode(encoded[:], mac[:])
	// The MAC is compared in its encoded form: there is exactly one that is right (RFC 7515 section 5.2).
	if !hmac.Equal(encoded[:], state.message[dot+1:]) {
		return claims{}, errTokenMalformed
	}

	var err error
	if state.payload, err = tokenEncoding.AppendDecode(state.payload[:0], state.message[start:dot]); err != nil {
		return claims{}, errTokenMalformed
	}
	return parseClaims(string(state.payload), k)
}

// macKey is a key for HMAC-SHA256, with states that were keyed once and are used again.
type macKey struct {
	key    []byte
	states sync.Pool
}

// macState comes with the buffers that a use of it needs: what is handed to a hash.Hash can't live on the stack.
type macState struct {
	hash             hash.Hash
	digest           [sha256.Size]byte
	message, payload []byte
}

func (k *macKey) state() *macState {
	if state, ok := k.states.Get().(*macState); ok {
		return state
	}
	return &macState{hash: hmac.New(sha256.New, k.key)}
}

// sum returns the HMAC of message.
func (k *macKey) sum(message []byte) [sha256.Size]byte {
	state := k.state()
	defer k.states.Put(state)
	return state.sumOf(message)
}

func (m *macState) sumOf(message []byte) [sha256.Size]byte {
	m.hash.Reset()
	m.hash.Write(message)
	m.hash.Sum(m.digest[:0])
	return m.digest
}
