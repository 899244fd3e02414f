// The listing: what the folder says of the three files.

package results

import (
	"encoding/json"
	"sync/atomic"
	"time"
)

// Hint says how the files come into being.
const Hint = "POST /api/run-ph-barrier-phase2 produces the three files."

// Entry is one entry of the listing.
type Entry struct {
	Name         string  `json:"name"`
	Endpoint     string  `json:"endpoint"`
	Available    bool    `json:"available"`
	SizeBytes    int64   `json:"size_bytes"`
	LastModified *string `json:"last_modified"` // ISO 8601 in UTC with three decimals
}

// state is all that the listing shows of a file.
type state struct {
	available bool
	size      int64 // bytes
	modified  int64 // milliseconds since the Unix epoch
}

// listingCache is the body of the listing, for the states when it was made.
type listingCache struct{ atomic.Pointer[listing] }

type listing struct {
	states [Count]state
	body   []byte
}

// Listing returns the body of the listing. It asks the disk each time, and encodes anew only if that has changed.
func (f *Folder) Listing() ([]byte, error) {
	states := f.states()
	if known := f.listed.Load(); known != nil && known.states == states {
		return known.body, nil
	}
	body, err := json.Marshal(struct {
		Files []Entry `json:"phase2_files"`
		Hint  string  `json:"hint"`
	}{entries(states), Hint})
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	f.listed.Store(&listing{states, body})
	return body, nil
}

// List returns the three entries as the disk has them now.
func (f *Folder) List() []Entry { return entries(f.states()) }

// states asks the disk about the three files of one set. A file that it can't tell of is unavailable.
func (f *Folder) states() (states [Count]state) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for file := range states {
		if info, err := f.stat(File(file)); err == nil {
			states[file] = state{true, info.Size(), info.ModTime().UnixMilli()}
		}
	}
	return states
}

func entries(states [Count]state) []Entry {
	entries := make([]Entry, Count)
	for file, s := range states {
		entries[file] = Entry{Name: File(file).Name(), Endpoint: File(file).Endpoint(), Available: s.available, SizeBytes: s.size}
		if s.available {
			modified := time.UnixMilli(s.modified).UTC().Format("2006-01-02T15:04:05.000Z")
			entries[file].LastModified = &modified
		}
	}
	return entries
}
