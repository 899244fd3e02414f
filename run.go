// Runs as clients see them: POST starts one or joins one, GET shows its record; parameters and readings come in here.
//
// Records live in memory only: a restart forgets them, the files stay.

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"authhub/internal/engine"
	"authhub/internal/phase2"
	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/results"
	"authhub/internal/runs"
)

//go:generate sh -c "go run ./internal/readings > data/readings.csv"
//go:generate gzip -9nkf data/readings.csv

// The readings are embedded compressed: a tenth of 393 kB.
//
//go:embed data/users.json data/readings.csv.gz
var embedded embed.FS

const (
	embeddedReadings = "data/readings.csv"
	embeddedUsers    = "data/users.json"
	maxUpload        = 64 << 20 // bytes of readings in a request
)

// runRecord is what clients see of a run. Times are as in the listing.
type runRecord struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"` // running, succeeded, failed
	StartedAt  string            `json:"started_at"`
	FinishedAt *string           `json:"finished_at"`
	DurationMS int64             `json:"duration_ms"`
	Progress   float64           `json:"progress"` // 0 to 1
	Parameters phase2.Parameters `json:"parameters"`
	Source     *phase2.Source    `json:"source"`
	Screening  *phase2.Screening `json:"screening"`
	Files      []results.Entry   `json:"phase2_files"`
	Error      *reply.Error      `json:"error"`
}

// record returns the record of r as of now. Errors: those of published.
func (h *Hub) record(ctx context.Context, r *runs.Run) (runRecord, error) {
	rec := h.recordAlone(r)
	folder, err := h.published(ctx)
	if err == nil {
		rec.Files = folder.List()
	}
	return rec, err
}

// recordAlone is the record without the files that stand.
func (h *Hub) recordAlone(r *runs.Run) runRecord {
	state := r.State()
	rec := runRecord{ID: r.ID, Status: "running", StartedAt: reply.FormatTime(state.Started), Progress: state.Progress, Parameters: r.Parameters,
		Source: state.Source, Screening: state.Screening}
	until := state.Finished
	switch {
	case state.Finished.IsZero():
		until = h.now()
	case state.Err != nil:
		rec.Status, rec.Error = "failed", runError(state.Err)
	default:
		rec.Status = "succeeded"
	}
	if !state.Finished.IsZero() {
		finished := reply.FormatTime(state.Finished)
		rec.FinishedAt = &finished
	}
	rec.DurationMS = until.UnixMilli() - state.Started.UnixMilli() // the difference of the two times in the record
	return rec
}

// runError is the answer to a run that failed with err.
func runError(err error) *reply.Error {
	if errors.Is(err, phase2.ErrUnusable) {
		return reply.Fail(http.StatusUnprocessableEntity, "unusable_readings", err.Error()+". The existing files are unchanged.")
	}
	if errors.Is(err, context.Canceled) {
		return reply.Fail(http.StatusServiceUnavailable, "busy", "The hub stopped before the run ended. Run again.")
	}
	return answerFor(err)
}

func (h *Hub) startRun(w http.ResponseWriter, r *http.Request) error {
	query, err := request.Query(r)
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

	started, err := h.runs.Start(h.newID(), p, in)
	if err != nil {
		return err
	}
	if prefersAsync(r.Header) {
		w.Header().Set("Preference-Applied", "respond-async") // RFC 7240 section 3
		w.Header().Set("Location", h.base+"/api/run-ph-barrier-phase2")
		return h.writeRecord(w, r, http.StatusAccepted, started)
	}
	select {
	case <-started.Done():
	case <-r.Context().Done():
		return r.Context().Err()
	}

	h.renewWriteDeadline(w)
	if err := started.State().Err; err != nil {
		return runError(err)
	}
	return h.writeRecord(w, r, http.StatusOK, started)
}

func (h *Hub) writeRecord(w http.ResponseWriter, r *http.Request, status int, run *runs.Run) error {
	rec, err := h.record(r.Context(), run)
	if err != nil {
		return err
	}
	return reply.WriteJSON(w, status, rec)
}

