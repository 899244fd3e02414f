// The corpus: what clients do, and the true verdict on it. Each behaviour is repeated, so that a verdict that varies
// is seen.

package e2e

import (
	"sync"
	"testing"

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
						if differs := behave(t, &b); differs != "" {
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
