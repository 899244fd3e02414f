package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// findings returns the report in lines of rule and requests, and holds every sentence against the house's rules.
func (h *testHub) findings() string {
	h.t.Helper()
	var lines []string
	for _, f := range h.get("/lab/report").want(200).json()["findings"].([]any) {
		finding := f.(object)
		if s := finding["sentence"].(string); !strings.Contains(s, "equest") || !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") {
			h.t.Errorf("sentence %q", s)
		}
		lines = append(lines, fmt.Sprint(finding["rule"], finding["seqs"]))
	}
	return strings.Join(lines, "\n")
}

// wrongPassword is a login that fails, the same every time.
var wrongPassword = object{"username": "demo", "password": "wrong"}

func TestReport(t *testing.T) {
	t.Parallel()
	// drain lets the access token run out, as a client would see it.
	drain := func(h *testHub, p pair) {
		h.clockTo(object{"advance": "15m"})
		h.me(p.access).want(401, "token_expired")
	}
	// endedElsewhere logs in once more, has p log out everywhere, and meets the 401 that tells of it.
	endedElsewhere := func(h *testHub, p pair) pair {
		other := h.login("demo")
		h.post("/api/authentication/logout?all=true", nil, bearerOf(p.access)...).want(204)
		h.me(other.access).want(401, "token_revoked")
		return other
	}
	for _, tt := range []struct {
		name  string
		story func(t *testing.T, h *testHub, p pair) // request 1 is the login that gave p
		want  string
	}{
		{"a clean client", func(t *testing.T, h *testHub, p pair) {
			for range 5 {
				h.me(p.access).want(200)
				drain(h, p)
				p = h.refreshWith(p.refresh).want(200).pair()
			}
			h.post("/api/authentication/logout", nil, bearerOf(p.access)...).want(204)
			h.post("/api/authentication/logout", nil, bearerOf(p.access)...).want(204)
			h.me(h.login("demo").access).want(200)
		}, ""},
		{"a clean client in parallel", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "15m"})
			for range 3 {
				h.me(p.access).want(401, "token_expired")
			}
			next := h.refreshWith(p.refresh).want(200).pair()
			h.me(p.access).want(401, "token_expired") // sent before the client had the new one
			for range 4 {
				h.me(next.access).want(200)
			}
		}, ""},
		{"a clean client refreshes ahead of time", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "14m"})
			h.me(h.refreshWith(p.refresh).want(200).pair().access).want(200)
		}, ""},
		{"a clean client meets failures", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.fault(object{"operation": "refresh", "status": 503, "headers": object{"Retry-After": "3"}})
			h.refreshWith(p.refresh).want(503)
			time.Sleep(3 * time.Second)
			h.refreshWith(p.refresh).want(200)
			for range 3 {
				h.get("/api/files/phase2/impact").want(404)
				time.Sleep(2 * time.Second)
			}
		}, ""},
		{"a clean client is logged in by someone else's fault", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 401})
			h.me(p.access).want(401)
			h.refreshWith(p.refresh).want(200)
		}, ""},

		{"two refreshes for one expiry", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.fault(object{"operation": "refresh", "hold": 2})
			race(h, p)
		}, "two_refreshes[3 4]"},
		{"two refreshes under grace", func(t *testing.T, h *testHub, p pair) {
			h.do("PUT", "/lab/refresh-policy", object{"reuse": "grace", "grace": "10s"}).want(200)
			drain(h, p)
			h.fault(object{"operation": "refresh", "hold": 2})
			race(h, p)
		}, "two_refreshes[3 4]"},
		{"a spent refresh token", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.me(h.refreshWith(p.refresh).want(200).pair().access).want(200)
			h.refreshWith(p.refresh).want(401, "token_reused")
		}, "spent_refresh_token[3 5]"},
		{"a spent refresh token, at once", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.refreshWith(p.refresh).want(200)
			h.refreshWith(p.refresh).want(401, "token_reused")
		}, "spent_refresh_token[3 4]\ntwo_refreshes[3 4]"},
		{"two refreshes for one expiry, the second one with the new token", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			next := h.refreshWith(p.refresh).want(200).pair()
			h.refreshWith(next.refresh).want(200)
		}, "two_refreshes[3 4]\nrefresh_without_need[4]"},
		{"a refresh without need, some time after one with", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			next := h.refreshWith(p.refresh).want(200).pair()
			h.clockTo(object{"advance": "6s"})
			h.refreshWith(next.refresh).want(200)
		}, "refresh_without_need[4]"},
		{"two refreshes without need", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "1m"})
			next := h.refreshWith(p.refresh).want(200).pair()
			h.refreshWith(next.refresh).want(200)
		}, "refresh_without_need[2]\nrefresh_without_need[3]"},
		{"a refresh in time, while the hub's clock stands", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"frozen": true})
			p = h.post("/api/authentication/login", object{"username": "demo", "password": "demo-password", "expires_in": 2}).want(200).pair()
			for range 3 {
				time.Sleep(1500 * time.Millisecond)
				p = h.refreshWith(p.refresh).want(200).pair()
			}
		}, ""},
		{"a spent refresh token, an expiry later", func(t *testing.T, h *testHub, p pair) {
			h.do("PUT", "/lab/refresh-policy", object{"reuse": "allow"}).want(200)
			drain(h, p)
			h.refreshWith(p.refresh).want(200)
			h.clockTo(object{"advance": "15m"})
			h.refreshWith(p.refresh).want(200)
		}, "spent_refresh_token[3 4]"},
		{"a refresh whose answer is lost", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.fault(object{"operation": "refresh", "drop": "after"})
			dropped(h, func() { h.refreshWith(p.refresh) })
			h.refreshWith(p.refresh).want(401, "token_reused")
			h.login("demo")
		}, ""},

		{"a token after logout", func(t *testing.T, h *testHub, p pair) {
			h.post("/api/authentication/logout", nil, bearerOf(p.access)...).want(204)
			h.me(p.access).want(401, "token_revoked")
			h.get("/api/files/phase2", bearerOf(p.access)...).want(200)
		}, "token_after_logout[2 3]\ntoken_after_logout[2 4]"},
		{"a session that another one's logout ended", func(t *testing.T, h *testHub, p pair) {
			endedElsewhere(h, p)
			h.me(h.login("demo").access).want(200)
		}, ""},
		{"a session that another one's logout ended, used on after the 401", func(t *testing.T, h *testHub, p pair) {
			other := endedElsewhere(h, p)
			h.me(other.access).want(401, "token_revoked") // was on its way
			time.Sleep(reactionTime)
			h.me(other.access).want(401, "token_revoked")
		}, "token_after_logout[3 6]"},
		{"a session younger than another one's logout", func(t *testing.T, h *testHub, p pair) {
			h.post("/api/authentication/logout?all=true", nil, bearerOf(p.access)...).want(204)
			other := h.login("demo")
			h.post("/lab/sessions/"+payload(t, other.access)["sid"].(string)+"/revoke", nil).want(204)
			for range 3 {
				h.me(other.access).want(401, "token_revoked")
				time.Sleep(2 * reactionTime)
			}
		}, ""},
		{"a session that another one's logout ended, and a refresh whose answers are lost", func(t *testing.T, h *testHub, p pair) {
			other := endedElsewhere(h, p)
			h.fault(object{"operation": "refresh", "status": 503})
			h.fault(object{"operation": "refresh", "drop": "after"})
			h.refreshWith(other.refresh).want(503)
			time.Sleep(2 * reactionTime)
			dropped(h, func() { h.refreshWith(other.refresh) })
			time.Sleep(2 * reactionTime)
			h.refreshWith(other.refresh).want(401, "token_revoked")
		}, ""},
		{"a session that another one's logout ended, and a refresh on the 401", func(t *testing.T, h *testHub, p pair) {
			other := endedElsewhere(h, p)
			h.refreshWith(other.refresh).want(401, "token_revoked")
			h.me(h.login("demo").access).want(200)
		}, ""},
		{"a session that another one's logout ended, and two refreshes", func(t *testing.T, h *testHub, p pair) {
			other := endedElsewhere(h, p)
			h.refreshWith(other.refresh).want(401, "token_revoked")
			time.Sleep(reactionTime)
			h.refreshWith(other.refresh).want(401, "token_revoked")
		}, "token_after_logout[3 6]"},
		{"a logout whose answer is lost", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "logout", "drop": "after"})
			dropped(h, func() { h.post("/api/authentication/logout", nil, bearerOf(p.access)...) })
			h.me(p.access).want(401, "token_revoked")
		}, ""},
		{"an ordered token that has expired", func(t *testing.T, h *testHub, p pair) {
			h.me(h.post("/lab/tokens", object{"user": "demo", "defect": "expired"}).want(201).str("token")).want(401, "token_expired")
			h.refreshWith(h.post("/lab/tokens", object{"user": "demo", "kind": "refresh"}).want(201).str("token")).want(200)
			h.me(h.post("/lab/tokens", object{"user": "demo", "defect": "wrong_type"}).want(201).str("token")).want(401, "token_wrong_type")
		}, ""},
		{"a sound token that was ordered, and used badly", func(t *testing.T, h *testHub, p pair) {
			refresh := h.post("/lab/tokens", object{"user": "demo", "kind": "refresh"}).want(201).str("token")
			h.me(refresh).want(401, "token_wrong_type")
			h.refreshWith(refresh).want(200)
			h.refreshWith(refresh).want(401, "token_reused")
			access := h.post("/lab/tokens", object{"user": "demo"}).want(201).str("token")
			h.post("/api/authentication/logout", nil, bearerOf(access)...).want(204)
			h.me(access).want(401, "token_revoked")
		}, "wrong_token_type[2]\nspent_refresh_token[3 4]\ntwo_refreshes[3 4]\ntoken_after_logout[5 6]"},
		{"a session that the lab revoked", func(t *testing.T, h *testHub, p pair) {
			h.post("/lab/sessions/"+payload(t, p.access)["sid"].(string)+"/revoke", nil).want(204)
			h.me(p.access).want(401, "token_revoked")
		}, ""},

		{"a refresh token sent to me", func(t *testing.T, h *testHub, p pair) {
			h.me(p.refresh).want(401, "token_wrong_type")
		}, "wrong_token_type[2]"},
		{"an access token sent to refresh", func(t *testing.T, h *testHub, p pair) {
			h.refreshWith(p.access).want(401, "token_wrong_type")
		}, "wrong_token_type[2]"},
		{"a logout with either token", func(t *testing.T, h *testHub, p pair) {
			h.post("/api/authentication/logout", nil, bearerOf(p.refresh)...).want(204)
		}, ""},

		{"a refresh without need", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "7m"})
			h.refreshWith(p.refresh).want(200)
		}, "refresh_without_need[2]"},
		{"a refresh at half time", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "450s"})
			h.refreshWith(p.refresh).want(200)
		}, ""},
		{"a refresh that the lab made necessary", func(t *testing.T, h *testHub, p pair) {
			h.post("/lab/sessions/"+payload(t, p.access)["sid"].(string)+"/expire", nil).want(200)
			h.refreshWith(p.refresh).want(200)
		}, ""},

		{"the same failed request five times in 5 s", func(t *testing.T, h *testHub, p pair) {
			for range 5 {
				h.post("/api/authentication/login", wrongPassword).want(401)
				time.Sleep(time.Second)
			}
		}, "repeated_failure[2 3 4 5 6]"},
		{"four times", func(t *testing.T, h *testHub, p pair) {
			for range 4 {
				h.post("/api/authentication/login", wrongPassword).want(401)
			}
		}, ""},
		{"five times, slower", func(t *testing.T, h *testHub, p pair) {
			for range 5 {
				h.post("/api/authentication/login", wrongPassword).want(401)
				time.Sleep(1300 * time.Millisecond)
			}
		}, ""},
		{"five times, while the hub's clock is moved on", func(t *testing.T, h *testHub, p pair) {
			for range 5 {
				h.post("/api/authentication/login", wrongPassword).want(401)
				h.clockTo(object{"advance": "10s"})
			}
		}, ""},
		{"five different failures", func(t *testing.T, h *testHub, p pair) {
			for i := range 5 {
				h.post("/api/authentication/login", object{"username": "demo", "password": fmt.Sprint("wrong", i)}).want(401)
			}
		}, ""},
		{"five at once, and one refresh", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "15m"})
			for range 8 {
				h.me(p.access).want(401, "token_expired")
			}
			h.refreshWith(p.refresh).want(200)
		}, ""},
		{"on with the old token after a refresh", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.refreshWith(p.refresh).want(200)
			time.Sleep(reactionTime)
			for range 5 {
				h.me(p.access).want(401, "token_expired")
			}
		}, "repeated_failure[4 5 6 7 8]"},
		{"many at once, the last of them sent just after the refresh", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.refreshWith(p.refresh).want(200)
			for range 8 {
				h.me(p.access).want(401, "token_expired")
			}
		}, ""},
		{"five at once, all failed", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "hold": 8, "status": 503})
			inParallel(8, func() { h.me(p.access).want(503) }).Wait()
		}, ""},
		{"five refreshes with a dead token", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "168h"})
			for range 5 {
				h.refreshWith(p.refresh).want(401, "token_expired")
			}
		}, "repeated_failure[2 3 4 5 6]"},
		{"five successes", func(t *testing.T, h *testHub, p pair) {
			for range 5 {
				h.me(p.access).want(200)
			}
		}, ""},
		{"a connection cut five times", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "drop": "before", "times": 5})
			for range 5 {
				dropped(h, func() { h.me(p.access) })
			}
		}, "repeated_failure[2 3 4 5 6]"},

		{"a retry too early", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "2"}})
			h.me(p.access).want(503)
			time.Sleep(1900 * time.Millisecond)
			h.me(p.access).want(200)
			h.me(p.access).want(200)
		}, "retry_after_ignored[2 3]"},
		{"a retry before the date that was given", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)}})
			h.me(p.access).want(503)
			time.Sleep(59 * time.Second)
			h.me(p.access).want(200)
		}, "retry_after_ignored[2 3]"},
		{"a retry at the date that was given", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)}})
			h.me(p.access).want(503)
			time.Sleep(time.Minute)
			h.me(p.access).want(200)
		}, ""},
		{"a retry in time", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 503, "headers": object{"Retry-After": "2"}})
			h.me(p.access).want(503)
			h.get("/api/files/phase2").want(200)
			time.Sleep(2 * time.Second)
			h.me(p.access).want(200)
		}, ""},
		{"a retry in time, by the hub's clock", func(t *testing.T, h *testHub, p pair) {
			for range 10 {
				h.post("/api/authentication/login", wrongPassword).want(401)
				h.clockTo(object{"advance": "2s"})
			}
			h.post("/api/authentication/login", wrongPassword).want(429)
			h.clockTo(object{"advance": "1m"})
			h.post("/api/authentication/login", wrongPassword).want(401)
		}, ""},

		{"a token in the address", func(t *testing.T, h *testHub, p pair) {
			h.get("/api/authentication/me?access_token=" + p.access).want(401)
			h.get("/api/files/phase2?x=" + p.access).want(200)
			h.get("/api/files/" + p.access).want(404)
			h.get("/?access_token=" + p.access)
			h.get("/" + p.access).want(404)
		}, "token_in_address[2]\ntoken_in_address[3]\ntoken_in_address[4]\ntoken_in_address[5]\ntoken_in_address[6]"},
		{"a query without a token", func(t *testing.T, h *testHub, p pair) {
			h.get("/api/files/phase2?x=1.2.3&y=eyJ&page=token").want(200)
		}, ""},

		{"no refresh after token_expired", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.me(p.access).want(401, "token_expired")
			h.get("/api/files/phase2").want(200)
		}, "no_refresh_after_expiry[2 3]"},
		{"a refresh with an older token that is allowed", func(t *testing.T, h *testHub, p pair) {
			h.do("PUT", "/lab/refresh-policy", object{"reuse": "allow"}).want(200)
			h.clockTo(object{"advance": "15m"})
			next := h.refreshWith(p.refresh).want(200).pair()
			h.me(next.access).want(200)
			drain(h, next)
			h.refreshWith(p.refresh).want(200)
		}, "spent_refresh_token[2 5]"},
		{"a login after token_expired", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.login("demo")
		}, ""},
		{"a logout after token_expired", func(t *testing.T, h *testHub, p pair) {
			drain(h, p)
			h.post("/api/authentication/logout", nil, bearerOf(p.access)...).want(204)
		}, ""},
		{"a refresh that fails after token_expired", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "168h"})
			h.me(p.access).want(401, "token_expired")
			h.refreshWith(p.refresh).want(401, "token_expired")
		}, ""},
		{"nothing after token_expired, when the refresh token had expired too", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "168h"})
			h.me(p.access).want(401, "token_expired")
		}, ""},
		{"a refresh again after a broken answer that was no refresh", func(t *testing.T, h *testHub, p pair) {
			h.clockTo(object{"advance": "10m"})
			h.fault(object{"operation": "refresh", "malformed": true})
			h.refreshWith(p.refresh).want(200)
			h.refreshWith(p.refresh).want(200)
		}, ""},
		{"nothing after an injected token_expired", func(t *testing.T, h *testHub, p pair) {
			h.fault(object{"operation": "me", "status": 401, "body": object{"code": "token_expired"}})
			h.me(p.access).want(401)
		}, "no_refresh_after_expiry[2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTestLab(t)
				tt.story(t, h, h.login("demo"))
				if got := h.findings(); got != tt.want {
					t.Errorf("the report says\n%s\nwant\n%s\n%s", got, tt.want, h.get("/lab/requests").body)
				}
			})
		})
	}
}

// race refreshes with one token twice at once.
func race(h *testHub, p pair) {
	inParallel(2, func() { h.refreshWith(p.refresh) }).Wait()
}

// dropped calls what a fault cuts the connection of.
func dropped(h *testHub, call func()) {
	h.t.Helper()
	defer func() {
		if recover() == nil {
			h.t.Error("nothing was dropped")
		}
	}()
	call()
}
