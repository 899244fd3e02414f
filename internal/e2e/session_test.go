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

	access, refresh := payload(t, p.Access), payload(t, p.Refresh)

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
	for token, header := range map[string]string{p.Access: `{"alg":"HS256","typ":"at+jwt"}`, p.Refresh: `{"alg":"HS256","typ":"rt+jwt"}`} {
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

	body := order("0.25", "1.5").Want(200).JSON()
	if body["expires_in"] != 0.25 || body["refresh_expires_in"] != 1.5 {
		t.Errorf("%v %v", body["expires_in"], body["refresh_expires_in"])
	}
	order("900", "604800").Want(200)
	h.post(loginPath, "username=demo&password=demo-password&expires_in=5", formType...).Want(200)
	h.post(loginPath, "username=demo&password=demo-password&expires_in=1_0", formType...).Want(422, "invalid_field")
	for _, bad := range []string{"0", "-1", "900.001", "1e999", `"NaN"`, `"Inf"`, `"5s"`, "true", "[5]"} {
		order(bad, "1").Want(422, "invalid_field")
		if bad != "900.001" { // longer than an access token may live, not than a refresh token
			order("1", bad).Want(422, "invalid_field")
		}
	}
}

func TestAccessTokenExpiresToTheMillisecond(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.post(loginPath, object{"username": "demo", "password": "demo-password", "expires_in": 2.5}).Want(200).Pair()

	h.advance(2499 * time.Millisecond)
	h.me(p.Access).Want(200)
	h.advance(time.Millisecond) // RFC 7519 section 4.1.4: on or after
	h.me(p.Access).Want(401, "token_expired")

	body := h.refresh(p.Refresh).Want(200)
	if got := body.JSON()["expires_in"]; got != 2.5 {
		t.Errorf("the session keeps its lifetimes; expires_in is %v", got)
	}
	h.me(body.Pair().Access).Want(200)
}

func TestATokenComesInOneAuthorizationHeader(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.login("demo")
	for _, row := range []struct {
		name, header string
		status       int
		code         string
	}{
		{"scheme in any case", "bEARER " + p.Access, 200, ""},
		{"two spaces", "Bearer  " + p.Access, 200, ""},
		{"other scheme", "Basic ZGVtbzpkZW1v", 401, "token_missing"},
		{"no token", "Bearer", 401, "token_missing"},
		{"no token but a space", "Bearer  ", 401, "token_missing"},
		{"a comma", "Bearer ,", 401, "token_malformed"},
		{"no scheme", p.Access, 401, "token_missing"},
		{"refresh token", "Bearer " + p.Refresh, 401, "token_wrong_type"},
		{"two tokens", "Bearer " + p.Access + " " + p.Access, 401, "token_malformed"},
	} {
		a := h.get(mePath, "Authorization", row.header).Want(row.status)
		if row.code != "" {
			a.Want(row.status, row.code)
		}
	}
	h.get(mePath).Want(401, "token_missing")
	h.get(mePath, "Authorization", "Bearer "+p.Access, "Authorization", "Bearer "+p.Access).Want(401, "token_malformed")
	h.refresh(p.Access).Want(401, "token_wrong_type")

	// RFC 6750 section 3.1: no error code for a request without a token.
	if got := h.get(mePath).Header.Get("WWW-Authenticate"); got != `Bearer realm="authhub"` {
		t.Errorf("challenge %q", got)
	}
	if got := h.me("x").Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `Bearer realm="authhub", error="invalid_token", error_description="`) {
		t.Errorf("challenge %q", got)
	}
}

func TestRefreshRotates(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	first := h.login("demo")

	second := h.refresh(first.Refresh).Want(200).Pair()
	third := h.post(refreshPath, nil, bearer(second.Refresh)...).Want(200).Pair()
	fourth := h.post(refreshPath, "refreshToken="+third.Refresh, formType...).Want(200).Pair()
	// The body's token counts where the header carries the access token, as it does in many clients.
	fifth := h.post(refreshPath, map[string]string{"refresh_token": fourth.Refresh}, bearer(fourth.Access)...).Want(200).Pair()

	for _, p := range []pair{first, second, third, fourth, fifth} {
		h.me(p.Access).Want(200) // rotation spends refresh tokens only
	}
	if payload(t, fifth.Refresh)["gen"] != 4.0 {
		t.Errorf("gen %v", payload(t, fifth.Refresh)["gen"])
	}
}

