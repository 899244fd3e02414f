// Command readings writes the embedded data set, data/readings.csv:
//
//	go run ./internal/readings > data/readings.csv
//
// The readings are synthetic and ours: a month at four measuring points in a row of a water works that does not exist,
// a reading every fifteen minutes from each. Every part of the three result files gets something to tell:
//
//   - intake is the river. A storm brings acid rain on 7 March (low, critical), a shower a little on 10 March (low,
//     warning). On 21 March its logger is off for seven hours (gap).
//   - softening adds lime. A dosing valve sticks open on 12 March (high, critical), the dose is a little too strong at
//     noon on 18 and 19 March (high, warning). On 24 March two hours of readings arrive after a newer one
//     (out_of_order, and the gap they leave).
//   - filtration has a probe that drifts from 14 March to the end of its scale and stays there until it is exchanged on
//     17 March (high, critical; saturated; gap). On 20 March its line is disturbed (malformed).
//   - outlet stays inside the limits. It falls silent on 29 March, two days before the end (gap, open).
//
// All of it is whole-number arithmetic on a generator with a fixed seed, so the file is the same wherever it is made.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"time"
)

// Steps are quarters of an hour since the beginning; pH is in hundredths, which is what the probes show.
const (
	hour = 4
	day  = 24 * hour
	end  = 30 * day
)

var begin = time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC)

func main() {
	if err := write(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func write(w io.Writer) error {
	out := bufio.NewWriter(w)
	noise := rand.NewPCG(1909, 7)
	fmt.Fprintln(out, "time,station,ph")
	for step := range end {
		for _, p := range points {
			ph := p.level(step) + int(noise.Uint64()%5) + int(noise.Uint64()%5) - 4
			p.log(out, p.name, step, ph)
		}
	}
	return out.Flush()
}

// point is a measuring point: a level, a daily swing about it, what happens there, and what its logger makes of a
// reading.
type point struct {
	name         string
	usual, swing int
	events       []event
	log          func(out io.Writer, name string, step, ph int)
}

// event shifts the pH from step at: over rise steps to height, there for hold steps, and back over fall steps.
type event struct{ at, rise, hold, fall, height int }

var points = []point{
	{"intake", 755, 15, []event{
		{6*day + 3*hour, 10 * hour, 14 * hour, 14 * hour, -190},
		{9*day + 14*hour, 3 * hour, 2 * hour, 5 * hour, -135},
	}, intakeLog},
	{"softening", 800, 10, []event{
		{6*day + 5*hour, 10 * hour, 14 * hour, 14 * hour, -40},
		{11*day + 9*hour, 1 * hour, 5 * hour, 3 * hour, 165},
		{17*day + 10*hour, 2 * hour, 2 * hour, 2 * hour, 75},
		{18*day + 10*hour, 2 * hour, 2 * hour, 2 * hour, 75},
	}, softeningLog},
	{"filtration", 780, 6, []event{
		{6*day + 8*hour, 10 * hour, 14 * hour, 14 * hour, -20},
		{11*day + 12*hour, 3 * hour, 5 * hour, 4 * hour, 55},
		{13 * day, 60 * hour, 20 * hour, 0, 800},
	}, filtrationLog},
	{"outlet", 775, 4, []event{
		{6*day + 12*hour, 10 * hour, 14 * hour, 14 * hour, -10},
		{11*day + 16*hour, 4 * hour, 5 * hour, 6 * hour, 45},
	}, outletLog},
}

func (p *point) level(step int) int {
	fromPeak := (step+21*hour)%day - 12*hour // the peak is at 15 h, when algae have taken up most of the day's carbon dioxide
	ph := p.usual + p.swing*(6*hour-max(fromPeak, -fromPeak))/(6*hour)
	for _, e := range p.events {
		ph += e.shift(step)
	}
	return ph
}

func (e event) shift(step int) int {
	switch since := step - e.at; {
	case since < 0 || since >= e.rise+e.hold+e.fall:
		return 0
	case since < e.rise:
		return e.height * since / e.rise
	case since < e.rise+e.hold:
		return e.height
	default:
		return e.height * (e.rise + e.hold + e.fall - since) / e.fall
	}
}

func writeLine(out io.Writer, name string, step, ph int) {
	ph = min(ph, 1400)
	fmt.Fprintf(out, "%s,%s,%d.%02d\n", stamp(step), name, ph/100, ph%100)
}

func stamp(step int) string {
	return begin.Add(time.Duration(step) * time.Hour / hour).Format(time.RFC3339)
}

func intakeLog(out io.Writer, name string, step, ph int) {
	const from, to = 20*day + 10*hour, 20*day + 17*hour
	if step < from || step >= to {
		writeLine(out, name, step, ph)
	}
}

// softeningLog holds readings back, and sends them (with the pH of the moment) after a newer one.
func softeningLog(out io.Writer, name string, step, ph int) {
	const from, to = 23*day + 4*hour, 23*day + 6*hour
	if step < from || step >= to {
		writeLine(out, name, step, ph)
	}
	if step == to {
		for late := from; late < to; late++ {
			writeLine(out, name, late, ph)
		}
	}
}

func filtrationLog(out io.Writer, name string, step, ph int) {
	const disturbed = 19*day + 12*hour
	switch step {
	case disturbed:
		fmt.Fprintf(out, "%s,%s,#ERR\n", stamp(step), name)
	case disturbed + 1:
		fmt.Fprintf(out, "%s,%s\n", stamp(step), name)
	case disturbed + 2:
		fmt.Fprintf(out, "%.13s,%s,%d.%02d\n", stamp(step), name, ph/100, ph%100)
	default:
		writeLine(out, name, step, ph)
	}
}

func outletLog(out io.Writer, name string, step, ph int) {
	if step < 28*day {
		writeLine(out, name, step, ph)
	}
}
