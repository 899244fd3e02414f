package dialect_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"authhub/internal/dialect"
)

func TestBuiltinDialectsAreSound(t *testing.T) {
	t.Parallel()
	want := []string{"cookie", "directus", "directus-cookie", "dj-rest-auth", "dummyjson", "firebase", "oauth2", "simplejwt", "supabase"}
	if got := dialect.Names(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	for _, name := range dialect.Names() {
		d := builtin(t, name)
		if d.Name() != name {
			t.Errorf("%s calls itself %q", name, d.Name())
		}
		again := parse(t, string(d.Description()))
		if string(again.Description()) != string(d.Description()) || len(again.Operations()) != len(d.Operations()) {
			t.Errorf("%s: its description does not read as itself", name)
		}
	}
	if _, ok := dialect.Builtin("../dialect"); ok {
		t.Error("a path is no name")
	}
}

// wireShapes are requests of clients of the built-in dialects, and what the API answers.
var wireShapes = []struct {
	dialect, on, body, header string
	status                    int
	operation                 string
	want                      []string // parts of the body
}{
	{"oauth2", "POST /oauth/token", "grant_type=password&username=demo&password=demo-password", "", 200, "login", []string{`"token_type":"Bearer"`, `"expires_in":900,`, `"refresh_token":"` + token("refresh"), `"scope":"profile email"`}},
	{"oauth2", "POST /oauth/token", "grant_type=password&username=demo&password=demo-password&scope=a+b", "Authorization: Basic aWQ6c2VjcmV0", 200, "login", []string{`"scope":"a b"`}},
	{"oauth2", "POST /oauth/token", "grant_type=password&username=demo&password=wrong", "", 400, "login", []string{`{"error":"invalid_grant","error_description":"Why."}`}},
	{"oauth2", "POST /oauth/token", "grant_type=refresh_token&refresh_token=dead", "", 400, "refresh", []string{`"error":"invalid_grant"`}},
	{"oauth2", "POST /oauth/token", "grant_type=authorization_code&code=x", "", 400, "other", []string{`"error":"unsupported_grant_type"`}},
	{"oauth2", "POST /oauth/token", "", "", 400, "other", []string{`"error":"invalid_request"`}},
	{"oauth2", "GET /oauth/token", "", "", 405, "other", []string{`"error":"method_not_allowed"`}},
	{"oauth2", "POST /oauth/revoke", "token=dead", "", 200, "logout", []string{"{}\n"}},
	{"oauth2", "POST /oauth/revoke", "token=" + token("refresh"), "", 200, "logout", []string{"{}\n"}},
	{"oauth2", "POST /oauth/revoke", "", "", 400, "logout", []string{`"error":"invalid_request"`}},
	{"oauth2", "POST /oauth/introspect", "token=dead", "", 200, "introspect", []string{`{"active":false}`}},
	{"oauth2", "POST /oauth/introspect", "", "", 200, "introspect", []string{`{"active":false}`}},
	{"oauth2", "POST /oauth/introspect", "token=" + token("access"), "", 200, "introspect", []string{`"active":true`, `"sub":"user-demo"`, `"exp":1767226500}`}},
	{"oauth2", "GET /oauth/userinfo", "", "Authorization: bearer " + token("access"), 200, "me", []string{`{"sub":"user-demo","preferred_username":"demo","email":"demo@example.test"}`}},
	{"oauth2", "GET /.well-known/oauth-authorization-server", "", "", 200, "other", []string{`"issuer":"http://hub.test/ns/a"`, `"token_endpoint":"http://hub.test/ns/a/oauth/token"`}},
	{"supabase", "POST /auth/v1/token?grant_type=password", `{"email":"demo","password":"demo-password"}`, "Authorization: Bearer anon", 200, "login", []string{`"token_type":"bearer"`, `"expires_at":1767226500,`, `"aud":"authenticated"`, `"user_metadata":{}`}},
	{"supabase", "POST /auth/v1/token?grant_type=refresh_token", `{"refresh_token":"dead"}`, "", 400, "refresh", []string{`"code":"session_expired"`}},
	{"supabase", "GET /auth/v1/user", "", "Authorization: Bearer anon", 403, "me", []string{`{"code":"bad_jwt","message":"Why."}`}},
	{"supabase", "POST /auth/v1/logout?scope=others", "", "Authorization: Bearer " + token("access"), 204, "logout", nil},
	{"supabase", "POST /auth/v1/signup", `{"email":"new@example.test","password":"new-password","data":{"name":"New"}}`, "", 200, "register", []string{`"access_token"`}},
	{"directus", "POST /auth/login", `{"email":"demo@example.test","password":"demo-password"}`, "", 200, "login", []string{`{"data":{"access_token":`, `"expires":900000,`}},
	{"directus", "POST /auth/login/", `{"email":"demo@example.test","password":"x"}`, "", 401, "login", []string{`{"errors":[{"message":"Invalid user credentials.","extensions":{"code":"INVALID_CREDENTIALS"}}]}`}},
	{"simplejwt", "POST /api/token/refresh", `{"refresh":"` + token("refresh") + `"}`, "", 200, "refresh", []string{`{"access":"` + token("access") + `"}`}},
	{"simplejwt", "POST /api/token/verify/", `{"token":"dead"}`, "", 401, "introspect", []string{`{"detail":"Token is invalid","code":"token_not_valid"}`}},
	{"simplejwt", "POST /api/token/verify/", `{"token":"` + token("access") + `"}`, "", 200, "introspect", []string{"{}\n"}},
	{"simplejwt", "GET /api/me/", "", "Authorization: JWT " + token("access"), 200, "me", []string{`"username":"demo"`}},
	{"dj-rest-auth", "POST /dj-rest-auth/login/", `{"username":"demo","password":"x"}`, "", 400, "login", []string{`{"non_field_errors":["Unable to log in with provided credentials."]}`}},
	{"dj-rest-auth", "GET /dj-rest-auth/user/", "", "Cookie: my-app-auth=" + token("access"), 200, "me", []string{`{"pk":"user-demo","username":"demo","email":"demo@example.test","first_name":"","last_name":""}`}},
	{"dummyjson", "GET /auth/me", "", "Authorization: Bearer " + token("access"), 200, "me", []string{`{"id":"user-demo","username":"demo"`}},
	{"firebase", "POST /identitytoolkit.googleapis.com/v1/accounts:lookup?key=k", `{"idToken":"` + token("access") + `"}`, "", 200, "me", []string{`"users":[{"localId":"user-demo"`, `"createdAt":"1767225600000"`}},
	{"firebase", "POST /securetoken.googleapis.com/v1/token?key=k", "grant_type=refresh_token&refresh_token=dead", "", 400, "refresh", []string{`{"error":{"code":400,"message":"TOKEN_EXPIRED"`}},
	{"cookie", "POST /api/authentication/refresh", "", "Cookie: refresh_token=" + token("refresh"), 200, "refresh", []string{`{"access_token":"`, `"user":{"id":"user-demo"`}},
}

func TestWireShapes(t *testing.T) {
	t.Parallel()
	for _, row := range wireShapes {
		h := new(stubHub)
		var headers []string
		if row.header != "" {
			headers = []string{row.header}
		}
		w, call := ask(t, builtin(t, row.dialect), h, request(row.on, row.body, headers...))
		if w == nil {
			t.Errorf("%s: %s is not described", row.dialect, row.on)
			continue
		}
		if w.Code != row.status || call.Operation != row.operation {
			t.Errorf("%s: %s: %d as %s, want %d as %s\n%s", row.dialect, row.on, w.Code, call.Operation, row.status, row.operation, w.Body)
		}
		if length := w.Header().Get("Content-Length"); length != "" && length != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%s: %s: Content-Length %s of %d bytes", row.dialect, row.on, length, w.Body.Len())
		}
		for _, part := range row.want {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %s: the answer lacks %s\n%s", row.dialect, row.on, part, w.Body)
			}
		}
	}
}

