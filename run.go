// Runs: what produces the three files, one at a time.
//
// A run reads its input once, through the screens of phase 1 (screening.go) into the computations of phase 2
// (barrier.go), and publishes the results as one set (files.go). Runs are nobody's: a client that leaves does not
// stop one. Their records live in memory only; a restart forgets them, the files stay.

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:generate sh -c "go run ./internal/readings > data/readings.csv"

//go:embed data
var embedded embed.FS

const (
	embeddedReadings = "data/readings.csv"
	embeddedUsers    = "data/users.json"
	maxUpload        = 64 << 20 // bytes of readings in a request
	maxWaiting       = 8        // runs that wait for their turn
	maxUploads       = 32       // bodies on disk at once, so that uploads can't fill it
)

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
	parameters parameters
	input      input
	done       chan struct{}
	progress   atomic.Int64 // bytes read
	size       int64        // bytes to read

	mu       sync.Mutex
	started  time.Time
	finished time.Time // zero: running
	source   *source
	screens  *screening
	err      error
}

func newRuns(f *output, now func() time.Time, report func(*run, error)) *runs {
	ctx, stop := context.WithCancel(context.Background())
	return &runs{output: f, now: now, report: report, ctx: ctx, stop: stop}
}

// close ends the current run without publishing and waits for it; the waiting ones never start.
func (q *runs) close() {
	q.stop()
	q.idle.Wait()
}

// start returns the run of this input and these parameters that is running or waiting, or else a new one, begun
// at once or put in line. Errors: errBusy.
func (q *runs) start(id string, p parameters, in input) (*run, error) {
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
		err := q.execute(r)
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

// execute reads, computes and publishes. On any error the files that stand stay as they are.
func (q *runs) execute(r *run) error {
	in, size, err := r.input.open()
	if err != nil {
		return fmt.Errorf("%w: %s can't be opened", errUnusable, r.input.name)
	}
	defer in.Close()
	r.mu.Lock()
	r.size = size
	r.mu.Unlock()

	read := newDigestReader(in)
	res, err := compute(q.ctx, read, r.parameters, r.progress.Store)
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
			return res.writeBarrier(w, src)
		case impactFile:
			return res.writeImpact(w, src)
		default:
			return res.writeAlerts(w, src)
		}
	}, q.now())
}

// note keeps what the record says of the input.
func (r *run) note(res *results, read *digestReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = &source{Name: r.input.name, SHA256: hex.EncodeToString(read.sum()), Bytes: read.bytes}
	if res != nil {
		r.screens = &res.Screening
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

// runRecord is what clients see of a run. Times are as in the listing.
type runRecord struct {
	ID         string                 `json:"id"`
	Status     string                 `json:"status"` // running, succeeded, failed
	StartedAt  string                 `json:"started_at"`
	FinishedAt *string                `json:"finished_at"`
	DurationMS int64                  `json:"duration_ms"`
	Progress   float64                `json:"progress"` // 0 to 1
	Parameters parameters             `json:"parameters"`
	Source     *source                `json:"source"`
	Screening  *screening             `json:"screening"`
	Files      [resultFiles]fileEntry `json:"phase2_files"`
	Error      *problem               `json:"error"`
}

// record returns the record of r as of now.
func (h *Hub) record(r *run) runRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := runRecord{ID: r.id, Status: "running", StartedAt: formatTime(r.started), Parameters: r.parameters,
		Source: r.source, Screening: r.screens, Files: h.output.list()}
	if r.finished.IsZero() {
		rec.DurationMS = h.now().Sub(r.started).Milliseconds()
		if r.size > 0 { // reading is nearly all of the work; the last hundredth is writing
			rec.Progress = 0.99 * min(1, float64(r.progress.Load())/float64(r.size))
		}
		return rec
	}
	finished := formatTime(r.finished)
	rec.FinishedAt, rec.DurationMS = &finished, r.finished.Sub(r.started).Milliseconds()
	rec.Status, rec.Progress = "succeeded", 1
	if r.err != nil {
		rec.Status, rec.Error = "failed", runError(r.err).problem()
		rec.Progress = 0
		if r.size > 0 {
			rec.Progress = 0.99 * min(1, float64(r.progress.Load())/float64(r.size))
		}
	}
	return rec
}

// runError is the answer to a run that failed with err.
func runError(err error) *httpError {
	if errors.Is(err, errUnusable) {
		return fail(http.StatusUnprocessableEntity, "unusable_readings", err.Error()+". The files that stand are unchanged.")
	}
	if errors.Is(err, context.Canceled) {
		return fail(http.StatusServiceUnavailable, "busy", "The hub was stopped before the run had ended.")
	}
	return answerFor(err)
}

func (h *Hub) startRun(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	p, err := readParameters(query)
	if err != nil {
		return err
	}
	in, err := h.readInput(w, r)
	if err != nil {
		return err
	}

	started, err := h.runs.start(h.newID(), p, in)
	if err != nil {
		return err
	}
	if prefersAsync(r.Header) {
		w.Header().Set("Preference-Applied", "respond-async") // RFC 7240 section 3
		w.Header().Set("Location", h.base+"/api/run-ph-barrier-phase2")
		return writeJSON(w, http.StatusAccepted, h.record(started))
	}
	select {
	case <-started.done:
	case <-r.Context().Done():
		return r.Context().Err()
	}

	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.settings.timeouts.write)) // waiting has used up the one there was
	if started.err != nil {
		return runError(started.err)
	}
	return writeJSON(w, http.StatusOK, h.record(started))
}

