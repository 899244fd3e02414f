// Package etcd is a client of etcd v3 by its JSON gateway: transactions, leases, logging in, and which nodes answer.
//
// A call tries one node after the other, 1.5 s each, until one answers or ctx ends; the node that answered last is
// asked first. A transaction is repeated exactly as it is, also when an earlier try may have been applied without an
// answer: the caller writes it so that the repetition tells it what became of the first (a value with an id of the
// write in it, which the failure branch returns). Everything is linearizable.
//
// Not here: watches, client certificates, proxies of the environment. The gateway is described at
// https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"authhub/internal/etcd/wire"
)

var (
	// ErrUnavailable: no node did it, and nothing has changed.
	ErrUnavailable = errors.New("no node of etcd answers")
	// ErrUnknown: it may have been done or not; the last node to know did not say.
	ErrUnknown = errors.New("etcd may have done it or not")
	// ErrAddress is Dial's.
	ErrAddress = errors.New("not an address such as http://n1:2379,http://n2:2379/authhub")
	// ErrNoLease: the lease has expired or never was; nothing has changed.
	ErrNoLease = errors.New("etcd has no such lease")
)

// RefusedError is a no that would be the same again. Nothing has changed, unless ErrUnknown wraps it.
type RefusedError struct {
	Node    string
	Code    int // of gRPC; 0 if no node is an etcd that the client trusts
	Message string
}

func (e *RefusedError) Error() string { return e.Node + ": " + e.Message }

const (
	tryTimeout = 1500 * time.Millisecond // a lost majority shows in the gateway's own answers after 7 to 10 s only
	minPause   = 50 * time.Millisecond   // after all nodes were tried in vain, doubled each time
	maxPause   = 500 * time.Millisecond
	maxAnswer  = 64 << 20 // bytes
)

// Client speaks to one cluster.
type Client struct {
	nodes          []*node
	user, password string
	http           *http.Client
	log            *slog.Logger

	mu      sync.Mutex
	current int    // index of the node to ask first
	token   string // "" until logged in, and where no user is given
	login   sync.Mutex
}

// node is one address of the cluster, without user and password.
type node struct {
	address string

	mu   sync.Mutex
	down error // why the latest try failed; nil if it did not
}

// Dial returns a client of the cluster at address, and the path that it names. It asks nobody yet.
// The form of address is SCHEME://[USER:PASSWORD@]HOST:PORT[,SCHEME://HOST:PORT…][/PATH]. Its error is ErrAddress.
func Dial(address string, log *slog.Logger) (*Client, string, error) {
	c := &Client{log: log, http: &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: tryTimeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: tryTimeout,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	path := ""
	for part := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, "", ErrAddress // without the address: it may hold a password
		}
		if u.User != nil {
			c.user = u.User.Username()
			c.password, _ = u.User.Password()
		}
		if at := strings.Trim(u.Path, "/"); at != "" {
			if path != "" && path != at { // hubs of one cluster would not meet
				return nil, "", ErrAddress
			}
			path = at
		}
		c.nodes = append(c.nodes, &node{address: u.Scheme + "://" + u.Host})
	}
	return c, path, nil
}

// Nodes returns the addresses of the cluster, without user and password.
func (c *Client) Nodes() []string {
	var addresses []string
	for _, n := range c.nodes {
		addresses = append(addresses, n.address)
	}
	return addresses
}

// Close gives the connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call posts request to path until a node answers, reads its answer, and reports whether an earlier try may have been
// carried out, too. Errors: ErrUnavailable, ErrUnknown, ErrNoLease, *RefusedError.
func (c *Client) call(ctx context.Context, path string, request, answer any) (repeated bool, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return false, err
	}
	pause, logins := minPause, 0
	so := outlook{known: true}
	for tries := 1; ; tries++ {
		at, token := c.choose()
		err := c.try(ctx, c.nodes[at], token, path, body, answer)
		failed, again := err.(*tryError)
		switch {
		case err == nil || !again && so.known:
			return !so.known, err
		case !again: // to a repetition; what became of an earlier try is not known
			return true, fmt.Errorf("%w: %w", ErrUnknown, err)
		case failed.loggedOut && c.user != "" && path != wire.AuthenticatePath && logins < 2:
			logins++
			if err := c.authenticate(ctx, token); err != nil {
				return !so.known, err
			}
			continue
		case failed.loggedOut:
			return !so.known, c.refuseLogin(failed)
		}
		so.note(at, failed)
		if ctx.Err() == nil {
			c.nodes[at].failed(failed.cause, c.log)
		}
		c.leave(at)
		if tries%len(c.nodes) == 0 {
			pause = wait(ctx, pause)
		}
		if so.strangers == 1<<len(c.nodes)-1 {
			return !so.known, gaveUp(so.known, &RefusedError{Node: failed.node, Message: failed.cause.Error()})
		}
		if ctx.Err() != nil {
			return !so.known, gaveUp(so.known, so.told)
		}
	}
}

