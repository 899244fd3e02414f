package main

// journal.go owns the bytes of the journal: format, offsets, group commit. It does not know what a record says;
// checksums are computed in chain.go, compaction is in compaction.go, the replacement of files in durable.go.
//
// The format. A journal is a sequence of lines, each of them
//
//	payload ' ' checksum '\n'
//
// payload is any bytes but '\n'. checksum is 16 lower-case hexadecimal digits: the first 8 bytes of the SHA-256 of the previous
// line's 16 digits followed by the payload; for the first line, of 16 digits '0' followed by the payload. A line has 1 MiB at most,
// its end included. The first line is the header, whose payload is
//
//	"authhub-journal 1 " and letters and digits from a random source
//
// where 1 is the version of the format. Every further line is one record, in the order of the calls of append. Because each checksum
// depends on all lines before it, a line that is changed, left out, doubled, moved or taken from another journal is found. The
// checksum guards against accidents, not against somebody who can write the file.
//
// The end of the file. A record is acknowledged after its '\n' is synced, so bytes after the last '\n' were never acknowledged: a
// crash came between. They are cut off at the start, with one exception: where a whole record stands before other bytes than '\n', its
// line end was there once and has been damaged, and the record may be acknowledged. Neither this nor any other damage is repaired.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"

	"authhub/internal/disk"
)

const (
	journalMagic   = "authhub-journal "
	journalVersion = "1 "
	journalMode    = 0o600
	maxLine        = 1 << 20 // bytes, with checksum and line end
	maxPayload     = maxLine - sumLen - 2
)

// errJournalFailed is in every error that says that the journal takes no more records until a restart.
var errJournalFailed = errors.New("the journal has failed and takes no more records until a restart")

// damageError says that a journal isn't what was written. The file has been left as it was found.
type damageError struct {
	Path   string
	Offset int64 // of the first byte of the damaged line
	Cause  string
}

func (e *damageError) Error() string {
	return fmt.Sprintf("journal %s is damaged in the line at byte %d: %s; nothing was changed", e.Path, e.Offset, e.Cause)
}

// journaled is the state behind a journal.
type journaled interface {
	// apply replays one record, at the start only; an error stops the start. The payload is valid during the call.
	apply(payload []byte) error
	// liveRecords is how many records snapshot would give. Called without the state's lock.
	liveRecords() int
	// snapshot returns the records that rebuild the state; each is valid until the next. It calls take at the instant that they
	// describe: under the lock under which the state also calls append.
	snapshot(take func()) iter.Seq[[]byte]
}

// journal is an append-only file of records. Its one committer goroutine is alone in touching the file: all records that are
// appended while it writes and syncs share the next write and sync. The state's lock is taken before mu, never after.
type journal struct {
	path  string
	disk  disk.Disk
	state journaled
	log   *slog.Logger
	wake  chan struct{} // holds a token when there is a batch that the committer hasn't seen
	done  chan struct{} // closed when the committer is gone

	// The committer's own.
	file      disk.File
	chain     chain  // at the last line in the file
	end       int64  // bytes in the file, all synced
	records   int    // in the file
	compactAt int    // no compaction with fewer records
	out       []byte // lines being written
	spare     []byte // the pending of the batch before
	closeErr  error

	mu      sync.Mutex
	pending []byte  // payloads not yet taken by the committer, each with '\n'
	batch   *commit // of the pending records; nil if there are none
	err     error   // wraps errJournalFailed; stays
	closed  bool
}

// openJournal replays the journal at path into state and makes it ready for append; it makes an empty one if there is none. An
// incomplete last line is cut off and logged. Any other damage is a *damageError.
func openJournal(path string, state journaled, log *slog.Logger) (*journal, error) {
	return openJournalOn(disk.OS{}, path, state, log)
}

func openJournalOn(d disk.Disk, path string, state journaled, log *slog.Logger) (*journal, error) {
	f, err := d.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		c := newChain()
		if err = disk.ReplaceFile(d, path, c.appendLine(nil, newHeader()), journalMode); err == nil {
			f, err = d.Open(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &journal{
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
	return []byte(journalMagic + journalVersion + rand.Text())
}

// restore replays the file, cuts an incomplete last line off and makes durable what it has read: a process that was killed
// between its write and its sync, or between its rename and its sync, leaves what only the operating system's memory holds.
func (j *journal) restore() error {
	tail, err := j.replay()
	if err != nil {
		return err
	}
	if tail > 0 {
		if err := j.file.Truncate(j.end); err != nil {
			return fmt.Errorf("cutting the incomplete last line off the journal: %w", err)
		}
		j.log.Warn("cut an incomplete last line off the journal", "path", j.path, "offset", j.end, "bytes", tail)
	}
	if _, err := j.file.Seek(j.end, io.SeekStart); err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}
	if err := disk.RemoveLeftovers(j.disk, j.path); err != nil {
		return fmt.Errorf("removing temporary files of the journal: %w", err)
	}
	if err := disk.SyncFolder(j.disk, filepath.Dir(j.path)); err != nil {
		return fmt.Errorf("syncing the folder of the journal: %w", err)
	}
	return nil
}

// replay applies every line to the state and returns how many bytes of an incomplete line stand after the last one.
func (j *journal) replay() (tail int, err error) {
	r := bufio.NewReaderSize(j.file, maxLine)
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return 0, j.damage("the line is longer than 1 MiB")
		}
		if err != nil && err != io.EOF {
			return 0, fmt.Errorf("reading the journal: %w", err)
		}
		switch ended := err == nil; {
		case first:
			err = j.replayHeader(line)
		case ended:
			err = j.replayRecord(line)
		case j.chain.startsRecord(line):
			return 0, j.damage("a whole record has another byte in the place of its line end")
		default:
			return len(line), nil
		}
		if err != nil {
			return 0, err
		}
		j.end += int64(len(line))
	}
}

