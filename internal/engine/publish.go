// publish.go owns publishing: a new set of files, and the one step that puts it in the place of the old one.

package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"authhub/internal/disk"
	"authhub/internal/etcd"
	"authhub/internal/results"
)

// Publish writes a new set and makes it the published one, if this hub's turn lasts until then. After an error the old
// set is the published one, unless the error is account.ErrUnknown. Errors besides: ErrOtherRun, write's own, and those
// of results.Folder.Publish.
func (f *Files) Publish(write results.Writer, modified time.Time) error {
	t := f.currentTurn()
	set := published{ID: modified.UTC().Format("20060102T150405") + "-" + rand.Text()[:10], Run: t.run.ID, Time: modified}
	path := filepath.Join(f.sets, set.ID)
	err := writeSet(path, &set, write, modified)
	if err == nil {
		err = disk.SyncFolder(disk.OS{}, f.sets)
	}
	if err == nil {
		err = f.here()
	}
	if err != nil {
		os.RemoveAll(path)
		return err
	}
	before, err := f.swap(t, set)
	if err != nil {
		return err // the next to publish removes the set
	}
	f.removeOld(set, before)
	return nil
}

// writeSet writes the three files, durably, and notes their sizes and digests.
func writeSet(path string, set *published, write results.Writer, modified time.Time) error {
	folder := results.Open(path, nil)
	if err := errors.Join(folder.Publish(write, modified), folder.Close()); err != nil {
		return err
	}
	for file := range set.Digests {
		var err error
		if set.Sizes[file], set.Digests[file], err = digestOf(filepath.Join(path, results.File(file).Name())); err != nil {
			return err
		}
	}
	return nil
}

// swap is the commit point. It returns the set that was the published one until then.
func (f *Files) swap(t *turn, set published) (published, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s := f.store
	stood, err := s.etcd.Do(ctx, etcd.Txn{Then: []etcd.Op{s.published().Get()}})
	if err != nil {
		return published{}, unavailable(err)
	}
	before, err := decodePublished(stood.Results[0].First())
	if err != nil {
		return published{}, unavailable(err)
	}
	value, _ := json.Marshal(set) // strings and numbers: it can't fail
	out, err := s.etcd.Do(ctx, etcd.Txn{
		If:   []etcd.Cond{s.running().CreatedAt(t.revision)},
		Then: []etcd.Op{s.published().Put(value, 0)},
		Else: []etcd.Op{s.published().Get()},
	})
	if err != nil {
		return published{}, unavailable(err)
	}
	if !out.Succeeded {
		if now, err := decodePublished(out.Results[0].First()); err != nil || now.ID != set.ID { // else an answer was lost
			return published{}, ErrOtherRun
		}
	}
	return before, nil
}

// removeOld removes the sets that were left ten minutes ago or earlier: all but the new one and the one before it, if
// that was published so long ago. Requests that were about to read a set have done so by then.
func (f *Files) removeOld(set, before published) {
	if set.Time.Sub(before.Time) < oldSets {
		return
	}
	entries, err := os.ReadDir(f.sets)
	if err != nil {
		return // the next to publish tries again
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && name != set.ID && name != before.ID && !strings.HasPrefix(name, ".") {
			if err := os.RemoveAll(filepath.Join(f.sets, name)); err != nil {
				f.store.log.Warn("an old set of files is not removed", "cause", err)
			}
		}
	}
}