func TestLogoutScopesReachTheHub(t *testing.T) {
	t.Parallel()
	d := builtin(t, "supabase")
	for scope, query := range map[string]string{"?scope=local": "", "?scope=global": "all=true", "": "all=true", "?scope=others": "others=true"} {
		h := new(stubHub)
		if w, _ := ask(t, d, h, request("POST /auth/v1/logout"+scope, "", "Authorization: Bearer "+token("access"))); w.Code != 204 || h.last.URL.RawQuery != query {
			t.Errorf("logout%s: %d, asked the hub with %q, want %q", scope, w.Code, h.last.URL.RawQuery, query)
		}
	}
}

// The hub's own answer stays known behind the dialect's: the lab records it.
func TestResultIsTheHubsOwn(t *testing.T) {
	t.Parallel()
	h := new(stubHub)
	_, call := ask(t, builtin(t, "supabase"), h, request("GET /auth/v1/user", "", "Authorization: Bearer anon"))
	if call.Result.Status != 401 || call.Result.Code != "token_malformed" || call.Token != "anon" {
		t.Errorf("result %+v of token %q, want the hub's 401 token_malformed of anon", call.Result, call.Token)
	}
	_, call = ask(t, builtin(t, "supabase"), h, request("POST /auth/v1/token?grant_type=password", `{"email":"demo","password":"demo-password"}`, "Authorization: Bearer anon"))
	if call.Result.AccessToken != token("access") || call.Token != "" {
		t.Errorf("login gave %q and presented %q", call.Result.AccessToken, call.Token)
	}
	_, call = ask(t, builtin(t, "oauth2"), h, request("POST /oauth/revoke", "token=dead"))
	if call.Result.Code != "" {
		t.Errorf("revoke of a dead token: code %q, want none: the client is not told of it", call.Result.Code)
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	h := new(stubHub)
	d := parse(t, `{"name":"c","operations":[{"op":"login","on":"POST /in"},{"op":"refresh","on":"POST /re","in":{"refresh_token":"cookie.rt"}},
		{"op":"logout","on":"POST /re/out","in":{"token":"cookie.rt"}}],
		"cookies":{"refresh_token":{"name":"rt","path":"/re","same_site":"strict","secure":true},"csrf":{"name":"csrf","header":"X-CSRF"}}}`)

	w, _ := ask(t, d, h, request("POST /in", `{"username":"demo","password":"demo-password"}`))
	set := w.Header()["Set-Cookie"]
	want := []string{"rt=" + token("refresh") + "; Path=/ns/a/re; Max-Age=604800; HttpOnly; Secure; SameSite=Strict", "csrf=id-1; Path=/ns/a/; Max-Age=604800; SameSite=Lax"}
	if !slices.Equal(set, want) {
		t.Errorf("login sets %q, want %q", set, want)
	}
	if strings.Contains(w.Body.String(), "refresh_token") {
		t.Errorf("the body has the refresh token, which a cookie keeps from scripts: %s", w.Body)
	}

	cookie := "Cookie: rt=" + token("refresh") + "; csrf=id-1"
	if w, _ := ask(t, d, h, request("POST /re", "", cookie)); w.Code != 403 || !strings.Contains(w.Body.String(), "csrf_mismatch") {
		t.Errorf("refresh without the header: %d %s", w.Code, w.Body)
	}
	if w, _ := ask(t, d, h, request("POST /re", "", cookie, "X-CSRF: id-1")); w.Code != 200 {
		t.Errorf("refresh with the header: %d %s", w.Code, w.Body)
	}
	w, _ = ask(t, d, h, request("POST /re/out", "", cookie, "X-CSRF: id-1"))
	if set := w.Header()["Set-Cookie"]; w.Code != 204 || w.Header()["Content-Type"] != nil || len(set) != 2 || !strings.HasPrefix(set[0], "rt=; Path=/ns/a/re; Max-Age=0") {
		t.Errorf("logout: %d, sets %q", w.Code, set)
	}
}

func TestHeadersOfDescriptionsAreExposed(t *testing.T) {
	t.Parallel()
	d := builtin(t, "supabase")
	r := request("GET /auth/v1/user", "")
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Expose-Headers", "ETag")
	call := d.Read(w, r)
	call.Serve(w, r, new(stubHub).host())
	if got := w.Header().Get("Access-Control-Expose-Headers"); got != "ETag, X-Supabase-Api-Version" || w.Header().Get("X-Supabase-Api-Version") != "2024-01-01" {
		t.Errorf("exposes %q with %q", got, w.Header())
	}
	w2, _ := ask(t, builtin(t, "oauth2"), new(stubHub), request("POST /oauth/token", "grant_type=password&username=demo&password=x"))
	if w2.Header()["Www-Authenticate"] != nil {
		t.Error("a challenge at the token endpoint")
	}
}

// What stands in the place of a {name} may be a secret.
func TestPathForTheRecord(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"x","operations":[{"op":"me","on":"GET /a/long-part-of-the-path-itself"},{"op":"me","on":"GET /t/{token}","in":{"token":"path.token"}}]}`)
	for path, want := range map[string]string{"/a/long-part-of-the-path-itself": "/a/long-part-of-the-path-itself", "/t/" + token("access"): "/t/eyJh.eyJpc3MiOiJ…"} {
		if _, call := ask(t, d, new(stubHub), request("GET "+path, "")); call.Path != want {
			t.Errorf("%s is recorded as %s, want %s", path, call.Path, want)
		}
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"c","operations":[{"op":"login","on":"POST /in","in":{"username":"body.user.0.name|basic.username","password":"body.pw|basic.password","expires_in":"body.mins in minutes","refresh_expires_in":"body.ms in milliseconds"},
		"headers":{"X-Name":"${user.username}\u00e9","X-Price":"$$5","X-Id":"$user.id","X-Lives":"$expires_in","X-None":"$user.name","X-Handle":"@@kim"},"out":{"n":"$expires_in","s":"${expires_in}","both":"${expires_in} s","none":"$user.name","text":"$user.name|'no name'","list":["$user.name",1],"$$x":"$$x","esc":"$${now}","val":"$$${expires_in}","at":"@@x","ms":"$expires_at_ms","iso":"$expires_iso"}}]}`)
	h := new(stubHub)
	w, _ := ask(t, d, h, request("POST /in", `{"user":[{"name":"demo"}],"pw":"demo-password","mins":0.5,"ms":2500}`))
	if want := `{"expires_in":30,"password":"demo-password","refresh_expires_in":2.5,"username":"demo"}`; h.body != want {
		t.Errorf("asked the hub for %s, want %s", h.body, want)
	}
	want := `{"n":900,"s":"900","both":"900 s","text":"no name","list":[1],"$$x":"$x","esc":"${now}","val":"$900","at":"@x","ms":1767226500500,"iso":"2026-01-01T00:15:00.500Z"}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
	for name, want := range map[string]string{"X-Price": "$5", "X-Id": "user-demo", "X-Lives": "900", "X-None": "", "X-Handle": "@kim"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	ask(t, d, h, request("POST /in", `{"mins":100000,"ms":"1e9"}`, "Authorization: Basic ZGVtbzpkZW1vLXBhc3N3b3Jk"))
	if want := `{"expires_in":900,"password":"demo-password","refresh_expires_in":3600,"username":"demo"}`; h.body != want {
		t.Errorf("asked the hub for %s, want %s: no longer than the hub grants", h.body, want)
	}
}

// Some APIs have the token in Authorization as it is.
func TestATokenWithoutAScheme(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"x","operations":[{"op":"me","on":"GET /me","in":{"token":"header.Authorization"}}]}`)
	for given, want := range map[string]int{token("access"): 200, "Bearer " + token("access"): 401, "x": 401} {
		if w, _ := ask(t, d, new(stubHub), request("GET /me", "", "Authorization: "+given)); w.Code != want {
			t.Errorf("Authorization: %s: %d %s, want %d", given, w.Code, w.Body, want)
		}
	}
}

