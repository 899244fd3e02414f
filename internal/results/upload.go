// Uploads: the bodies of requests, kept in the folder until their runs have read them.

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"authhub/internal/disk"
)

// maxUploads is how many uploads the folder holds at once, so that they can't fill the disk.
const maxUploads = 32

// ErrUploads says that the folder holds maxUploads.
var ErrUploads = errors.New("too many uploads")

const uploadName = ".upload-"

type uploads struct{ atomic.Int32 }

// Upload is a request's body in the folder. The caller must call Drop.
type Upload struct {
	Size   int64
	SHA256 string // in hex

	folder *Folder
	tree   disk.Tree
	name   string
}

// Keep streams body into the folder. id must be unique. Errors: ErrUploads; ErrClosed; ErrBroken; disk.ErrFull; body's
// own, as they are.
func (f *Folder) Keep(body io.Reader, id string) (*Upload, error) {
	u := &Upload{folder: f, name: uploadName + id}
	if f.uploads.Add(1) > maxUploads {
		f.uploads.Add(-1)
		return nil, ErrUploads
	}
	if err := u.write(body); err != nil {
		u.Drop()
		return nil, f.orClosed(disk.Full(err))
	}
	return u, nil
}

func (u *Upload) write(body io.Reader) error {
	tree, err := u.folder.ready()
	if err != nil {
		return err
	}
	out, err := tree.Create(u.name)
	if err != nil {
		return err
	}
	u.tree = tree
	digest := sha256.New()
	u.Size, err = io.CopyBuffer(io.MultiWriter(out, digest), struct{ io.Reader }{body}, make([]byte, 64<<10))
	u.SHA256 = hex.EncodeToString(digest.Sum(nil))
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Open opens the upload for reading. Errors: ErrClosed; the disk's own.
func (u *Upload) Open() (io.ReadCloser, error) {
	in, err := u.tree.Open(u.name)
	return in, u.folder.orClosed(err)
}

// orClosed returns ErrClosed in place of an error that came of closing the folder.
func (f *Folder) orClosed(err error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err != nil && f.closed {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// Drop removes the upload. Nothing may be read from it afterwards.
func (u *Upload) Drop() {
	if u.tree != nil {
		u.tree.Remove(u.name)
	}
	u.folder.uploads.Add(-1)
}

// dropUploads removes the uploads that runs before a crash had still to read. What it can't remove, the next start
// does.
func dropUploads(tree disk.Tree) {
	names, _ := tree.List()
	for _, name := range names {
		if strings.HasPrefix(name, uploadName) {
			tree.Remove(name)
		}
	}
}
