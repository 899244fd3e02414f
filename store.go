// What a hub keeps and where, and the answer that each error gets.

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/disk"
	"authhub/internal/engine"
	"authhub/internal/flags"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/results"
	"authhub/internal/runs"
)

var errBusy = errors.New("too much work waiting")

// answerFor returns the answer that err gets: its own, or that of the room's error which it is or wraps.
func answerFor(err error) *reply.Error {
	var throttled *passwd.ThrottledError
	if errors.As(err, &throttled) {
		return reply.RetryAfter(429, "too_many_attempts",
			"Too many failed logins for this user name from this address. Wait a little.", throttled.Wait)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.answer
		}
	}
	return reply.As(err)
}

// busy is shared, so never written to.
var busy = reply.Fail(503, "busy", "The hub has too much work waiting. Try again.")

// sentinels are the errors of the rooms below, with their places in the contract.
var sentinels = []struct {
	err    error
	answer *reply.Error // shared, so never written to
}{
	{jwt.ErrMalformed, reply.Fail(401, "token_malformed", "This hub did not issue the token: its form or its signature is wrong. Log in again.")},
	{jwt.ErrNotYet, reply.Fail(401, "token_malformed", "The token is not valid yet (its nbf is in the future). Wait, or log in again.")},
	{jwt.ErrExpired, reply.Fail(401, "token_expired", "The token has expired. Refresh, or log in again.")},
	{jwt.ErrWrongType, reply.Fail(401, "token_wrong_type", "The token has the wrong type for this operation: an access token where a refresh token belongs, or the reverse. Send the other token.")},
	{account.ErrRevoked, reply.Fail(401, "token_revoked", "The session of this token has ended. Log in again.")},
	{account.ErrNoUser, reply.Fail(401, "invalid_credentials", "The user name or the password is wrong. Check both.")}, // deleted since the password was checked
	{account.ErrReused, reply.Fail(401, "token_reused", "This refresh token was already spent, so the hub has ended its session. Log in again.")},
	{account.ErrDisabled, reply.Fail(403, "account_disabled", "The account is disabled. Log in with another account.")},
	{account.ErrUsernameTaken, taken("username", "The user name is taken. Choose another one.")},
	{account.ErrEmailTaken, taken("email", "The e-mail address belongs to another account. Give another address, or log in.")},
	{account.ErrUserLimit, reply.Fail(507, "user_limit", "The hub has 100,000 users and takes no more. Start a hub with another folder.")},
	{disk.ErrFull, reply.Fail(507, "disk_full", "The disk is full. Free some space. If /healthz then answers 503, restart the hub.")},
	{account.ErrUnavailable, notAnswering("The store does not answer. Nothing was changed. Try again.")},
	{account.ErrUnknown, notAnswering("The store did not answer in time. The change may have been made. Try again.")},
	{account.ErrFailed, reply.Fail(503, "store_unavailable", "The store could not write; the log says why. It takes no changes until you restart the hub; reading still works.")},
	{disk.ErrGone, reply.Fail(503, "store_unavailable", "The hub's folder, its journal or its lock was removed or replaced. Put it back and restart the hub.")},
	{passwd.ErrBusy, busy},
	{runs.ErrBusy, busy},
	{results.ErrUploads, busy},
	{results.ErrClosed, busy},
	{syscall.EMFILE, busy}, // no file descriptor left in the process
	{syscall.ENFILE, busy}, // none left in the system
	{engine.ErrNotShared, reply.Fail(503, "store_unavailable", "This hub's -dir is not the folder that the hubs share, so it has no files and can't run. Logins work. The log says more.")},
	{engine.ErrOtherRun, reply.Fail(503, "busy", "Another hub is running. Try again.")},
	{results.ErrBroken, reply.Fail(503, "store_unavailable", "The hub can't make one whole set of the three files; the log says why. Remove the cause, then run again.")},
	{errBusy, busy},
	{account.ErrReplaced, reply.Fail(503, "busy", "The hub was reset, or a snapshot was restored, while this request was under way. The request changed nothing. Send it again.")},
}

// notAnswering is the answer of a store that may come back by itself.
func notAnswering(detail string) *reply.Error {
	return reply.RetryAfter(503, "store_unavailable", detail, 2*time.Second)
}

// taken is the answer to a registration of what another account has.
func taken(field, detail string) *reply.Error {
	e := reply.Fail(http.StatusConflict, field+"_taken", detail)
	e.Fields = []reply.FieldError{{Field: field, Detail: detail}}
	return e
}

