// compaction.go owns the rewriting of a journal that consists mostly of dead records. The committer does it between
// two batches: appended records wait meanwhile, the calls of Append don't.

package journal

import (
	"bufio"
	"io"
	"iter"

	"authhub/internal/disk"
)

// minCompaction is how many records make a journal worth compacting.
const minCompaction = 1000

// worthCompacting reports whether more than half of the records are dead.
func (j *Journal) worthCompacting() bool {
	if j.records < j.compactAt || j.Failed() != nil {
		return false
	}
	return j.records-j.state.LiveRecords() > j.records/2
}

// compact replaces the file by a journal of the live records alone. A crash leaves the old or the new journal whole.
// If the new file can't be written, the old one goes on. If it can't take the old one's place, the journal fails.
// Either way the next compaction comes when the number of records has grown by half.
func (j *Journal) compact() {
	var lines []byte
	var batch *Commit // its records are in the snapshot and not yet in the old file
	next, err := j.writeSuccessor(func() { lines, batch = j.take() })
	if err == nil {
		j.settle(batch, j.adopt(next))
	} else {
		j.log.Warn("the journal could not be compacted; it stays as it is", "path", j.path, "error", err)
		if batch != nil {
			j.settle(batch, j.write(lines))
		}
	}
	j.compactAt = max(minCompaction, j.records+j.records/2)
}

// successor is the compacted journal that is to take the old one's place.
type successor struct {
	*disk.Replacement
	chain   chain
	end     int64
	records int
}

// writeSuccessor writes and syncs the compacted journal under a temporary name. On an error nothing is left of it.
func (j *Journal) writeSuccessor(take func()) (*successor, error) {
	r, err := disk.BeginReplacement(j.disk, j.path, fileMode)
	if err != nil {
		return nil, err
	}
	s := &successor{Replacement: r, chain: newChain()}
	if err := s.fill(j.state.Snapshot(take)); err != nil {
		r.Abandon()
		return nil, err
	}
	return s, nil
}

func (s *successor) fill(records iter.Seq[[]byte]) error {
	w := bufio.NewWriterSize(s.File, 64<<10)
	line := s.chain.appendLine(nil, newHeader())
	s.end = int64(len(line))
	w.Write(line) // an error stays with w until Flush
	for payload := range records {
		if err := checkPayload(payload); err != nil {
			return err
		}
		line = s.chain.appendLine(line[:0], payload)
		if _, err := w.Write(line); err != nil {
			return err
		}
		s.end += int64(len(line))
		s.records++
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return s.Sync()
}

// adopt gives the successor the journal's name and goes on with it. After an error it is unknown which of the two
// files has the name, so neither may be written to.
func (j *Journal) adopt(s *successor) (err error) {
	j.file.Close() // all of it is synced
	j.file = s.File
	reopen := !j.disk.RenamesOpen()
	if reopen {
		s.File.Close()
	}
	if err := s.Place(); err != nil {
		return err
	}
	if reopen {
		if j.file, err = j.disk.Open(j.path); err != nil {
			j.file = s.File // closed, but there
			return err
		}
		if _, err := j.file.Seek(s.end, io.SeekStart); err != nil {
			return err
		}
	}
	j.chain, j.end, j.records = s.chain, s.end, s.records
	return nil
}
