// lease.go owns leases.

package etcd

import (
	"context"
	"time"

	"authhub/internal/etcd/wire"
)

// Grant makes a lease that lives for ttl, rounded up to seconds, and returns its id. Errors as those of Do; after one
// there may be a lease that nobody knows, which expires.
func (c *Client) Grant(ctx context.Context, ttl time.Duration) (int64, error) {
	var lease wire.Lease
	_, err := c.call(ctx, wire.GrantPath, wire.Lease{TTL: int64((ttl + time.Second - 1) / time.Second)}, &lease)
	return lease.ID, err
}

// KeepAlive lets a lease live for its whole time again. Errors as those of Do, ErrNoLease when it is too late.
func (c *Client) KeepAlive(ctx context.Context, id int64) error {
	var kept struct{ Result wire.Lease } // one message of the stream that etcd answers with
	_, err := c.call(ctx, wire.KeepAlivePath, wire.Lease{ID: id}, &kept)
	if err == nil && kept.Result.TTL <= 0 {
		return ErrNoLease
	}
	return err
}

// Revoke ends a lease and deletes its keys. One that has ended is no error.
func (c *Client) Revoke(ctx context.Context, id int64) error {
	_, err := c.call(ctx, wire.RevokePath, wire.Lease{ID: id}, &struct{}{})
	if err == ErrNoLease {
		return nil
	}
	return err
}
