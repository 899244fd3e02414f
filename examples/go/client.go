// Package client is a small API client with automatic refresh, the thing under test in this example.
package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// ErrSessionEnded means that the user has to log in.
var ErrSessionEnded = errors.New("the session has ended")

// Client is one user's session with the hub at Base. It may be used by several goroutines.
type Client struct {
	Base string

	mu     sync.Mutex // held during a refresh, so that there is one at a time
	tokens tokens
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// User is who is logged in.
type User struct {
	Username string `json:"username"`
	Role     string `json:"role"`
}

// Error is an error answer of the hub.
type Error struct {
	Status int
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail) }

// Login starts a session.
func (c *Client) Login(username, password string) error {
	return c.start("login", username, password)
}

// Register makes a user and starts a session.
func (c *Client) Register(username, password string) error {
	return c.start("register", username, password)
}

func (c *Client) start(operation, username, password string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send("POST", operation, "", map[string]string{"username": username, "password": password}, &c.tokens)
}

// Me returns the user of the session. Where the access token has expired it is refreshed, once.
func (c *Client) Me() (u User, err error) {
	token := c.accessToken()
	err = c.send("GET", "me", token, nil, &u)
	if problem := new(Error); errors.As(err, &problem) && problem.Code == "token_expired" {
		if token, err = c.refreshed(token); err == nil {
			err = c.send("GET", "me", token, nil, &u)
		}
	}
	return u, err
}

func (c *Client) accessToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens.Access
}

// refreshed returns an access token newer than stale: the one another goroutine has got meanwhile, or a new one.
func (c *Client) refreshed(stale string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens.Access != stale {
		return c.tokens.Access, nil
	}
	body := map[string]string{"refresh_token": c.tokens.Refresh}
	err := c.send("POST", "refresh", "", body, &c.tokens)
	if problem := new(Error); errors.As(err, &problem) && problem.Status == http.StatusUnauthorized {
		err = fmt.Errorf("%w: %w", ErrSessionEnded, err)
	}
	return c.tokens.Access, err
}

func (c *Client) send(method, operation, token string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, c.Base+"/api/authentication/"+operation, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		problem := &Error{Status: resp.StatusCode}
		json.NewDecoder(resp.Body).Decode(problem) // what is no JSON leaves the status
		return problem
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
