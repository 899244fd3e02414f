// auth.go logs in at the cluster.

package etcd

import (
	"context"
	"errors"
	"strings"

	"authhub/internal/etcd/wire"
)

// authenticate logs in and keeps the token, unless another request has done so since old was shown.
func (c *Client) authenticate(ctx context.Context, old string) error {
	c.login.Lock()
	defer c.login.Unlock()
	if _, token := c.choose(); token != old {
		return nil
	}
	c.setToken("") // a token that has ended is refused here, too
	var answer wire.Authenticate
	_, err := c.call(ctx, wire.AuthenticatePath, wire.Authenticate{Name: c.user, Password: c.password}, &answer)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && strings.Contains(refused.Message, "authentication is not enabled") {
		return nil // switched off since
	}
	if err != nil {
		return err
	}
	c.setToken(answer.Token)
	return nil
}

func (c *Client) setToken(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
}

// refuseLogin is the error of a request that etcd wants a login for, and that has none or none that helps.
func (c *Client) refuseLogin(failed *tryError) error {
	message := "etcd asks for a user: write it into the address, as in http://USER:PASSWORD@HOST:2379"
	if c.user != "" {
		message = "etcd does not take the token that it has just given: " + failed.cause.Error()
	}
	return &RefusedError{Node: failed.node, Code: wire.CodeUnauthenticated, Message: message}
}
