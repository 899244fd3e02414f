// The corpus: what clients do, and the true verdict on it. Each behaviour is repeated, so that a verdict that varies
// is seen.

package e2e

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// behaviour is what clients do, and the true verdict.
type behaviour struct {
	name     string
	findings []string // as rule[operation*count …]
	notes    []string // nil: whatever they are
	does     func(w *world)
}

// TestVerdicts has the machine to itself, as far as this package goes: callers that are meant to come together must
// not be late by the milliseconds that part them.
func TestVerdicts(t *testing.T) {
	held := watchMachine(t)
	repeats := testkit.Times(2, 10)
	room := make(chan struct{}, 4)
	for _, list := range [][]behaviour{cleanClients, cleanElsewhere, cleanTogether, faultyClients, faultyElsewhere, faultyTogether} {
		for _, b := range list {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				var all sync.WaitGroup
				wrong := make(chan string, repeats)
				for range repeats {
					room <- struct{}{}
					all.Go(func() {
						defer func() { <-room }()
						if differs := held.unlessHeldUp(func() string { return behave(t, &b) }); differs != "" {
							wrong <- differs
						}
					})
				}
				all.Wait()
				if n := len(wrong); n > 0 {
					t.Errorf("%d of %d times wrong, such as\n%s", n, repeats, <-wrong)
				}
			})
		}
	}
}

// holdUps counts how often the machine kept the tests or their hub from going on.
type holdUps struct{ atomic.Int64 }

// watchMachine counts hold-ups until the test is over. One that is longer than holdUp makes five even tries look like
// those of two callers, so that a verdict on them proves nothing.
func watchMachine(t *testing.T) *holdUps {
	const beat, holdUp = 5 * time.Millisecond, 20 * time.Millisecond
	held, over := new(holdUps), make(chan struct{})
	h := newHub(t)
	h.client = newClient("")
	var watch sync.WaitGroup
	watch.Go(func() {
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-over:
				return
			case <-time.After(beat):
			}
			if _, err := h.try("GET", "/healthz", nil); err != nil || time.Since(last) > beat+holdUp {
				held.Add(1)
			}
		}
	})
	t.Cleanup(func() { close(over); watch.Wait() })
	return held
}

// unlessHeldUp returns how a verdict differs from the true one. If the machine was held up meanwhile, a different one
// has two more chances.
func (held *holdUps) unlessHeldUp(try func() string) (differs string) {
	for range 3 {
		before := held.Load()
		if differs = try(); differs == "" || held.Load() == before {
			break
		}
	}
	return differs
}
