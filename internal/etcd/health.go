// health.go finds out which nodes are missing.

package etcd

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"authhub/internal/etcd/wire"
)

// LogTo has the log hear of nodes that are missing, from now on and as if all had answered until now. No call may be
// under way.
func (c *Client) LogTo(log *slog.Logger) {
	c.log = log
	for _, n := range c.nodes {
		n.down = nil
	}
}

// Missing asks every node for its state and returns the addresses of those that do not answer, know no leader or have
// raised an alarm, each with the reason. The log hears of each change. Of a node that had
// not answered when ctx was canceled nothing new is known.
func (c *Client) Missing(ctx context.Context) map[string]error {
	var asking sync.WaitGroup
	for _, n := range c.nodes {
		asking.Go(func() {
			err := c.status(ctx, n)
			switch {
			case err == nil:
				n.answered(c.log)
			case ctx.Err() != context.Canceled:
				n.failed(err, c.log)
			}
		})
	}
	asking.Wait()
	missing := make(map[string]error)
	for _, n := range c.nodes {
		n.mu.Lock()
		if n.down != nil {
			missing[n.address] = n.down
		}
		n.mu.Unlock()
	}
	return missing
}

// status returns what is wrong with a node, or nil.
func (c *Client) status(ctx context.Context, n *node) error {
	var s wire.Status
	_, token := c.choose()
	err := c.try(ctx, n, token, wire.StatusPath, []byte("{}"), &s)
	failed, again := err.(*tryError)
	switch {
	case again && failed.loggedOut:
		return nil // it answers
	case again:
		return failed.cause
	case err != nil:
		return err
	case len(s.Errors) > 0:
		return errors.New(s.Errors[0])
	case s.Leader == 0:
		return errors.New("it knows no leader")
	}
	return nil
}

// answered and failed keep the state of a node and log its changes. A request that succeeds does not call answered:
// a node that has raised an alarm, or follows no leader, still answers some.
func (n *node) answered(log *slog.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down != nil {
		log.Info("etcd node answers again", "node", n.address)
	}
	n.down = nil
}

func (n *node) failed(cause error, log *slog.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down == nil {
		log.Warn("etcd node is missing", "node", n.address, "cause", cause)
	}
	n.down = cause
}
