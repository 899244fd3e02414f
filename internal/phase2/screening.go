// Phase 1: screens every record of the input (csv.go) before phase 2 (barrier.go) computes with it. The grammar of
// times and numbers is here.

package phase2

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// ErrUnusable says that no results can be computed from an input. Errors that wrap it add the reason, in a sentence for
// people.
var ErrUnusable = errors.New("unusable readings")

const (
	maxStation   = 64      // bytes of a station's name
	maxStations  = 100_000 // bounds memory, whatever the input
	keptRejected = 10
)

// Screening counts what became of every row. The run record shows all of it, impact_phi.json all but FirstRejected.
type Screening struct {
	Rows     int64 `json:"rows"`
	Accepted int64 `json:"accepted"`
	Rejected struct {
		Malformed  int64 `json:"malformed"`
		Saturated  int64 `json:"saturated"`
		OutOfOrder int64 `json:"out_of_order"`
	} `json:"rejected"`
	FirstRejected []Rejection `json:"first_rejected"`
}

// Rejection names a rejected record by the number of its first line; the header stands on line 1.
type Rejection struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func (s *Screening) reject(count *int64, line int, reason string) {
	*count++
	if len(s.FirstRejected) < keptRejected {
		s.FirstRejected = append(s.FirstRejected, Rejection{line, reason})
	}
}

// screen hands every accepted reading to c.add, in the order of the input, and counts the rejected ones.
// Errors: ErrUnusable for a wrong header, or too many stations or alerts; errors of the context and of the reader.
func (c *computation) screen(ctx context.Context, records *recordReader) error {
	if err := records.readHeader(); err != nil {
		return err
	}
	line := records.line
	return readRows(ctx, c.cores, records, func(b *block) error {
		if c.table == nil { // it takes 3 ms, in which other cores parse the next blocks
			c.table = newTable(c.p.Low, c.p.High)
		}
		for i := range b.rows {
			if err := c.screenRow(b, &b.rows[i], line); err != nil {
				return err
			}
		}
		c.Screening.Rows += int64(len(b.rows))
		line += b.lines
		if c.raised.len() > maxAlerts {
			return fmt.Errorf("%w: up to line %d there are more than the %d alerts that a run takes; a larger max_gap or wider limits give fewer",
				ErrUnusable, line-1, maxAlerts)
		}
		return nil
	})
}

// screenRow screens a row of a block that begins at that line. Nearly all rows pass the one condition: to ask for each
// reason to reject a row, one after the other, took 4 % more for the whole input.
func (c *computation) screenRow(b *block, r *row, line int) error {
	st := c.lookUp(b.data[r.name:][:r.size])
	if st == nil || !r.parsed || r.ph <= 0 || r.ph >= scaleEnd || r.at <= st.last {
		var err error
		if st, err = c.screenUnusual(b, r, st, line+int(r.line)); st == nil {
			return err
		}
	}
	c.Screening.Accepted++
	c.add(st, r.at, int(r.ph))
	return nil
}

// screenUnusual screens the row at that line if st, the station of its name, is nil, or if the row is to be rejected.
// It returns the station of a row that is accepted.
func (c *computation) screenUnusual(b *block, r *row, st *station, line int) (*station, error) {
	s := &c.Screening
	name := b.data[r.name:][:r.size]
	switch {
	case !r.parsed:
		c.explain(line, "malformed", b.why)
		s.reject(&s.Rejected.Malformed, line, "malformed")
	case st == nil && !utf8.Valid(name):
		c.explain(line, "malformed", "the station is not UTF-8")
		s.reject(&s.Rejected.Malformed, line, "malformed")
	case r.ph <= 0 || r.ph >= scaleEnd:
		c.explain(line, "saturated", "its pH is not between 0 and 14, so the probe was at the end of its scale")
		s.reject(&s.Rejected.Saturated, line, "saturated")
	case st != nil:
		s.reject(&s.Rejected.OutOfOrder, line, "out_of_order")
	case len(c.stations) == maxStations:
		return nil, fmt.Errorf("%w: line %d names one station too many, a run takes at most %d", ErrUnusable, line, maxStations)
	default:
		return c.newStation(string(name), r.at), nil
	}
	return nil, nil
}

// explain keeps why the first row that is rejected is rejected.
func (c *computation) explain(line int, reason, why string) {
	if c.firstRejected == "" {
		c.firstRejected = fmt.Sprintf("line %d is %s: %s", line, reason, why)
	}
}

const utcSize = len("2006-01-02T15:04:05Z")

// clock parses times. It remembers the latest date, because most readings have the same date as the reading before.
type clock struct {
	date     [10]byte
	midnight int64

	latest [utcSize]byte // and the time that parseAgain has found last
	sec    int64
}

// parseAgain is parse for a time of this size. Where stations take turns, most readings have the same time as the
// reading before.
func (c *clock) parseAgain(b []byte) (sec int64, ok bool) {
	if string(b) == string(c.latest[:]) {
		return c.sec, true
	}
	if sec, ok = c.parse(b); ok {
		c.latest, c.sec = [utcSize]byte(b), sec
	}
	return sec, ok
}

