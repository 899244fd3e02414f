// Powers of ten and the barrier function, as tables by thousandths of a pH, without any operation whose result differs
// from platform to platform (barrier.go says why).

package phase2

import (
	"math"
	"math/big"
	"sort"
	"sync"
)

// values are those of one pH. They lie side by side, because a reading needs both.
type values struct {
	hydrogen float64 // 10^-pH
	phi      float64 // the barrier function; 0 outside the limits
}

// newTable returns the values of each thousandth of a pH up to 14.
func newTable(low, high int) []values {
	table := make([]values, scaleEnd+1)
	for ph, hydrogen := range hydrogenTable() {
		table[ph].hydrogen = hydrogen
	}
	for ph, phi := range phiTable(low, high) {
		table[ph].phi = phi
	}
	return table
}

// hydrogenTable returns 10^-pH for each thousandth of a pH up to 14. They are the powers of one constant in 160-bit
// arithmetic, so the error of 14,000 products stays far below the precision of a float64.
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

// meanPH returns the pH, to the nearest thousandth, of the mean of n values of 10^-pH that add up to sum. The mean pH
// lies between the smallest and the largest pH, so meanPH searches there for the first ph for which the mean of 10^-pH
// exceeds 10^-(ph+0.0005).
func (c *computation) meanPH(sum float64, n int64, least, most int) int {
	const halfStep = 1.0011519555381688769842 // 10^0.0005
	mean := sum / float64(n)
	return least + sort.Search(most-least, func(i int) bool { return float64(mean*halfStep) > c.table[least+i].hydrogen })
}

// phiTable returns the barrier function of each thousandth of a pH inside [low, high], 0 elsewhere:
//
//	phi = -ln( 4 * max(pH-low, 0.01) * max(high-pH, 0.01) / (high-low)^2 )
//
// This is the logarithmic barrier of Boyd and Vandenberghe, Convex Optimization, section 11.2, shifted so that it is 0
// in the middle of the band, with each distance floored at a probe's resolution. (Closer to a limit than the floor it
// falls again, and in a band narrower than 0.04 it can be negative.)
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
// where m is between sqrt(1/2) and sqrt(2), so |s| < 0.172 and twelve terms suffice. Each product is converted
// explicitly, so the compiler cannot fuse it with a sum.
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
