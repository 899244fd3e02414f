// The queue: runs one at a time, those that join, those that wait, and what one run does.
//
// A run reads its input once, through the screens of phase 1 (screening.go) into the computations of phase 2
// (barrier.go), and publishes the results as one set (files.go). Runs are nobody's: a client that leaves does not
// stop one.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"authhub/internal/phase2"
)

const maxWaiting = 8 // runs that wait for their turn

// input is where a run's readings come from.
type input struct {
	name string // of the source, in the files
	key  string // equal for equal input: a run of the same input and parameters can be joined
	open func() (io.ReadCloser, int64, error)
	drop func() // when nobody will read it any more; may be nil
}

// runs is the queue of one hub's runs.
type runs struct {
	output *output
	now    func() time.Time
	report func(*run, error) // told how each run ended
	ctx    context.Context   // ends with the hub
	stop   context.CancelFunc
	idle   sync.WaitGroup

	uploads atomic.Int32 // bodies that are on disk or on their way there

	mu      sync.Mutex
	current *run // nil: none is running
	waiting []*run
	latest  *run // the latest that was started
}

// run is one run and, once done is closed, its outcome.
type run struct {
	id         string
	parameters phase2.Parameters
	input      input
	done       chan struct{}
	progress   atomic.Int64 // bytes read
	size       int64        // bytes to read

	mu       sync.Mutex
	started  time.Time
	finished time.Time // zero: running
	source   *phase2.Source
	screens  *phase2.Screening
	err      error
}

func newRuns(f *output, now func() time.Time, report func(*run, error)) *runs {
	ctx, stop := context.WithCancel(context.Background())
	return &runs{output: f, now: now, report: report, ctx: ctx, stop: stop}
}

// close ends the current run without publishing and waits for it; the waiting ones never start.
func (q *runs) close() {
	q.stop()
	ended := make(chan struct{})
	go func() { q.idle.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(shutdownTimeout): // it hangs in opening a pipe that nobody writes to; the process ends without it
	}
}

// start returns the run of this input and these parameters that is running or waiting, or else a new one, begun
// at once or put in line. Errors: errBusy.
func (q *runs) start(id string, p phase2.Parameters, in input) (*run, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range append([]*run{q.current}, q.waiting...) {
		if r != nil && r.parameters == p && r.input.key == in.key {
			in.dropped()
			return r, nil
		}
	}
	if len(q.waiting) >= maxWaiting || q.ctx.Err() != nil {
		in.dropped()
		return nil, errBusy
	}
	r := &run{id: id, parameters: p, input: in, done: make(chan struct{})}
	if q.current == nil {
		q.begin(r)
		q.idle.Go(q.work)
	} else {
		r.started = q.now() // in line: its record says running, with no progress yet
		q.waiting = append(q.waiting, r)
	}
	return r, nil
}

// begin makes r the current run, under q.mu.
func (q *runs) begin(r *run) {
	r.mu.Lock()
	r.started = q.now()
	r.mu.Unlock()
	q.current, q.latest = r, r
}

// work executes the current run and those that wait, until none does. A run that has ended is not the current one
// any more when its clients hear of it: what they ask for next must not join it.
func (q *runs) work() {
	for r := q.current; r != nil; {
		err := q.attempt(r)
		r.input.dropped()
		r.mu.Lock()
		r.finished, r.err = q.now(), err
		r.mu.Unlock()
		next := q.next()
		q.report(r, err)
		close(r.done)
		r = next
	}
}

// next makes the first in line current and returns it, or nil.
func (q *runs) next() *run {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current = nil
	if len(q.waiting) == 0 {
		return nil
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.begin(r)
	return r
}

// latestRun returns the current run or, if none is running, the latest; nil before the first.
func (q *runs) latestRun() *run {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.latest
}

// attempt executes r. A panic is a defect, but one that ends this run only.
func (q *runs) attempt(r *run) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return q.execute(r)
}

// execute reads, computes and publishes. On any error the files that stand stay as they are.
func (q *runs) execute(r *run) error {
	in, size, err := r.input.open()
	if err != nil {
		return fmt.Errorf("%w: %s can't be opened", phase2.ErrUnusable, r.input.name)
	}
	defer in.Close()
	r.mu.Lock()
	r.size = size
	r.mu.Unlock()

	read := newDigestReader(in)
	res, err := phase2.Compute(q.ctx, read, r.parameters, r.progress.Store)
	if errors.Is(err, phase2.ErrUnusable) {
		io.Copy(io.Discard, read) // the record's digest is of all the input, not of what was read until it failed
	}
	r.note(res, read)
	if err != nil {
		return err
	}
	src := *r.source
	return q.output.publish(func(file resultFile, w io.Writer) error {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		switch file {
		case barrierFile:
			return res.WriteBarrier(w, src)
		case impactFile:
			return res.WriteImpact(w, src)
		default:
			return res.WriteAlerts(w, src)
		}
	}, q.now())
}

// note keeps what the record says of the input.
func (r *run) note(res *phase2.Results, read *digestReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = &phase2.Source{Name: r.input.name, SHA256: hex.EncodeToString(read.sum()), Bytes: read.bytes}
	if res != nil {
		screens := res.Screening // a copy: the record is not to hold the results
		r.screens = &screens
	}
}

// digestReader passes bytes on and takes their digest, in a goroutine that ends with sum: SHA-256 is a third of the
// CPU time of a run, and mostly there is another core for it (5 million rows: 0.6 s for 0.9, on two busy cores).
type digestReader struct {
	reader io.Reader
	bytes  int64
	chunks chan []byte // to the digest
	spare  chan []byte // back from it
	result chan []byte
}

func newDigestReader(r io.Reader) *digestReader {
	d := &digestReader{reader: r, chunks: make(chan []byte, 2), spare: make(chan []byte, 2), result: make(chan []byte, 1)}
	d.spare <- nil
	d.spare <- nil
	go func() {
		digest := sha256.New()
		for chunk := range d.chunks {
			digest.Write(chunk)
			d.spare <- chunk
		}
		d.result <- digest.Sum(nil)
	}()
	return d
}

func (d *digestReader) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	d.bytes += int64(n)
	if n > 0 {
		d.chunks <- append((<-d.spare)[:0], p[:n]...)
	}
	return n, err
}

// sum returns the digest of all that has been read. Nothing may be read after it.
func (d *digestReader) sum() []byte {
	close(d.chunks)
	return <-d.result
}

func (in input) dropped() {
	if in.drop != nil {
		in.drop()
	}
}
