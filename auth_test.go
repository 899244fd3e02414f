package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const (
	registerPath = "/api/authentication/register"
	loginPath    = "/api/authentication/login"
	refreshPath  = "/api/authentication/refresh"
	logoutPath   = "/api/authentication/logout"
)

// payload returns the claims of a token, unchecked.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a compact JWS: %q", token)
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestALifeOfASession goes once through every operation on accounts; internal/e2e tells the rest from outside.
func TestALifeOfASession(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	first := h.post(registerPath, object{"username": "kim", "password": "correct horse"}).want(201).pair()
	h.post(registerPath, object{"username": "KIM", "password": "correct horse"}).want(409, "username_taken")
	h.post(loginPath, object{"username": "kim", "password": "wrong horse"}).want(401, "invalid_credentials")
	h.me(first.access).want(200)

	h.clock.advance(15 * time.Minute)
	h.me(first.access).want(401, "token_expired")
	second := h.refreshWith(first.refresh).want(200).pair()
	h.me(second.access).want(200)

	h.post(logoutPath, nil, bearerOf(second.access)...).want(204)
	h.me(second.access).want(401, "token_revoked")
	h.refreshWith(second.refresh).want(401, "token_revoked")

	stolen := h.post(loginPath, object{"username": "kim", "password": "correct horse"}).want(200).pair()
	third := h.refreshWith(stolen.refresh).want(200).pair()
	h.refreshWith(stolen.refresh).want(401, "token_reused")
	h.me(third.access).want(401, "token_revoked")
}

func TestLogoutRefusesAQueryThatItWouldIgnore(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	pair := h.login("demo")
	for query, field := range map[string]string{"all": "all", "all=": "all", "ALL=true": "ALL", "all=yes": "all", "all=true&all=false": "all", "everywhere=1": "everywhere"} {
		refused := h.post(logoutPath+"?"+query, nil, bearerOf(pair.access)...).want(422, "invalid_field")
		if got := refused.json()["errors"].([]any)[0].(map[string]any)["field"]; got != field {
			t.Errorf("%s: field %v", query, got)
		}
	}
	h.me(pair.access).want(200)
	h.post(logoutPath+"?all=false", nil, bearerOf(pair.access)...).want(204)
}

func TestAPairGivenAgainSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.do("PUT", "/lab/refresh-policy", object{"reuse": "grace", "grace": "1h"}).want(200)
	pair := h.login("demo")
	h.post(refreshPath, object{"refresh_token": pair.refresh}).want(200)
	for _, row := range []struct {
		advance       string
		left, refresh float64
	}{{"5m", 600, 604800 - 300}, {"11m", 0, 604800 - 960}} {
		h.do("PUT", "/lab/clock", object{"advance": row.advance}).want(200)
		again := h.post(refreshPath, object{"refresh_token": pair.refresh}).want(200).json()
		if again["expires_in"] != row.left || again["refresh_expires_in"] != row.refresh {
			t.Errorf("after %s: %v and %v, want %v and %v", row.advance, again["expires_in"], again["refresh_expires_in"], row.left, row.refresh)
		}
	}
}
