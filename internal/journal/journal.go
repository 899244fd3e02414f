// Package journal appends records to one file and replays them at the next start; it does not know what a record says.
//
// The format. A journal is a sequence of lines, each of them
//
//	payload ' ' checksum '\n'
//
// payload is any bytes but '\n'. checksum is 16 lower-case hexadecimal digits: the first 8 bytes of the SHA-256 of
// the previous line's 16 digits followed by the payload; for the first line, of 16 digits '0' followed by the
// payload. A line has 1 MiB at most, including its end. The first line is the header, whose payload is
//
//	"authhub-journal 1 " and letters and digits from a random source
//
// where 1 is the version of the format. Every further line is one record, in the order of the calls of Append. Each
// checksum depends on all lines before it, so a line that was changed, left out, doubled, moved or taken from another
// journal is found. The checksum guards against accidents, not against a person who can write the file.
//
// The end of the file. A record is acknowledged after its '\n' is synced. Bytes after the last '\n' were therefore
// never acknowledged: a crash came between. The next start cuts them off. There is one exception: if a whole record
// is followed by other bytes than '\n', its line end was there once and was damaged, and the record may have been
// acknowledged. Neither this nor any other damage is repaired.
//
// journal.go owns the open file and the group commit, replay.go the start, chain.go the checksums, compaction.go the
// compaction.
package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"sync"

	"authhub/internal/disk"
)

const (
	magic      = "authhub-journal "
	version    = "1 "
	fileMode   = 0o600
	maxLine    = 1 << 20 // bytes, with checksum and line end
	maxPayload = maxLine - sumLen - 2
)

// ErrFailed is wrapped by every error after which the journal takes no more records until a restart.
var ErrFailed = errors.New("the journal has failed and takes no more records until a restart")

// DamageError says that a journal is not what was written. The file stays as it was found.
type DamageError struct {
	Path   string
	Offset int64 // of the first byte of the damaged line
	Cause  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal %s is damaged in the line at byte %d: %s; nothing was changed; put back a sound copy, or take another folder", e.Path, e.Offset, e.Cause)
}

// State is what the records of a journal describe.
type State interface {
	// Replay applies one record. Only Open calls it. An error stops the start. The payload is valid during the call.
	Replay(payload []byte) error
	// LiveRecords returns how many records Snapshot would give. It is called without the state's lock.
	LiveRecords() int
	// Snapshot returns the records that rebuild the state. Each is valid until the next. Snapshot calls take at the
	// instant that the records describe, under the lock under which the state also calls Append.
	Snapshot(take func()) iter.Seq[[]byte]
}

// Journal is an append-only file of records. Only its committer goroutine touches the file. All records that are
// appended while it writes and syncs share the next write and sync. The state's lock is taken before mu, never after.
type Journal struct {
	path  string
	disk  disk.Disk
	state State
	log   *slog.Logger
	wake  chan struct{} // holds a token when there is a batch that the committer has not seen
	done  chan struct{} // closed when the committer has ended

	// Only the committer touches these.
	file      disk.File
	chain     chain  // at the last line in the file
	end       int64  // bytes in the file, all synced
	records   int    // in the file
	compactAt int    // no compaction with fewer records
	out       []byte // lines being written
	spare     []byte // the buffer of the batch before, to be used again
	closeErr  error

	mu      sync.Mutex
	pending []byte  // payloads not yet taken by the committer, each with '\n'
	batch   *Commit // of the pending records; nil if there are none
	err     error   // wraps ErrFailed; once set, it stays
	closed  bool
}

// Open replays the journal at path into state and makes it ready for Append. It makes an empty journal if there is
// none. It cuts an incomplete last line off and logs that. Any other damage is a *DamageError.
func Open(d disk.Disk, path string, state State, log *slog.Logger) (*Journal, error) {
	f, err := d.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		c := newChain()
		if err = disk.ReplaceFile(d, path, c.appendLine(nil, newHeader()), fileMode); err == nil {
			f, err = d.Open(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &Journal{
		path: path, disk: d, state: state, log: log, file: f, chain: newChain(), compactAt: minCompaction,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := j.restore(); err != nil {
		f.Close()
		return nil, err
	}
	go j.run()
	return j, nil
}

func newHeader() []byte {
	return []byte(magic + version + rand.Text())
}

// Append takes one record: a line of text without '\n', of 1 MiB at most. It copies the payload. It is called under
// the state's lock, so that the order of records is the order of changes, and it never waits for the disk. A payload
// that no line can hold makes the journal fail, because the state goes on without it.
func (j *Journal) Append(payload []byte) *Commit {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		if err := checkPayload(payload); err != nil {
			j.failLocked(err)
		}
	}
	switch {
	case j.err != nil:
		return settled(j.err)
	case j.closed:
		return settled(fmt.Errorf("%w: %w", ErrFailed, fs.ErrClosed))
	}
	j.pending = append(append(j.pending, payload...), '\n')
	return j.batchLocked()
}

// Check returns nil if the journal takes records and its file still has its name and its length. If not, the journal
// fails. It waits for the records that are being written. Errors: ErrFailed, ctx.Err().
func (j *Journal) Check(ctx context.Context) error {
	j.mu.Lock()
	err := j.err
	var batch *Commit
	if err == nil && !j.closed {
		batch = j.batchLocked()
	}
	j.mu.Unlock()
	if batch == nil {
		return err
	}
	return batch.Wait(ctx)
}

// batchLocked returns the batch that the committer takes next.
func (j *Journal) batchLocked() *Commit {
	if j.batch == nil {
		j.batch = &Commit{done: make(chan struct{})}
		select {
		case j.wake <- struct{}{}:
		default: // a token is there already
		}
	}
	return j.batch
}

func checkPayload(payload []byte) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("a record of %d bytes is longer than %d", len(payload), maxPayload)
	}
	if bytes.IndexByte(payload, '\n') >= 0 {
		return errors.New("a record contains a line end")
	}
	return nil
}

