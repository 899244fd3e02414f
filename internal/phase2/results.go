// Package phase2 turns readings of pH into three results: the same bytes for the same input on every platform.
//
// results.go owns the JSON of the three files. Each file is one object with one point, station or alert per line, so
// that it is readable in a terminal and a diff shows what changed. Numbers are rounded as whole numbers (half up) and
// written in their shortest decimal form.
package phase2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Source identifies the input of a run. All three files show it.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Results are the content of the three files of one run.
type Results struct {
	Screening Screening
	p         Parameters
	stations  []*station
	alerts    []*alert
	cores     int // that compute and write
}

// WriteBarrier writes barrier_phi_phase2.json.
func (res *Results) WriteBarrier(w io.Writer, src Source) error {
	var spans []span
	for i, st := range res.stations {
		spans = appendSpans(spans, i, st.points.len())
	}
	return res.writeFile(w, src, func(out *bufio.Writer) {
		out.WriteString(`"stations":`)
		res.writeArray(out, spans, func(f *formatter, b []byte, s span) []byte {
			st := res.stations[s.of]
			if s.from == 0 {
				b = append(b, separator(s.of)...)
				b = append(b, `{"station":`...)
				b = append(b, st.quoted...)
				b = append(b, `,"points":[`+"\n"...)
			}
			points := st.points.parts[s.from/spanSize]
			for i := range points {
				b = append(b, separator(s.from+i)...)
				b = f.appendPoint(b, &points[i])
			}
			if s.to == st.points.len() {
				b = append(b, "\n]}"...)
			}
			return b
		})
	})
}

func (f *formatter) appendPoint(b []byte, p *point) []byte {
	b = append(b, `{"start":`...)
	b = f.appendTime(b, p.start)
	b = appendNumber(b, `,"readings":`, int64(p.readings), 0)
	b = appendNumber(b, `,"ph_min":`, int64(p.min), 3)
	b = appendNumber(b, `,"ph_mean":`, int64(p.mean), 3)
	b = appendNumber(b, `,"ph_max":`, int64(p.max), 3)
	if p.outside > 0 {
		b = append(b, `,"phi":null`...)
	} else {
		b = appendNumber(b, `,"phi":`, int64(p.phi), 4)
	}
	b = appendNumber(b, `,"outside":`, int64(p.outside), 0)
	return append(b, '}')
}

// WriteImpact writes impact_phi.json.
func (res *Results) WriteImpact(w io.Writer, src Source) error {
	return res.writeFile(w, src, func(out *bufio.Writer) {
		out.Write(res.Screening.appendCounts(append(out.AvailableBuffer(), `"screening":`...)))
		out.WriteString(",\n\"stations\":")
		res.writeArray(out, appendSpans(nil, 0, len(res.stations)), func(f *formatter, b []byte, s span) []byte {
			for i := s.from; i < s.to; i++ {
				b = append(b, separator(i)...)
				b = f.appendStation(b, res.stations[i])
			}
			return b
		})
	})
}

func (s *Screening) appendCounts(b []byte) []byte {
	b = appendNumber(b, `{"rows":`, s.Rows, 0)
	b = appendNumber(b, `,"accepted":`, s.Accepted, 0)
	b = appendNumber(b, `,"rejected":{"malformed":`, s.Rejected.Malformed, 0)
	b = appendNumber(b, `,"saturated":`, s.Rejected.Saturated, 0)
	b = appendNumber(b, `,"out_of_order":`, s.Rejected.OutOfOrder, 0)
	return append(b, "}}"...)
}

func (f *formatter) appendStation(b []byte, st *station) []byte {
	b = append(b, `{"station":`...)
	b = append(b, st.quoted...)
	b = append(b, `,"first":`...)
	b = f.appendTime(b, st.first)
	b = append(b, `,"last":`...)
	b = f.appendTime(b, st.last)
	b = appendNumber(b, `,"readings":`, st.readings, 0)
	b = appendNumber(b, `,"monitored_h":`, thousandthsOfHour(st.monitored), 3)

	b = appendNumber(b, `,"ph":{"min":`, int64(st.min), 3)
	b = appendNumber(b, `,"p05":`, st.quantiles.nearestRank(st.readings, 5), 3)
	b = appendNumber(b, `,"median":`, st.quantiles.nearestRank(st.readings, 50), 3)
	b = appendNumber(b, `,"p95":`, st.quantiles.nearestRank(st.readings, 95), 3)
	b = appendNumber(b, `,"max":`, int64(st.max), 3)
	b = appendNumber(b, `,"mean":`, int64(st.mean), 3)

	if st.inside == 0 {
		b = append(b, `},"phi_mean":null`...)
	} else {
		b = appendNumber(b, `},"phi_mean":`, roundPhi(st.phi/float64(st.inside)), 4)
	}
	b = st.below.appendJSON(append(b, `,"below":`...), st.monitored)
	b = st.above.appendJSON(append(b, `,"above":`...), st.monitored)
	b = append(b, `,"level":"`...)
	b = append(b, st.level()...)
	return append(b, `"}`...)
}