func (h *Hub) showRun(w http.ResponseWriter, r *http.Request) error {
	if h.shared != nil {
		return h.showSharedRun(w, r)
	}
	latest := h.runs.Latest()
	if latest == nil {
		return reply.Fail(http.StatusNotFound, "no_run", "No run has started since the hub did. "+results.Hint)
	}
	return h.writeRecord(w, r, http.StatusOK, latest)
}

// sharedRecord is a record as the store of many hubs keeps it. What this hub does not look into stays as it is.
type sharedRecord struct {
	runRecord
	Parameters json.RawMessage `json:"parameters"`
	Error      json.RawMessage `json:"error"`
}

// showSharedRun shows the latest run of all hubs. If its hub died, the record says so from now on, on every hub.
func (h *Hub) showSharedRun(w http.ResponseWriter, r *http.Request) error {
	latest, err := h.shared.Latest(r.Context())
	if err != nil {
		return err
	}
	if latest.Record == nil {
		return reply.Fail(http.StatusNotFound, "no_run", "There has been no run on any hub. "+results.Hint)
	}
	if own := h.runs.Latest(); own != nil && latest.Running && own.ID == latest.ID {
		return h.writeRecord(w, r, http.StatusOK, own)
	}
	var rec sharedRecord
	if err := json.Unmarshal(latest.Record, &rec); err != nil {
		return err
	}
	if rec.Status == "running" && !latest.Running {
		rec.finishFor(latest, h.now())
		if record, err := json.Marshal(rec); err == nil {
			h.shared.Correct(r.Context(), latest, record)
		}
	}
	folder, err := h.published(r.Context())
	if err != nil {
		return err
	}
	rec.Files = folder.List()
	if started, err := time.Parse(time.RFC3339, rec.StartedAt); err == nil && rec.Status == "running" {
		rec.DurationMS = h.now().UnixMilli() - started.UnixMilli()
	}
	return reply.WriteJSON(w, http.StatusOK, rec)
}