func (h *Hub) showRun(w http.ResponseWriter, r *http.Request) error {
	latest := h.runs.latestRun()
	if latest == nil {
		return fail(http.StatusNotFound, "no_run", "There has been no run since the hub was started. "+hint)
	}
	return writeJSON(w, http.StatusOK, h.record(latest))
}

// prefersAsync reports whether the client asks for respond-async (RFC 7240 section 4.1).
func prefersAsync(h http.Header) bool {
	for _, line := range h["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// readParameters reads and checks the parameters of a run.
func readParameters(query url.Values) (parameters, error) {
	p := parameters{Low: 6500, High: 8500, Interval: time.Hour, MaxGap: time.Hour}
	f := new(form)
	limit := func(name string, value *int) {
		if given := query.Get(name); query.Has(name) {
			ph, ok := parsePH([]byte(given))
			if !ok {
				f.fault(name, "must be a decimal number")
			}
			*value = ph
		}
	}
	span := func(name string, value *time.Duration) {
		if given := query.Get(name); query.Has(name) {
			d, err := time.ParseDuration(given)
			if err != nil {
				f.fault(name, "must be a duration such as 1h, 15m or 1h30m")
			}
			*value = d
		}
	}
	limit("low", &p.Low)
	limit("high", &p.High)
	span("interval", &p.Interval)
	span("max_gap", &p.MaxGap)
	if len(f.faults) == 0 {
		p.check(f)
	}
	return p, f.err()
}

// check holds the parameters against the contract.
func (p parameters) check(f *form) {
	switch {
	case p.Low <= 0:
		f.fault("low", "must be above 0")
	case p.High >= 14_000:
		f.fault("high", "must be below 14")
	case p.Low >= p.High:
		f.fault("low", "must be below high")
	}
	if p.Interval < time.Minute || p.Interval > 24*time.Hour || p.Interval%time.Second != 0 {
		f.fault("interval", "must be 1m to 24h, in whole seconds")
	}
	if p.MaxGap <= 0 {
		f.fault("max_gap", "must be above 0")
	}
}

// readInput returns the readings that the request brings or, where it brings none, those of the hub.
func (h *Hub) readInput(w http.ResponseWriter, r *http.Request) (input, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	csv := err == nil && mediaType == "text/csv"
	if charset := params["charset"]; csv && charset != "" && !strings.EqualFold(charset, "utf-8") {
		csv = false
	}
	if csv {
		return h.readUpload(w, r)
	}
	n, err := r.Body.Read(make([]byte, 1))
	switch {
	case n > 0:
		return input{}, fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Send readings as text/csv in UTF-8, or no body at all for the hub's own readings.")
	case err != nil && err != io.EOF:
		return input{}, bodyError(err)
	}
	return h.ownReadings(), nil
}

// ownReadings are those of -readings, or the embedded ones.
func (h *Hub) ownReadings() input {
	path := h.settings.readings
	if path == "" {
		return input{name: embeddedReadings, key: "embedded", open: func() (io.ReadCloser, int64, error) {
			data, err := embedded.ReadFile(embeddedReadings)
			return io.NopCloser(bytes.NewReader(data)), int64(len(data)), err
		}}
	}
	return input{name: filepath.Base(path), key: "file " + path, open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		info, err := f.Stat()
		if err != nil || info.IsDir() {
			f.Close()
			return nil, 0, errors.Join(err, errUnusable)
		}
		return f, info.Size(), nil
	}}
}

// readUpload keeps the body on disk until its run has read it: only then is it known to be whole, and whether it
// equals the input of another run.
func (h *Hub) readUpload(w http.ResponseWriter, r *http.Request) (input, error) {
	if r.ContentLength > maxUpload {
		return input{}, tooLarge(maxUpload)
	}
	if h.runs.uploads.Add(1) > maxUploads {
		h.runs.uploads.Add(-1)
		return input{}, errBusy
	}
	body := &patientReader{
		body:    http.MaxBytesReader(w, r.Body, maxUpload),
		control: http.NewResponseController(w),
		waits:   h.settings.timeouts,
		latest:  time.Now().Add(h.settings.timeouts.upload),
	}
	kept, err := h.output.keep(body, h.newID())
	if err != nil {
		h.runs.uploads.Add(-1)
		if body.err != nil {
			return input{}, bodyError(body.err)
		}
		return input{}, err
	}
	return input{
		name: "request",
		key:  "upload " + kept.sha256,
		open: func() (io.ReadCloser, int64, error) {
			f, err := kept.root.Open(kept.name)
			return f, kept.size, err
		},
		drop: func() {
			kept.root.Remove(kept.name)
			h.runs.uploads.Add(-1)
		},
	}, nil
}

// patientReader gives every part of a long body the time that a short one has as a whole, up to latest, and
// remembers the body's own error apart from those of the disk.
type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	waits   timeouts
	latest  time.Time
	err     error
}

func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(p.waits.read)
	if deadline.After(p.latest) {
		deadline = p.latest
	}
	p.control.SetReadDeadline(deadline) // not every connection has deadlines; then there is none to move
	p.control.SetWriteDeadline(deadline.Add(p.waits.write))
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}
