// The CSV input, cut into records: RFC 4180 with CRLF or LF, UTF-8, a byte order mark allowed.
//
// This reader exists because encoding/csv needs more time to cut the records than a whole run takes with this reader
// (BenchmarkEncodingCSV, BenchmarkCompute). encoding/csv also has no limit on the length of a record, and after a wrong
// quote it swallows good lines, which the contract wants read.
//
// Decisions where the contract leaves a choice:
//   - A blank line is a record of one empty field, so it is malformed. A line end after the last record does not begin
//     another record.
//   - One CR before the line end, or before the end of the input, belongs to the line end. Any other CR is data.
//   - A record has at most 64 KiB, including line ends inside quotes. If a record is longer, or its quoting is wrong (a
//     quote inside an unquoted field, text after a closing quote, a quote that is never closed), only its first line is
//     malformed and reading goes on at the next line. So one stray quote cannot swallow good readings.

package phase2

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// Header is the first line of every input.
const Header = "time,station,ph"

const (
	maxRecord  = 64 << 10      // bytes
	bufferSize = 2 * maxRecord // bytes
)

// record is one record of the input; its fields are valid until the next record is read. They are empty if the quoting
// is wrong or if there are not three fields. (In a line without quotes, ph holds everything after the second comma. No
// number contains a comma, so a line of four fields is still malformed.)
type record struct {
	line              int
	time, station, ph []byte
}

// recordReader cuts an input into records. Between two reads from src it allocates nothing.
type recordReader struct {
	ctx      context.Context
	src      io.Reader
	progress func(bytesRead int64) // may be nil
	buf      []byte
	pos, end int // buf[pos:end] is read and not yet consumed
	quote    int // position of the first quote at pos or after it, or end; stale when before pos
	read     int64
	eof      bool
	line     int // number of the line at pos
}

func newRecordReader(ctx context.Context, src io.Reader, progress func(int64)) *recordReader {
	return &recordReader{ctx: ctx, src: src, progress: progress, buf: make([]byte, bufferSize), line: 1}
}

// readHeader consumes the header line and a byte order mark before it. Errors: ErrUnusable for any other first line.
func (r *recordReader) readHeader() error {
	if err := r.fill(); err != nil {
		return err
	}
	if bytes.HasPrefix(r.buf[:r.end], []byte("\ufeff")) {
		r.pos = len("\ufeff")
	}

	first, _, _ := bytes.Cut(r.buf[r.pos:r.end], []byte{'\n'})
	var rec record
	err := r.next(&rec)
	if err != nil && err != io.EOF {
		return err
	}
	if err == io.EOF || string(rec.time) != "time" || string(rec.station) != "station" || string(rec.ph) != "ph" {
		return fmt.Errorf("%w: %s", ErrUnusable, explainHeader(first))
	}
	return nil
}

// next reads one record into rec. It returns io.EOF after the last one.
func (r *recordReader) next(rec *record) error {
	if r.end-r.pos <= maxRecord && !r.eof {
		if err := r.fill(); err != nil {
			return err
		}
	}
	window := r.buf[r.pos:r.end]
	if len(window) == 0 {
		return io.EOF
	}
	*rec = record{line: r.line}

	size := bytes.IndexByte(window, '\n') + 1
	line := window[:size]
	if size == 0 {
		line = window
	}
	if len(line) > maxRecord {
		return r.skipLine()
	}
	if r.nextQuote() >= r.pos+len(line) {
		rec.cut(trimLineEnd(line))
	} else if quoted := rec.cutQuoted(window[:min(len(window), maxRecord)], r.eof && len(window) <= maxRecord); quoted > 0 {
		line = window[:quoted]
		r.line += bytes.Count(line[:quoted-1], []byte{'\n'})
	}
	r.pos += len(line)
	r.line++
	return nil
}

// nextQuote returns the position of the next quote. Most inputs have no quotes, so it searches once per buffer, not
// once per line.
func (r *recordReader) nextQuote() int {
	if r.quote < r.pos {
		r.quote = r.end
		if n := bytes.IndexByte(r.buf[r.pos:r.end], '"'); n >= 0 {
			r.quote = r.pos + n
		}
	}
	return r.quote
}

