package main

// Phase 2: from the accepted readings, in one pass, what the three files tell (results.go writes them).
//
// "Same input, same bytes, on every platform" rules out what a compiler or a library may do differently from machine to
// machine: fused multiply-adds (the Go specification allows them, except across an explicit conversion) and math.Log,
// Exp and Pow (assembly on some). So pH is a whole number of thousandths throughout, powers of ten come from a table
// made with whole-number arithmetic, the logarithm is our own, and what is summed in floating point is summed in the
// order of the input.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	scaleEnd   = 14_000 // thousandths of a pH: where a probe's scale ends
	resolution = 10     // thousandths: a probe's resolution, the floor of the distance to a limit
	hysteresis = 100    // thousandths: how far back inside ends an excursion
)

// parameters of a run. Low and High, in thousandths of a pH, hold 0 < Low < High < 14000; Interval is a whole number of
// seconds.
type parameters struct {
	Low, High        int
	Interval, MaxGap time.Duration
}

// computation is phase 2 under way: the results, and what only the way there needs.
type computation struct {
	*results
	clock    clock
	index    map[string]*station
	previous *station // of the latest record
	newest   int64    // of the accepted readings of all stations
	interval int64    // seconds
	maxGap   int64    // seconds; times are whole seconds, so a fraction of MaxGap changes nothing
	phi      []float64
	hydrogen []float64
}

// compute reads a CSV input (screening.go) and computes everything the three files tell. Memory grows with the
// stations, buckets and alerts, not with the readings. progress, when not nil, is called after each read. An error that
// is errUnusable comes with results if every row was screened, so that their Screening can be shown; other errors are
// the context's, or r's own, wrapped.
func compute(ctx context.Context, r io.Reader, p parameters, progress func(bytesRead int64)) (*results, error) {
	c := &computation{
		results:  &results{p: p, Screening: screening{FirstRejected: []rejection{}}},
		index:    map[string]*station{},
		previous: &station{},
		newest:   math.MinInt64,
		interval: int64(p.Interval / time.Second),
		maxGap:   int64(p.MaxGap / time.Second),
		phi:      phiTable(p.Low, p.High),
		hydrogen: hydrogenTable(),
	}
	if err := c.screen(newRecordReader(ctx, r, progress)); err != nil {
		return nil, err
	}
	if c.Screening.Accepted == 0 {
		return c.results, fmt.Errorf("%w: none of the %d rows is a reading that can be accepted", errUnusable, c.Screening.Rows)
	}
	c.finish()
	return c.results, nil
}

// station is what one station's readings have come to so far. Times are seconds of the Unix epoch, pH thousandths.
type station struct {
	name   string
	quoted []byte   // the name as a JSON string, once all readings are in
	next   *station // of the record that followed this station's latest one: in most inputs, of the one that will

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
	points []point
	low    excursion
	high   excursion
}

// outside is the time a station stood beyond one limit.
type outside struct {
	seconds int64
	dose    int64 // thousandths of a pH times seconds
}

// lookUp returns the station of that name, or nil. Stations tend to come in the same turn again and again, which saves
// the map most of its work.
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

func (c *computation) newStation(name string) *station {
	st := &station{name: name, min: math.MaxInt, max: math.MinInt}
	c.index[name] = st
	c.stations = append(c.stations, st)
	return st
}

// add takes one accepted reading in: later than all others of its station, above 0 and below 14.
func (c *computation) add(st *station, at int64, ph int) {
	if st.readings == 0 {
		st.first = at
	} else {
		c.elapse(st, at)
	}
	if st.readings == 0 || at >= st.bucket.end {
		c.closeBucket(st)
		st.bucket = newBucket(at, c.interval)
	}

	hydrogen := c.hydrogen[ph]
	st.readings++
	st.last, st.lastPH = at, ph
	st.min, st.max = min(st.min, ph), max(st.max, ph)
	st.hydrogen += hydrogen
	st.quantiles.add(ph)
	b := &st.bucket
	b.readings++
	b.min, b.max = min(b.min, ph), max(b.max, ph)
	b.hydrogen += hydrogen
	if ph < c.p.Low || ph > c.p.High {
		b.outside++
	} else {
		phi := c.phi[ph]
		if phi > b.phi {
			b.phi = phi
		}
		st.phi += phi
		st.inside++
	}

	c.newest = max(c.newest, at)
	c.watch(st, at, ph)
}

