// What a hub keeps and where, and the answer that each error gets.

package main

import (
	"errors"
	"net/http"
	"syscall"
	"time"

	"authhub/internal/account"
	"authhub/internal/disk"
	"authhub/internal/jwt"
	"authhub/internal/passwd"
	"authhub/internal/reply"
	"authhub/internal/results"
	"authhub/internal/runs"
)

var errBusy = errors.New("too much work waiting")

// answerFor returns the answer that err gets: its own, or that of the room's error which it is or wraps.
func answerFor(err error) *reply.Error {
	var throttled *passwd.ThrottledError
	if errors.As(err, &throttled) {
		return reply.RetryAfter(429, "too_many_attempts",
			"Too many failed logins for this user name from this address. Wait a little.", throttled.Wait)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.answer
		}
	}
	return reply.As(err)
}

// busy is shared, so never written to.
var busy = reply.Fail(503, "busy", "The hub has as much work waiting as it takes on. Try again.")

// sentinels are the errors of the rooms below, with their places in the contract.
var sentinels = []struct {
	err    error
	answer *reply.Error // shared, so never written to
}{
	{jwt.ErrMalformed, reply.Fail(401, "token_malformed", "The token is not one that this hub issued: its form or its signature is wrong.")},
	{jwt.ErrNotYet, reply.Fail(401, "token_malformed", "The token is not valid yet (its nbf is in the future).")},
	{jwt.ErrExpired, reply.Fail(401, "token_expired", "The token has expired. Refresh, or log in again.")},
	{jwt.ErrWrongType, reply.Fail(401, "token_wrong_type", "The token is of the wrong type for this operation (access or refresh).")},
	{account.ErrRevoked, reply.Fail(401, "token_revoked", "The session of this token has ended. Log in again.")},
	{account.ErrReused, reply.Fail(401, "token_reused", "This refresh token was spent before, so its session has been ended. Log in again.")},
	{account.ErrDisabled, reply.Fail(403, "account_disabled", "The account is disabled.")},
	{account.ErrUsernameTaken, taken("username", "The user name is taken. Choose another one.")},
	{account.ErrEmailTaken, taken("email", "The e-mail address belongs to another account.")},
	{account.ErrUserLimit, reply.Fail(507, "user_limit", "The hub holds as many users as it can.")},
	{disk.ErrFull, reply.Fail(507, "disk_full", "The disk is full. Free some space; if the store has failed (see /healthz), restart the hub then.")},
	{account.ErrUnavailable, notAnswering("The store does not answer. Nothing was changed. Try again.")},
	{account.ErrUnknown, notAnswering("The store did not answer in time. The change may have been made. Try again.")},
	{account.ErrFailed, reply.Fail(503, "store_unavailable", "The store could not write and takes no changes until the hub is restarted. Reading goes on.")},
	{passwd.ErrBusy, busy},
	{runs.ErrBusy, busy},
	{results.ErrUploads, busy},
	{results.ErrClosed, busy},
	{syscall.EMFILE, busy}, // no file descriptor left in the process
	{syscall.ENFILE, busy}, // none left in the system
	{results.ErrBroken, reply.Fail(503, "store_unavailable", "The folder of the three files can't be brought to one whole set; the log says why. Mend it, then run again.")},
	{errBusy, busy},
	{account.ErrReplaced, reply.Fail(503, "busy", "The hub was reset, or a snapshot put back, while this request was under way. Nothing of it remains.")},
}

// notAnswering is the answer of a store that may come back by itself.
func notAnswering(detail string) *reply.Error {
	return reply.RetryAfter(503, "store_unavailable", detail, 2*time.Second)
}

// taken is the answer to a registration of what another account has.
func taken(field, detail string) *reply.Error {
	e := reply.Fail(http.StatusConflict, field+"_taken", detail)
	e.Fields = []reply.FieldError{{Field: field, Detail: detail}}
	return e
}