// fill reads until more than a whole record is buffered or the input ends.
func (r *recordReader) fill() error {
	copy(r.buf, r.buf[r.pos:r.end])
	r.pos, r.end, r.quote = 0, r.end-r.pos, -1
	for idle := 0; r.end <= maxRecord && !r.eof; idle++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.read += int64(n)
		if n > 0 {
			idle = 0
		} else if err == nil && idle == 100 {
			err = io.ErrNoProgress
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read the readings: %w", err)
		}
		r.eof = err == io.EOF
		if r.progress != nil {
			r.progress(r.read)
		}
	}
	return nil
}

// skipLine consumes a line of any length.
func (r *recordReader) skipLine() error {
	r.line++
	for {
		if n := bytes.IndexByte(r.buf[r.pos:r.end], '\n'); n >= 0 {
			r.pos += n + 1
			return nil
		}
		r.pos = r.end
		if r.eof {
			return nil
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}

func trimLineEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// cut cuts a line without quotes into its fields.
func (rec *record) cut(line []byte) {
	first := utcSize
	if len(line) <= utcSize || line[utcSize] != ',' { // most times are this long
		first = bytes.IndexByte(line, ',')
	}
	second := bytes.IndexByte(line[first+1:], ',')
	if second < 0 && first == utcSize { // the time is shorter, and so malformed
		first = bytes.IndexByte(line, ',')
		second = bytes.IndexByte(line[first+1:], ',')
	}
	if first >= 0 && second >= 0 {
		second += first + 1
		rec.time, rec.station, rec.ph = line[:first], line[first+1:second], line[second+1:]
	}
}

// cutQuoted cuts the record that window begins with (RFC 4180 section 2, rules 5 to 7) and returns its size including
// the line end. It returns 0 and leaves window unchanged if the quoting is wrong or the record does not end within
// window. Otherwise it makes doubled quotes single in place.
func (rec *record) cutQuoted(window []byte, atEOF bool) (size int) {
	var fields [3][]byte
	var doubled [3]bool
	count, pos := 0, 0
	for {
		field, twice, after := quotedField(window, pos)
		if after < 0 {
			return 0
		}
		if count < len(fields) {
			fields[count], doubled[count] = field, twice
		}
		count++
		if pos = after; pos < len(window) && window[pos] == ',' {
			pos++
			continue
		}
		break
	}
	size = lineEnd(window, pos)
	if size < 0 || window[size-1] != '\n' && !atEOF {
		return 0
	}

	if count != len(fields) {
		return size
	}
	for i, field := range fields {
		if doubled[i] {
			fields[i] = halveQuotes(field)
		}
	}
	rec.time, rec.station, rec.ph = fields[0], fields[1], fields[2]
	return size
}

// quotedField returns the field at pos, quoted or not, whether it holds doubled quotes, and the position after it, or
// -1 if the closing quote is missing. An unquoted field ends before a comma, a line end or a quote. The caller refuses
// a record in which a quote follows an unquoted field.
func quotedField(window []byte, pos int) (field []byte, doubled bool, after int) {
	if pos == len(window) || window[pos] != '"' {
		after = pos
		for after < len(window) && window[after] != ',' && window[after] != '"' && lineEnd(window, after) < 0 {
			after++
		}
		return window[pos:after], false, after
	}
	start := pos + 1
	for pos = start; ; pos++ {
		n := bytes.IndexByte(window[pos:], '"')
		if n < 0 {
			return nil, false, -1
		}
		pos += n + 1
		if pos == len(window) || window[pos] != '"' {
			return window[start : pos-1], doubled, pos
		}
		doubled = true
	}
}

// lineEnd returns the position after the line end (or the end of the window) at pos, or -1 if there is no line end.
func lineEnd(window []byte, pos int) int {
	if pos < len(window) && window[pos] == '\r' {
		pos++
	}
	switch {
	case pos == len(window):
		return pos
	case window[pos] == '\n':
		return pos + 1
	}
	return -1
}

func halveQuotes(field []byte) []byte {
	kept := field[:0]
	for i := 0; i < len(field); i++ {
		kept = append(kept, field[i])
		if field[i] == '"' {
			i++
		}
	}
	return kept
}
