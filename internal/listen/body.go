// body.go owns the time that long bodies get, and what becomes of those that nobody reads.

package listen

import (
	"io"
	"net/http"
	"time"
)

// Body reads a body that may take longer than other requests.
type Body struct {
	// Err is the body's own error, so that a caller who copies the body can tell it from an error of the copy.
	Err error

	from    io.Reader
	control *http.ResponseController
	waits   Timeouts
	latest  time.Time
}

// Body returns a reader of body, the body of the request that w answers. Each part gets the time Read, the whole gets
// Upload, and the answer gets Write after the last part.
func (t Timeouts) Body(w http.ResponseWriter, body io.Reader) *Body {
	return &Body{from: body, control: http.NewResponseController(w), waits: t, latest: time.Now().Add(t.Upload)}
}

func (b *Body) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.waits.Read)
	if deadline.After(b.latest) {
		deadline = b.latest
	}
	b.control.SetReadDeadline(deadline) // not every connection has deadlines; then there is none to move
	b.control.SetWriteDeadline(deadline.Add(b.waits.Write))
	n, err := b.from.Read(p)
	if err != nil && err != io.EOF {
		b.Err = err
	}
	return n, err
}

// Bodies that nobody has read, as those of refused requests are. net/http reads the rest of short ones.
const (
	shortBody  = 256 << 10   // bytes
	drained    = 64 << 20    // bytes of a longer one that are read
	drainPause = time.Second // that the next part may take
)

// drain has next answer, and reads what it has left of a long body before the answer leaves (Drain).
func (t Timeouts) drain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if r.ContentLength < 0 || r.ContentLength > shortBody {
			t.Drain(w, r)
		}
	})
}

// Drain reads what is left of the body of the request that w answers, until no more of it comes for a second. Many
// clients read no answer before they have sent all: to them the connection would seem broken. Those that ask first
// (Expect) have not sent it. A connection that has failed ends with the answer, and is not read any more: to net/http
// its client is gone.
func (t Timeouts) Drain(w http.ResponseWriter, r *http.Request) {
	if r.Header["Expect"] != nil || r.Context().Err() != nil {
		return
	}
	t.Read = drainPause
	body := t.Body(w, r.Body)
	if _, err := io.CopyN(io.Discard, body, drained); err == io.EOF {
		body.control.SetReadDeadline(time.Time{}) // nobody waits for more while the answer leaves
	} // what is left over else ends with the connection
}
