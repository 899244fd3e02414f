// open.go owns a start, and what there is to know of the health of the store.

package engine

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"authhub/internal/account"
	"authhub/internal/etcd"
	"authhub/internal/passwd"
)

// Config is what a store needs.
type Config struct {
	Address string // SCHEME://[USER:PASSWORD@]HOST:PORT[,SCHEME://HOST:PORT…][/PATH]
	Secret  []byte // that the hubs share
	Seeds   []*account.User
	Hasher  *passwd.Hasher // of the seeds' passwords
	Rand    io.Reader
	Now     func() time.Time
	Log     *slog.Logger
	Import  bool // to be called next; otherwise an import that is not done is an error
}

// ErrAddress says that Config.Address is not an address.
var ErrAddress = etcd.ErrAddress

const (
	startLimit  = 10 * time.Second // how long a start waits for etcd
	healthLimit = 4 * time.Second
	lookEvery   = 5 * time.Second // at all nodes, for the log
)

// Open returns the store at c.Address, with the seeds in it. It waits for etcd for ten seconds. Its errors are each one
// line for the operator.
func Open(ctx context.Context, c Config) (*Store, error) {
	client, path, err := etcd.Dial(c.Address, slog.New(slog.DiscardHandler)) // a start that fails says so in one line
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	s := &Store{keys: newKeys(path), etcd: client, reads: &batches{do: client.Do}, leases: newLeases(client),
		users: newRemembered[userAt](account.MaxUsers), logins: newRemembered[string](2 * account.MaxUsers), eldest: newRemembered[*eldest](100),
		plain: make(map[string]passwd.Credential), now: c.Now, log: c.Log, fingerprint: fingerprint(c.Secret)}
	looking, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.start(ctx, c); err != nil {
		s.Close()
		return nil, fmt.Errorf("-store: %w", err)
	}
	client.LogTo(c.Log)
	s.looking.Go(func() { s.look(looking) })
	return s, nil
}

func (s *Store) start(ctx context.Context, c Config) error {
	waiting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.claimSecret(waiting); err != nil {
		return err
	}
	if !c.Import {
		if err := s.checkImport(ctx); err != nil {
			return err
		}
	}
	return s.plant(ctx, c)
}

// fingerprint tells secrets apart without telling them.
func fingerprint(secret []byte) string {
	derived, err := hkdf.Key(sha256.New, secret, nil, "authhub store fingerprint", 16)
	if err != nil {
		panic(err) // only a length that is too large is an error
	}
	return hex.EncodeToString(derived)
}

// claimSecret makes sure that all hubs of this store have one secret: with two, each would refuse the other's tokens.
func (s *Store) claimSecret(ctx context.Context) error {
	out, err := s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.secret().Absent()},
		Then: []etcd.Op{s.secret().Put([]byte(s.fingerprint), 0)},
		Else: []etcd.Op{s.secret().Get()},
	})
	if refused := (*etcd.RefusedError)(nil); errors.As(err, &refused) {
		return refused
	}
	if errors.Is(err, etcd.ErrUnavailable) || errors.Is(err, etcd.ErrUnknown) {
		return fmt.Errorf("etcd did nothing within %v; are the addresses right, and do most of its nodes run? %w", startLimit, err)
	}
	if err != nil || out.Succeeded {
		return err
	}
	return s.checkSecret(out.Results[0].First())
}

func (s *Store) checkSecret(kv *etcd.KeyValue) error {
	if kv == nil || string(kv.Value) != s.fingerprint {
		return fmt.Errorf("the hubs that keep %s in etcd have another AUTHHUB_SECRET than this one; give all of them the same", s.prefix)
	}
	return nil
}

// look asks every node for its state now and then, so that the log names those that are missing.
func (s *Store) look(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for ctx.Err() == nil {
		s.etcd.Missing(ctx)
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// Ready returns nil if the store can read and write just now, and else account.ErrUnavailable. It passes by itself. The
// transaction never writes, but etcd treats it as if it could: it asks for a majority and for room.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	out, err := s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.secret().Unchanged(-1)},
		Then: []etcd.Op{s.secret().Put([]byte(s.fingerprint), 0)},
		Else: []etcd.Op{s.secret().Get()},
	})
	if err == nil {
		err = s.checkSecret(out.Results[0].First()) // fails if somebody has emptied etcd
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Health is Ready, and returns the addresses of the nodes that don't answer or have raised an alarm, sorted.
func (s *Store) Health(ctx context.Context) ([]string, error) {
	ready := make(chan error, 1)
	go func() { ready <- s.Ready(ctx) }()
	missing := []string{} // JSON's null would be no list
	for address := range s.etcd.Missing(ctx) {
		missing = append(missing, address)
	}
	slices.Sort(missing)
	return missing, <-ready
}