// An API that shows a session says when its token expires.
func TestExpiryOfATokenThatIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"me", "verify", "introspect"} {
		d := parse(t, `{"name":"x","operations":[{"op":"`+op+`","on":"GET /s","out":{"iso":"$expires_iso","at":"$expires_at","sec":"$claims.exp"}}]}`)
		w, _ := ask(t, d, new(stubHub), request("GET /s", "", "Authorization: Bearer "+token("access")))
		if want := `{"iso":"2026-01-01T00:15:00.500Z","at":1767226500,"sec":1767226500}` + "\n"; w.Body.String() != want {
			t.Errorf("%s: %s, want %s", op, w.Body, want)
		}
	}
}

// An operation without "in" takes its values from where the hub's own API has them.
func TestTheSmallestDescription(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"x","operations":[{"op":"login","on":"POST /in"},{"op":"refresh","on":"POST /re"}]}`)
	h := new(stubHub)
	w, _ := ask(t, d, h, request("POST /in", `{"username":"demo","password":"demo-password","expires_in":5,"remember":true}`))
	if want := `{"expires_in":5,"password":"demo-password","username":"demo"}`; h.body != want || w.Code != 200 {
		t.Errorf("%d, asked the hub for %s, want %s", w.Code, h.body, want)
	}
	for _, r := range []*http.Request{request("POST /re", "refresh_token="+token("refresh")), request("POST /re", "", "Authorization: Bearer "+token("refresh"))} {
		if w, _ := ask(t, d, h, r); w.Code != 200 || !strings.Contains(w.Body.String(), `"refresh_expires_in":604800,`) {
			t.Errorf("%d %s, want the hub's own session", w.Code, w.Body)
		}
	}
}

// Clients send JSON as text/plain where they spare the browser a preflight, and sendBeacon can't do otherwise.
func TestJSONUnderOtherNames(t *testing.T) {
	t.Parallel()
	d := builtin(t, "simplejwt")
	for contentType, status := range map[string]int{"": 200, "text/plain;charset=UTF-8": 200, "application/vnd.api+json": 200, "application/x-amz-json-1.1": 200, "text/html": 415, "multipart/form-data": 415} {
		r := request("POST /api/token/refresh", `{"refresh":"`+token("refresh")+`"}`)
		r.Header.Set("Content-Type", contentType)
		if w, _ := ask(t, d, new(stubHub), r); w.Code != status {
			t.Errorf("%q: %d %s, want %d", contentType, w.Code, w.Body, status)
		}
	}
}

// An answer may repeat what the request's body says, though nothing else of the operation stands there.
func TestAnswersRepeatTheBody(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"x","operations":[{"op":"document","on":"POST /echo","out":{"a":"$body.a.0","b":"$query.b"}}],"errors":{"*":{"body":"$body.a"}}}`)
	for body, want := range map[string]string{`{"a":["x"]}`: `{"a":"x","b":"y"}`, `a.0=x`: `{"a":"x","b":"y"}`, `{"a`: `{"b":"y"}`, ``: `{"b":"y"}`} {
		if w, _ := ask(t, d, new(stubHub), request("POST /echo?b=y", body)); w.Code != 200 || w.Body.String() != want+"\n" {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	d := builtin(t, "oauth2")
	for _, row := range []struct {
		r      *http.Request
		status int
	}{
		{request("POST /oauth/token", `{"grant_type":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`), 400},
		{request("POST /oauth/token", strings.Repeat("a", 100_000)), 413},
		{request("POST /oauth/token", "grant_type=password&username=%ff&password=x"), 400},
		{request("POST /oauth/token", "grant_type=%zz"), 400},
		{request("POST /oauth/token?a=%zz", "grant_type=password"), 400},
		{request("POST /oauth/token", `{"grant_type":{"a":1}}`), 400},
		{request("POST /oauth/revoke", `{"token":12}`), 200},
		{request("POST /oauth/introspect", `{"token":"a\r\nb"}`), 200},
	} {
		if w, _ := ask(t, d, new(stubHub), row.r); w.Code != row.status {
			t.Errorf("%s: %d %s, want %d", row.r.URL, w.Code, w.Body, row.status)
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	d := builtin(t, "firebase")
	members := d.Claims([]byte(record), epoch, epoch)
	var claims map[string]any
	if err := json.Unmarshal([]byte(`{"a":1`+string(members)+`}`), &claims); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": 1.0, "auth_time": 1767225600.0, "user_id": "user-demo", "email": "demo@example.test"}
	delete(claims, "firebase")
	if !maps.Equal(claims, want) {
		t.Errorf("claims %v, want %v", claims, want)
	}
	if got := builtin(t, "oauth2").Claims([]byte(record), epoch, epoch); got != nil {
		t.Errorf("oauth2 adds %s", got)
	}
}
