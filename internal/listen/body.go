// body.go owns the time that long bodies get.

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
