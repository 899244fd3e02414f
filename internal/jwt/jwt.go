// Package jwt issues and opens tokens: compact JWS (RFC 7515 section 7.1) signed with HMAC-SHA256, in the two types
// that the hub issues.
//
// It owns the form of a token and its keys. It knows no sessions: the store says whether the session of a good token
// still lives. Not implemented on purpose: any other algorithm, header member or serialization (RFC 8725 sections 3.1
// and 3.11).
//
// jwt.go owns kinds, keys and signatures, claims.go the payload, opened.go the memory of access tokens.
package jwt

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"strings"
	"sync"
)

// The reasons to refuse a token without asking the store.
var (
	ErrMalformed = errors.New("the token is not one of this hub's: its form or its signature is wrong")
	ErrNotYet    = errors.New("the token is not valid yet (nbf)")
	ErrExpired   = errors.New("the token has expired")
	ErrWrongType = errors.New("the token is of the other type")
)

// Kind tells access tokens from refresh tokens. It selects the header and the key.
type Kind int

const (
	Access Kind = iota
	Refresh
)

func (k Kind) String() string {
	if k == Access {
		return "access"
	}
	return "refresh"
}

// letter ends the token ids of this kind.
func (k Kind) letter() byte {
	if k == Access {
		return 'a'
	}
	return 'r'
}

// These are the only two headers, and below are their encoded forms, each with the dot behind it.
const (
	accessHeader  = `{"alg":"HS256","typ":"at+jwt"}`
	refreshHeader = `{"alg":"HS256","typ":"rt+jwt"}`
)

var encodedHeaders = [...]string{
	Access:  tokenEncoding.EncodeToString([]byte(accessHeader)) + ".",
	Refresh: tokenEncoding.EncodeToString([]byte(refreshHeader)) + ".",
}

// Unpadded base64url (RFC 7515 section 2); Strict refuses stray last bits.
var tokenEncoding = base64.RawURLEncoding.Strict()

const encodedMACLen = 43 // 32 bytes in unpadded base64

// encodedIssuer is how every payload begins. A whole number of groups of three bytes is encoded, so what follows
// changes none of its letters.
var encodedIssuer = tokenEncoding.EncodeToString([]byte(`{"iss":"` + issuer + `","sub":"`))

// Resembles reports whether text has the form of a token of a hub, whoever signed it. Those of other issuers have not.
func Resembles(text string) bool {
	_, rest, _ := strings.Cut(text, ".")
	return strings.HasPrefix(rest, encodedIssuer) && strings.Count(rest, ".") == 1
}

// Signer issues and opens the tokens of one hub.
type Signer struct {
	keys   [2]macKey
	opened opened
}

// NewSigner derives the two keys from secret by HKDF-SHA256 (RFC 5869). hub names the hub within the process;
// hubs of different names share no key.
func NewSigner(secret []byte, hub string) (*Signer, error) {
	s := new(Signer)
	for k := range s.keys {
		key, err := hkdf.Key(sha256.New, secret, nil, "authhub "+Kind(k).String()+" token v1 "+hub, sha256.Size)
		if err != nil {
			return nil, err
		}
		s.keys[k].key = key
	}
	return s, nil
}

// Append appends the token that says c to b.
func (s *Signer) Append(b []byte, c *Claims) []byte {
	var buf [512]byte
	return s.appendSigned(b, c.Kind, c.AppendJSON(buf[:0]))
}

// SignPayload returns the token of this kind with exactly these payload bytes.
func (s *Signer) SignPayload(k Kind, payload []byte) string {
	return string(s.appendSigned(nil, k, payload))
}

func (s *Signer) appendSigned(b []byte, k Kind, payload []byte) []byte {
	start := len(b)
	b = append(b, encodedHeaders[k]...)
	b = tokenEncoding.AppendEncode(b, payload)
	mac := s.keys[k].sum(b[start:])
	return tokenEncoding.AppendEncode(append(b, '.'), mac[:])
}

// Open returns the claims of a token that this hub issued byte for byte, or ErrMalformed. It does not check time,
// kind or session: see Claims.Check.
func (s *Signer) Open(token string) (Claims, error) {
	k := Access
	if strings.HasPrefix(token, encodedHeaders[Refresh]) {
		k = Refresh
	} else if !strings.HasPrefix(token, encodedHeaders[Access]) {
		return Claims{}, ErrMalformed
	}
	dot := len(token) - encodedMACLen - 1
	start := len(encodedHeaders[k])
	if dot < start || token[dot] != '.' {
		return Claims{}, ErrMalformed
	}
	if k == Refresh { // comes once
		return s.check(token, k, start, dot)
	}
	if c := s.opened.find(token[:dot], token[dot+1:]); c != nil {
		return *c, nil
	}
	c, err := s.check(token, k, start, dot)
	if err == nil {
		s.opened.keep(token[:dot], token[dot+1:], c)
	}
	return c, err
}

// check returns the claims of a token whose payload is between start and dot.
func (s *Signer) check(token string, k Kind, start, dot int) (Claims, error) {
	state := s.keys[k].state()
	defer s.keys[k].states.Put(state)
	state.message = append(state.message[:0], token...)
	mac := state.sumOf(state.message[:dot])
	var encoded [encodedMACLen]byte
	tokenEncoding.Encode(encoded[:], mac[:])
	// The MAC is compared in its encoded form: there is exactly one that is right (RFC 7515 section 5.2).
	if !hmac.Equal(encoded[:], state.message[dot+1:]) {
		return Claims{}, ErrMalformed
	}

	var err error
	if state.payload, err = tokenEncoding.AppendDecode(state.payload[:0], state.message[start:dot]); err != nil {
		return Claims{}, ErrMalformed
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
