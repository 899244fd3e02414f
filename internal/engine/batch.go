// batch.go lets reads that wait together share a transaction.

package engine

import (
	"context"
	"sync"
	"time"

	"authhub/internal/etcd"
)

// batches lets reads that wait together share one read-only transaction: 32 clients that ask for me cost etcd one
// request for six of theirs. A read sees all that was acknowledged before it began, since the transaction that
// carries it is sent afterwards and is linearizable.
type batches struct {
	do func(context.Context, etcd.Txn) (etcd.Outcome, error)

	mu       sync.Mutex
	waiting  []*read
	inFlight int
}

const maxInFlight = 2 // transactions; with one, reads wait for longer, with more, fewer share one

// read is one caller's part of a transaction.
type read struct {
	ops      []etcd.Op
	deadline time.Time
	done     chan struct{}
	results  []etcd.Result
	err      error
}

// read returns what each of ops finds. Errors: those of etcd.Client.Do, and ctx's.
func (b *batches) read(ctx context.Context, ops ...etcd.Op) ([]etcd.Result, error) {
	deadline, _ := ctx.Deadline()
	r := &read{ops: ops, deadline: deadline, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, r)
	if b.inFlight < maxInFlight {
		b.inFlight++
		go b.work()
	}
	b.mu.Unlock()
	select {
	case <-r.done:
		return r.results, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work carries out what waits until nothing does.
func (b *batches) work() {
	for batch := b.take(time.Now()); len(batch) > 0; batch = b.take(time.Now()) {
		b.carryOut(batch)
	}
}

// take returns the reads of the next transaction. Those whose callers have given up are left out.
func (b *batches) take(now time.Time) []*read {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []*read
	ops := 0
	for len(b.waiting) > 0 && ops+len(b.waiting[0].ops) <= etcd.MaxOps {
		if r := b.waiting[0]; now.Before(r.deadline) {
			batch, ops = append(batch, r), ops+len(r.ops)
		}
		b.waiting = b.waiting[1:]
	}
	if len(batch) == 0 {
		b.inFlight--
	}
	return batch
}

func (b *batches) carryOut(batch []*read) {
	var t etcd.Txn
	latest := batch[0].deadline
	for _, r := range batch {
		t.Then = append(t.Then, r.ops...)
		if r.deadline.After(latest) {
			latest = r.deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	defer cancel()
	out, err := b.do(ctx, t)
	results := out.Results
	for _, r := range batch {
		if r.err = err; err == nil {
			r.results, results = results[:len(r.ops)], results[len(r.ops):]
		}
		close(r.done)
	}
}
