// hasher.go owns the work of hashing: how much of it runs at once, and the memory of passwords that were found right.

package passwd

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"runtime"
	"sync"
)

const maxVerified = 20_000 // digests remembered

// Hasher makes and checks the password hashes of one hub. The hubs of a process share its slots: at most CPUs-1
// hashes, at least one, run at once, so that everything else stays quick while many users log in, and hubs with
// waiting logins take turns.
type Hasher struct {
	*work
	turns line // of this hub
}

// work is what the hashers of a process share.
type work struct {
	rounds int
	KDF    func(password string, salt []byte, rounds int) ([]byte, error) // PBKDF2 with HMAC-SHA256; tests replace it
	key    []byte                                                         // of this process; keys the digests of verified passwords
	nobody *Credential
	slots  slots

	mu       sync.Mutex
	verified map[[sha256.Size]byte]struct{}
}

// NewHasher returns the hasher of a process's first hub. Its new hashes have this many rounds.
func NewHasher(rounds int) *Hasher {
	w := &work{
		rounds:   rounds,
		KDF:      pbkdf2Key,
		key:      make([]byte, sha256.Size),
		nobody:   &Credential{rounds: rounds, salt: make([]byte, saltLen), hash: make([]byte, hashLen)},
		slots:    slots{free: max(1, runtime.GOMAXPROCS(0)-1)},
		verified: make(map[[sha256.Size]byte]struct{}),
	}
	rand.Read(w.key)
	return &Hasher{work: w}
}

// Share returns the hasher of another hub of the process.
func (h *Hasher) Share() *Hasher { return &Hasher{work: h.work} }

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
	if h.remembers(digest) {
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

	h.remember(digest)
	return true, nil
}

func (w *work) remembers(digest [sha256.Size]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.verified[digest]
	return known
}

func (w *work) remember(digest [sha256.Size]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.verified) >= maxVerified {
		clear(w.verified)
	}
	w.verified[digest] = struct{}{}
}

// digest is the keyed digest of the credential and the password, each part with its length, so that no two pairs have
// one digest. The key stands in front: a digest never leaves the process, so nobody can extend it.
func (w *work) digest(c *Credential, password string) [sha256.Size]byte {
	message := append(make([]byte, 0, 512), w.key...)
	for _, n := range []int{c.rounds, len(c.salt), len(c.hash), len(c.plain)} {
		message = binary.LittleEndian.AppendUint64(message, uint64(n))
	}
	message = append(message, c.salt...)
	message = append(message, c.hash...)
	message = append(message, c.plain...)
	return sha256.Sum256(append(message, password...))
}

// Waiting returns how many hashes of this hub run or wait.
func (h *Hasher) Waiting() int { return h.slots.count(&h.turns) }

// derive runs the key derivation when its turn comes. Errors: ErrBusy, context errors.
func (h *Hasher) derive(ctx context.Context, password string, salt []byte, rounds int) ([]byte, error) {
	if err := h.slots.take(ctx, &h.turns); err != nil {
		return nil, err
	}
	defer h.slots.release(&h.turns)
	return h.KDF(password, salt, rounds)
}

func pbkdf2Key(password string, salt []byte, rounds int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, rounds, hashLen)
}