func (o *outside) appendJSON(b []byte, monitored int64) []byte {
	b = appendNumber(b, `{"hours":`, thousandthsOfHour(o.seconds), 3)
	b = appendNumber(b, `,"share":`, divideHalfUp(o.seconds*10_000, max(monitored, 1)), 4)
	b = appendNumber(b, `,"dose_ph_h":`, divideHalfUp(o.dose, 3600), 3)
	return append(b, '}')
}

// level grades the share of the monitored time outside the limits, before rounding: 0, to 1 %, to 5 %, more.
func (st *station) level() string {
	switch outside := st.below.seconds + st.above.seconds; {
	case outside == 0:
		return "none"
	case outside*100 <= st.monitored:
		return "low"
	case outside*20 <= st.monitored:
		return "moderate"
	default:
		return "high"
	}
}

// WriteAlerts writes alertesph.json.
func (res *Results) WriteAlerts(w io.Writer, src Source) error {
	return res.writeFile(w, src, func(out *bufio.Writer) {
		out.WriteString(`"alerts":`)
		res.writeArray(out, appendSpans(nil, 0, len(res.alerts)), func(f *formatter, b []byte, s span) []byte {
			for i := s.from; i < s.to; i++ {
				a := res.alerts[i]
				b = append(b, separator(i)...)
				b = f.appendAlert(b, a, res.stations[a.station], res.p.critical(a))
			}
			return b
		})
	})
}

func (f *formatter) appendAlert(b []byte, a *alert, st *station, critical bool) []byte {
	severity := "warning"
	if critical {
		severity = "critical"
	}
	kind := a.kind.String()
	f.start = f.appendTime(f.start[:0], a.start)
	b = append(b, `{"id":"`...)
	b = f.appendID(b, st.name, kind)
	b = append(b, `","station":`...)
	b = append(b, st.quoted...)
	b = append(b, `,"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","severity":"`...)
	b = append(b, severity...)
	b = append(b, `","start":`...)
	b = append(b, f.start...)
	b = append(b, `,"end":`...)
	b = f.appendTime(b, a.end)
	b = appendNumber(b, `,"duration_s":`, a.end-a.start, 0)
	b = appendNumber(b, `,"readings":`, a.readings, 0)
	if a.kind == kindGap {
		b = append(b, `,"worst_ph":null,"worst_at":null`...)
	} else {
		b = appendNumber(b, `,"worst_ph":`, int64(a.worst), 3)
		b = append(b, `,"worst_at":`...)
		b = f.appendTime(b, a.worstAt)
	}
	b = append(b, `,"open":`...)
	b = strconv.AppendBool(b, a.open)
	return append(b, '}')
}

// appendID appends 16 hex digits of the SHA-256 of station, kind and f.start. No two alerts of a run share all three.
func (f *formatter) appendID(b []byte, station, kind string) []byte {
	f.hashed = append(append(f.hashed[:0], station...), '\n')
	f.hashed = append(append(f.hashed, kind...), '\n')
	f.hashed = append(f.hashed, f.start[1:len(f.start)-1]...) // without its quotes
	sum := sha256.Sum256(f.hashed)
	return hex.AppendEncode(b, sum[:8])
}

func (k alertKind) String() string { return [...]string{"gap", "high", "low"}[k] }

// writeFile writes one file: the beginning that all three share, then the members that body writes.
func (res *Results) writeFile(w io.Writer, src Source, body func(out *bufio.Writer)) error {
	out := bufio.NewWriterSize(w, 64<<10) // keeps the first error for Flush
	b := append(out.AvailableBuffer(), `{"parameters":`...)
	b = res.p.appendJSON(b)
	b = append(b, ",\n\"source\":"...)
	b = appendEncoded(b, src)
	out.Write(append(b, ",\n"...))
	body(out)
	out.WriteString("}\n")
	return out.Flush()
}

