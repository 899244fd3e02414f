// Parsing on all cores: the input is cut into blocks at line ends, the blocks are parsed side by side, and their rows
// are handed on in the order of the input. So what is computed from the rows does not depend on the number of cores.
//
// A quote may hold a line end, and a line may be longer than a block. From the first block with either on, the input is
// read by one recordReader.

package phase2

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// row is a record after parsing.
type row struct {
	at     int64  // seconds since the Unix epoch
	name   uint32 // where the station's name is in the data of the block
	line   uint32 // from the first line of the block on
	ph     int16  // thousandths; 0 and 14000 stand for all that is beyond
	size   uint8  // of the name, in bytes
	parsed bool   // time, pH and the length of the name
}

// block is a part of the input: whole lines, and the rows that they hold.
type block struct {
	data   []byte
	rows   []row
	parsed bool   // the rows are there
	lines  int    // in data
	err    error  // what ended the input behind this block; io.EOF at its end
	why    string // the first row that is not parsed is not
}

// readRows hands the rows of an input after its header to use, block by block in the order of the input. Errors: those
// of the reader, of the context and of use.
func readRows(ctx context.Context, cores int, records *recordReader, use func(*block) error) error {
	one := false
	cut := func(b *block) bool {
		b.rows, b.parsed, b.lines, b.why = b.rows[:0], false, 0, ""
		if one = one || !records.nextBlock(b); one {
			b.readRecords(records)
		}
		return b.err == nil
	}
	newParser := func() func(*block) {
		c := new(clock)
		return func(b *block) {
			if !b.parsed {
				b.parse(c)
			}
		}
	}
	return inOrder(ctx, cores, cut, newParser, func(b *block) error {
		if err := use(b); err != nil || b.err == io.EOF {
			return err
		}
		return b.err
	})
}

// nextBlock reads whole lines into b. It reports false, and takes nothing, if they need a recordReader.
func (r *recordReader) nextBlock(b *block) bool {
	b.data = b.data[:0]
	if b.err = r.fill(); b.err != nil {
		return true
	}
	window := r.buf[r.pos:r.end]
	if !r.eof {
		window = window[:bytes.LastIndexByte(window, '\n')+1]
	}
	if len(window) == 0 && !r.eof || bytes.IndexByte(window, '"') >= 0 {
		return false
	}
	r.pos += len(window)
	spare := b.data[:cap(b.data)]
	if len(spare) == 0 {
		spare = make([]byte, bufferSize)
	}
	rest := copy(spare, r.buf[r.pos:r.end])
	b.data, r.buf, r.pos, r.end = window, spare, 0, rest
	if r.eof {
		b.err = io.EOF
	}
	return true
}

// parse fills b.rows from lines without quotes.
func (b *block) parse(c *clock) {
	rows := b.rows
	for at := 0; at < len(b.data); {
		rows = slices.Grow(rows, 1)[:len(rows)+1] // to append row{} and fill it in then took 8 % more for the whole input
		r := &rows[len(rows)-1]
		size := c.parseUsual(b.data[at:], r)
		if size == 0 {
			*r = row{}
			size = c.parseLine(b.data[at:], r)
		}
		r.line = uint32(len(rows) - 1)
		if !r.parsed && b.why == "" {
			b.why = explainLine(b.data[at : at+size])
		}
		r.name += uint32(at)
		at += size
	}
	b.rows, b.lines = rows, len(rows)
}

// parseLine parses the line without quotes that data begins with into r, and returns its size.
func (c *clock) parseLine(data []byte, r *row) int {
	line := data
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n+1]
	}
	var rec record
	if len(line) <= maxRecord {
		rec.cut(trimLineEnd(line))
	}
	r.fill(&rec, c)
	r.name = uint32(len(rec.time) + 1)
	return len(line)
}

// parseUsual is parseLine for a line in the form that most loggers write: a UTC time without a fraction, a station, and
// a pH of one digit, a point and up to three digits. It looks at each byte once. For any other line it returns 0.
func (c *clock) parseUsual(data []byte, r *row) int {
	const name = utcSize + 1 // where it begins
	if len(data) < name || data[utcSize-1] != 'Z' || data[utcSize] != ',' {
		return 0
	}
	end := name
	for end < len(data) && data[end] != ',' && end-name <= maxStation {
		if data[end] == '\n' {
			return 0
		}
		end++
	}
	if end == name || end-name > maxStation || len(data)-end < len(",7.123\n") {
		return 0
	}
	rest := data[end : end+len(",7.123\n")]
	whole, tenths := uint(rest[1])-'0', uint(rest[3])-'0'
	if rest[2] != '.' || whole > 9 || tenths > 9 {
		return 0
	}
	ph, n := whole*1000+tenths*100, len(",7.1")
	for unit := uint(10); rest[n] != '\n'; unit /= 10 {
		digit := uint(rest[n]) - '0'
		if n++; digit > 9 || unit == 0 {
			return 0
		}
		ph += digit * unit
	}
	at, ok := c.parseAgain(data[:utcSize])
	if !ok {
		return 0
	}
	r.at, r.name, r.ph, r.size, r.parsed = at, uint32(name), int16(ph), uint8(end-name), true
	return end + n + 1
}

// readRecords fills b with the next records, one by one.
func (b *block) readRecords(records *recordReader) {
	b.data, b.parsed = b.data[:0], true
	first := records.line
	var c clock
	var rec record
	for len(b.rows) < 4096 {
		if b.err = records.next(&rec); b.err != nil {
			break
		}
		r := row{line: uint32(rec.line - first), name: uint32(len(b.data))}
		r.fill(&rec, &c)
		if !r.parsed && b.why == "" {
			b.why = explainRecord(&rec)
		}
		b.data = append(b.data, rec.station[:r.size]...)
		b.rows = append(b.rows, r)
	}
	b.lines = records.line - first
}

// fill fills in what the record says, but not its place.
func (r *row) fill(rec *record, c *clock) {
	at, timeOK := c.parse(rec.time)
	ph, phOK := ParsePH(rec.ph)
	if timeOK && phOK && len(rec.station) > 0 && len(rec.station) <= maxStation {
		r.at, r.ph, r.size, r.parsed = at, int16(min(max(ph, 0), scaleEnd)), uint8(len(rec.station)), true
	}
}
