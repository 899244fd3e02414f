// The parameters of a run: their defaults, their limits and their JSON.

package phase2

import (
	"strings"
	"time"
)

// Parameters of a run. Low and High are in thousandths of a pH.
type Parameters struct {
	Low, High        int
	Interval, MaxGap time.Duration
}

// Default returns the parameters of a run that names none: 6.5 to 8.5, buckets of 1h, gaps from 1h on.
func Default() Parameters {
	return Parameters{Low: 6500, High: 8500, Interval: time.Hour, MaxGap: time.Hour}
}

// Check calls fault for each parameter that is outside the limits: 0 < low < high < 14, interval 1m to 24h in whole
// seconds, max_gap > 0. Compute must get only parameters without a fault.
func (p Parameters) Check(fault func(name, detail string)) {
	switch {
	case p.Low <= 0:
		fault("low", "must be above 0")
	case p.High >= scaleEnd:
		fault("high", "must be below 14")
	case p.Low >= p.High:
		fault("low", "must be below high")
	}
	if p.Interval < time.Minute || p.Interval > 24*time.Hour || p.Interval%time.Second != 0 {
		fault("interval", "must be 1m to 24h, in whole seconds")
	}
	if p.MaxGap <= 0 {
		fault("max_gap", "must be above 0")
	}
}

// critical reports whether an alert is at least 0.5 pH beyond the limit, or at least 24 h long.
func (p Parameters) critical(a *alert) bool {
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

// MarshalJSON makes the parameters a json.Marshaler.
func (p Parameters) MarshalJSON() ([]byte, error) { return p.appendJSON(nil), nil }

// appendJSON appends the parameters as every file and the run record show them.
func (p Parameters) appendJSON(b []byte) []byte {
	b = appendNumber(b, `{"low":`, int64(p.Low), 3)
	b = appendNumber(b, `,"high":`, int64(p.High), 3)
	b = AppendDuration(append(b, `,"interval":"`...), p.Interval)
	b = AppendDuration(append(b, `","max_gap":"`...), p.MaxGap)
	return append(b, `"}`...)
}

// AppendDuration appends a duration in the form that time.ParseDuration reads, without parts that are zero: "1h", not
// "1h0m0s".
func AppendDuration(b []byte, d time.Duration) []byte {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return append(b, strings.Replace(s, "h0m", "h", 1)...)
}
