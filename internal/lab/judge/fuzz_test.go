package judge

import (
	"fmt"
	"slices"
	"testing"
)

// FuzzJudge plays any script: the verdict names requests of the record only, each rule once for a session and an
// expiry, and is the same when it is asked for again.
func FuzzJudge(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x20\x21\x40\x41"))
	f.Add([]byte("aAbBcC0123456789zZ"))
	f.Add([]byte("\x0d\x0d\x0d\x0d\x0d\x0d\x0e\x01"))                             // a login that is cut, and works at last
	f.Add([]byte("\x29\x03\x17\x17\x17\x17\x17\x17\x01\x17\x17\x17\x17\x17\x17")) // callers with an old token behind a refresh
	f.Add([]byte("\x08\x09\x0b\x01"))                                             // an expiry that a fault told with a status of its own, where the user has two sessions
	f.Add([]byte("\xec\xfe\xfe"))                                                 // a revoked session that a fault told of without a token
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 200 {
			t.Skip()
		}
		s := newScript(t)
		s.step("c1 login - 200")
		for _, b := range steps {
			s.step(fuzzStep(b, s.pair))
		}
		v := Judge(s.record, s.now, s.ended)
		for _, f := range append(v.Findings, v.Notes...) {
			if len(f.Seqs) == 0 || f.Seqs[0] < 1 || f.Seqs[len(f.Seqs)-1] > len(s.record) || !slices.IsSorted(f.Seqs) {
				t.Errorf("%+v of %d requests", f, len(s.record))
			}
		}
		if again := Judge(s.record, s.now, s.ended); fmt.Sprint(again) != fmt.Sprint(v) {
			t.Errorf("first %v, then %v", v, again)
		}
	})
}

// fuzzStep makes a line of a script of a byte.
func fuzzStep(b byte, pair int) string {
	if b < 24 {
		return []string{"after 50ms", "after 3s", "advance 8m", "advance 16m", "back 5m", "policy strict", "policy grace 10s",
			"policy allow", "c1 login - 200 other", "c0 me b0 200", "c1 me b0 401 token_revoked", "c1 me a0 403 injected token_expired",
			"c2 login - 503 injected", "c2 login - 200 lost", "c3 login - 200", "c1 login - 401 invalid_credentials", "after 5ms", "after 300ms",
			"slow 80ms c1 refresh r0 503 injected", "c2 refresh r0 401 token_reused", "c2 me - 200 lost", "c1 me a0 200 malformed",
			"browser", "c2 me a0 401 token_expired"}[b]
	}
	answers := []string{"200", "401 token_expired", "401 token_reused", "503 injected wait=2s", "200 lost", "0 left", "401 token_revoked", "204"}
	operation := []string{"me a", "refresh r", "logout a", "listing a"}[b>>3&3]
	request := fmt.Sprint(operation, max(0, pair-int(b>>5&1)))
	if b>>5 == 7 {
		request = "me -"
	}
	if b>>6 == 3 {
		return fmt.Sprintf("c0 %s | c1 %s %s", request, request, answers[b&7])
	}
	return fmt.Sprintf("c%d %s %s", b>>6, request, answers[b&7])
}