// openHub returns the hub that o asks for, and what releases everything it holds.
func openHub(ctx context.Context, o *program, log *slog.Logger) (*Hub, func(), error) {
	users, err := o.readUsers()
	if err != nil {
		return nil, nil, err
	}
	h := &Hub{settings: &o.settings, operations: newOperations(), throttle: passwd.NewThrottle(), base: o.BaseURL, now: o.now, rand: o.rand, log: log}
	h.reuse = func() account.ReusePolicy { return account.ReusePolicy{Keep: !o.Dialect.Rotation()} } // RFC 9700: a spent refresh token ends its session
	h.lifetimes = func() (access, refresh time.Duration) { return o.AccessTTL, o.RefreshTTL }
	h.dialect = func() *dialect.Dialect { return o.Dialect }
	release := func() error { return nil }
	secret := []byte(o.Secret)
	switch {
	case o.Store != "":
		h.hasher = passwd.NewHasher(o.rounds)
		err = h.openShared(ctx, o, users)
	case o.Ephemeral:
		h.hasher, h.output = passwd.NewHasher(passwd.EphemeralRounds), results.Temporary()
		if h.store, err = account.NewMemory(users); err == nil && len(secret) == 0 {
			secret = make([]byte, flags.MinSecret)
			rand.Read(secret)
		}
	default:
		h.hasher = passwd.NewHasher(o.rounds)
		secret, release, err = h.openDir(o, users, secret)
	}
	if err != nil {
		return nil, nil, err
	}
	h.secret = secret
	if h.signer, err = jwt.NewSigner(secret, ""); err != nil {
		return nil, nil, err
	}
	if h.shared != nil {
		h.runs, release = runs.NewAt(h.shared, h.now, h.logRun), h.shared.Close
	} else {
		h.runs = runs.New(h.output, h.now, h.logRun)
	}
	return h, func() {
		h.runs.Close()
		if err := errors.Join(h.output.Close(), h.store.Close(), release()); err != nil {
			log.Error("stop", "cause", err)
		}
	}, nil
}

// openDir opens what DIR holds, alone: secret, journal and phase2. The lock is given back with release.
func (h *Hub) openDir(o *program, users []*account.User, secret []byte) (_ []byte, release func() error, err error) {
	var locked *disk.Locked
	if err = os.MkdirAll(o.Dir, 0o700); err == nil {
		locked, err = disk.Lock(o.Dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name another folder with -dir, or keep nothing with -ephemeral", err)
	}
	if len(secret) == 0 {
		secret, err = openSecret(filepath.Join(o.Dir, "secret"))
	}
	if err == nil {
		h.store, err = account.Open(locked, filepath.Join(o.Dir, "journal"), users, h.log)
	}
	if err != nil {
		locked.Unlock()
		return nil, nil, err
	}
	h.output = results.Open(filepath.Join(o.Dir, "phase2"), locked.Held)
	if err := h.output.Err(); err != nil { // logins do not need it
		h.log.Warn("the three files are unavailable until a run succeeds", "cause", err)
	}
	return secret, locked.Unlock, nil
}

// openSecret returns the secret in the file at path, made with mode 0600 where there is none.
func openSecret(path string) ([]byte, error) {
	stored, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := make([]byte, flags.MinSecret)
		rand.Read(random)
		stored = []byte(hex.EncodeToString(random))
		return stored, disk.ReplaceFile(disk.OS{}, path, append(stored, '\n'), 0o600)
	}
	stored = bytes.TrimRight(stored, "\r\n") // so that AUTHHUB_SECRET="$(cat DIR/secret)" is the same
	if err == nil && len(stored) < flags.MinSecret {
		err = fmt.Errorf("%s holds fewer than %d bytes; put it back, or delete it to end all sessions", path, flags.MinSecret)
	}
	return stored, err
}

// openShared opens the store of many hubs and the files that they share. DIR holds the files and nothing else.
func (h *Hub) openShared(ctx context.Context, o *program, users []*account.User) error {
	many, err := o.openEngine(ctx, h.hasher, users, h.log)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "journal")); err == nil {
		h.log.Warn("this folder has the users of a single hub, which -store does not look at; -import moves them", "dir", o.Dir)
	}
	h.store, h.output = many, results.Temporary()
	h.shared, err = many.OpenFiles(ctx, o.Dir, func(r *runs.Run) []byte {
		record, _ := json.Marshal(h.recordAlone(r)) // strings and numbers: it can't fail
		return record
	})
	if err != nil {
		many.Close()
	}
	return err
}

func (o *program) openEngine(ctx context.Context, hasher *passwd.Hasher, users []*account.User, log *slog.Logger) (*engine.Store, error) {
	many, err := engine.Open(ctx, engine.Config{Address: o.Store, Secret: []byte(o.Secret), Seeds: users, Hasher: hasher,
		Rand: o.rand, Now: o.now, Log: log, Import: o.Import != ""})
	if errors.Is(err, engine.ErrAddress) {
		err = fmt.Errorf("%w (%w)", err, flags.ErrMisuse)
	}
	return many, err
}

