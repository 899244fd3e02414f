package passwd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRememberedPasswordsHaveABound: the digests of right passwords do not pile up, and one is asked for again when
// it was forgotten.
func TestRememberedPasswordsHaveABound(t *testing.T) {
	t.Parallel()
	h := NewHasher(1)
	derived := 0
	h.KDF = func(string, []byte, int) ([]byte, error) { derived++; return make([]byte, hashLen), nil }
	verify := func(password string, want bool) {
		t.Helper()
		c := Plain(strings.TrimSuffix(password, " wrong"))
		if right, err := h.Verify(t.Context(), &c, password); right != want || err != nil {
			t.Fatal(right, err)
		}
	}
	for i := range maxVerified + 10 {
		verify(fmt.Sprint("password ", i), true)
		if len(h.verified) > maxVerified {
			t.Fatalf("%d passwords are remembered", len(h.verified))
		}
	}
	all := derived
	verify(fmt.Sprint("password ", maxVerified+9), true)
	if derived != all {
		t.Error("a remembered password was derived again")
	}
	verify(fmt.Sprint("password ", maxVerified+9, " wrong"), false)
	verify("password 0", true)
	if derived != all+2 {
		t.Errorf("%d derivations of a wrong and of a forgotten password, want 2", derived-all)
	}
}

// TestDigestsDiffer: no two pairs of credential and password have one digest.
func TestDigestsDiffer(t *testing.T) {
	t.Parallel()
	h := NewHasher(1)
	seen := map[[32]byte]string{}
	for _, row := range []struct {
		c        Credential
		password string
	}{
		{Plain("a"), "b"}, {Plain("a\x00"), "b"}, {Plain("a"), "\x00b"}, {Plain("ab"), ""}, {Plain(""), "ab"},
		{Credential{salt: []byte("a"), hash: []byte("b")}, ""}, {Credential{salt: []byte("ab")}, ""}, {Credential{hash: []byte("ab")}, ""},
	} {
		d := h.digest(&row.c, row.password)
		if other, ok := seen[d]; ok {
			t.Errorf("%+v has the digest of %s", row, other)
		}
		seen[d] = fmt.Sprintf("%+v", row)
	}
}

// slowly makes each hash of h take a second of the bubble's time.
func slowly(h *Hasher) {
	h.KDF = func(string, []byte, int) ([]byte, error) {
		time.Sleep(time.Second)
		return make([]byte, hashLen), nil
	}
	h.slots.free = 1
}

// TestHubsTakeTurns: while one hub has hundreds of logins waiting, another hub's login waits for two hashes, not for
// hundreds.
func TestHubsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		greedy := NewHasher(1)
		slowly(greedy)
		modest, ctx := greedy.Share(), t.Context()
		c := Plain("password")
		gone, leave := context.WithCancel(ctx)
		for range maxWaiting {
			go greedy.Verify(gone, &c, "wrong")
		}
		synctest.Wait()
		if n := greedy.Waiting(); n != maxWaiting {
			t.Errorf("%d wait", n)
		}
		if _, err := greedy.Verify(ctx, &c, "wrong"); !errors.Is(err, ErrBusy) {
			t.Errorf("one too many: %v", err)
		}
		begun := time.Now()
		if right, err := modest.Verify(ctx, &c, "password"); !right || err != nil {
			t.Errorf("%v %v", right, err)
		}
		if took := time.Since(begun); took > 3*time.Second { // the hash that runs, one of the greedy hub's, and its own
			t.Errorf("the other hub's login took %v", took)
		}
		leave()
		synctest.Wait()
		if n := greedy.Waiting(); n > 1 { // the hash that runs is run to its end
			t.Errorf("%d wait after all have left", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := modest.Waiting() + greedy.Waiting(); n != 0 || greedy.slots.free != 1 {
			t.Errorf("%d wait and %d slots are free in the end", n, greedy.slots.free)
		}
	})
}

// TestPatienceEnds: a login that waits too long is told to come again.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(1)
		slowly(h)
		c, errs := Plain("password"), make(chan error, 50)
		for range cap(errs) {
			go func() {
				_, err := h.Verify(t.Context(), &c, "wrong")
				errs <- err
			}()
		}
		busy := 0
		for range cap(errs) {
			switch err := <-errs; {
			case errors.Is(err, ErrBusy):
				busy++
			case err != nil:
				t.Error(err)
			}
		}
		if served := cap(errs) - busy; served < 20 || served > 21 || h.slots.free != 1 {
			t.Errorf("%d were served in 20 s, and %d slots are free", served, h.slots.free)
		}
	})
}

// TestRoundsHaveABound: a hash that would take a login too long is refused where it is put in, and read where an
// older hub has stored it.
func TestRoundsHaveABound(t *testing.T) {
	t.Parallel()
	hash := func(rounds string) string {
		return "$pbkdf2-sha256$i=" + rounds + "$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	}
	for rounds, want := range map[string][2]error{
		"1": {}, "600000": {}, "2000000": {}, "2000001": {ErrTooManyRounds, nil}, "10000000": {ErrTooManyRounds, nil},
		"10000001": {ErrTooManyRounds, ErrTooManyRounds}, "0": {ErrBadHash, ErrBadHash}, "-1": {ErrBadHash, ErrBadHash},
		"99999999999999999999": {ErrBadHash, ErrBadHash}, "1e3": {ErrBadHash, ErrBadHash},
	} {
		if _, err := ParseHash(hash(rounds)); err != want[0] {
			t.Errorf("%s put in: %v", rounds, err)
		}
		if _, err := ParseStored(hash(rounds)); err != want[1] {
			t.Errorf("%s stored: %v", rounds, err)
		}
	}
}
