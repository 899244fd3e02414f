// Phase 2: computes the content of the three files from the accepted readings, in one pass (results.go writes them).
//
// "Same input, same bytes, on every platform" rules out operations whose result differs from machine to machine: fused
// multiply-adds (the Go specification allows them, except across an explicit conversion) and math.Log, Exp and Pow
// (assembly on some platforms). So pH is a whole number of thousandths throughout, powers of ten come from a table made
// with whole-number arithmetic, the logarithm is our own, and floating-point sums add up in the order of the input.

package phase2

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	scaleEnd   = 14_000 // thousandths of a pH: where a probe's scale ends
	resolution = 10     // thousandths: a probe's resolution, the floor of the distance to a limit
	hysteresis = 100    // thousandths: how far back inside ends an excursion
)

// maxAlerts is how many alerts a run takes. It bounds the memory of a run and the size of alertesph.json (about 300
// bytes an alert, so 150 MB): every reading can open one alert and close another.
const maxAlerts = 500_000

// computation is a run of phase 2 under way: the results, and what is needed only until they are complete.
type computation struct {
	*Results
	index    map[string]*station
	previous *station // of the latest record
	interval int64    // seconds
	maxGap   int64    // seconds; times are whole seconds, so a fraction of MaxGap changes nothing
	table    []values // by thousandths of a pH; nil before the first block
	raised   list[alert]

	firstRejected string // which record was rejected first, and why
}

// Compute reads a CSV input (csv.go), screens it and computes the content of the three files. Memory grows with the
// stations, buckets and alerts, not with the readings. If progress is not nil, Compute calls it after each read.
//
// Errors: ErrUnusable, with results if every row was screened, so that their Screening can be shown; the context's
// error; r's own error, wrapped.
func Compute(ctx context.Context, r io.Reader, p Parameters, progress func(bytesRead int64)) (*Results, error) {
	return newComputation(p, runtime.GOMAXPROCS(0)).compute(ctx, r, progress)
}

func (c *computation) compute(ctx context.Context, r io.Reader, progress func(bytesRead int64)) (*Results, error) {
	if err := c.screen(ctx, newRecordReader(ctx, r, progress)); err != nil {
		return nil, err
	}
	switch {
	case c.Screening.Rows == 0:
		return c.Results, fmt.Errorf("%w: there is no reading after the first line", ErrUnusable)
	case c.Screening.Accepted == 0:
		return c.Results, fmt.Errorf("%w: none of the %d readings can be accepted; %s", ErrUnusable, c.Screening.Rows, c.firstRejected)
	}
	c.finish()
	if c.raised.len() > maxAlerts {
		return c.Results, fmt.Errorf("%w: there are more than the %d alerts that a run takes; a larger max_gap or wider limits give fewer",
			ErrUnusable, maxAlerts)
	}
	return c.Results, nil
}

func newComputation(p Parameters, cores int) *computation {
	return &computation{
		Results:  &Results{p: p, cores: cores, Screening: Screening{FirstRejected: []Rejection{}}},
		index:    map[string]*station{},
		previous: &station{},
		interval: int64(p.Interval / time.Second),
		maxGap:   int64(p.MaxGap / time.Second),
	}
}

// station holds the sums over one station's readings so far. Times are seconds since the Unix epoch, pH thousandths.
type station struct {
	name   string
	number int32    // in the order of the input; once all readings are in, of the names
	quoted []byte   // the name as a JSON string, once all readings are in
	next   *station // the station of the record that followed this station's latest record; likely to follow again

	first, last int64
	lastPH      int
	readings    int64
	min, max    int
	mean        int     // once all readings are in
	hydrogen    float64 // sum of 10^-pH
	phi         float64 // sum over the inside readings
	inside      int64
	monitored   int64 // seconds
	below       outside
	above       outside
	quantiles   distribution

	bucket bucket
	points list[point]
	low    excursion
	high   excursion
	calm   bool // no excursion is open, and the last reading was inside
}

// outside is the time that a station spent beyond one limit.
type outside struct {
	seconds int64
	dose    int64 // thousandths of a pH times seconds
}

// lookUp returns the station of that name, or nil. Stations tend to repeat in the same order, so the station that
// followed last time is tried before the map.
func (c *computation) lookUp(name []byte) *station {
	st := c.previous.next
	if st == nil || st.name != string(name) {
		if st = c.index[string(name)]; st == nil {
			return nil
		}
		c.previous.next = st
	}
	c.previous = st
	return st
}

