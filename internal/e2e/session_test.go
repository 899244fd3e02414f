// Tokens and sessions: what they hold, how long they live, rotation, reuse, logout.

package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTokensHoldWhatTheContractSays(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.login("admin")

	access, refresh := payload(t, p.access), payload(t, p.refresh)

	now := float64(noon.Unix())
	if got := keysOf(access); !slices.Equal(got, []string{"exp", "iat", "iss", "jti", "role", "sid", "sub", "username"}) {
		t.Errorf("access claims %v", got)
	}
	if got := keysOf(refresh); !slices.Equal(got, []string{"exp", "gen", "iat", "iss", "jti", "sid", "sub"}) {
		t.Errorf("refresh claims %v", got)
	}
	if access["iss"] != "authhub" || access["sub"] != "user-admin" || access["username"] != "admin" || access["role"] != "admin" {
		t.Errorf("access claims %v", access)
	}
	if access["iat"] != now || access["exp"] != now+900 || refresh["exp"] != now+604800 {
		t.Errorf("iat %v exp %v, refresh exp %v, now %v", access["iat"], access["exp"], refresh["exp"], now)
	}
	if access["sid"] != refresh["sid"] || access["jti"] == refresh["jti"] {
		t.Errorf("sid %v %v jti %v %v", access["sid"], refresh["sid"], access["jti"], refresh["jti"])
	}
	for token, header := range map[string]string{p.access: `{"alg":"HS256","typ":"at+jwt"}`, p.refresh: `{"alg":"HS256","typ":"rt+jwt"}`} {
		if got, _ := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0]); string(got) != header {
			t.Errorf("header %s", got)
		}
	}
}

func TestLifetimesToOrder(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	order := func(access, refresh string) *answer {
		return h.post(loginPath, `{"username":"demo","password":"demo-password","expires_in":`+access+`,"refresh_expires_in":`+refresh+`}`, "Content-Type", "application/json")
	}

	body := order("0.25", "1.5").want(200).json()
	if body["expires_in"] != 0.25 || body["refresh_expires_in"] != 1.5 {
		t.Errorf("%v %v", body["expires_in"], body["refresh_expires_in"])
	}
	order("900", "604800").want(200)
	h.post(loginPath, "username=demo&password=demo-password&expires_in=5", formType...).want(200)
	h.post(loginPath, "username=demo&password=demo-password&expires_in=1_0", formType...).want(422, "invalid_field")
	for _, bad := range []string{"0", "-1", "900.001", "1e999", `"NaN"`, `"Inf"`, `"5s"`, "true", "[5]"} {
		order(bad, "1").want(422, "invalid_field")
		if bad != "900.001" { // longer than an access token may live, not than a refresh token
			order("1", bad).want(422, "invalid_field")
		}
	}
}

func TestAccessTokenExpiresToTheMillisecond(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.post(loginPath, object{"username": "demo", "password": "demo-password", "expires_in": 2.5}).want(200).pair()

	h.advance(2499 * time.Millisecond)
	h.me(p.access).want(200)
	h.advance(time.Millisecond) // RFC 7519 section 4.1.4: on or after
	h.me(p.access).want(401, "token_expired")

	body := h.refresh(p.refresh).want(200)
	if got := body.json()["expires_in"]; got != 2.5 {
		t.Errorf("the session keeps its lifetimes; expires_in is %v", got)
	}
	h.me(body.pair().access).want(200)
}

func TestBearer(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.login("demo")
	for _, row := range []struct {
		name, header string
		status       int
		code         string
	}{
		{"scheme in any case", "bEARER " + p.access, 200, ""},
		{"two spaces", "Bearer  " + p.access, 200, ""},
		{"other scheme", "Basic ZGVtbzpkZW1v", 401, "token_missing"},
		{"no token", "Bearer", 401, "token_missing"},
		{"no token but a space", "Bearer  ", 401, "token_missing"},
		{"a comma", "Bearer ,", 401, "token_malformed"},
		{"no scheme", p.access, 401, "token_missing"},
		{"refresh token", "Bearer " + p.refresh, 401, "token_wrong_type"},
		{"two tokens", "Bearer " + p.access + " " + p.access, 401, "token_malformed"},
	} {
		a := h.get(mePath, "Authorization", row.header).want(row.status)
		if row.code != "" {
			a.want(row.status, row.code)
		}
	}
	h.get(mePath).want(401, "token_missing")
	h.get(mePath, "Authorization", "Bearer "+p.access, "Authorization", "Bearer "+p.access).want(401, "token_malformed")
	h.refresh(p.access).want(401, "token_wrong_type")

	// RFC 6750 section 3.1: no error code for a request without a token.
	if got := h.get(mePath).header.Get("WWW-Authenticate"); got != `Bearer realm="authhub"` {
		t.Errorf("challenge %q", got)
	}
	if got := h.me("x").header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `Bearer realm="authhub", error="invalid_token", error_description="`) {
		t.Errorf("challenge %q", got)
	}
}