// finishFor ends the record of a run whose hub died: before or after it had published the files.
func (rec *sharedRecord) finishFor(latest engine.Latest, now time.Time) {
	rec.Status, rec.Error = "failed", nil
	if latest.Published {
		rec.Status, rec.Progress, now = "succeeded", 1, latest.Time
	} else {
		rec.Error, _ = json.Marshal(runError(context.Canceled))
	}
	finished := reply.FormatTime(now)
	rec.FinishedAt = &finished
	if started, err := time.Parse(time.RFC3339, rec.StartedAt); err == nil {
		rec.DurationMS = now.UnixMilli() - started.UnixMilli()
	}
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
func readParameters(query url.Values) (phase2.Parameters, error) {
	p := phase2.Default()
	f := new(request.Form)
	limit := func(name string, value *int) {
		if given := query.Get(name); query.Has(name) {
			ph, ok := phase2.ParsePH([]byte(given))
			if !ok {
				f.Fault(name, "must be a decimal number")
			}
			*value = ph
		}
	}
	span := func(name string, value *time.Duration) {
		if given := query.Get(name); query.Has(name) {
			d, err := time.ParseDuration(given)
			if err != nil {
				f.Fault(name, "must be a duration such as 1h, 15m or 1h30m")
			}
			*value = d
		}
	}
	for name, values := range query { // a run with the defaults, or with one of two values, would pass for what was meant
		if !slices.Contains([]string{"low", "high", "interval", "max_gap"}, name) {
			f.Fault(name, "is no parameter of a run; there are low, high, interval and max_gap")
		} else if len(values) > 1 {
			f.Fault(name, "is there more than once")
		}
	}
	limit("low", &p.Low)
	limit("high", &p.High)
	span("interval", &p.Interval)
	span("max_gap", &p.MaxGap)
	if len(f.Faults) == 0 {
		p.Check(f.Fault)
	}
	return p, f.Err()
}

// readInput returns the readings that the request brings or, where it brings none, those of the hub.
func (h *Hub) readInput(w http.ResponseWriter, r *http.Request) (runs.Input, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	csv := err == nil && mediaType == "text/csv"
	if charset := params["charset"]; csv && charset != "" && !strings.EqualFold(charset, "utf-8") {
		csv = false
	}
	if csv {
		if err := request.CheckCoding(r); err != nil {
			return runs.Input{}, err
		}
		return h.readUpload(w, r)
	}
	n, err := r.Body.Read(make([]byte, 1))
	switch {
	case n > 0:
		return runs.Input{}, reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Send readings as text/csv in UTF-8, or no body at all for the hub's own readings.")
	case err != nil && err != io.EOF:
		return runs.Input{}, request.BodyError(err)
	}
	return h.ownReadings(), nil
}

// ownReadings are those of -readings, or the embedded ones.
func (h *Hub) ownReadings() runs.Input {
	path := h.settings.Readings
	if path == "" {
		return runs.Input{Name: embeddedReadings, Key: "embedded", Open: openEmbedded}
	}
	return runs.Input{Name: filepath.Base(path), Key: versionOf(path), Open: func() (io.ReadCloser, int64, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, 0, err
		}
		if info.Mode()&(fs.ModeDir|fs.ModeDevice|fs.ModeSocket) != 0 { // a device may have no end
			return nil, 0, errors.New("it is not a file")
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		return f, info.Size(), nil
	}}
}

// openEmbedded opens the embedded readings. It returns how many bytes they have.
func openEmbedded() (io.ReadCloser, int64, error) {
	packed, err := embedded.ReadFile(embeddedReadings + ".gz")
	if err != nil {
		return nil, 0, err
	}
	size := binary.LittleEndian.Uint32(packed[len(packed)-4:]) // RFC 1952 section 2.3.1, ISIZE
	in, err := gzip.NewReader(bytes.NewReader(packed))
	return in, int64(size), err
}

// versionOf tells one content of the file at path from another, as far as its name, size and date do.
func versionOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "file " + path
	}
	return fmt.Sprintf("file %s %d %d", path, info.Size(), info.ModTime().UnixNano())
}

// readUpload keeps the body on disk until its run has read it: only then is it known to be whole, and whether it
// equals the input of another run.
func (h *Hub) readUpload(w http.ResponseWriter, r *http.Request) (runs.Input, error) {
	if r.ContentLength > maxUpload {
		return runs.Input{}, request.BodyError(&http.MaxBytesError{Limit: maxUpload})
	}
	body := h.settings.timeouts.Body(w, http.MaxBytesReader(w, r.Body, maxUpload))
	kept, err := h.output.Keep(body, h.newID())
	if body.Err != nil {
		return runs.Input{}, request.BodyError(body.Err)
	}
	if err != nil {
		return runs.Input{}, err
	}
	return runs.Input{
		Name: "request",
		Key:  "upload " + kept.SHA256,
		Open: func() (io.ReadCloser, int64, error) {
			in, err := kept.Open()
			return in, kept.Size, err
		},
		Drop: kept.Drop,
	}, nil
}

// runOnce is a run before anybody can ask for one.
func (h *Hub) runOnce(ctx context.Context, queue *runs.Queue) error {
	p, _ := readParameters(nil)
	r, err := queue.Start(h.newID(), p, h.ownReadings())
	if err != nil {
		return err
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		return nil
	}
	if err := r.State().Err; err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	return nil
}

// logRun logs the end of a run.
func (h *Hub) logRun(r *runs.Run) {
	state := r.State()
	err := state.Err
	switch {
	case err == nil:
		h.log.Info("run succeeded", "id", r.ID, "source", r.Input.Name, "accepted", state.Screening.Accepted, "rows", state.Screening.Rows)
	case runError(err).Code == "internal":
		h.log.Error("run failed", "id", r.ID, "source", r.Input.Name, "cause", err)
	default:
		h.log.Warn("run failed", "id", r.ID, "source", r.Input.Name, "cause", err)
	}
}
