// Package runs executes runs, one at a time; the others wait in line.
//
// A run reads its input once, computes the results (package phase2) and publishes them as one set (package results). It
// does not belong to the client that started it: a client that leaves does not stop it.
package runs

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"authhub/internal/phase2"
	"authhub/internal/results"
)

// maxWaiting is how many runs can wait in line.
const maxWaiting = 8

// ErrBusy says that the line is full, or that the queue is closed.
var ErrBusy = errors.New("too many runs are waiting")

// Input is where a run's readings come from.
type Input struct {
	Name string // of the source, in the files
	Key  string // equal for equal input: a run of the same input and parameters can be joined
	Open func() (in io.ReadCloser, size int64, err error)
	Drop func() // called once, when nobody will read the input any more; may be nil
}

// Place is where the results of runs go, and where hubs that share it take turns.
type Place interface {
	// Begin waits until r may execute. The context that it returns ends when r may not any more, with the cause.
	Begin(ctx context.Context, r *Run) (context.Context, error)
	// Publish puts the results of the run that has begun in the place of the old ones. See results.Folder.
	Publish(write results.Writer, modified time.Time) error
	// End is told that r has ended, whether it had begun or not.
	End(r *Run)
}

// alone is the place of a hub that shares its folder with no other.
type alone struct{ *results.Folder }

func (alone) Begin(ctx context.Context, _ *Run) (context.Context, error) { return ctx, nil }
func (alone) End(*Run)                                                   {}

// Queue holds the runs of one hub.
type Queue struct {
	place  Place
	now    func() time.Time
	report func(*Run)      // told of each run that has ended
	ctx    context.Context // ends with the queue
	stop   context.CancelFunc
	idle   sync.WaitGroup

	mu      sync.Mutex
	current *Run // nil: none is running
	waiting []*Run
	latest  *Run // the latest that was started
}

// New returns a queue whose runs publish into folder. It calls report for each run that has ended, before Done is
// closed.
func New(folder *results.Folder, now func() time.Time, report func(*Run)) *Queue {
	return NewAt(alone{folder}, now, report)
}

// NewAt is New for a place that hubs may share.
func NewAt(place Place, now func() time.Time, report func(*Run)) *Queue {
	ctx, stop := context.WithCancel(context.Background())
	return &Queue{place: place, now: now, report: report, ctx: ctx, stop: stop}
}

// closeTimeout is how long Close waits for a run that can't be stopped: it may hang in opening a pipe that nobody
// writes to.
const closeTimeout = 5 * time.Second

// Close ends the current run without publishing, and waits for it. The waiting runs end without reading their input.
func (q *Queue) Close() {
	q.mu.Lock()
	q.stop() // under the mutex, so that no run begins after it
	q.mu.Unlock()
	ended := make(chan struct{})
	go func() { q.idle.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
	}
}

// Start returns the run of this input and these parameters that is running or waiting, or else a new run, which begins
// at once or waits in line. id is that of a new run. Errors: ErrBusy.
func (q *Queue) Start(id string, p phase2.Parameters, in Input) (*Run, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() != nil {
		in.drop()
		return nil, ErrBusy
	}
	for _, r := range append([]*Run{q.current}, q.waiting...) {
		if r != nil && r.Parameters == p && r.Input.Key == in.Key {
			in.drop()
			return r, nil
		}
	}
	if len(q.waiting) >= maxWaiting {
		in.drop()
		return nil, ErrBusy
	}
	r := &Run{ID: id, Parameters: p, Input: in, done: make(chan struct{})}
	if q.current == nil {
		q.beginLocked(r)
		q.idle.Go(q.work)
	} else {
		r.started = q.now() // in line: its state is running, with no progress yet
		q.waiting = append(q.waiting, r)
	}
	return r, nil
}

// beginLocked makes r the current run.
func (q *Queue) beginLocked(r *Run) {
	r.mu.Lock()
	r.started = q.now()
	r.mu.Unlock()
	q.current, q.latest = r, r
}

// work executes the current run and those that wait, until none does. When clients hear of the end of a run, it is no
// longer the current one, so what they ask for next does not join it.
func (q *Queue) work() {
	for r := q.current; r != nil; {
		err := r.attempt(q.ctx, q.place, q.now)
		r.Input.drop()
		r.mu.Lock()
		r.finished, r.err = q.now(), err
		r.mu.Unlock()
		q.place.End(r)
		next := q.next()
		q.report(r)
		close(r.done)
		r = next
	}
}

// next makes the first in line current and returns it, or nil.
func (q *Queue) next() *Run {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current = nil
	if len(q.waiting) == 0 {
		return nil
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.beginLocked(r)
	return r
}

// Latest returns the current run or, if none is running, the latest; nil before the first.
func (q *Queue) Latest() *Run {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.latest
}

func (in Input) drop() {
	if in.Drop != nil {
		in.Drop()
	}
}
