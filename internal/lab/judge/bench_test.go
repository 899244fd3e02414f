package judge

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkJudge judges full records of ten thousand requests, of the kinds that cost most.
func BenchmarkJudge(b *testing.B) {
	for name, lines := range map[string]string{
		"a plain life":  "advance 15m\nc1 me aNOW 401 token_expired\nc1 refresh rNOW 200\nc1 me aNOW 200\nc1 me aNOW 200\n",
		"a loop":        "c1 me aNOW 503 injected\n",
		"a slow poll":   "after 6s\nc1 me aNOW 401 token_expired\n",
		"reused tokens": "c1 refresh r0 401 token_reused\n",
		"Retry-After":   "c1 me aNOW 503 injected wait=5s\n",
		"refreshes":     "c1 refresh rNOW 200\n",
		"in vain":       "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\n",
	} {
		b.Run(name, func(b *testing.B) {
			s := newScript(b)
			for len(s.record) < 10_000 {
				for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
					s.step(strings.ReplaceAll(line, "NOW", strconv.Itoa(s.pair)))
				}
			}
			for b.Loop() {
				Judge(s.record, s.now, s.ended)
			}
		})
	}
}