// newStation returns a new station whose first reading is at that time.
func (c *computation) newStation(name string, at int64) *station {
	st := &station{name: name, min: math.MaxInt, max: math.MinInt, first: at, last: at, calm: true, bucket: bucket{end: math.MinInt64}}
	st.number = int32(len(c.stations))
	c.index[name] = st
	c.stations = append(c.stations, st)
	return st
}

// add adds an accepted reading, which is later than all others of its station, above 0 and below 14. Sums of whole
// numbers are of the bucket until it is closed.
func (c *computation) add(st *station, at int64, ph int) {
	if elapsed := at - st.last; st.calm && elapsed <= c.maxGap { // as nearly always, and then without a call
		st.monitored += elapsed
	} else {
		c.elapse(st, at)
	}
	b := &st.bucket
	if at >= b.end {
		c.closeBucket(st)
		*b = newBucket(at, c.interval)
	}

	st.last, st.lastPH = at, ph
	st.quantiles.add(ph)
	b.readings++
	b.min, b.max = min(b.min, ph), max(b.max, ph)
	value := &c.table[ph]
	st.hydrogen += value.hydrogen
	b.hydrogen += value.hydrogen
	inside := c.p.Low <= ph && ph <= c.p.High
	if inside {
		st.phi += value.phi
		if value.phi > b.phi {
			b.phi = value.phi
		}
	} else {
		b.outside++
	}
	if !inside || !st.calm {
		c.watch(st, at, ph)
		st.calm = inside && !st.low.open && !st.high.open
	}
}

// elapse accounts for the time since the station's last reading: either that reading lasted until now, or there is a
// gap.
func (c *computation) elapse(st *station, now int64) {
	elapsed := now - st.last
	if elapsed > c.maxGap {
		c.endExcursions(st, false)
		c.raised.add(alert{station: st.number, kind: kindGap, start: st.last, end: now})
		return
	}
	st.monitored += elapsed
	switch {
	case st.calm:
	case st.lastPH < c.p.Low:
		st.below.add(elapsed, c.p.Low-st.lastPH)
	case st.lastPH > c.p.High:
		st.above.add(elapsed, st.lastPH-c.p.High)
	}
}

func (o *outside) add(seconds int64, excess int) {
	o.seconds += seconds
	o.dose += seconds * int64(excess)
}

// bucket gathers a station's readings in one interval: at most one a second, so 86,400 in a day.
type bucket struct {
	start, end        int64
	readings, outside int32
	min, max          int
	hydrogen          float64 // sum of 10^-pH
	phi               float64 // the largest of the inside readings
}

func newBucket(at, interval int64) bucket {
	into := at % interval
	if into < 0 { // before 1970
		into += interval
	}
	start := at - into
	return bucket{start: start, end: start + interval, min: math.MaxInt, max: math.MinInt, phi: math.Inf(-1)}
}

// point is a finished bucket as barrier_phi_phase2.json shows it. It is small because there may be millions. pH is in
// thousandths, phi in ten thousandths; phi means nothing if outside > 0.
type point struct {
	start             int64
	readings, outside int32
	phi               int32
	min, mean, max    int16
}

// closeBucket makes the station's bucket a point, if it has any readings.
func (c *computation) closeBucket(st *station) {
	b := &st.bucket
	if b.readings == 0 {
		return
	}
	st.readings += int64(b.readings)
	st.inside += int64(b.readings - b.outside)
	st.min, st.max = min(st.min, b.min), max(st.max, b.max)
	p := point{start: b.start, readings: b.readings, outside: b.outside, min: int16(b.min), max: int16(b.max)}
	p.mean = int16(c.meanPH(b.hydrogen, int64(b.readings), b.min, b.max))
	if b.outside == 0 {
		p.phi = int32(roundPhi(b.phi))
	}
	st.points.add(p)
}

// excursion follows one station beyond one limit. (In a narrow band a station can be in both excursions at once.)
type excursion struct {
	open     bool
	start    int64
	readings int64
	worst    int
	worstAt  int64
}

// watch opens, continues or ends the station's excursions with one more reading.
func (c *computation) watch(st *station, at int64, ph int) {
	if st.low.open || ph < c.p.Low {
		c.follow(st, kindLow, at, ph, ph >= c.p.Low+hysteresis, ph < st.low.worst)
	}
	if st.high.open || ph > c.p.High {
		c.follow(st, kindHigh, at, ph, ph <= c.p.High-hysteresis, ph > st.high.worst)
	}
}

