// Serving the files: what is remembered of them, so that an answer costs one look at the disk and one Write.
//
// The disk is the truth (files.go). What is remembered of a file (its bytes, ETag, compressed form) counts only as
// long as its size and modification time are what they were.

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/reply"
)

// keptFile is what is remembered of one file.
type keptFile struct {
	content atomic.Pointer[content]
	mu      sync.Mutex // one request at a time reads; the others wait for what it finds
}

// content is one version of a file, with what it takes to serve it.
type content struct {
	modified time.Time
	size     int64
	digest   string
	plain    *representation
	gzipOnce sync.Once
	gzipped  *representation // nil: it could not be compressed
}

const usualPlain = 16 << 20 // bytes

// representation is one form of a file, and the header fields that go with it. All answers share it.
type representation struct {
	body                   []byte // nil: too large to be kept
	etag, length, modified []string
}

func (c *content) representation(body []byte, tagSuffix string) *representation {
	return &representation{
		body:     body,
		etag:     []string{`"` + c.digest + tagSuffix + `"`},
		length:   []string{strconv.Itoa(len(body))},
		modified: []string{c.modified.UTC().Format(http.TimeFormat)},
	}
}

// is reports whether the content is that of the file that info describes.
func (c *content) is(info fs.FileInfo) bool {
	return c != nil && c.size == info.Size() && c.modified.Equal(info.ModTime())
}

// read returns the file's content and, where that is not in memory, the file open at its beginning. Errors: fs.ErrNotExist.
func (f *output) read(file resultFile) (*content, *os.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	info, err := f.stat(file)
	if err != nil {
		return nil, nil, err
	}
	kept := &f.kept[file]
	if known := kept.content.Load(); known.is(info) && known.plain.body != nil {
		return known, nil, nil
	}

	kept.mu.Lock()
	defer kept.mu.Unlock()
	open, err := f.root.Open(file.name())
	if err != nil {
		return nil, nil, err
	}
	known := kept.content.Load()
	if !known.is(info) {
		if known, err = readContent(open, f.keepPlain); err != nil {
			open.Close()
			return nil, nil, err
		}
		kept.content.Store(known)
	}
	if known.plain.body != nil {
		return known, nil, open.Close()
	}
	_, err = open.Seek(0, io.SeekStart) // readContent may have read it to its end
	return known, open, err
}

// readContent reads an open file once, for its digest and, if it has at most keep bytes, to keep.
func readContent(open *os.File, keep int64) (*content, error) {
	info, err := open.Stat()
	if err != nil {
		return nil, err
	}
	c := &content{modified: info.ModTime(), size: info.Size()}
	digest := sha256.New()
	var body []byte
	if info.Size() <= keep {
		if body, err = io.ReadAll(open); err != nil {
			return nil, err
		}
		c.size = int64(len(body))
		digest.Write(body)
	} else if c.size, err = io.Copy(digest, open); err != nil {
		return nil, err
	}
	c.digest = hex.EncodeToString(digest.Sum(nil)[:16])
	c.plain = c.representation(body, "")
	return c, nil
}

// reader reads the file as it is, from memory or else from open.
func (c *content) reader(open *os.File) io.ReadSeeker {
	if c.plain.body != nil {
		return bytes.NewReader(c.plain.body)
	}
	return open
}

// compressed returns the gzip form (RFC 1952), made when first asked for and kept as long as the version is.
func (c *content) compressed(open *os.File) *representation {
	c.gzipOnce.Do(func() {
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // only a level that isn't one is an error
		if _, err := io.Copy(z, c.reader(open)); err == nil && z.Close() == nil {
			c.gzipped = c.representation(out.Bytes(), "-gzip")
		}
	})
	return c.gzipped
}