// span is a part of an array, which one core formats at a time: the items from one index up to another.
type span struct{ of, from, to int }

const spanSize = 512 // items

// list grows without being copied: there may be millions of items. Each part but the last has spanSize items.
type list[T any] struct{ parts [][]T }

func (l *list[T]) add(item T) {
	last := len(l.parts) - 1
	if last < 0 || len(l.parts[last]) == spanSize {
		l.parts = append(l.parts, nil)
		last++
	}
	l.parts[last] = append(l.parts[last], item)
}

func (l *list[T]) len() int {
	last := len(l.parts) - 1
	if last < 0 {
		return 0
	}
	return last*spanSize + len(l.parts[last])
}

// appendSpans appends the spans of an array of n items.
func appendSpans(spans []span, of, n int) []span {
	for from := 0; from < n; from += spanSize {
		spans = append(spans, span{of, from, min(from+spanSize, n)})
	}
	return spans
}

// separator returns what stands before item i of an array that has one item per line.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ",\n"
}

// writeArray writes an array. appendSpan appends a span with its separators to b; several cores call it at once.
func (res *Results) writeArray(out *bufio.Writer, spans []span, appendSpan func(f *formatter, b []byte, s span) []byte) {
	if len(spans) == 0 {
		out.WriteString("[]")
		return
	}
	type text struct {
		span
		bytes []byte
	}
	next := 0
	cut := func(t *text) bool {
		t.span = spans[next]
		next++
		return next < len(spans)
	}
	newFormatter := func() func(*text) {
		f := new(formatter)
		return func(t *text) { t.bytes = appendSpan(f, t.bytes[:0], t.span) }
	}
	out.WriteString("[\n")
	inOrder(context.Background(), res.cores, cut, newFormatter, func(t *text) error { // out keeps its error
		_, err := out.Write(t.bytes)
		return err
	})
	out.WriteString("\n]")
}

// appendNumber appends key and then n / 10^decimals in its shortest form: 7.9, not 7.900.
func appendNumber(b []byte, key string, n int64, decimals int) []byte {
	b = append(b, key...)
	if n < 0 {
		b = append(b, '-')
		n = -n
	}
	unit := int64(1)
	for range decimals {
		unit *= 10
	}
	b = strconv.AppendInt(b, n/unit, 10)
	if n %= unit; n == 0 {
		return b
	}
	for b = append(b, '.'); n > 0; n %= unit {
		unit /= 10
		b = append(b, '0'+byte(n/unit))
	}
	return b
}

// formatter appends times and alerts. It remembers the latest date, because most times have the same date as the time
// before.
type formatter struct {
	day    int64 // since the Unix epoch
	date   []byte
	start  []byte
	hashed []byte
}

// appendTime appends a time in quotes, RFC 3339 in UTC without decimals.
func (f *formatter) appendTime(b []byte, sec int64) []byte {
	const perDay = 24 * 60 * 60
	of := sec % perDay
	if of < 0 { // before 1970
		of += perDay
	}
	if day := (sec - of) / perDay; f.date == nil || day != f.day {
		f.day, f.date = day, time.Unix(sec, 0).UTC().AppendFormat(f.date[:0], `"2006-01-02T`)
	}
	b = append(b, f.date...)
	b = appendTwoDigits(b, of/3600, ':')
	b = appendTwoDigits(b, of/60%60, ':')
	b = appendTwoDigits(b, of%60, 'Z')
	return append(b, '"')
}

func appendTwoDigits(b []byte, n int64, end byte) []byte {
	return append(b, '0'+byte(n/10), '0'+byte(n%10), end)
}

// appendEncoded appends the JSON of a string, or of a struct of strings and numbers; encoding these never fails. It
// does not escape HTML, because no browser interprets these files as HTML.
func appendEncoded(b []byte, v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})...)
}

func thousandthsOfHour(seconds int64) int64 { return divideHalfUp(seconds*1000, 3600) }

// divideHalfUp returns n/d, rounded half up; neither is negative.
func divideHalfUp(n, d int64) int64 { return (2*n + d) / (2 * d) }
