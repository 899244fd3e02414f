// The gzip form of a content (RFC 1952): compressed once, while it is sent to all who ask for it.

package results

import (
	"bytes"
	"compress/gzip"
	"io"
	"strconv"
	"sync"

	"authhub/internal/disk"
)

// Gzip is the compressed form of a content. It grows until it is complete.
type Gzip struct {
	mu     sync.Mutex
	grown  sync.Cond
	parts  [][]byte // of partSize, but the last; what a part holds never changes
	size   int      // bytes in all parts
	length []string // once complete
	ended  bool
	err    error // once ended
}

const (
	atOnce   = 1 << 20  // bytes of a content that is compressed before the answer begins
	partSize = 64 << 10 // bytes
)

func newGzip() *Gzip {
	g := new(Gzip)
	g.grown.L = &g.mu
	return g
}

// Gzip returns the compressed form, and begins to compress if nobody has asked before. It takes over open.
func (c *Content) Gzip(open disk.ReadFile) *Gzip {
	c.gzipMu.Lock()
	defer c.gzipMu.Unlock()
	if c.gzip != nil && c.gzip.failure() == nil {
		if open != nil {
			open.Close()
		}
		return c.gzip
	}
	g := newGzip()
	c.gzip = g
	if c.Body != nil && len(c.Body) <= atOnce {
		g.compress(bytes.NewReader(c.Body), gzip.BestCompression)
		return g
	}
	go func() {
		g.compress(c.Reader(open), gzip.BestSpeed)
		if open != nil {
			open.Close()
		}
	}()
	return g
}

func (g *Gzip) compress(r io.Reader, level int) {
	z, err := gzip.NewWriterLevel(gzipParts{g}, level)
	if err == nil {
		_, err = io.Copy(z, r)
	}
	if err == nil {
		err = z.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended, g.err = true, err; err == nil {
		g.length = []string{strconv.Itoa(g.size)}
	}
	g.grown.Broadcast()
}

// gzipParts takes what the compressor writes.
type gzipParts struct{ *Gzip }

func (g gzipParts) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	written := len(b)
	for len(b) > 0 {
		if g.size%partSize == 0 {
			g.parts = append(g.parts, make([]byte, 0, partSize))
		}
		last := &g.parts[len(g.parts)-1]
		n := min(len(b), partSize-len(*last))
		*last = append(*last, b[:n]...)
		g.size += n
		b = b[n:]
	}
	g.grown.Broadcast()
	return written, nil
}

func (g *Gzip) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Length returns the value of Content-Length, or nil while the form is not complete.
func (g *Gzip) Length() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.length
}

// WriteTo writes all of the form, and waits for what is still being compressed.
func (g *Gzip) WriteTo(w io.Writer) (written int64, err error) {
	for {
		part, err := g.after(int(written))
		if err != nil || part == nil {
			return written, err
		}
		n, err := w.Write(part)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// after waits until the form has more than so many bytes and returns some of those that follow them, or nil at the end.
func (g *Gzip) after(bytes int) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for bytes == g.size && !g.ended {
		g.grown.Wait()
	}
	if bytes == g.size {
		return nil, g.err
	}
	return g.parts[bytes/partSize][bytes%partSize:], nil
}