// serveFile answers with one of the files. A range is always one of the file as it is, and the compressed form has
// an ETag of its own (RFC 9110 section 8.8.3). Who has the file as it is already, as a client that asked with HEAD
// first, is asked about that and not sent the other form.
func serveFile(file resultFile) hubHandler {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		c, open, err := h.output.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			e := reply.Fail(http.StatusNotFound, "file_unavailable", file.name()+" is not available. "+hint)
			e.Hint = hint
			return e
		}
		if err != nil {
			return err
		}
		if open != nil {
			defer open.Close()
		}

		header := w.Header()
		header["Content-Type"] = jsonType
		header["Cache-Control"] = revalidate
		header["Vary"] = varyEncoding
		form := c.plain
		has := strings.Contains(r.Header.Get("If-None-Match"), form.etag[0])
		if r.Header.Get("Range") == "" && takesGzip(r.Header) && !has {
			if gzipped := c.compressed(open); gzipped != nil {
				form = gzipped
				header["Content-Encoding"] = gzipCoding
				header["Content-Length"] = form.length // ServeContent leaves it out of encoded answers
			}
		}
		header["Etag"] = form.etag
		c.serve(&patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: h.settings.timeouts.write}, r, form, open)
		return nil
	}
}

// serve writes the answer, most of whose header is set. One that is whole and in memory is a single Write, which
// takes a third of the CPU time of http.ServeContent; ranges, conditions and HEAD are ServeContent's to get right.
func (c *content) serve(w *patientWriter, r *http.Request, form *representation, open *os.File) {
	switch {
	case form.body == nil:
		http.ServeContent(w, r, "", c.modified, open)
	case !wantsWhole(r):
		http.ServeContent(w, r, "", c.modified, bytes.NewReader(form.body))
	default:
		header := w.Header()
		header["Accept-Ranges"] = acceptRanges
		header["Content-Length"] = form.length
		header["Last-Modified"] = form.modified
		w.Write(form.body)
	}
}

// wantsWhole reports whether r asks for all of a file and makes no conditions (RFC 9110 sections 13.1 and 14.2).
func wantsWhole(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, field := range []string{"Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if r.Header[field] != nil {
			return false
		}
	}
	return true
}

var (
	jsonType     = []string{"application/json"}
	revalidate   = []string{"no-cache"}
	gzipCoding   = []string{"gzip"}
	acceptRanges = []string{"bytes"}
	varyEncoding = []string{"Accept-Encoding, Origin"}
)

// takesGzip reports whether the client takes gzip (RFC 9110 section 12.5.3): named, or by *, and not with weight 0.
func takesGzip(h http.Header) bool {
	takes := false
	for item := range strings.SplitSeq(strings.Join(h["Accept-Encoding"], ","), ",") {
		coding, weight, _ := strings.Cut(item, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "x-gzip" && coding != "*" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		takes = weight == "" || err == nil && q > 0
		if coding != "*" {
			return takes
		}
	}
	return takes
}

// patientWriter gives every part of a long answer the time that a short one has as a whole: a slow reader of a
// large file is served as long as it reads at all.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	refused  bool // the answer is a problem, and what http.ServeContent still writes is no part of it
}

// WriteHeader puts http.ServeContent's refusals into the shape of all others.
func (w *patientWriter) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		w.refuse(status, "precondition_failed", "The file is not the one that If-Match or If-Unmodified-Since asks for.")
	case http.StatusRequestedRangeNotSatisfiable:
		w.refuse(status, "range_not_satisfiable", "The file has no such range; Content-Range says how many bytes it has.")
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *patientWriter) refuse(status int, code, detail string) {
	w.refused = true
	w.Header().Del("Content-Encoding")
	reply.Write(w.ResponseWriter, reply.Fail(status, code, detail))
}

func (w *patientWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	written := 0
	for len(b) > 0 {
		part := b[:min(len(b), 256<<10)]
		w.control.SetWriteDeadline(time.Now().Add(w.patience)) // not every writer has deadlines; then there is none to move
		n, err := w.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}