// outlook is what a call knows after its tries so far, all of which have failed.
type outlook struct {
	known     bool      // none of them has been carried out
	told      *tryError // by the latest node that answered; by the latest of all if none did
	strangers uint64    // a bit for each node that will answer the same way again, since the last other answer
}

func (o *outlook) note(at int, failed *tryError) {
	o.known = o.known && !failed.sent
	if o.told == nil || !errors.Is(failed.cause, errNoAnswer) {
		o.told = failed
	}
	if o.strangers |= 1 << at; !failed.strange {
		o.strangers = 0
	}
}

func gaveUp(known bool, told error) error {
	if known {
		return fmt.Errorf("%w: %w", ErrUnavailable, told)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, told)
}

// wait lets pause go by, or less if ctx ends, and returns the next one.
func wait(ctx context.Context, pause time.Duration) time.Duration {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return min(2*pause, maxPause)
}

// choose returns the index of the node to ask and the token to show it.
func (c *Client) choose() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.token
}

// leave makes the next node the first to ask, unless another request has done so already.
func (c *Client) leave(at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == at {
		c.current = (at + 1) % len(c.nodes)
	}
}

// tryError is a try that another node, or the same one later, may do better.
type tryError struct {
	node      string
	cause     error
	sent      bool // the request may have been carried out
	loggedOut bool // the token is missing or has ended
	strange   bool // the node will answer this way again: it is no etcd, or not one that the client trusts
}

func (e *tryError) Error() string { return e.node + ": " + e.cause.Error() }

// try posts body to one node. Errors: *tryError, or a final one.
func (c *Client) try(ctx context.Context, n *node, token, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if todo := c.remedy(ctx, n, err); todo != "" {
			return &tryError{node: n.address, cause: fmt.Errorf("%w; %s", bare(err), todo), sent: isNoHTTP(err), strange: true}
		}
		return &tryError{node: n.address, cause: bare(err), sent: !dialing(err)}
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return &tryError{node: n.address, cause: err, sent: true}
	}
	if response.StatusCode != http.StatusOK || json.Unmarshal(said, answer) != nil {
		return judge(n, response.StatusCode, said)
	}
	return nil
}

// judge says what an answer means that is not what was asked for. What is not known to have changed nothing counts as
// sent.
func judge(n *node, status int, said []byte) error {
	var e wire.Error
	json.Unmarshal(said, &e) // whatever is no JSON has no code
	failed := &tryError{node: n.address, cause: fmt.Errorf("%d %s", status, strings.TrimSpace(e.Message)), sent: true}
	switch {
	case e.Code == wire.CodeUnauthenticated, e.Code == wire.CodeInvalidArgument && isLoggedOut(e.Message):
		failed.sent, failed.loggedOut = false, true
	case e.Code == wire.CodeResourceExhausted && strings.Contains(e.Message, "too many requests"),
		e.Code == wire.CodeUnavailable && strings.HasSuffix(e.Message, "no leader"):
		failed.sent = false
	case e.Code == wire.CodeNotFound && strings.Contains(e.Message, "lease not found"):
		return ErrNoLease
	case e.Code == 0 && status < http.StatusInternalServerError:
		failed.cause = fmt.Errorf("it answers %d %.80q, as no etcd does", status, said)
		failed.sent, failed.strange = status < 300, true
	case isRefusal(e.Code):
		return &RefusedError{Node: n.address, Code: e.Code, Message: e.Message}
	}
	return failed
}

// isLoggedOut tells by etcd's words what its code does not: that no token came, or one older than the latest change
// of users and roles.
func isLoggedOut(message string) bool {
	return strings.Contains(message, "user name is empty") || strings.Contains(message, "revision of auth store is old")
}

func isRefusal(code int) bool {
	switch code {
	case wire.CodeInvalidArgument, wire.CodeNotFound, wire.CodePermissionDenied, wire.CodeResourceExhausted, wire.CodeFailedPrecondition:
		return true
	}
	return false
}

// dialing reports whether a request failed before there was a connection to send it by.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// errNoAnswer is the least telling cause: it says nothing of why.
var errNoAnswer = fmt.Errorf("no answer within %v", tryTimeout)

// bare is err without the address, which the caller says already.
func bare(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errNoAnswer
	}
	return err
}