// importJournal moves the users and sessions of the folder of -import into the store, and says how many they were.
func importJournal(ctx context.Context, o *program, stdout io.Writer, log *slog.Logger) error {
	users, err := o.readUsers()
	if err != nil {
		return err
	}
	records, sessions, err := o.readJournal(users, log)
	if err != nil {
		return fmt.Errorf("-import: %w", err)
	}
	many, err := o.openEngine(ctx, passwd.NewHasher(o.rounds), users, log)
	if err != nil {
		return err
	}
	defer many.Close()
	moved, err := many.Import(ctx, records, sessions)
	if err == nil {
		fmt.Fprintf(stdout, "%s is in the store (users: %d, sessions: %d)\n", o.Import, moved.Users, moved.Sessions)
	}
	return err
}

// readJournal returns what the folder of -import holds. No hub may be using it, and AUTHHUB_SECRET has to fit its
// tokens.
func (o *program) readJournal(users []*account.User, log *slog.Logger) ([]account.UserRecord, []account.Session, error) {
	path := filepath.Join(o.Import, "journal")
	if _, err := os.Stat(path); err != nil {
		return nil, nil, err
	}
	secret, err := os.ReadFile(filepath.Join(o.Import, "secret"))
	if err == nil && string(bytes.TrimRight(secret, "\r\n")) != o.Secret {
		return nil, nil, fmt.Errorf(`AUTHHUB_SECRET is not that of the journal's tokens: say AUTHHUB_SECRET="$(cat %s)"`, filepath.Join(o.Import, "secret"))
	}
	locked, err := disk.Lock(o.Import)
	if err != nil {
		return nil, nil, err
	}
	defer locked.Unlock()
	store, err := account.Open(locked, path, users, log)
	if err != nil {
		return nil, nil, err
	}
	records, sessions := store.Contents()
	return records, sessions, store.Close()
}

// readUsers returns the seeds: those of -users, or the demo accounts.
func (o *program) readUsers() ([]*account.User, error) {
	if o.Users == "" {
		f, err := embedded.Open(embeddedUsers)
		if err != nil {
			return nil, err
		}
		return account.ParseSeeds(f)
	}
	f, err := os.Open(o.Users)
	if err != nil {
		return nil, fmt.Errorf("-users: %w", err)
	}
	defer f.Close()
	users, err := account.ParseSeeds(f)
	if err != nil {
		return nil, fmt.Errorf("-users: %s: %w", o.Users, err)
	}
	return users, nil
}

// embedded returns the store of a hub that has a lab: -lab is refused with any other.
func (h *Hub) embedded() *account.Embedded { return h.store.(*account.Embedded) }

// showHealth answers whether the hub can store; of many hubs, with the nodes of the store that are missing.
func (h *Hub) showHealth(w http.ResponseWriter, r *http.Request) error {
	health := map[string]any{"status": "ok"}
	if many, ok := h.store.(*engine.Store); ok {
		missing, err := many.Health(r.Context())
		if err != nil && len(missing) > 0 {
			err = notAnswering("The store does not answer. Nodes that are missing: " + strings.Join(missing, ", ") + ".")
		}
		if err != nil {
			return err
		}
		health["store"] = map[string]any{"missing": missing}
	} else if err := h.store.Ready(r.Context()); err != nil {
		return err
	}
	return reply.WriteJSON(w, http.StatusOK, health)
}

// answerError is the one place where an error becomes an answer.
func (h *Hub) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if givenUp(r, err) {
		err = errBusy // most likely nobody listens; who does must not take an empty 200 for success
		if cause := context.Cause(r.Context()); errors.Is(cause, account.ErrReplaced) {
			err = cause
		}
	}
	e := answerFor(err)
	switch e.Code {
	case "internal":
		h.log.Error(e.Code, "operation", r.Pattern, "cause", err)
	case "store_unavailable", "disk_full":
		h.log.Warn(e.Code, "operation", r.Pattern, "cause", err)
	}
	h.noteUser(w, r)
	reply.Write(w, e)
}

// noteUser tells the log whose access token a refused request carries.
func (h *Hub) noteUser(w http.ResponseWriter, r *http.Request) {
	token, err := request.Bearer(r)
	if err != nil {
		return
	}
	if c, err := h.signer.Open(token); err == nil && c.Username != "" {
		reply.Note(w, "user", c.Username)
	}
}

// givenUp reports whether err only says that the request has been given up, by its client or by the lab.
func givenUp(r *http.Request, err error) bool {
	ended := r.Context().Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(r.Context())))
}
