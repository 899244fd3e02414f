// import.go moves the journal of a single hub into the store.

package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"authhub/internal/account"
	"authhub/internal/etcd"
)

// ErrImporting says that a journal has been moved in by halves.
var ErrImporting = errors.New("a journal is being moved into this store: let -import finish first")

// imported is what lies under the key of the import: how far it has come. It changes in the same step as what it
// counts, so an import that was interrupted goes on where it was, and nothing that has ended since comes back.
type imported struct {
	Digest   string `json:"sha256"` // of what is moved in
	Users    int    `json:"users"`  // that are in
	Sessions int    `json:"sessions"`
	Done     bool   `json:"done"`
	Write    string `json:"w"`

	revision int64
}

// Imported says what Import has moved in, all in all.
type Imported struct{ Users, Sessions int }

// Import moves users and sessions into the store, or what is left of them after an import that was interrupted.
// It refuses others than it has begun with, and a user whose name or e-mail address somebody has.
func (s *Store) Import(ctx context.Context, users []account.UserRecord, sessions []account.Session) (Imported, error) {
	at, err := s.beginImport(ctx, contentDigest(users, sessions))
	for err == nil && at.Users < len(users) {
		some := users[at.Users:min(at.Users+usersAtOnce, len(users))]
		at, err = s.importUsers(ctx, at, some)
	}
	for err == nil && at.Sessions < len(sessions) {
		some := sessions[at.Sessions:min(at.Sessions+sessionsAtOnce, len(sessions))]
		at, err = s.importSessions(ctx, at, some)
	}
	if err == nil && !at.Done {
		next := at
		next.Done = true
		at, err = s.advance(ctx, at, next, etcd.Txn{})
	}
	if err != nil {
		return Imported{}, fmt.Errorf("-import: %w", err)
	}
	return Imported{at.Users, at.Sessions}, nil
}

const (
	usersAtOnce    = etcd.MaxOps/3 - 1 // a user takes three keys
	sessionsAtOnce = etcd.MaxOps - 1
)

func contentDigest(users []account.UserRecord, sessions []account.Session) string {
	digest := sha256.New()
	json.NewEncoder(digest).Encode(users)
	json.NewEncoder(digest).Encode(sessions)
	return hex.EncodeToString(digest.Sum(nil))
}

// beginImport returns how far the import of that content has come.
func (s *Store) beginImport(ctx context.Context, digest string) (imported, error) {
	at := imported{Digest: digest, Write: rand.Text()}
	value, _ := json.Marshal(at)
	out, err := s.startTxn(ctx, etcd.Txn{
		If:   []etcd.Cond{s.imported().Absent()},
		Then: []etcd.Op{s.imported().Put(value, 0)},
		Else: []etcd.Op{s.imported().Get()},
	})
	if err != nil {
		return at, err
	}
	at.revision = out.Revision
	if out.Succeeded {
		return at, nil
	}
	at, err = decodeImported(out.Results[0].First())
	if err == nil && at.Digest != digest {
		err = errors.New("this is not the content that was moved into the store, or began to be: another folder, or it has changed since")
	}
	return at, err
}

func decodeImported(kv *etcd.KeyValue) (imported, error) {
	var at imported
	if kv == nil {
		return at, errors.New("somebody has deleted the key of the import")
	}
	at.revision = kv.ModRevision
	return at, json.Unmarshal(kv.Value, &at)
}

// advance carries t out together with the step from at to next. If another process has advanced the import in between,
// it returns how far that has come; if a condition of t does not hold, errDiffers.
func (s *Store) advance(ctx context.Context, at, next imported, t etcd.Txn) (imported, error) {
	next.Write = rand.Text()
	value, _ := json.Marshal(next)
	t.If = append(t.If, s.imported().Unchanged(at.revision))
	t.Then = append(t.Then, s.imported().Put(value, 0))
	t.Else = []etcd.Op{s.imported().Get()}
	out, err := s.startTxn(ctx, t)
	if err != nil {
		return at, err
	}
	if out.Succeeded {
		next.revision = out.Revision
		return next, nil
	}
	stands, err := decodeImported(out.Results[0].First())
	if err == nil && stands.revision == at.revision {
		err = errDiffers
	}
	return stands, err
}

var errDiffers = errors.New("the store has something else under a key of the import")

func (s *Store) importUsers(ctx context.Context, at imported, some []account.UserRecord) (imported, error) {
	var t etcd.Txn
	for i := range some {
		if some[i].Gone {
			return at, fmt.Errorf("a lab has deleted the user %q of -users there; take it out of -users", some[i].ID)
		}
		u, err := some[i].User(nil)
		if err != nil {
			return at, fmt.Errorf("user %q: %w", some[i].Username, err)
		}
		claim := s.claim(u)
		t.If = append(t.If, claim.If...)
		t.Then = append(t.Then, claim.Then...)
	}
	next := at
	next.Users += len(some)
	stands, err := s.advance(ctx, at, next, t)
	if errors.Is(err, errDiffers) {
		return at, s.whoseName(ctx, some)
	}
	return stands, err
}

// whoseName says which of some can't be moved in.
func (s *Store) whoseName(ctx context.Context, some []account.UserRecord) error {
	for i := range some {
		u, err := some[i].User(nil)
		if err != nil {
			return err
		}
		for _, name := range s.names(u) {
			out, err := s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{name.Get()}})
			if err != nil {
				return err
			}
			if out.Results[0].First() != nil {
				return fmt.Errorf("%w: the user name or e-mail address of %q belongs to another user there", errDiffers, u.Username)
			}
		}
	}
	return errDiffers
}

// importSessions puts sessions, but those that are over.
func (s *Store) importSessions(ctx context.Context, at imported, some []account.Session) (imported, error) {
	var t etcd.Txn
	now := s.now()
	for i := range some {
		if some[i].OverAt() <= now.UnixMilli() {
			continue
		}
		lease, err := s.leases.until(ctx, some[i].OverAt(), now)
		if err != nil {
			return at, err
		}
		key := s.session(some[i].Ref())
		t.If = append(t.If, key.Absent())
		t.Then = append(t.Then, key.Put(sessionValue{Session: some[i], Write: rand.Text()}.encode(), lease))
	}
	next := at
	next.Sessions += len(some)
	return s.advance(ctx, at, next, t)
}

// checkImport returns ErrImporting when an import was begun and is not done.
func (s *Store) checkImport(ctx context.Context) error {
	out, err := s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{s.imported().Get()}})
	if err != nil || out.Results[0].First() == nil {
		return err
	}
	at, err := decodeImported(out.Results[0].First())
	if err == nil && !at.Done {
		return ErrImporting
	}
	return err
}
