// What is remembered of a file, so that an answer costs one look at the disk and one Write.

package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/disk"
)

// Content is one version of a file.
type Content struct {
	Body     []byte // nil: larger than is kept in memory
	Modified time.Time

	// Values of header fields, shared by all answers. The two forms have different ETags (RFC 9110 section 8.8.3).
	ETag, GzipETag, Length, LastModified []string

	info   fs.FileInfo // of the file when it was read
	gzipMu sync.Mutex
	gzip   *Gzip // nil until asked for
}

const usualPlain = 16 << 20 // bytes

func newContent(info fs.FileInfo, digest, body []byte) *Content {
	tag := hex.EncodeToString(digest[:16])
	return &Content{
		Body:         body,
		Modified:     info.ModTime(),
		ETag:         []string{`"` + tag + `"`},
		GzipETag:     []string{`"` + tag + `-gzip"`},
		Length:       []string{strconv.FormatInt(info.Size(), 10)},
		LastModified: []string{info.ModTime().UTC().Format(http.TimeFormat)},
		info:         info,
	}
}

// is reports whether info still describes the file that c was read from. Size and date alone do not tell: a frozen
// clock, a file system with whole seconds, or somebody who sets a date back can make two files equal in both.
func (c *Content) is(info fs.FileInfo) bool {
	return c != nil && os.SameFile(c.info, info) && c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime()) &&
		changeTime(c.info) == changeTime(info)
}

// kept is what is remembered of one file.
type kept struct {
	content atomic.Pointer[Content]
	reading sync.Mutex // one request at a time reads; the others wait for what it finds
}

// renew forgets the content. If the digest of the new file is known, the file need not be read to know its ETag.
func (k *kept) renew(tree disk.Tree, name string, digest []byte) {
	k.content.Store(nil)
	if digest == nil {
		return
	}
	if info, err := tree.Stat(name); err == nil {
		k.content.Store(newContent(info, digest, nil))
	}
}

// Read returns the content of a file of the set that is served now and, if the content is not in memory, the file open
// at its beginning. Errors: fs.ErrNotExist; ErrBroken.
func (f *Folder) Read(file File) (*Content, disk.ReadFile, error) {
	f.mu.RLock()
	info, err := f.stat(file)
	if err != nil {
		f.mu.RUnlock()
		return nil, nil, err
	}
	k := &f.kept[file]
	if known := k.content.Load(); known.is(info) && known.Body != nil {
		f.mu.RUnlock()
		return known, nil, nil
	}
	open, err := f.tree.Open(f.at[file])
	set := f.set
	f.mu.RUnlock()
	if err != nil {
		return nil, nil, err
	}

	c, err := f.readContent(k, open, set)
	if err != nil || c.Body != nil {
		return c, nil, errors.Join(err, open.Close())
	}
	return c, open, nil
}

// readContent returns the content of an open file of the set of that number. It leaves the file at its beginning.
func (f *Folder) readContent(k *kept, open disk.ReadFile, set int) (*Content, error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	info, err := open.Stat()
	if err != nil {
		return nil, err
	}
	if known := k.content.Load(); known.is(info) && (known.Body != nil || info.Size() > f.keepPlain) {
		return known, nil
	}
	c, err := readFile(open, info, f.keepPlain)
	if err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if set == f.set {
		k.content.Store(c)
	}
	return c, nil
}

// readFile reads an open file once, for its digest and, if it has at most keep bytes, for its body.
func readFile(open disk.ReadFile, info fs.FileInfo, keep int64) (*Content, error) {
	digest := sha256.New()
	if info.Size() <= keep {
		body, err := io.ReadAll(open)
		digest.Write(body)
		c := newContent(info, digest.Sum(nil), body)
		c.Length = []string{strconv.Itoa(len(body))} // if somebody is writing to the file, it may differ from info's
		return c, err
	}
	if _, err := io.Copy(digest, open); err != nil {
		return nil, err
	}
	_, err := open.Seek(0, io.SeekStart)
	return newContent(info, digest.Sum(nil), nil), err
}

// Reader returns the body for reading: from memory, or else from open.
func (c *Content) Reader(open disk.ReadFile) io.ReadSeeker {
	if c.Body != nil {
		return bytes.NewReader(c.Body)
	}
	return open
}

// ErrTooLarge says that the three files have more bytes than was asked for.
var ErrTooLarge = errors.New("the three files are too large")

// Contents returns the bytes of the three files of one set, and their date. Errors: fs.ErrNotExist if one of them is
// unavailable; ErrTooLarge if they have more than limit bytes; ErrBroken.
func (f *Folder) Contents(limit int64) (contents [Count][]byte, modified time.Time, err error) {
	f.publishing.Lock() // so that all three are of one set
	defer f.publishing.Unlock()
	for file := range contents {
		c, open, err := f.Read(File(file))
		if err != nil {
			return contents, modified, err
		}
		if limit -= c.info.Size(); limit < 0 {
			err = ErrTooLarge
		}
		body := c.Body
		if open != nil {
			if err == nil {
				body, err = io.ReadAll(open)
			}
			err = errors.Join(err, open.Close())
		}
		if err != nil {
			return contents, modified, err
		}
		contents[file], modified = body, c.Modified
	}
	return contents, modified, nil
}
