// What the record sees of an answer.

package lab

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"authhub/internal/dialect"
	"authhub/internal/jwt"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
)

// response is the answer to a recorded request.
type response struct {
	*fault.Tap
	call *dialect.Call // nil: the hub's own API
}

// newResponse returns the answer to r, which is recorded as seen. It passes when the body of r is in.
func (b *bench) newResponse(w http.ResponseWriter, r *http.Request, seen *record.Request, call *dialect.Call) *response {
	keep := seen.Operation == "login" || seen.Operation == "register" || seen.Operation == "refresh"
	a := &response{&fault.Tap{ResponseWriter: w, Keep: keep, Limit: -1}, call}
	a.Settle = func() {
		if body, ok := r.Body.(*opening); ok && a.Dropped {
			body.complete(w)
		} else if r.ContentLength != 0 && !a.Dropped {
			b.lab.Drain(w, r)
		}
		if seen.Operation == "logout" || seen.Operation == "refresh" && !seen.Policy.Spends() || a.fails() {
			linger(r.Context(), seen.Arrival.Machine)
		}
	}
	return a
}

// overlap is how long the answer to a logout, and one that is an error, takes at least.
const overlap = 5 * time.Millisecond

// linger lets an answer wait for a moment (overlap). The hub takes a tenth of a millisecond for it, and what the client
// has sent at the same time over other connections would look as if it had been sent after the answer. Short waits: a
// process that had to stand still for one of them hears what came meanwhile before the last.
func linger(ctx context.Context, since time.Time) {
	if time.Since(since) >= overlap {
		return
	}
	for range overlap / time.Millisecond {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// code returns the code of the error that was answered with; "" for none.
func (a *response) code() string {
	var p struct {
		Code string `json:"code"`
	}
	if a.call != nil && !a.Injected {
		return a.call.Result.Code
	}
	if a.Status >= 400 && strings.HasSuffix(a.Header().Get("Content-Type"), "json") {
		json.Unmarshal(a.Kept, &p)
	}
	return p.Code
}

// fails reports whether the client does not get what it asked for.
func (a *response) fails() bool {
	return a.Status >= 400 || a.Dropped || a.Malformed || a.call != nil && a.call.Result.Code != ""
}

// hubStatus is what the hub itself answered to r, which a dialect may have told with another status. A 416 counts as
// 206 if it says that the client has the whole file: it asked for what follows the last byte, as tools do that take
// up a download where it had ended (RFC 9110 section 15.5.17).
func (a *response) hubStatus(r *http.Request) int {
	if a.Header().Get("Content-Range") == "bytes */"+strings.Trim(r.Header.Get("Range"), "bytes=-") {
		return http.StatusPartialContent
	}
	if a.call != nil && a.Status != 0 {
		return a.call.Result.Status
	}
	return a.Status
}

// created returns the claims of the session that was answered with, if one was.
func (a *response) created(hub *Parts) (jwt.Claims, bool) {
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if a.call != nil {
		c, err := hub.Signer.Open(a.call.Result.AccessToken)
		return c, err == nil && a.Keep
	}
	if !a.Keep || a.Status >= 300 || json.Unmarshal(a.Kept, &body) != nil {
		return jwt.Claims{}, false
	}
	c, err := hub.Signer.Open(body.AccessToken)
	return c, err == nil
}

// given returns the pair that was answered with, or nil.
func (a *response) given(hub *Parts) *judge.Pair {
	c, ok := a.created(hub)
	if !ok {
		return nil
	}
	return &judge.Pair{Generation: c.Generation, Issued: time.UnixMilli(c.IssuedAt), Lifetime: time.Duration(c.ExpiresAt-c.IssuedAt) * time.Millisecond}
}

// readRetryAfter returns how long from now a client is asked to wait, in seconds or until a date (RFC 9110 section
// 10.2.3); 0 if it isn't.
func readRetryAfter(value string, now time.Time) time.Duration {
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	seconds, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 30) // of more it returns the most
	return time.Duration(seconds) * time.Second
}

// stateOfCode is what the hub's judgement says of a token. It counts more than a look at the token beforehand, which
// another request may have overtaken.
var stateOfCode = map[string]string{
	"token_malformed": "malformed", "token_expired": "expired", "token_revoked": "revoked", "token_reused": "spent", "token_wrong_type": "wrong_type",
}
