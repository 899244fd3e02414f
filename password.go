// Passwords: PBKDF2-HMAC-SHA256 (RFC 8018 section 5.2) at rest, a bounded gate in front of it, and a memory of
// what has been verified.

package main

import (
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
	durableRounds   = 600_000 // OWASP Password Storage Cheat Sheet, PBKDF2-HMAC-SHA256
	ephemeralRounds = 100     // nothing is at rest
	maxRounds       = 10_000_000

	saltLen = 16
	hashLen = sha256.Size

	hashWait     = 20 * time.Second // how long a request waits for its turn to hash
	maxHashQueue = 1_000            // how many wait at once
	maxVerified  = 20_000           // digests remembered
)

var errBadHash = errors.New("not a $pbkdf2-sha256$i=ROUNDS$SALT$HASH, salt of 8 to 64 bytes and hash of 32 in standard base64")

// passwordHash is one password at rest, written $pbkdf2-sha256$i=600000$salt$hash, salt and hash in unpadded
// base64 (the form of the PHC string format).
type passwordHash struct {
	rounds     int
	salt, hash []byte
}

func (p passwordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$pbkdf2-sha256$i=%d$%s$%s", p.rounds, b64.EncodeToString(p.salt), b64.EncodeToString(p.hash))
}

// parseHash reads the form that String writes, or returns errBadHash.
func parseHash(s string) (passwordHash, error) {
	b64 := base64.RawStdEncoding.Strict()
	parts := strings.Split(s, "$")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "pbkdf2-sha256" || !strings.HasPrefix(parts[2], "i=") {
		return passwordHash{}, errBadHash
	}
	rounds, err1 := strconv.Atoi(parts[2][2:])
	salt, err2 := b64.DecodeString(strings.TrimRight(parts[3], "=")) // most languages' base64 pads
	hash, err3 := b64.DecodeString(strings.TrimRight(parts[4], "="))
	if errors.Join(err1, err2, err3) != nil || rounds < 1 || rounds > maxRounds || len(salt) < 8 || len(salt) > 64 || len(hash) != hashLen {
		return passwordHash{}, errBadHash
	}
	return passwordHash{rounds, salt, hash}, nil
}

// hasher makes and checks password hashes for all hubs of the process. At most CPUs-1 hashes (but one) run at
// once, so that everything else stays quick while many log in.
type hasher struct {
	rounds int
	kdf    func(password string, salt []byte, rounds int) ([]byte, error)
	key    []byte // of this process; keys the digests of verified passwords
	nobody *credential
	gate   chan struct{}
	queue  chan struct{}

	mu       sync.Mutex
	verified map[[sha256.Size]byte]struct{}
}

func newHasher(rounds int) *hasher {
	h := &hasher{
		rounds:   rounds,
		kdf:      pbkdf2Key,
		key:      make([]byte, sha256.Size),
		nobody:   &credential{hash: passwordHash{rounds, make([]byte, saltLen), make([]byte, hashLen)}},
		gate:     make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		queue:    make(chan struct{}, maxHashQueue),
		verified: make(map[[sha256.Size]byte]struct{}),
	}
	rand.Read(h.key)
	return h
}

// hash returns a new hash of password with a salt from random, or errBusy.
func (h *hasher) hash(ctx context.Context, random io.Reader, password string) (passwordHash, error) {
	p := passwordHash{rounds: h.rounds, salt: make([]byte, saltLen)}
	if _, err := io.ReadFull(random, p.salt); err != nil {
		return p, err
	}
	var err error
	p.hash, err = h.derive(ctx, password, p.salt, p.rounds)
	return p, err
}

// verify reports whether password is right for c, after the same work whether it is, whether it isn't, and where
// there is no such user (c is nil). A password found right is remembered as a keyed digest for the life of the
// process, so that only the first login pays; wrong ones always pay. Errors: errBusy, context errors.
func (h *hasher) verify(ctx context.Context, c *credential, password string) (bool, error) {
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

	salt, rounds := c.hash.salt, c.hash.rounds
	if c.plain != "" {
		salt, rounds = h.nobody.hash.salt, h.rounds
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

func (h *hasher) digest(c *credential, password string) (digest [sha256.Size]byte) {
	m := hmac.New(sha256.New, h.key)
	m.Write(c.hash.salt)
	m.Write(c.hash.hash)
	io.WriteString(m, c.plain) // either this or the two before are empty, so the parts can't run into one another
	m.Write([]byte{0})
	io.WriteString(m, password)
	m.Sum(digest[:0])
	return digest
}

// derive runs the key derivation when its turn comes; errBusy when too many wait or it takes too long.
func (h *hasher) derive(ctx context.Context, password string, salt []byte, rounds int) ([]byte, error) {
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		return nil, errBusy
	}
	patience := time.NewTimer(hashWait)
	defer patience.Stop()
	select {
	case h.gate <- struct{}{}:
		defer func() { <-h.gate }()
	case <-patience.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.kdf(password, salt, rounds)
}

func pbkdf2Key(password string, salt []byte, rounds int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, rounds, hashLen)
}

// credential is what a password is checked against: a hash, or for seeds that give one, the password itself.
// Such a password is public (demo accounts) or lies readable in the operator's own file; hashing it at start
// would cost every start what only a login needs.
type credential struct {
	hash  passwordHash
	plain string
}

// matches compares in constant time; derived is the key derived from password with the credential's salt.
func (c *credential) matches(password string, derived []byte) bool {
	if c.plain != "" {
		want, got := sha256.Sum256([]byte(c.plain)), sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
	return subtle.ConstantTimeCompare(c.hash.hash, derived) == 1
}