func TestReuseOfASpentRefreshTokenEndsTheSession(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	other := h.login("demo")
	first := h.login("demo")
	second := h.refresh(first.Refresh).Want(200).Pair()

	h.refresh(first.Refresh).Want(401, "token_reused")

	h.me(first.Access).Want(401, "token_revoked")
	h.me(second.Access).Want(401, "token_revoked")
	h.refresh(second.Refresh).Want(401, "token_revoked")
	h.refresh(first.Refresh).Want(401, "token_reused") // as before
	h.me(other.Access).Want(200)
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
			a := h.refresh(p.Refresh)
			mu.Lock()
			defer mu.Unlock()
			codes[fmt.Sprint(a.Status, a.Text("code"))]++
		})
	}
	wg.Wait()
	if codes["200"] != 1 || codes["401token_reused"] != 7 {
		t.Errorf("%v", codes)
	}
}

func TestLogoutTakesEitherTokenOfTheSession(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for _, row := range []struct {
		name  string
		token func(pair) string
	}{
		{"with the access token", func(p pair) string { return p.Access }},
		{"with the refresh token", func(p pair) string { return p.Refresh }},
	} {
		p := h.login("demo")
		if a := h.logout(row.token(p)).Want(204); len(a.Body) > 0 {
			t.Errorf("%s: body %q", row.name, a.Body)
		}
		h.me(p.Access).Want(401, "token_revoked")
		h.refresh(p.Refresh).Want(401, "token_revoked")
		h.logout(row.token(p)).Want(204) // twice is no error
	}

	late := h.login("demo")
	h.advance(16 * time.Minute)
	h.logout(late.Access).Want(204)
	h.refresh(late.Refresh).Want(401, "token_revoked")
	h.logout(late.Access+"x").Want(401, "token_malformed")
	h.post(logoutPath, nil).Want(401, "token_missing")
}

func TestLogoutOfAllSessions(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	one, two, foreign := h.login("demo"), h.login("demo"), h.login("admin")

	h.post(logoutPath+"?all=perhaps", nil, bearer(one.Access)...).Want(422, "invalid_field")
	h.post(logoutPath+"?all=true", nil, bearer(one.Access)...).Want(204)

	h.me(one.Access).Want(401, "token_revoked")
	h.me(two.Access).Want(401, "token_revoked")
	h.me(foreign.Access).Want(200)
	after := h.login("demo")
	h.post(logoutPath+"?all=true", nil, bearer(one.Access)...).Want(204) // its session has no say any more
	h.me(after.Access).Want(200)
}

func TestLogoutOfOtherSessions(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	own, other, foreign := h.login("demo"), h.login("demo"), h.login("admin")

	h.post(logoutPath+"?others=perhaps", nil, bearer(own.Access)...).Want(422, "invalid_field")
	h.post(logoutPath+"?others=true&all=true", nil, bearer(own.Access)...).Want(422, "invalid_field")
	h.post(logoutPath+"?others=true", nil, bearer(own.Access)...).Want(204)

	h.me(own.Access).Want(200)
	h.me(other.Access).Want(401, "token_revoked")
	h.me(foreign.Access).Want(200)
	h.post(logoutPath+"?others=true", nil, bearer(other.Access)...).Want(204) // its session has no say any more
	h.me(own.Access).Want(200)
}

func TestExpiredSessionsMakeRoomFirst(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	kept := h.login("demo")
	h.post(loginPath, object{"username": "demo", "password": "demo-password", "expires_in": 1, "refresh_expires_in": 1}).Want(200)
	for range 1_000 - 2 {
		h.login("demo")
	}
	h.advance(2 * time.Second)

	h.login("demo")

	h.me(kept.Access).Want(200)
}

func TestAStateThatOutlivesARestart(t *testing.T) {
	t.Parallel()
	flags := []string{"-dir", t.TempDir(), "-users", writeUsers(t, 0)}
	h := start(t, flags...)
	kim := h.post(registerPath, object{"username": "kim", "password": "12345678"}).Want(201).Pair()
	spent := h.login("demo")
	current := h.refresh(spent.Refresh).Want(200).Pair()
	gone := h.login("demo")
	h.logout(gone.Access).Want(204)
	stolen := h.login("demo")
	h.refresh(stolen.Refresh).Want(200)
	h.refresh(stolen.Refresh).Want(401, "token_reused")
	h.process.stop(t)

	h = start(t, flags...)
	h.me(kim.Access).Want(200)
	h.post(loginPath, object{"username": "kim", "password": "12345678"}).Want(200)
	h.me(current.Access).Want(200)
	h.me(gone.Access).Want(401, "token_revoked")
	h.refresh(gone.Refresh).Want(401, "token_revoked")
	h.me(stolen.Access).Want(401, "token_revoked")
	h.refresh(stolen.Refresh).Want(401, "token_reused") // the journal remembers why
	h.refresh(spent.Refresh).Want(401, "token_reused")
	h.refresh(current.Refresh).Want(401, "token_revoked")
}