func (c *computation) follow(st *station, kind alertKind, at int64, ph int, back, worse bool) {
	x := st.excursion(kind)
	switch {
	case !x.open:
		*x = excursion{open: true, start: at, readings: 1, worst: ph, worstAt: at}
	case back:
		c.endExcursion(st, kind, at, false)
	default:
		x.readings++
		if worse {
			x.worst, x.worstAt = ph, at
		}
	}
}

func (st *station) excursion(kind alertKind) *excursion {
	if kind == kindLow {
		return &st.low
	}
	return &st.high
}

// endExcursions ends the station's excursions at its last reading.
func (c *computation) endExcursions(st *station, open bool) {
	for _, kind := range []alertKind{kindLow, kindHigh} {
		if st.excursion(kind).open {
			c.endExcursion(st, kind, st.last, open)
		}
	}
}

func (c *computation) endExcursion(st *station, kind alertKind, end int64, open bool) {
	x := st.excursion(kind)
	c.raised.add(alert{
		station: st.number, kind: kind, open: open, start: x.start, end: end,
		readings: x.readings, worst: int16(x.worst), worstAt: x.worstAt,
	})
	x.open = false
}

type alertKind uint8

// The kinds, in the byte order of their names, because alerts are sorted by that.
const (
	kindGap alertKind = iota
	kindHigh
	kindLow
)

// alert is one entry of alertesph.json. Its readings are those from the reading that opened it to the one before the
// reading that closed it; a gap has none.
type alert struct {
	start, end int64
	readings   int64
	worstAt    int64 // the first time the worst value occurs
	station    int32 // its number; a pointer here would cost the garbage collector as much time as the alerts themselves
	worst      int16 // thousandths of a pH
	kind       alertKind
	open       bool
}

// finish ends buckets and excursions that are still open, and sorts stations and alerts. If a station has been silent
// for more than maxGap before the newest reading of all stations, it has an open gap, and its excursion ended at its
// last reading, as before any gap.
func (c *computation) finish() {
	newest := int64(math.MinInt64)
	for _, st := range c.stations {
		newest = max(newest, st.last)
	}
	for _, st := range c.stations {
		st.quoted = appendEncoded(nil, st.name)
		c.closeBucket(st)
		silent := newest-st.last > c.maxGap
		c.endExcursions(st, !silent)
		if silent {
			c.raised.add(alert{station: st.number, kind: kindGap, open: true, start: st.last, end: newest})
		}
		st.mean = c.meanPH(st.hydrogen, st.readings, st.min, st.max)
	}
	c.sort()
}

// sort sorts the stations by their names, and the alerts.
func (c *computation) sort() {
	numbers := make([]int32, len(c.stations))
	slices.SortFunc(c.stations, func(a, b *station) int { return strings.Compare(a.name, b.name) })
	for i, st := range c.stations {
		numbers[st.number], st.number = int32(i), int32(i)
	}
	c.alerts = make([]*alert, 0, c.raised.len())
	for _, part := range c.raised.parts {
		for i := range part {
			part[i].station = numbers[part[i].station]
			c.alerts = append(c.alerts, &part[i])
		}
	}
	slices.SortFunc(c.alerts, func(a, b *alert) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.station, b.station), cmp.Compare(a.kind, b.kind))
	})
}

// distribution keeps what nearest-rank quantiles of pH to 0.01 need: the first values themselves, and once there are
// many, a count per value. So a station with few readings needs little memory, and a station with many has a bound.
type distribution struct {
	values []uint16 // hundredths of a pH
	counts []int64  // by hundredths; nil until values are too many
}

const keptValues = 512

func (d *distribution) add(ph int) {
	value := (ph + 5) / 10
	if d.counts != nil {
		d.counts[value]++
		return
	}
	if d.values = append(d.values, uint16(value)); len(d.values) < keptValues {
		return
	}
	d.counts = make([]int64, scaleEnd/10+1)
	for _, value := range d.values {
		d.counts[value]++
	}
	d.values = nil
}

// nearestRank returns the smallest value, in thousandths of a pH, that percent % of the n values do not exceed.
func (d *distribution) nearestRank(n, percent int64) int64 {
	rank := (percent*n + 99) / 100
	if d.counts == nil {
		// Not slices.Sort, which is 5 kB of the binary for each type.
		sort.Slice(d.values, func(i, j int) bool { return d.values[i] < d.values[j] })
		return int64(d.values[rank-1]) * 10
	}
	value := int64(0)
	for reached := d.counts[0]; reached < rank; reached += d.counts[value] {
		value++
	}
	return value * 10
}
