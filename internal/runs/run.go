// What one run does, and what there is to know of it.

package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"authhub/internal/phase2"
	"authhub/internal/results"
)

// Run is one run.
type Run struct {
	ID         string
	Parameters phase2.Parameters
	Input      Input

	done chan struct{}
	read atomic.Int64 // bytes

	mu       sync.Mutex
	size     int64 // bytes to read
	started  time.Time
	finished time.Time // zero: running
	source   *phase2.Source
	screens  *phase2.Screening
	err      error
}

// State is what there is to know of a run at one moment.
type State struct {
	Started   time.Time
	Finished  time.Time         // zero: running or waiting
	Progress  float64           // 0 to 1
	Source    *phase2.Source    // nil: the input has not been read yet
	Screening *phase2.Screening // nil: the input has not been read yet, or could not be
	Err       error             // why the run failed: an error of phase2, of the place, or context.Canceled
}

// Done returns a channel that is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// State returns the state of the run as of now.
func (r *Run) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Started: r.started, Finished: r.finished, Source: r.source, Screening: r.screens, Err: r.err}
	if r.size > 0 { // reading is nearly all of the work; the last hundredth is writing
		s.Progress = 0.99 * min(1, float64(r.read.Load())/float64(r.size))
	}
	if !r.finished.IsZero() && r.err == nil {
		s.Progress = 1
	}
	return s
}

// attempt executes r. A panic is a defect, but it ends this run only.
func (r *Run) attempt(ctx context.Context, place Place, now func() time.Time) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	ctx, err = place.Begin(ctx, r)
	if err != nil {
		return err
	}
	err = r.execute(ctx, place, now)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return err
}

// execute reads, computes and publishes. After any error the old files stand.
func (r *Run) execute(ctx context.Context, place Place, now func() time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, size, err := r.Input.Open()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return err // not the input's fault: there is no file descriptor left
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err // clients need not know the path
	}
	if err != nil {
		return fmt.Errorf("%w: %s can't be opened: %w", phase2.ErrUnusable, r.Input.Name, err)
	}
	defer in.Close()
	r.mu.Lock()
	r.size = size
	r.mu.Unlock()

	read := &digestReader{reader: in, digest: sha256.New()}
	res, err := phase2.Compute(ctx, read, r.Parameters, r.read.Store)
	if errors.Is(err, phase2.ErrUnusable) {
		io.Copy(io.Discard, read) // the record's digest is of all the input, not of what was read until it failed
	}
	src := r.note(res, read)
	if err != nil {
		return err
	}
	return place.Publish(func(file results.File, w io.Writer) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch file {
		case results.Barrier:
			return res.WriteBarrier(w, src)
		case results.Impact:
			return res.WriteImpact(w, src)
		default:
			return res.WriteAlerts(w, src)
		}
	}, now())
}

// note keeps what the record says of the input, and returns its source.
func (r *Run) note(res *phase2.Results, read *digestReader) phase2.Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = &phase2.Source{Name: r.Input.Name, SHA256: hex.EncodeToString(read.digest.Sum(nil)), Bytes: read.bytes}
	if res != nil {
		screens := res.Screening // a copy: the run must not hold the results
		r.screens = &screens
	}
	return *r.source
}

// digestReader passes bytes on, counts them and takes their digest. SHA-256 is a third of the CPU time of a run; phase
// 2 reads in a goroutine of its own, so it has a core for it.
type digestReader struct {
	reader io.Reader
	bytes  int64
	digest hash.Hash
}

func (d *digestReader) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	d.bytes += int64(n)
	d.digest.Write(p[:n])
	return n, err
}