// parse returns an RFC 3339 time (section 5.6, read to the letter: "T" and "Z" in either case, a fraction of any
// length, offsets to 23:59) in seconds since the Unix epoch, without its fraction. It refuses a leap second (60), which
// Unix time cannot express, and any time outside the years 0000 to 9999 in UTC.
func (c *clock) parse(b []byte) (sec int64, ok bool) {
	if len(b) < utcSize || b[10]|0x20 != 't' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	if date := [10]byte(b); date != c.date || c.date[0] == 0 {
		midnight, ok := parseDate(date)
		if !ok {
			return 0, false
		}
		c.date, c.midnight = date, midnight
	}
	hour, minute, second := twoDigits(b[11:]), twoDigits(b[14:]), twoDigits(b[17:])
	if hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	sec = c.midnight + int64(hour*3600+minute*60+second)
	if len(b) == utcSize && b[19] == 'Z' {
		return sec, true
	}

	offset, ok := parseOffset(skipFraction(b[19:]))
	sec -= offset
	return sec, ok && sec >= year0 && sec < year10000
}

// twoDigits returns the number that the first two bytes spell, or 100 if they are not two digits.
func twoDigits(b []byte) uint {
	tens, ones := uint(b[0])-'0', uint(b[1])-'0'
	if tens > 9 || ones > 9 {
		return 100
	}
	return tens*10 + ones
}

const (
	year0     = -62_167_219_200
	year10000 = 253_402_300_800
)

// parseDate returns the midnight that begins a date of the proleptic Gregorian calendar.
func parseDate(b [10]byte) (midnight int64, ok bool) {
	century, year, month, day := twoDigits(b[0:]), twoDigits(b[2:]), twoDigits(b[5:]), twoDigits(b[8:])
	if century > 99 || year > 99 || month > 12 || day > 31 || b[4] != '-' || b[7] != '-' {
		return 0, false
	}
	t := time.Date(int(century*100+year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	return t.Unix(), t.Month() == time.Month(month) && t.Day() == int(day) // time.Date carries 30 February over into March
}

// skipFraction returns b without the fraction of a second it may begin with.
func skipFraction(b []byte) []byte {
	if b[0] != '.' {
		return b
	}
	n := 1
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	if n == 1 {
		return nil
	}
	return b[n:]
}

// parseOffset returns an offset from UTC in seconds.
func parseOffset(b []byte) (seconds int64, ok bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) != len("+00:00") || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	hour, minute := twoDigits(b[1:]), twoDigits(b[4:])
	seconds = int64(hour*3600 + minute*60)
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, hour <= 23 && minute <= 59
}

// hugePH, in thousandths, stands for every larger number.
const hugePH = 100_000_000 // ten times as much still fits 32 bits

// ParsePH returns a decimal number in thousandths, rounded half up. It rounds the decimal digits, so 7.0005 becomes
// 7001 although the nearest binary fraction is below it. A number of 100,000 or more becomes 100,000. The grammar is
// [+-]? ( digits [ "." digits* ] | "." digits ) ( [eE] [+-]? digits )?
func ParsePH(s []byte) (milli int, ok bool) {
	if milli, ok := parseShortPH(s); ok {
		return milli, true
	}

	negative := len(s) > 0 && s[0] == '-'
	if negative || len(s) > 0 && s[0] == '+' {
		s = s[1:]
	}
	digits, point, size := 0, -1, 0
scan:
	for ; size < len(s); size++ {
		switch c := s[size]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' && point < 0:
			point = digits
		default:
			break scan
		}
	}
	if point < 0 {
		point = digits
	}
	exponent, ok := parseExponent(s[size:])
	if !ok || digits == 0 {
		return 0, false
	}
	return roundDigits(s[:size], point+exponent+3, negative), true
}

// parseShortPH parses the form that probes write: one digit, a point, one to three digits.
func parseShortPH(s []byte) (milli int, ok bool) {
	if len(s) < 3 || len(s) > 5 || s[1] != '.' {
		return 0, false
	}
	whole := uint(s[0]) - '0'
	if whole > 9 {
		return 0, false
	}
	milli, unit := int(whole)*1000, 100
	for _, c := range s[2:] {
		digit := uint(c) - '0'
		if digit > 9 {
			return 0, false
		}
		milli += int(digit) * unit
		unit /= 10
	}
	return milli, true
}

// parseExponent returns 0 if there is no exponent. It limits an exponent to a hundred million.
func parseExponent(s []byte) (exponent int, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	if s[0]|0x20 != 'e' {
		return 0, false
	}
	s = s[1:]
	sign := 1
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		exponent = min(exponent*10+int(c-'0'), 100_000_000)
	}
	return sign * exponent, len(s) > 0
}

// roundDigits returns the number that the first keep digits spell (padded with zeros if there are fewer), rounded half
// up by the digits after them. A negative number is rounded half up too, which is towards zero.
func roundDigits(mantissa []byte, keep int, negative bool) int {
	n, half, rest := 0, 0, 0
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		digit := int(c - '0')
		switch {
		case keep > 0:
			n = min(n*10+digit, hugePH)
		case keep == 0:
			half = digit
		default:
			rest |= digit
		}
		keep--
	}
	for ; keep > 0 && n > 0 && n < hugePH; keep-- {
		n = min(n*10, hugePH)
	}

	if half > 5 || half == 5 && (!negative || rest > 0) {
		n = min(n+1, hugePH)
	}
	if negative {
		return -n
	}
	return n
}