// Commit is the outcome that the records of one batch share.
type Commit struct {
	done chan struct{} // closed when err is final
	err  error
}

func settled(err error) *Commit {
	c := &Commit{done: make(chan struct{}), err: err}
	close(c.done)
	return c
}

// Wait returns nil when the record is synced. An error wraps ErrFailed and the cause; the record may then be there
// after a restart or not. If ctx ends first, Wait returns ctx.Err(), and the record is committed all the same.
func (c *Commit) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failed returns nil, or the first error of writing or syncing, wrapped in ErrFailed.
func (j *Journal) Failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Close commits what is pending and ends the committer. It returns the error of Failed, or the error of closing the
// file.
func (j *Journal) Close() error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.wake)
	}
	j.mu.Unlock()
	<-j.done
	if err := j.Failed(); err != nil {
		return err
	}
	return j.closeErr
}

// run is the committer.
func (j *Journal) run() {
	defer close(j.done)
	for range j.wake {
		if lines, batch := j.take(); batch != nil {
			j.settle(batch, j.write(lines))
		}
		if j.worthCompacting() {
			j.compact()
		}
	}
	j.closeErr = j.file.Close()
}

// take gives the pending records to the committer. They are valid until the next take.
func (j *Journal) take() (lines []byte, batch *Commit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, batch = j.pending, j.batch
	j.pending, j.batch = j.spare[:0], nil
	j.spare = reusable(lines)
	return lines, batch
}

// reusable returns b, or nil if an unusual load has made it too large to keep.
func reusable(b []byte) []byte {
	if cap(b) > maxLine {
		return nil
	}
	return b
}

// write appends records to the file, syncs it, and checks that the file still has its name: records in a file that was
// removed or replaced are lost to the next start. On an error it cuts off what it may have written, so that refused
// records don't come back with the next start. That is safe: everything before end is synced, and nothing after end
// has been acknowledged. If cutting fails as well, the next start finds whole records or an incomplete last line.
// A file that something else has changed is left as it is.
func (j *Journal) write(lines []byte) error {
	if err := j.seekEnd(); err != nil {
		return err
	}
	j.out = reusable(j.out)[:0]
	n := 0
	for line := range bytes.Lines(lines) {
		j.out = j.chain.appendLine(j.out, line[:len(line)-1])
		n++
	}
	err := j.commit(j.out)
	if err != nil {
		j.file.Truncate(j.end)
		return err
	}
	j.end += int64(len(j.out))
	j.records += n
	return nil
}

// seekEnd returns an error unless the file ends where the latest record does. Behind a shorter file, records would
// follow a hole, and the next start would refuse them.
func (j *Journal) seekEnd() error {
	size, err := j.file.Seek(0, io.SeekEnd)
	if err == nil && size != j.end {
		err = fmt.Errorf("something else changed the file: it has %d bytes instead of %d", size, j.end)
	}
	return err
}

func (j *Journal) commit(lines []byte) error {
	if len(lines) > 0 {
		if _, err := j.file.Write(lines); err != nil {
			return err
		}
		if err := j.file.Sync(); err != nil {
			return err
		}
	}
	return j.disk.Holds(j.path, j.file)
}

// settle gives the outcome of a batch to those who wait for it. A nil batch has nobody waiting.
func (j *Journal) settle(batch *Commit, err error) {
	if err != nil {
		j.log.Error("the journal has failed; it takes no more records until a restart", "path", j.path, "error", err)
		j.mu.Lock()
		err = j.failLocked(err)
		j.mu.Unlock()
	}
	if batch != nil {
		batch.err = err
		close(batch.done)
	}
}

// failLocked makes the journal and the pending records fail. The journal takes no more records from then on.
func (j *Journal) failLocked(cause error) error {
	if j.err == nil {
		j.err = fmt.Errorf("%w: %w", ErrFailed, cause)
	}
	if j.batch != nil {
		j.batch.err = j.err
		close(j.batch.done)
	}
	j.pending, j.batch = nil, nil
	return j.err
}