// elapse accounts for the time since the station's last reading: that reading stood until now, or there was a gap.
func (c *computation) elapse(st *station, now int64) {
	elapsed := now - st.last
	if elapsed > c.maxGap {
		c.endExcursions(st, false)
		c.alerts = append(c.alerts, alert{station: st, kind: kindGap, start: st.last, end: now})
		return
	}
	st.monitored += elapsed
	if st.lastPH < c.p.Low {
		st.below.add(elapsed, c.p.Low-st.lastPH)
	} else if st.lastPH > c.p.High {
		st.above.add(elapsed, st.lastPH-c.p.High)
	}
}

func (o *outside) add(seconds int64, excess int) {
	o.seconds += seconds
	o.dose += seconds * int64(excess)
}

// bucket gathers the readings of one interval, of which a station has at most one a second, 86,400 in a day.
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

// point is a finished bucket as barrier_phi_phase2.json shows it, kept small because there may be millions: pH in
// thousandths, phi in ten thousandths (of no meaning when outside > 0).
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
	p := point{start: b.start, readings: b.readings, outside: b.outside, min: int16(b.min), max: int16(b.max)}
	p.mean = int16(c.meanPH(b.hydrogen, int64(b.readings), b.min, b.max))
	if b.outside == 0 {
		p.phi = int32(roundPhi(b.phi))
	}
	st.points = append(st.points, p)
}

// excursion follows one station beyond one limit. (Near both limits of a narrow band a station can be in both
// excursions at once.)
type excursion struct {
	open     bool
	start    int64
	readings int64
	worst    int
	worstAt  int64
}

// watch opens, continues and ends excursions with one more reading.
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

// endExcursions ends what is open at the station's last reading.
func (c *computation) endExcursions(st *station, open bool) {
	for _, kind := range []alertKind{kindLow, kindHigh} {
		if st.excursion(kind).open {
			c.endExcursion(st, kind, st.last, open)
		}
	}
}

func (c *computation) endExcursion(st *station, kind alertKind, end int64, open bool) {
	x := st.excursion(kind)
	c.alerts = append(c.alerts, alert{
		station: st, kind: kind, open: open, start: x.start, end: end,
		readings: x.readings, worst: int16(x.worst), worstAt: x.worstAt,
	})
	x.open = false
}

type alertKind uint8

// In the byte order of their names, by which alerts are sorted.
const (
	kindGap alertKind = iota
	kindHigh
	kindLow
)

// alert is one entry of alertesph.json. Its readings go from the one that opened it up to, not counting, the one that
// closed it; a gap has none.
type alert struct {
	station    *station
	start, end int64
	readings   int64
	worstAt    int64 // the first time the worst value occurs
	worst      int16 // thousandths of a pH
	kind       alertKind
	open       bool
}

// finish ends what is still under way and puts stations and alerts in their order. A station that has been silent for
// more than the largest gap before the newest reading of any has an open gap; its excursion ended at its last reading,
// as before any gap.
func (c *computation) finish() {
	slices.SortFunc(c.stations, func(a, b *station) int { return strings.Compare(a.name, b.name) })
	for _, st := range c.stations {
		st.quoted = appendEncoded(nil, st.name)
		c.closeBucket(st)
		silent := c.newest-st.last > c.maxGap
		c.endExcursions(st, !silent)
		if silent {
			c.alerts = append(c.alerts, alert{station: st, kind: kindGap, open: true, start: st.last, end: c.newest})
		}
		st.mean = c.meanPH(st.hydrogen, st.readings, st.min, st.max)
	}
	slices.SortFunc(c.alerts, func(a, b alert) int {
		return cmp.Or(cmp.Compare(a.start, b.start), strings.Compare(a.station.name, b.station.name), cmp.Compare(a.kind, b.kind))
	})
}

