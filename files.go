// The files: the folder that holds the three results of phase 2, how a new set takes the place of the old one,
// and the listing.
//
// The disk is the truth: what is remembered of a file, to serve it (content.go), counts only as long as it matches.

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/account"
	"authhub/internal/disk"
	"authhub/internal/reply"
)

// resultFile is one of the three files, in the order of the listing.
type resultFile int

const (
	barrierFile resultFile = iota
	impactFile
	alertsFile
	resultFiles int = iota
)

func (f resultFile) name() string {
	return [...]string{"barrier_phi_phase2.json", "impact_phi.json", "alertesph.json"}[f]
}

func (f resultFile) endpoint() string {
	return "/api/files/phase2/" + [...]string{"barrier", "impact", "alertesph"}[f]
}

const hint = "POST /api/run-ph-barrier-phase2 produces the three files."

// output is DIR/phase2, or a temporary folder that is made when first needed. Everything in it is reached through
// an os.Root, so that no link planted there leads out.
//
// A new set is published in steps, any of which may be the last one:
//
//	.staging/   the three files are written, closed and synced here
//	.commit     .staging is renamed to this: the commit point
//	NAME        each file is renamed from .commit to its place; then .commit is removed
//
// recover deletes a .staging and finishes a .commit, so all of the old set stands or all of the new.
type output struct {
	durable   bool
	place     func() (string, error) // makes the folder
	remove    bool                   // with close
	keepPlain int64                  // bytes of a file kept in memory as they are

	publishing sync.Mutex
	mu         sync.RWMutex // held for writing while names change, for reading while files are looked up
	root       *os.Root     // nil: nothing has been written yet
	path       string
	closed     bool
	kept       [resultFiles]keptFile
	listed     atomic.Pointer[listing]
}

const (
	stagingName = ".staging"
	commitName  = ".commit"
	uploadName  = ".upload-"
)

// openOutput returns the durable folder at path, brought to a whole set.
func openOutput(path string) (*output, error) {
	f := &output{durable: true, keepPlain: usualPlain, place: func() (string, error) { return path, os.MkdirAll(path, 0o700) }}
	if _, err := f.open(); err != nil {
		return nil, err
	}
	return f, errors.Join(f.recover(), f.dropUploads())
}

// temporaryOutput returns a folder that comes into being when first written to and goes with close.
func temporaryOutput() *output {
	return &output{remove: true, keepPlain: usualPlain, place: func() (string, error) { return os.MkdirTemp("", "authhub-") }}
}

// open returns the root of the folder, making the folder where there is none yet.
func (f *output) open() (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root != nil {
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			return f.root, nil
		}
		f.root.Close() // of a folder that somebody has removed
		f.root = nil
	}
	if f.closed { // a namespace was deleted under a request; nothing would remove a folder made now
		return nil, errBusy
	}
	path, err := f.place()
	if err != nil {
		return nil, err
	}
	f.path = path
	f.root, err = openWithin(path)
	return f.root, err
}

// openWithin opens a folder that must not be a link out of the one it lies in.
func openWithin(path string) (*os.Root, error) {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return parent.OpenRoot(filepath.Base(path))
}

// clear removes the three files.
func (f *output) clear() error {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == nil {
		return nil
	}
	for file := range resultFile(resultFiles) {
		if err := f.root.Remove(file.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.sync(".")
}

// close releases the folder, and removes it if it is a temporary one.
func (f *output) close() error {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.root == nil {
		return nil
	}
	err := f.root.Close()
	f.root = nil
	if f.remove {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}

// recover finishes or undoes what a crash, or a publish that failed, has left.
func (f *output) recover() error {
	if err := f.root.RemoveAll(stagingName); err != nil {
		return err
	}
	return f.rollForward()
}

// dropUploads removes the bodies that runs before a crash had still to read.
func (f *output) dropUploads() error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), uploadName) {
			err = errors.Join(err, f.root.Remove(entry.Name()))
		}
	}
	return err
}

// publish writes the three files with write and puts them in the place of those that stand, dated modified.
// On an error before the commit point the old set stands as it did (account.ErrDiskFull among the errors); on one after
// it the next publish or start finishes what was begun.
func (f *output) publish(write func(resultFile, io.Writer) error, modified time.Time) error {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	root, err := f.open()
	if err != nil {
		return diskError(err)
	}
	if err = f.recover(); err == nil {
		err = f.stage(root, write, modified)
	}
	if err == nil {
		err = root.Rename(stagingName, commitName)
	}
	if err != nil {
		root.RemoveAll(stagingName)
		return diskError(err)
	}
	if err := f.sync("."); err != nil {
		return diskError(err)
	}
	return diskError(f.rollForward())
}

// stage writes the whole set under .staging.
func (f *output) stage(root *os.Root, write func(resultFile, io.Writer) error, modified time.Time) error {
	if err := root.Mkdir(stagingName, 0o700); err != nil {
		return err
	}
	for file := range resultFile(resultFiles) {
		if info, err := root.Lstat(file.name()); err == nil && info.IsDir() {
			return fmt.Errorf("a folder stands where %s belongs", file.name())
		}
		if err := f.writeStaged(root, file, write, modified); err != nil {
			return err
		}
	}
	return f.sync(stagingName)
}

