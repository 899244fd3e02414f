// Work on all cores, with results in order.

package phase2

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// inOrder makes parts, works on them side by side, and uses them in the order in which they were made. So what comes of
// them does not depend on the number of cores. make and use run in one goroutine each; make reports whether another
// part may follow. newWorker returns what one goroutine does to a part. A part is made again after its use. inOrder
// returns the first error of use, or else that of the context. A panic of make or of a worker becomes the caller's.
func inOrder[T any](ctx context.Context, cores int, make func(*T) bool, newWorker func() func(*T), use func(*T) error) error {
	cores = min(cores, maxParts/4)
	free, raw, ordered := newParts[T](4*cores), newParts[T](0), newParts[T](0)
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()

	all.Go(func() {
		defer close(ordered)
		defer close(raw)
		makeParts(ctx, make, free, raw, ordered)
	})
	for range cores {
		all.Go(func() {
			work := newWorker()
			for p := range raw {
				if p.panicked == nil {
					p.do(func() { work(&p.value) })
				}
				p.ready <- struct{}{}
			}
		})
	}
	for p := range ordered {
		if <-p.ready; p.panicked != nil {
			panic(p.panicked)
		}
		if err := use(&p.value); err != nil {
			return err
		}
		free <- p
	}
	return ctx.Err()
}

// makeParts makes free parts until there are no more or ctx ends, and passes each on to be worked on and to be used.
func makeParts[T any](ctx context.Context, make func(*T) bool, free <-chan *part[T], raw, ordered chan<- *part[T]) {
	for more := true; more; {
		select {
		case p := <-free:
			more = false
			p.do(func() { more = make(&p.value) })
			raw <- p
			ordered <- p
		case <-ctx.Done():
			return
		}
	}
}

// part is a value on its way.
type part[T any] struct {
	value    T
	ready    chan struct{} // holds one element once a worker is done
	panicked error
}

// do calls f, and keeps its panic and where that was.
func (p *part[T]) do(f func()) {
	defer func() {
		if cause := recover(); cause != nil {
			p.panicked = fmt.Errorf("%v\n%s", cause, debug.Stack())
		}
	}()
	f()
}

// maxParts bounds the parts that are under way.
const maxParts = 64

// newParts returns a channel with room for all parts, and with n new ones in it.
func newParts[T any](n int) chan *part[T] {
	parts := make(chan *part[T], maxParts)
	for range n {
		parts <- &part[T]{ready: make(chan struct{}, 1)}
	}
	return parts
}
