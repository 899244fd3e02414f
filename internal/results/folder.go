// Package results is a folder whose three files change all at once.
//
// The disk is the truth: every answer looks at the folder. What is remembered of a file (content.go) counts only as
// long as the file is still the same.
package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"authhub/internal/disk"
)

// File is one of the three files. Their order is that of the listing.
type File int

const (
	Barrier File = iota
	Impact
	Alerts
	Count int = iota
)

// Name returns the file's name in the folder.
func (f File) Name() string {
	return [...]string{"barrier_phi_phase2.json", "impact_phi.json", "alertesph.json"}[f]
}

// Endpoint returns the path that serves the file.
func (f File) Endpoint() string {
	return "/api/files/phase2/" + [...]string{"barrier", "impact", "alertesph"}[f]
}

var (
	// ErrBroken says that the folder can't be opened, or can't be brought to one whole set. The next Publish tries
	// again.
	ErrBroken = errors.New("the folder of the three files can't be made whole")
	// ErrClosed says that the folder is closed.
	ErrClosed = errors.New("the folder of the three files is closed")
)

// Folder is a folder on disk that holds one set of the three files, or none. Nothing in it is reached through a link
// that leads out of it. publish.go says how a new set takes the place of the old one.
type Folder struct {
	open      func() (tree disk.Tree, path string, err error) // makes the folder if there is none
	held      func() error                                    // why nothing may be written, or nil
	temporary bool                                            // not durable, and removed by Close
	keepPlain int64                                           // bytes of a file kept in memory

	publishing sync.Mutex // held by whatever changes the set

	mu      sync.RWMutex // held for writing while names change, for reading while files are looked up
	tree    disk.Tree    // nil: there is no folder yet, or it can't be opened
	path    string
	closed  bool
	broken  error         // why there is no whole set to serve
	at      [Count]string // where the files of the set that is served are
	set     int           // counts the sets that were served
	kept    [Count]kept
	listed  listingCache
	uploads uploads
}

// Open returns the durable folder at path, which it makes if there is none. It finishes or undoes what a crash has
// left. If that fails, Err says why, and the files are unavailable until a Publish succeeds. Nothing is written while
// held returns an error: then the place may be another hub's. A nil held never does.
func Open(path string, held func() error) *Folder {
	f := newFolder(func() (disk.Tree, string, error) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, "", err
		}
		tree, err := disk.OpenTree(path)
		return tree, path, err
	})
	if held != nil {
		f.held = held
	}
	f.start()
	return f
}

// Temporary returns a folder that is made when it is first written to, and removed by Close.
func Temporary() *Folder {
	f := newFolder(func() (disk.Tree, string, error) {
		path, err := os.MkdirTemp("", "authhub-")
		if err != nil {
			return nil, "", err
		}
		tree, err := disk.OpenTree(path)
		return tree, path, err
	})
	f.temporary = true
	return f
}

func newFolder(open func() (disk.Tree, string, error)) *Folder {
	return &Folder{open: open, held: func() error { return nil }, keepPlain: usualPlain, at: inPlace()}
}

// inPlace returns where the files are while nothing is being published.
func inPlace() (at [Count]string) {
	for file := range at {
		at[file] = File(file).Name()
	}
	return at
}

// start brings the folder to one whole set.
func (f *Folder) start() {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	tree, err := f.ready()
	if err == nil {
		err = f.recover(tree)
	}
	f.mu.Lock()
	f.broken = err
	f.mu.Unlock()
	if err == nil {
		dropUploads(tree)
	}
}

// Err returns why the files are unavailable, whatever the disk says, or nil.
func (f *Folder) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.broken
}

// Path returns where the folder is, or "" if there is none yet.
func (f *Folder) Path() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.path
}

// ready returns the folder, and makes it if there is none or if somebody has removed it. Errors: ErrClosed; ErrBroken;
// those of held.
func (f *Folder) ready() (disk.Tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed { // nothing would remove a folder made now
		return nil, ErrClosed
	}
	if err := f.held(); err != nil {
		return nil, err
	}
	if f.tree != nil {
		if _, err := os.Lstat(f.path); f.path == "" || !errors.Is(err, fs.ErrNotExist) {
			return f.tree, nil
		}
		f.tree.Close()
		f.tree = nil
	}
	tree, path, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	f.tree, f.path, f.at = tree, path, inPlace()
	return tree, nil
}

// Close releases the folder, and removes it if it is a temporary one.
func (f *Folder) Close() error {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.tree == nil {
		return nil
	}
	err := f.tree.Close()
	f.tree = nil
	if f.temporary {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}

// stat looks a file of the set up, under f.mu. It returns fs.ErrNotExist if there is none or something else has its
// name.
func (f *Folder) stat(file File) (fs.FileInfo, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	if f.tree == nil {
		return nil, fs.ErrNotExist
	}
	info, err := f.tree.Stat(f.at[file])
	if err == nil && !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return info, err
}

// sync makes the names in a folder of tree durable.
func (f *Folder) sync(tree disk.Tree, name string) error {
	if f.temporary {
		return nil
	}
	return tree.SyncFolder(name)
}

// Writer writes the content of one of the three files.
type Writer = func(File, io.Writer) error

// Publish writes the three files with write and puts them in the place of the old ones, all with the date modified.
// After an error requests get the old set. If the error came before the commit point, the old set is also what the next
// start finds; if it came after, the next Publish or start may find the new one.
//
// Errors: write's own; ErrBroken; ErrClosed; disk.ErrFull.
func (f *Folder) Publish(write Writer, modified time.Time) error {
	return f.replace(func(tree disk.Tree) ([][]byte, error) { return f.stage(tree, write, modified) })
}

// Clear removes the three files, all at once. Errors: as Publish.
func (f *Folder) Clear() error {
	f.mu.RLock()
	empty := f.tree == nil && f.broken == nil
	f.mu.RUnlock()
	if empty {
		return nil
	}
	return f.replace(func(tree disk.Tree) ([][]byte, error) { return nil, tree.MakeFolder(stagingName) })
}
