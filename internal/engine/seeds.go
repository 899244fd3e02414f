// seeds.go puts the users of -users into the store, or compares them with those that are there.

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"authhub/internal/account"
	"authhub/internal/etcd"
	"authhub/internal/passwd"
)

// plant puts the seeds into etcd, or compares them with those that are there: by everything but the hash, and a plain
// password has to be the one that was hashed. Hubs with different seeds would each let other people in.
func (s *Store) plant(ctx context.Context, c Config) error {
	var ids []string
	for _, seed := range c.Seeds {
		if err := s.plantOne(ctx, c, seed); err != nil {
			return err
		}
		ids = append(ids, seed.ID)
	}
	for _, seed := range c.Seeds {
		if seed.Credential.Password() != "" {
			s.plain[seed.ID] = seed.Credential
		}
	}
	slices.Sort(ids)
	return s.listSeeds(ctx, ids)
}

// plantOne makes sure that etcd has seed and nothing that contradicts it.
func (s *Store) plantOne(ctx context.Context, c Config, seed *account.User) error {
	for {
		stands, err := s.seedThere(ctx, seed)
		if err != nil {
			return err
		}
		if stands != nil {
			return sameSeed(ctx, c.Hasher, seed, stands)
		}
		stored := *seed
		if plain := seed.Credential.Password(); plain != "" {
			if stored.Credential, err = c.Hasher.Hash(ctx, c.Rand, plain); err != nil {
				return err
			}
		}
		t := s.claim(&stored)
		t.If = append(t.If, s.user(seed.ID).Absent())
		t.Else = append(t.Else, s.user(seed.ID).Get())
		out, err := s.startTxn(ctx, t)
		if err != nil {
			return err
		}
		for _, name := range out.Results {
			if kv := name.First(); !out.Succeeded && kv != nil && strings.HasPrefix(string(kv.Key), string(s.allNames())) && string(kv.Value) != seed.ID {
				return fmt.Errorf("a user with another id has the name or e-mail address of %q of -users; take it out there", seed.Username)
			}
		}
		if out.Succeeded {
			return nil
		}
	} // another hub that starts just now has been faster: compare
}

// startTxn is a transaction of a start.
func (s *Store) startTxn(ctx context.Context, t etcd.Txn) (etcd.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return s.etcd.Do(ctx, t)
}

// seedThere returns the user that has the id of seed, or nil.
func (s *Store) seedThere(ctx context.Context, seed *account.User) (*account.User, error) {
	out, err := s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{s.user(seed.ID).Get()}})
	if err != nil || out.Results[0].First() == nil {
		return nil, err
	}
	return s.decodeUser(out.Results[0].First().Value)
}

// sameSeed returns nil if stands is what seed says. Of two hashes nobody can tell whether they are of one password; the
// one in etcd counts, for all hubs.
func sameSeed(ctx context.Context, hasher *passwd.Hasher, seed, stands *account.User) error {
	a, b := *seed.Stored(), *stands.Stored()
	a.Hash, b.Hash = "", ""
	same := a == b && stands.Seed
	if plain := seed.Credential.Password(); same && plain != "" {
		var err error
		if same, err = hasher.Verify(ctx, &stands.Credential, plain); err != nil {
			return err
		}
	}
	if !same {
		return fmt.Errorf("the user %q of -users, or its password, is another one in etcd; all hubs must have the same -users", seed.Username)
	}
	return nil
}

// listSeeds adds ids to the list of the seeds in etcd. An id that is there and not here is one that this hub was told
// not to let in.
func (s *Store) listSeeds(ctx context.Context, ids []string) error {
	out, err := s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{s.seeds().Get()}})
	for err == nil {
		var listed []string
		unchanged := s.seeds().Absent()
		if kv := out.Results[0].First(); kv != nil {
			if err := json.Unmarshal(kv.Value, &listed); err != nil {
				return err
			}
			unchanged = s.seeds().Unchanged(kv.ModRevision)
		}
		if slices.Equal(listed, ids) {
			return nil
		}
		for _, id := range listed {
			if !slices.Contains(ids, id) {
				return fmt.Errorf("etcd has the user with the id %q of a hub's -users, and the -users of this hub lacks it; see docs/many-hubs.md", id)
			}
		}
		value, _ := json.Marshal(ids)
		out, err = s.startTxn(ctx, etcd.Txn{If: []etcd.Cond{unchanged}, Then: []etcd.Op{s.seeds().Put(value, 0)}, Else: []etcd.Op{s.seeds().Get()}})
		if out.Succeeded {
			return nil
		}
	}
	return err
}