func TestRefreshRotates(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	first := h.login("demo")

	second := h.refresh(first.refresh).want(200).pair()
	third := h.post(refreshPath, nil, bearer(second.refresh)...).want(200).pair()
	fourth := h.post(refreshPath, "refreshToken="+third.refresh, formType...).want(200).pair()
	// The body's token counts where the header carries the access token, as it does in many clients.
	fifth := h.post(refreshPath, map[string]string{"refresh_token": fourth.refresh}, bearer(fourth.access)...).want(200).pair()

	for _, p := range []pair{first, second, third, fourth, fifth} {
		h.me(p.access).want(200) // rotation spends refresh tokens only
	}
	if payload(t, fifth.refresh)["gen"] != 4.0 {
		t.Errorf("gen %v", payload(t, fifth.refresh)["gen"])
	}
}

func TestReuseOfASpentRefreshTokenEndsTheSession(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	other := h.login("demo")
	first := h.login("demo")
	second := h.refresh(first.refresh).want(200).pair()

	h.refresh(first.refresh).want(401, "token_reused")

	h.me(first.access).want(401, "token_revoked")
	h.me(second.access).want(401, "token_revoked")
	h.refresh(second.refresh).want(401, "token_revoked")
	h.refresh(first.refresh).want(401, "token_reused") // as before
	h.me(other.access).want(200)
}

func TestOneOfManyRefreshesWins(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.login("demo")
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for range 8 {
		wg.Go(func() {
			a := h.refresh(p.refresh)
			mu.Lock()
			defer mu.Unlock()
			codes[fmt.Sprint(a.status, a.str("code"))]++
		})
	}
	wg.Wait()
	if codes["200"] != 1 || codes["401token_reused"] != 7 {
		t.Errorf("%v", codes)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for _, row := range []struct {
		name  string
		token func(pair) string
	}{
		{"with the access token", func(p pair) string { return p.access }},
		{"with the refresh token", func(p pair) string { return p.refresh }},
	} {
		p := h.login("demo")
		if a := h.logout(row.token(p)).want(204); len(a.body) > 0 {
			t.Errorf("%s: body %q", row.name, a.body)
		}
		h.me(p.access).want(401, "token_revoked")
		h.refresh(p.refresh).want(401, "token_revoked")
		h.logout(row.token(p)).want(204) // twice is no error
	}

	late := h.login("demo")
	h.advance(16 * time.Minute)
	h.logout(late.access).want(204)
	h.refresh(late.refresh).want(401, "token_revoked")
	h.logout(late.access+"x").want(401, "token_malformed")
	h.post(logoutPath, nil).want(401, "token_missing")
}

func TestLogoutOfAllSessions(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	one, two, foreign := h.login("demo"), h.login("demo"), h.login("admin")

	h.post(logoutPath+"?all=perhaps", nil, bearer(one.access)...).want(422, "invalid_field")
	h.post(logoutPath+"?all=true", nil, bearer(one.access)...).want(204)

	h.me(one.access).want(401, "token_revoked")
	h.me(two.access).want(401, "token_revoked")
	h.me(foreign.access).want(200)
	after := h.login("demo")
	h.post(logoutPath+"?all=true", nil, bearer(one.access)...).want(204) // its session has no say any more
	h.me(after.access).want(200)
}

func TestLogoutOfOtherSessions(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	own, other, foreign := h.login("demo"), h.login("demo"), h.login("admin")

	h.post(logoutPath+"?others=perhaps", nil, bearer(own.access)...).want(422, "invalid_field")
	h.post(logoutPath+"?others=true&all=true", nil, bearer(own.access)...).want(422, "invalid_field")
	h.post(logoutPath+"?others=true", nil, bearer(own.access)...).want(204)

	h.me(own.access).want(200)
	h.me(other.access).want(401, "token_revoked")
	h.me(foreign.access).want(200)
	h.post(logoutPath+"?others=true", nil, bearer(other.access)...).want(204) // its session has no say any more
	h.me(own.access).want(200)
}

func TestExpiredSessionsMakeRoomFirst(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	kept := h.login("demo")
	h.post(loginPath, object{"username": "demo", "password": "demo-password", "expires_in": 1, "refresh_expires_in": 1}).want(200)
	for range 1_000 - 2 {
		h.login("demo")
	}
	h.advance(2 * time.Second)

	h.login("demo")

	h.me(kept.access).want(200)
}

func TestAStateThatOutlivesARestart(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0)}
	h := start(t, flags...)
	kim := h.post(registerPath, object{"username": "kim", "password": "12345678"}).want(201).pair()
	spent := h.login("demo")
	current := h.refresh(spent.refresh).want(200).pair()
	gone := h.login("demo")
	h.logout(gone.access).want(204)
	stolen := h.login("demo")
	h.refresh(stolen.refresh).want(200)
	h.refresh(stolen.refresh).want(401, "token_reused")
	h.process.stop(t)

	h = start(t, flags...)
	h.me(kim.access).want(200)
	h.post(loginPath, object{"username": "kim", "password": "12345678"}).want(200)
	h.me(current.access).want(200)
	h.me(gone.access).want(401, "token_revoked")
	h.refresh(gone.refresh).want(401, "token_revoked")
	h.me(stolen.access).want(401, "token_revoked")
	h.refresh(stolen.refresh).want(401, "token_reused") // the journal remembers why
	h.refresh(spent.refresh).want(401, "token_reused")
	h.refresh(current.refresh).want(401, "token_revoked")
}
