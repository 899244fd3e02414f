// The tap: an answer as it passes to the client.

package fault

import (
	"net/http"
	"strconv"

	"authhub/internal/request"
)

// Tap passes an answer on, whole or in part, and keeps what the record wants of it.
type Tap struct {
	http.ResponseWriter
	Keep      bool // the body of a success, too
	Hide      bool // nothing passes
	Limit     int  // bytes of the body that pass; -1: all
	Injected  bool // it is a fault's, not the hub's
	Malformed bool // it can't be read

	Settle func() // called before an answer passes, and before the connection is cut; nil: nothing

	Status  int
	Kept    []byte
	passed  int
	pending bool // the header is still to pass
	cut     bool // something did not pass
	Dropped bool // the connection is being cut
}

func (t *Tap) WriteHeader(status int) {
	if t.Status == 0 && status >= 200 {
		t.Status = status
		t.settle()
	}
	t.pending = t.Limit >= 0 && t.Header()["Content-Length"] == nil && status >= 200
	if !t.Hide && !t.pending {
		t.ResponseWriter.WriteHeader(status)
	}
}

func (t *Tap) settle() {
	if t.Settle != nil {
		t.Settle()
	}
}

// passHeader passes the header of an answer that is being cut. Its body comes in one piece where it has no length yet
// (reply.WriteBody): the client has to know how much that is.
func (t *Tap) passHeader(body []byte) {
	if t.pending {
		t.pending = false
		if len(body) > 0 {
			t.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
		}
		t.ResponseWriter.WriteHeader(t.Status)
	}
}

// Write always succeeds on what it does not pass, so that a hub goes on as if the client had it.
func (t *Tap) Write(b []byte) (int, error) {
	if t.Status == 0 {
		t.Status = http.StatusOK
	}
	if (t.Keep || t.Status >= 400) && len(t.Kept)+len(b) <= request.MaxBody {
		t.Kept = append(t.Kept, b...)
	}
	if t.Hide {
		return len(b), nil
	}
	t.passHeader(b)
	if t.Limit < 0 || t.passed+len(b) <= t.Limit {
		t.passed += len(b)
		return t.ResponseWriter.Write(b)
	}
	t.cut = true
	_, err := t.ResponseWriter.Write(b[:t.Limit-t.passed])
	t.passed = t.Limit
	return len(b), err
}

// Finish ends an answer, and the connection with it if something did not pass.
func (t *Tap) Finish() {
	t.passHeader(nil)
	if t.cut || t.Hide {
		t.abort()
	}
}

// abort cuts the connection behind what has passed.
func (t *Tap) abort() {
	t.Dropped = true
	t.settle()
	if t.cut {
		http.NewResponseController(t.ResponseWriter).Flush()
	}
	panic(http.ErrAbortHandler)
}

// Unwrap gives http.ResponseController the writer below.
func (t *Tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }
