// replay.go owns the start of a journal: it reads every line, repairs an incomplete last one, and refuses any other
// damage.

package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"authhub/internal/disk"
)

// restore replays the file, cuts an incomplete last line off, and syncs what it has read: a process that was killed
// between a write or rename and the sync after it leaves data that only the operating system's memory holds.
func (j *Journal) restore() error {
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
	if err := disk.Settle(j.disk, j.path); err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	return nil
}

// replay applies every line to the state and returns how many bytes of an incomplete line stand after the last one.
func (j *Journal) replay() (tail int, err error) {
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

// replayHeader checks the first line. A new journal appears by a rename, so even a crash leaves no incomplete header.
func (j *Journal) replayHeader(line []byte) error {
	if len(line) == 0 {
		return j.damage("the file is empty")
	}
	rest, ok := bytes.CutPrefix(line, []byte(magic))
	if !ok {
		return j.damage("this is not the header of an authhub journal")
	}
	if !bytes.HasPrefix(rest, []byte(version)) {
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

func (j *Journal) replayRecord(line []byte) error {
	payload, ok := j.chain.accept(line[:len(line)-1])
	if !ok {
		return j.damage("the checksum does not match the record and the lines before it")
	}
	if err := j.state.Replay(payload); err != nil {
		return j.damage(fmt.Sprintf("the record does not apply: %v", err))
	}
	j.records++
	return nil
}

func (j *Journal) damage(cause string) error {
	return &DamageError{Path: j.path, Offset: j.end, Cause: cause}
}
