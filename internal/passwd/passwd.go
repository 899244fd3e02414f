// Package passwd hashes passwords and limits guesses. Hashes are PBKDF2-HMAC-SHA256 (RFC 8018 section 5.2). It knows
// no users.
//
// passwd.go owns the hashes, how many of them run at once, and the memory of passwords that were found right;
// throttle.go owns the limit on failed logins.
package passwd

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	DurableRounds   = 600_000 // OWASP Password Storage Cheat Sheet, PBKDF2-HMAC-SHA256
	EphemeralRounds = 100     // nothing is at rest
	maxRounds       = 10_000_000

	saltLen = 16
	hashLen = sha256.Size

	hashWait     = 20 * time.Second // how long a request waits for its turn to hash
	maxHashQueue = 1_000            // how many wait at once
	maxVerified  = 20_000           // digests remembered
)

var (
	// ErrBusy says that too many hashes wait, or that this one has waited too long.
	ErrBusy = errors.New("too many passwords wait for their hash")
	// ErrBadHash says what ParseHash takes.
	ErrBadHash = errors.New("not a $pbkdf2-sha256$i=ROUNDS$SALT$HASH, salt of 8 to 64 bytes and hash of 32 in standard base64")
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

// ParseHash reads the form that String returns, or returns ErrBadHash.
func ParseHash(s string) (Credential, error) {
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
	if rounds < 1 || rounds > maxRounds {
		return Credential{}, ErrBadHash
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

// Hasher makes and checks password hashes for all hubs of the process. At most CPUs-1 hashes, at least one, run at
// once, so that everything else stays quick while many users log in.
type Hasher struct {
	rounds int
	KDF    func(password string, salt []byte, rounds int) ([]byte, error) // PBKDF2 with HMAC-SHA256; tests replace it
	key    []byte                                                         // of this process; keys the digests of verified passwords
	nobody *Credential
	gate   chan struct{}
	queue  chan struct{}

	mu       sync.Mutex
	verified map[[sha256.Size]byte]struct{}
}

func NewHasher(rounds int) *Hasher {
	h := &Hasher{
		rounds:   rounds,
		KDF:      pbkdf2Key,
		key:      make([]byte, sha256.Size),
		nobody:   &Credential{rounds: rounds, salt: make([]byte, saltLen), hash: make([]byte, hashLen)},
		gate:     make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		queue:    make(chan struct{}, maxHashQueue),
		verified: make(map[[sha256.Size]byte]struct{}),
	}
	rand.Read(h.key)
	return h
}

// Hash returns a new hash of password with a salt from random. Errors: ErrBusy, context errors.
func (h *Hasher) Hash(ctx context.Context, random io.Reader, password string) (Credential, error) {
	p := Credential{rounds: h.rounds, salt: make([]byte, saltLen)}
	if _, err := io.ReadFull(random, p.salt); err != nil {
		return p, err
	}
	var err error
	p.hash, err = h.derive(ctx, password, p.salt, p.rounds)
	return p, err
}

// Verify reports whether password is right for c, after the same work whether it is, whether it isn't, and where
// there is no such user (c is nil). A password found right is remembered as a keyed digest for the life of the
// process, so that only the first login pays; wrong ones always pay. Errors: ErrBusy, context errors.
func (h *Hasher) Verify(ctx context.Context, c *Credential, password string) (bool, error) {
	exists := c != nil
	if !exists {
		c = h.nobody
	}
	digest := h.digest(c, password)
	h.mu.Lock()
	_, known := h.verified[digest]
	h.mu.Unlock()
	if known {
		return true, nil
	}

	salt, rounds := c.salt, c.rounds
	if c.plain != "" {
		salt, rounds = h.nobody.salt, h.rounds
	}
	derived, err := h.derive(ctx, password, salt, rounds)
	if err != nil || !c.matches(password, derived) || !exists {
		return false, err
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.verified) >= maxVerified {
		clear(h.verified)
	}
	h.verified[digest] = struct{}{}
	return true, nil
}

func (h *Hasher) digest(c *Credential, password string) (digest [sha256.Size]byte) {
	m := hmac.New(sha256.New, h.key)
	m.Write(c.salt)
	m.Write(c.hash)
	io.WriteString(m, c.plain) // either this or the two before are empty, so the parts can't run into one another
	m.Write([]byte{0})
	io.WriteString(m, password)
	m.Sum(digest[:0])
	return digest
}

// Waiting returns how many hashes run or wait.
func (h *Hasher) Waiting() int { return len(h.queue) }

// derive runs the key derivation when its turn comes; ErrBusy when too many wait or it takes too long.
func (h *Hasher) derive(ctx context.Context, password string, salt []byte, rounds int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		return nil, ErrBusy
	}
	patience := time.NewTimer(hashWait)
	defer patience.Stop()
	select {
	case h.gate <- struct{}{}:
		defer func() { <-h.gate }()
	case <-patience.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.KDF(password, salt, rounds)
}

func pbkdf2Key(password string, salt []byte, rounds int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, rounds, hashLen)
}
