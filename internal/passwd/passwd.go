// Package passwd hashes passwords (PBKDF2-HMAC-SHA256, RFC 8018 section 5.2) and limits guesses; it knows no users.
//
// passwd.go owns what a password is checked against, hasher.go the work, turns.go whose turn it is, and throttle.go
// the limit on failed logins.
package passwd

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	DurableRounds   = 600_000 // OWASP Password Storage Cheat Sheet, PBKDF2-HMAC-SHA256
	EphemeralRounds = 100     // nothing is at rest

	maxRounds       = 2_000_000  // of a hash that is put in: about a second
	maxStoredRounds = 10_000_000 // of a hash that an older hub took

	saltLen = 16
	hashLen = sha256.Size
)

var (
	// ErrBusy says that too many hashes wait, or that this one has waited too long.
	ErrBusy = errors.New("too many passwords wait for their hash")
	// ErrBadHash says what ParseHash takes.
	ErrBadHash = errors.New("not a $pbkdf2-sha256$i=ROUNDS$SALT$HASH, salt of 8 to 64 bytes and hash of 32 in standard base64")
	// ErrTooManyRounds says that each login with a hash would take too long.
	ErrTooManyRounds = fmt.Errorf("the password hash has more than %d rounds, which is more work than one login may cost", maxRounds)
)

// Credential is what a password is checked against: a hash, or the password itself. The zero value matches nothing.
type Credential struct {
	rounds     int
	salt, hash []byte
	plain      string
}

// Plain returns the credential of a password that needs no hash, because everybody knows it (demo accounts) or
// because it lies readable in the operator's own file. Hashing it at the start would cost every start what only a
// login needs.
func Plain(password string) Credential { return Credential{plain: password} }

// Password returns what Plain was given, or "".
func (c Credential) Password() string { return c.plain }

// Equal reports whether c and other are the credential of one password, set once.
func (c *Credential) Equal(other *Credential) bool {
	return c.rounds == other.rounds && c.plain == other.plain && bytes.Equal(c.salt, other.salt) && bytes.Equal(c.hash, other.hash)
}

// String returns the form of a hash at rest, $pbkdf2-sha256$i=600000$salt$hash, with salt and hash in unpadded base64
// (the PHC string format). A plain password has none and returns "".
func (c Credential) String() string {
	if c.hash == nil {
		return ""
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$pbkdf2-sha256$i=%d$%s$%s", c.rounds, b64.EncodeToString(c.salt), b64.EncodeToString(c.hash))
}

// ParseHash reads the form that String returns. Errors: ErrBadHash, ErrTooManyRounds.
func ParseHash(s string) (Credential, error) {
	c, err := ParseStored(s)
	if err == nil && c.Costly() {
		return Credential{}, ErrTooManyRounds
	}
	return c, err
}

// Costly reports whether a login with c takes more work than ParseHash allows.
func (c *Credential) Costly() bool { return c.rounds > maxRounds }

// ParseStored is ParseHash for what an older hub may have stored, with up to ten million rounds.
func ParseStored(s string) (Credential, error) {
	b64 := base64.RawStdEncoding.Strict()
	parts := strings.Split(s, "$")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "pbkdf2-sha256" || !strings.HasPrefix(parts[2], "i=") {
		return Credential{}, ErrBadHash
	}
	rounds, err1 := strconv.Atoi(parts[2][2:])
	salt, err2 := b64.DecodeString(strings.TrimRight(parts[3], "=")) // most languages' base64 pads
	hash, err3 := b64.DecodeString(strings.TrimRight(parts[4], "="))
	if err1 != nil || err2 != nil || err3 != nil || len(salt) < 8 || len(salt) > 64 || len(hash) != hashLen {
		return Credential{}, ErrBadHash
	}
	if rounds < 1 {
		return Credential{}, ErrBadHash
	}
	if rounds > maxStoredRounds {
		return Credential{}, ErrTooManyRounds
	}
	return Credential{rounds: rounds, salt: salt, hash: hash}, nil
}

// matches compares in constant time. derived is the key derived from password with the credential's salt and rounds.
func (c *Credential) matches(password string, derived []byte) bool {
	if c.plain != "" {
		want, got := sha256.Sum256([]byte(c.plain)), sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
	return subtle.ConstantTimeCompare(c.hash, derived) == 1
}