// critical reports whether an alert is 0.5 pH beyond the limit, or 24 h long, or more.
func (p parameters) critical(a *alert) bool {
	const deep, long = 500, 24 * 60 * 60
	switch {
	case a.end-a.start >= long:
		return true
	case a.kind == kindLow:
		return p.Low-int(a.worst) >= deep
	case a.kind == kindHigh:
		return int(a.worst)-p.High >= deep
	}
	return false
}

// distribution keeps what nearest-rank quantiles of pH to 0.01 need: the first values as they are, later a count for
// each. So a station of few readings is small, and one of many has a bound.
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

// nearestRank returns the smallest value, in thousandths of a pH, that so many percent of the n values do not exceed.
func (d *distribution) nearestRank(n, percent int64) int64 {
	rank := (percent*n + 99) / 100
	if d.counts == nil {
		slices.Sort(d.values)
		return int64(d.values[rank-1]) * 10
	}
	value := int64(0)
	for reached := d.counts[0]; reached < rank; reached += d.counts[value] {
		value++
	}
	return value * 10
}

// hydrogenTable returns 10^-pH for each thousandth of a pH up to 14: the powers of one constant, in 160-bit arithmetic,
// so that the error of 14,000 products stays far below what a float64 shows.
var hydrogenTable = sync.OnceValue(func() []float64 {
	const precision = 160
	ratio, _, err := big.ParseFloat("0.99770006382255331719442194285376231055211861394573154624878230890945", 10, precision, big.ToNearestEven) // 10^-0.001
	if err != nil {
		panic(err)
	}
	power := new(big.Float).SetPrec(precision).SetInt64(1)
	table := make([]float64, scaleEnd+1)
	for ph := range table {
		table[ph], _ = power.Float64()
		power.Mul(power, ratio)
	}
	return table
})

// meanPH returns the pH, to the nearest thousandth, of the mean of n values of 10^-pH that add up to sum. It lies
// between the smallest and the largest of their pH, so it is searched there: the first ph for which the mean exceeds
// 10^-(ph+0.0005).
func (c *computation) meanPH(sum float64, n int64, least, most int) int {
	const halfStep = 1.0011519555381688769842 // 10^0.0005
	mean := sum / float64(n)
	return least + sort.Search(most-least, func(i int) bool { return float64(mean*halfStep) > c.hydrogen[least+i] })
}

// phiTable returns the barrier function of each thousandth of a pH inside [low, high], 0 elsewhere:
//
//	phi = -ln( 4 * max(pH-low, 0.01) * max(high-pH, 0.01) / (high-low)^2 )
//
// This is the logarithmic barrier of Boyd and Vandenberghe, Convex Optimization, section 11.2, shifted to 0 in the
// middle of the band, the distances floored at a probe's resolution. (Within the floor it falls again towards the limit,
// and in a band narrower than 0.04 it can be negative.)
func phiTable(low, high int) []float64 {
	table := make([]float64, scaleEnd+1)
	for ph := low; ph <= high; ph++ {
		product := 4 * max(ph-low, resolution) * max(high-ph, resolution)
		table[ph] = ln(float64((high-low)*(high-low)) / float64(product))
	}
	return table
}

// ln is the natural logarithm of a positive number, to about 1e-16. With x = m * 2^e and s = (m-1)/(m+1),
//
//	ln m = 2 * (s + s^3/3 + s^5/5 + ...)
//
// where m is within the square root of two around 1, so |s| < 0.172 and twelve terms do. Each product is converted
// explicitly, so none is fused with a sum.
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = float64(m*2), e-1
	}
	s := (m - 1) / (m + 1)
	square := float64(s * s)
	sum := 0.0
	for k := 23; k >= 1; k -= 2 {
		sum = float64(sum*square) + 1/float64(k)
	}
	return float64(float64(2*s)*sum) + float64(float64(e)*math.Ln2)
}

// roundPhi rounds half up to ten thousandths.
func roundPhi(phi float64) int64 {
	return int64(math.Floor(float64(phi*10_000) + 0.5))
}