func (f *output) writeStaged(root *os.Root, file resultFile, write func(resultFile, io.Writer) error, modified time.Time) error {
	name := stagingName + "/" + file.name()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	err = write(file, buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil && f.durable {
		err = out.Sync()
	}
	err = errors.Join(err, out.Close())
	if err == nil {
		err = root.Chtimes(name, modified, modified)
	}
	return err
}

// rollForward moves a committed set into place; without one it does nothing. What has the name and is no folder is
// not the hub's, and nothing is moved through it.
func (f *output) rollForward() error {
	info, err := f.root.Lstat(commitName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return f.root.Remove(commitName)
	}
	if err := f.moveCommitted(); err != nil {
		return err
	}
	if err := f.sync("."); err != nil {
		return err
	}
	return f.root.RemoveAll(commitName)
}

// moveCommitted renames what is left in .commit, out of sight of whoever looks files up.
func (f *output) moveCommitted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for file := range resultFile(resultFiles) {
		err := f.root.Rename(commitName+"/"+file.name(), file.name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // moved before a crash
			return err
		}
	}
	return nil
}

// sync makes the names in a folder durable. Windows can't sync a folder; its renames are journalled by NTFS.
func (f *output) sync(name string) error {
	if !f.durable || runtime.GOOS == "windows" {
		return nil
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// diskError marks a full disk as what it is.
func diskError(err error) error {
	if disk.IsFull(err) {
		return errors.Join(account.ErrDiskFull, err)
	}
	return err
}

// upload is a request's body, kept in the folder until its run has read it.
type upload struct {
	root   *os.Root
	name   string
	size   int64
	sha256 string
}

// keep streams body into the folder, through a digest. Errors: account.ErrDiskFull, and body's own as they are.
func (f *output) keep(body io.Reader, id string) (*upload, error) {
	root, err := f.open()
	if err != nil {
		return nil, diskError(err)
	}
	u := &upload{root: root, name: uploadName + id}
	out, err := root.OpenFile(u.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, diskError(err)
	}
	digest := sha256.New()
	u.size, err = io.CopyBuffer(io.MultiWriter(out, digest), struct{ io.Reader }{body}, make([]byte, 64<<10))
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		root.Remove(u.name)
		return nil, diskError(err)
	}
	u.sha256 = hex.EncodeToString(digest.Sum(nil))
	return u, nil
}

// fileEntry is one entry of the listing.
type fileEntry struct {
	Name         string  `json:"name"`
	Endpoint     string  `json:"endpoint"`
	Available    bool    `json:"available"`
	SizeBytes    int64   `json:"size_bytes"`
	LastModified *string `json:"last_modified"`
}

// fileState is all that the listing shows of a file.
type fileState struct {
	available bool
	size      int64 // bytes
	modified  int64 // milliseconds since the Unix epoch
}

// states asks the disk about the three files.
func (f *output) states() (states [resultFiles]fileState) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for file := range resultFile(resultFiles) {
		if info, err := f.stat(file); err == nil {
			states[file] = fileState{true, info.Size(), info.ModTime().UnixMilli()}
		}
	}
	return states
}

// list returns the three entries as the disk has them now.
func (f *output) list() [resultFiles]fileEntry { return entriesOf(f.states()) }

func entriesOf(states [resultFiles]fileState) (entries [resultFiles]fileEntry) {
	for file := range resultFile(resultFiles) {
		state := states[file]
		entries[file] = fileEntry{Name: file.name(), Endpoint: file.endpoint(), Available: state.available, SizeBytes: state.size}
		if state.available {
			modified := formatTime(time.UnixMilli(state.modified))
			entries[file].LastModified = &modified
		}
	}
	return entries
}

// stat looks a file up, under f.mu; fs.ErrNotExist where there is none, or where something else has its name.
func (f *output) stat(file resultFile) (fs.FileInfo, error) {
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	info, err := f.root.Lstat(file.name())
	if err == nil && !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return info, err
}

// listing is the body of the listing for what the disk said when it was made.
type listing struct {
	states [resultFiles]fileState
	body   []byte
}

// listFiles asks the disk at every request and encodes the answer anew only when that has changed.
func (h *Hub) listFiles(w http.ResponseWriter, r *http.Request) error {
	states := h.output.states()
	known := h.output.listed.Load()
	if known == nil || known.states != states {
		body, err := json.Marshal(struct {
			Files [resultFiles]fileEntry `json:"phase2_files"`
			Hint  string                 `json:"hint"`
		}{entriesOf(states), hint})
		if err != nil {
			return err
		}
		known = &listing{states, append(body, '\n')}
		h.output.listed.Store(known)
	}
	reply.WriteBody(w, http.StatusOK, known.body)
	return nil
}