// replayHeader checks the first line. Since a journal comes into being by a rename, not even a crash leaves an incomplete one.
func (j *journal) replayHeader(line []byte) error {
	if len(line) == 0 {
		return j.damage("the file is empty")
	}
	rest, ok := bytes.CutPrefix(line, []byte(journalMagic))
	if !ok {
		return j.damage("this is not the header of an authhub journal")
	}
	if !bytes.HasPrefix(rest, []byte(journalVersion)) {
		return j.damage("the version of the format is not 1, the one that this program reads")
	}
	body, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok {
		return j.damage("the header has no line end")
	}
	if _, ok := j.chain.accept(body); !ok {
		return j.damage("the checksum of the header does not match")
	}
	return nil
}

func (j *journal) replayRecord(line []byte) error {
	payload, ok := j.chain.accept(line[:len(line)-1])
	if !ok {
		return j.damage("the checksum does not match the record and the lines before it")
	}
	if err := j.state.apply(payload); err != nil {
		return j.damage(fmt.Sprintf("the record does not apply: %v", err))
	}
	j.records++
	return nil
}

func (j *journal) damage(cause string) error {
	return &damageError{Path: j.path, Offset: j.end, Cause: cause}
}

// append takes one record: a line of text without '\n', 1 MiB at most, which it copies. It is called under the state's lock, so that
// the order of records is the order of changes, and never waits for the disk. A payload that no line can hold makes the journal fail,
// since the state goes on without it.
func (j *journal) append(payload []byte) *commit {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		if err := checkPayload(payload); err != nil {
			j.failLocked(err)
		}
	}
	switch {
	case j.err != nil:
		return settledCommit(j.err)
	case j.closed:
		return settledCommit(fmt.Errorf("%w: %w", errJournalFailed, fs.ErrClosed))
	}
	if j.batch == nil {
		j.batch = &commit{done: make(chan struct{})}
		select {
		case j.wake <- struct{}{}:
		default: // a token is there already
		}
	}
	j.pending = append(append(j.pending, payload...), '\n')
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

// commit is the outcome that the records of one batch share.
type commit struct {
	done chan struct{} // closed when err is final
	err  error
}

func settledCommit(err error) *commit {
	c := &commit{done: make(chan struct{}), err: err}
	close(c.done)
	return c
}

// wait returns nil once the record is synced, or an error that wraps errJournalFailed and the cause: the record may then be there
// after a restart or not. It returns ctx.Err() if ctx ends first, and the record is committed all the same.
func (c *commit) wait(ctx context.Context) error {
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

// failed returns nil, or the first failure to write or sync, wrapped in errJournalFailed.
func (j *journal) failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// close commits what is pending and ends the committer. It returns failed(), or the error of closing the file.
func (j *journal) close() error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.wake)
	}
	j.mu.Unlock()
	<-j.done
	if err := j.failed(); err != nil {
		return err
	}
	return j.closeErr
}

// run is the committer.
func (j *journal) run() {
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

// take hands the pending records over to the committer. They are valid until the next take.
func (j *journal) take() (lines []byte, batch *commit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, batch = j.pending, j.batch
	j.pending, j.batch = j.spare[:0], nil
	j.spare = reusable(lines)
	return lines, batch
}

// reusable lets go of a buffer that an unusual load has made large.
func reusable(b []byte) []byte {
	if cap(b) > maxLine {
		return nil
	}
	return b
}

// write appends records to the file and syncs it. On an error it takes back what it may have written, so that refused records don't
// come back with the next start. That is safe: everything before end is synced, and nothing behind it has been acknowledged. Should
// this fail as well, the next start meets whole records or an incomplete last line.
func (j *journal) write(lines []byte) error {
	j.out = reusable(j.out)[:0]
	n := 0
	for line := range bytes.Lines(lines) {
		j.out = j.chain.appendLine(j.out, line[:len(line)-1])
		n++
	}
	_, err := j.file.Write(j.out)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.file.Truncate(j.end)
		return err
	}
	j.end += int64(len(j.out))
	j.records += n
	return nil
}

// settle tells those who wait for a batch (nil if nobody does) how it went.
func (j *journal) settle(batch *commit, err error) {
	if err != nil {
		j.log.Error("the journal has failed, no more records until a restart", "path", j.path, "error", err)
		j.mu.Lock()
		err = j.failLocked(err)
		j.mu.Unlock()
	}
	if batch != nil {
		batch.err = err
		close(batch.done)
	}
}

// failLocked makes the journal fail for good, along with the records that are pending.
func (j *journal) failLocked(cause error) error {
	if j.err == nil {
		j.err = fmt.Errorf("%w: %w", errJournalFailed, cause)
	}
	if j.batch != nil {
		j.batch.err = j.err
		close(j.batch.done)
	}
	j.pending, j.batch = nil, nil
	return j.err
}
