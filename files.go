// The files as clients see them: the listing and the three files. package results holds them.

package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"authhub/internal/disk"
	"authhub/internal/reply"
	"authhub/internal/results"
)

// published returns the folder with the files that clients get: this hub's own, or the set that all hubs of a store
// share.
func (h *Hub) published(ctx context.Context) (*results.Folder, error) {
	if h.shared == nil {
		return h.output, nil
	}
	return h.shared.Folder(ctx)
}

func (h *Hub) listFiles(w http.ResponseWriter, r *http.Request) error {
	folder, err := h.published(r.Context())
	if err != nil {
		return err
	}
	body, err := folder.Listing()
	if err != nil {
		return err
	}
	reply.WriteBody(w, http.StatusOK, body)
	return nil
}

// serveFile answers with one of the files.
func serveFile(file results.File) hubHandler {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		folder, err := h.published(r.Context())
		if err != nil {
			return err
		}
		c, open, err := folder.Read(file)
		if errors.Is(err, fs.ErrNotExist) {
			e := reply.Fail(http.StatusNotFound, "file_unavailable", file.Name()+" is not available. "+results.Hint)
			e.Hint = results.Hint
			return e
		}
		if err != nil {
			return err
		}

		header := w.Header()
		header["Cache-Control"] = revalidate
		header["Vary"] = varyEncoding
		if tag := stillTrue(r, c); tag != nil {
			header["Etag"] = tag
			w.WriteHeader(http.StatusNotModified)
			if open != nil {
				open.Close()
			}
			return nil
		}
		header["Content-Type"] = jsonType
		patient := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: h.settings.timeouts.Write}
		if wantsGzip(r, c) {
			return serveGzip(patient, r, c, open)
		}
		servePlain(patient, r, c, open)
		return nil
	}
}

// stillTrue returns the ETag that is the only condition of r, if the file still has it; otherwise nil. This is the
// request of every client that asks again, and http.ServeContent needs twice the CPU time for its answer.
func stillTrue(r *http.Request, c *results.Content) []string {
	tags := r.Header["If-None-Match"]
	if len(tags) != 1 || r.Header["If-Match"] != nil || r.Header["If-Unmodified-Since"] != nil {
		return nil
	}
	switch tags[0] {
	case c.ETag[0]:
		return c.ETag
	case c.GzipETag[0]:
		if wantsGzip(r, c) {
			return c.GzipETag
		}
	}
	return nil
}

// servePlain answers with the file as it is. The answer to a plain GET from memory is a single Write, which takes a
// third of the CPU time of http.ServeContent. ServeContent answers ranges, conditions and HEAD.
func servePlain(w *patientWriter, r *http.Request, c *results.Content, open disk.ReadFile) {
	if open != nil {
		defer open.Close()
	}
	header := w.Header()
	header["Etag"] = c.ETag
	if c.Body == nil || r.Method != http.MethodGet || hasCondition(r.Header) || r.Header["Range"] != nil {
		http.ServeContent(w, r, "", c.Modified, c.Reader(open))
		return
	}
	header["Accept-Ranges"] = acceptRanges
	header["Content-Length"] = c.Length
	header["Last-Modified"] = c.LastModified
	w.Write(c.Body)
}

// serveGzip answers with the compressed form of the file. While the form is still growing, the answer begins without a
// Content-Length. A range is served as the whole form (RFC 9110 section 14.2 lets a server ignore Range).
func serveGzip(w *patientWriter, r *http.Request, c *results.Content, open disk.ReadFile) error {
	header := w.Header()
	header["Etag"] = c.GzipETag
	header["Content-Encoding"] = gzipCoding
	if r.Method != http.MethodGet || hasCondition(r.Header) {
		w.probe = true
		plain := r.Clone(r.Context())
		plain.Header.Del("Range")
		http.ServeContent(w, plain, "", c.Modified, strings.NewReader("")) // answers, unless the answer is the form
		if w.probe = false; w.answered {
			if open != nil {
				open.Close()
			}
			return nil
		}
	}
	header["Last-Modified"] = c.LastModified
	form := c.Gzip(open)
	if length := form.Length(); length != nil {
		header["Content-Length"] = length
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	written, err := form.WriteTo(w)
	if err != nil && written > 0 {
		panic(http.ErrAbortHandler) // a client must not take what it got for the whole form
	}
	return err
}

// hasCondition reports whether a request has a condition (RFC 9110 section 13.1).
func hasCondition(h http.Header) bool {
	return h["If-None-Match"] != nil || h["If-Match"] != nil || h["If-Modified-Since"] != nil || h["If-Unmodified-Since"] != nil
}

// wantsGzip reports whether the answer to r is the compressed form. A client that takes gzip takes the file as it is,
// too. So its conditions choose the form that they are about: a client that asked with HEAD for one form and then with
// GET for the other does not fail (RFC 9110 section 13.1.1). A range is always a range of the file as it is, unless
// If-Match asks for the compressed form.
func wantsGzip(r *http.Request, c *results.Content) bool {
	if !takesGzip(r.Header) {
		return false
	}
	if match := r.Header["If-Match"]; match != nil {
		tags := strings.Join(match, ",")
		if strings.Contains(tags, c.GzipETag[0]) {
			return true
		}
		if strings.Contains(tags, c.ETag[0]) {
			return false
		}
	}
	return r.Header["Range"] == nil && !strings.Contains(strings.Join(r.Header["If-None-Match"], ","), c.ETag[0])
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

// patientWriter gives every part of a long answer the time that a short answer has as a whole, so that a client that
// reads a large file slowly gets all of it. It puts the refusals of http.ServeContent into the shape of all others.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	written  int64 // bytes
	probe    bool  // drop a 200 from http.ServeContent: the body comes after it
	answered bool  // the answer is a refusal or a 304; what http.ServeContent still writes is no part of it
}

func (w *patientWriter) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		w.refuse(status, "precondition_failed", "The file is not the one that If-Match or If-Unmodified-Since asks for. Fetch the file again.")
	case http.StatusRequestedRangeNotSatisfiable:
		w.refuse(status, "range_not_satisfiable", "The range is outside the file; Content-Range says how many bytes the file has.")
	case http.StatusOK:
		if !w.probe {
			w.ResponseWriter.WriteHeader(status)
		}
	default:
		w.answered = status == http.StatusNotModified
		w.ResponseWriter.WriteHeader(status)
	}
}

// refuse answers with an error in place of the file, without the fields that describe the file.
func (w *patientWriter) refuse(status int, code, detail string) {
	w.answered = true
	header := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Length", "Etag", "Last-Modified", "Accept-Ranges"} {
		delete(header, name)
	}
	reply.Write(w.ResponseWriter, reply.Fail(status, code, detail))
}

func (w *patientWriter) Write(b []byte) (int, error) {
	if w.answered {
		return len(b), nil
	}
	written := 0
	for len(b) > 0 {
		part := b[:min(len(b), 256<<10)]
		if w.written > 0 { // for the first part there is the deadline of every answer
			w.control.SetWriteDeadline(time.Now().Add(w.patience)) // not every writer has deadlines; then there is none to move
		}
		n, err := w.ResponseWriter.Write(part)
		written += n
		w.written += int64(n)
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}
