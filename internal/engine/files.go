// files.go owns the published files: the folder that hubs share, and which set in it is published. publish.go
// publishes.

package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"authhub/internal/etcd"
	"authhub/internal/results"
	"authhub/internal/runs"
)

// ErrNotShared says that this hub does not see the folder that the other hubs publish into.
var ErrNotShared = errors.New("the folder of this hub is not the one that the hubs of this store share")

// Files are the published files of all hubs of a store. Their folder, DIR/sets, lies on a file system that the hubs
// share. Each set is a folder in it, written once and never changed. A key says which set is published; publishing puts
// another id there. One hub at a time runs, the holder of the key of runs (turn.go).
//
//	folder  the id of the folder, which lies in it as well
//	files   the published set
//	run     which hub runs, under a lease of ten seconds
//	latest  the record of the latest run
type Files struct {
	store  *Store
	sets   string                 // path of DIR/sets
	record func(*runs.Run) []byte // what clients see of a run
	id     string                 // of the folder that the hubs share
	none   *results.Folder        // before the first publishing

	mu   sync.Mutex
	open openSet
	turn *turn // nil: this hub is not running
}

// openSet is the set that was asked for last.
type openSet struct {
	id     string
	folder *results.Folder // nil: there is none
}

// published is what lies under the key of the published set.
type published struct {
	ID      string                `json:"id"`
	Run     string                `json:"run"`
	Time    time.Time             `json:"time"`
	Sizes   [results.Count]int64  `json:"sizes"`
	Digests [results.Count]string `json:"sha256"`
}

func (k keys) folder() etcd.Key    { return k.prefix.Key("folder") }
func (k keys) published() etcd.Key { return k.prefix.Key("files") }
func (k keys) running() etcd.Key   { return k.prefix.Key("run") }
func (k keys) latest() etcd.Key    { return k.prefix.Key("latest") }

const (
	markName   = ".folder" // holds the id of the folder
	oldSets    = 10 * time.Minute
	letGoAfter = time.Minute // of a set that was left: requests may be about to read it
)

// OpenFiles returns the files under dir/sets, which it makes if there is none. record returns what clients see of a
// run, as JSON. If dir is not the folder that the hubs share, the log says so and the files answer ErrNotShared.
func (s *Store) OpenFiles(ctx context.Context, dir string, record func(*runs.Run) []byte) (*Files, error) {
	f := &Files{store: s, sets: filepath.Join(dir, "sets"), record: record, none: results.Temporary()}
	if err := os.MkdirAll(f.sets, 0o700); err != nil {
		return nil, err
	}
	out, err := s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{s.folder().Get()}})
	if err == nil && out.Results[0].First() == nil {
		out, err = f.claim(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	if kv := out.Results[0].First(); kv != nil { // else somebody has just deleted it
		f.id = string(kv.Value)
	}
	if err := f.here(); err != nil {
		s.log.Warn("files and runs answer 503 on this hub", "dir", dir, "cause", err)
	}
	return f, nil
}

// claim makes this hub's folder the one that hubs share, unless another hub is faster.
func (f *Files) claim(ctx context.Context) (etcd.Outcome, error) {
	id, err := mark(f.sets)
	if err != nil {
		return etcd.Outcome{}, err
	}
	s := f.store
	if _, err := s.startTxn(ctx, etcd.Txn{If: []etcd.Cond{s.folder().Absent()}, Then: []etcd.Op{s.folder().Put([]byte(id), 0)}}); err != nil {
		return etcd.Outcome{}, err
	}
	return s.startTxn(ctx, etcd.Txn{Then: []etcd.Op{s.folder().Get()}})
}

// here returns ErrNotShared unless the folder is the one that the hubs share, just now: it may have been moved, or the
// file system that it is on may not be mounted.
func (f *Files) here() error {
	id, err := os.ReadFile(filepath.Join(f.sets, markName))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotShared, err)
	case string(id) != f.id:
		return fmt.Errorf("%w: %s is another one; let -dir be on a file system that all of them have, or delete the key %s if they have moved", ErrNotShared, f.sets, f.store.folder())
	}
	return nil
}

// mark returns the id of a folder. A folder without an id gets one; several hubs that mark it at once agree on the id.
func mark(sets string) (string, error) {
	path := filepath.Join(sets, markName)
	given := filepath.Join(sets, markName+"-"+rand.Text())
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(given, []byte(rand.Text()), 0o600); err != nil {
			return "", err
		}
		defer os.Remove(given)
		if err := os.Link(given, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	id, err := os.ReadFile(path)
	return string(id), err
}

// Close lets go of the folders.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open.folder != nil {
		f.open.folder.Close()
	}
	return f.none.Close()
}

// Folder returns the published set, or an empty one before the first publishing. Errors: ErrNotShared, and those of an
// engine that is away: then nobody knows which set is published.
func (f *Files) Folder(ctx context.Context) (*results.Folder, error) {
	if err := f.here(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found, err := f.store.read(ctx, f.store.published().Get())
	if err != nil {
		return nil, err
	}
	set, err := decodePublished(found[0].First())
	if err != nil {
		return nil, unavailable(err)
	}
	if set.ID == "" {
		return f.none, nil
	}
	return f.openSet(set)
}

// decodePublished returns the published set, or a zero one.
func decodePublished(kv *etcd.KeyValue) (published, error) {
	var set published
	if kv == nil {
		return set, nil
	}
	err := json.Unmarshal(kv.Value, &set)
	if err == nil && (set.ID == "" || set.ID[0] == '.' || strings.ContainsAny(set.ID, `/\:`)) {
		err = fmt.Errorf("the key %s holds no set", kv.Key)
	}
	return set, err
}

// openSet opens a set, checks its files and keeps it for the next request.
func (f *Files) openSet(set published) (*results.Folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open.id == set.ID {
		return f.open.folder, nil
	}
	path := filepath.Join(f.sets, set.ID)
	if err := checkSet(path, set); err != nil {
		return nil, err
	}
	folder := results.Open(path, nil)
	if err := folder.Err(); err != nil {
		folder.Close()
		return nil, err
	}
	if left := f.open.folder; left != nil {
		time.AfterFunc(letGoAfter, func() { left.Close() })
	}
	f.open = openSet{set.ID, folder}
	return folder, nil
}

// checkSet compares the files of a set with what was published. A file that somebody has removed is no longer
// available; a set that is not there at all was published into another folder.
func checkSet(path string, set published) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: %w", ErrNotShared, err)
	}
	for file := range set.Digests {
		size, digest, err := digestOf(filepath.Join(path, results.File(file).Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if size != set.Sizes[file] || digest != set.Digests[file] {
			return fmt.Errorf("%w: %s is not the file that was published", ErrNotShared, filepath.Join(path, results.File(file).Name()))
		}
	}
	return nil
}

// digestOf returns the size and the SHA-256 of a file.
func digestOf(path string) (int64, string, error) {
	open, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer open.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, open)
	return size, hex.EncodeToString(digest.Sum(nil)), err
}
