// Dialects from outside: the API of somebody else, spoken by the hub beside its own.

package e2e

import (
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// newDialectHub returns a namespace that speaks a built-in dialect.
func newDialectHub(t *testing.T, name string) *hub {
	h := newHub(t)
	h.faulty = true // openapi.json does not describe the dialect's answers
	h.put("/lab/dialect", object{"name": name}).Want(200)
	return h
}

func TestADialectIsSpokenBesideTheHubsOwnAPI(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "supabase")
	h.post("/auth/v1/token?grant_type=password", object{"email": "demo", "password": "wrong"}).WantBody(400, `{"code":"invalid_credentials","message":"Invalid login credentials"}`)
	session := h.post("/auth/v1/token?grant_type=password", object{"email": "demo", "password": "demo-password"}, bearer("anon")...).Want(200)
	access := session.Text("access_token")
	h.get("/auth/v1/user/", bearer(access)...).Want(200)
	h.me(access).Want(200)
	h.get("/auth/v1/user", bearer("anon")...).WantBody(403, `{"code":"bad_jwt",`)

	requests := h.requests()
	for i, want := range []object{
		{"operation": "login", "path": "/auth/v1/token", "status": 400.0, "code": "invalid_credentials"},
		{"operation": "login", "path": "/auth/v1/token", "status": 200.0, "code": nil, "user": "demo"},
		{"operation": "me", "path": "/auth/v1/user/", "status": 200.0, "code": nil, "user": "demo"},
		{"operation": "me", "path": mePath, "status": 200.0, "user": "demo"},
		{"operation": "me", "path": "/auth/v1/user", "status": 403.0, "code": "token_malformed"},
	} {
		for member, value := range want {
			if got := requests[i][member]; got != value {
				t.Errorf("request %d: %s is %v, want %v", i+1, member, got, value)
			}
		}
	}
	index := string(h.get("/api").Want(200).Body)
	if !strings.Contains(index, `"href":"`+h.base+`/auth/v1/signup"`) {
		t.Errorf("the index lacks the dialect's operations: %s", index)
	}
	h.delete("/lab/dialect").Want(204)
	h.get("/lab/dialect").Want(404, "no_dialect")
	h.get("/auth/v1/user", bearer(access)...).Want(404, "not_found")
}

// An API that answers each error with 200 is judged and recorded by the errors' codes.
func TestErrorsWithTheStatusOfASuccess(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.client = newClient("") // of the connections that all tests share, one after the other, two are two clients without a session
	h.faulty = true          // openapi.json does not describe the dialect's answers
	h.put("/lab/dialect", `{"name":"x","operations":[{"op":"login","on":"POST /in"},{"op":"logout","on":"POST /out"},{"op":"me","on":"GET /who"}],
		"errors":{"*":{"status":200,"body":{"why":"$code"}}}}`, jsonType...).Want(200)
	for range 12 {
		h.post("/in", wrong("demo")).Want(200)
		h.advance(200 * time.Millisecond) // more than it takes to tell the next try from a caller beside it
	}
	h.post("/lab/expect", object{"code": "invalid_credentials", "count": object{"exactly": 10}, "within": "10ms"}).Want(200)
	if got := h.get("/lab/requests?code=too_many_attempts").Want(200).List("requests"); len(got) != 2 || got[0]["status"] != 200.0 {
		t.Errorf("%v", got)
	}
	var rules []string
	for _, found := range h.get("/lab/report").Want(200).List("findings") {
		rules = append(rules, found["rule"].(string))
	}
	if !slices.Equal(rules, []string{"repeated_failure", "retry_after_ignored"}) {
		t.Errorf("%q", rules)
	}
}

// A request with a method that its path doesn't know is no operation: a PUT on the path of the login logs nobody in.
func TestAWrongMethodIsNoOperation(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.faulty = true // openapi.json does not describe the dialect's answers
	h.put("/lab/dialect", `{"name":"x","operations":[{"op":"login","on":"POST /in"},{"op":"logout","on":"DELETE /in"},{"op":"refresh","on":"POST /renew"}]}`, jsonType...).Want(200)
	pair := h.login("demo")
	h.advance(16 * time.Minute)
	h.me(pair.Access).Want(401, "token_expired")
	h.do("PUT", "/in", right("demo"), jsonType...).Want(405)
	h.do("PUT", loginPath, right("demo"), jsonType...).Want(405)
	h.advance(3 * time.Second)
	if found := h.get("/lab/report").Want(200).List("findings"); len(found) != 1 || found[0]["rule"] != "no_refresh_after_expiry" {
		t.Errorf("findings %v", found)
	}
	h.post("/in", `{`, jsonType...).Want(400)
	h.do("DELETE", "/in?%", nil).Want(422)
	var got []string
	for _, r := range h.requests() {
		got = append(got, r["operation"].(string))
	}
	if want := []string{"login", "me", "other", "other", "login", "logout"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nothing that a client reads of its errors names a member, a header or a unit of the hub's own API.
func TestErrorsSpeakTheClientsNames(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.faulty = true // openapi.json does not describe the dialect's answers
	operations := `{"op":"register","on":"POST /new","in":{"username":"body.user.nick","email":"body.user.mail","password":"body.user.secret"}},
		{"op":"register","on":"POST /mail","in":{"username":"body.mail","email":"body.mail","password":"body.secret"}},
		{"op":"register","on":"POST /own"},
		{"op":"login","on":"POST /in","in":{"email":"body.mail|query.mail","password":"header.X-Secret","expires_in":"body.mins in minutes"}},
		{"op":"me","on":"GET /me","in":{"token":"header.X-Token|query.key"}},
		{"op":"me","on":"GET /jwt","in":{"token":"authorization.JWT"}},
		{"op":"refresh","on":"POST /again","in":{"refresh_token":"body.renewal|cookie.rid"}},
		{"op":"refresh","on":"POST /kind","when":{"body.kind":"x"}}`
	errors := `"*":{"body":{"d":"$detail","f":"$fields","e":"$errors"}}`
	shape := func(errors string) {
		h.put("/lab/dialect", `{"name":"x","operations":[`+operations+`],"errors":{`+errors+`}}`, jsonType...).Want(200)
	}
	shape(errors)
	row := func(path, body string, status int, want string) {
		t.Helper()
		method := "POST"
		if body == "" {
			method = "GET"
		}
		h.do(method, path, body, jsonType...).WantBody(status, want)
	}
	row("/new", `{}`, 422, `{"d":"user.nick: is required (or user.mail)","f":{"user.nick":["is required (or user.mail)"],"user.secret":["must be 8 to 256 bytes"]},"e":[{"field":"user.nick",`)
	row("/new", `{"user":{"mail":"kim@x.test","nick":"kim","secret":7}}`, 422, `{"d":"user.secret: must be a string"`)
	row("/new", `{"user":{"mail":"demo@example.test","nick":"kim","secret":"long-enough"}}`, 409, `{"d":"user.mail: belongs to another account","f":{"user.mail":["belongs to another account"]}`)
	row("/mail", `{"secret":"long-enough"}`, 422, `{"d":"mail: is required","f":{"mail":["is required"]},`)
	row("/mail", `{"mail":"demo@example.test","secret":"long-enough"}`, 409, `{"d":"mail: belongs to another account","f":{"mail":["belongs`)
	row("/own", `{"username":"demo","password":"long-enough"}`, 409, `{"d":"The user name is taken. Choose another one.","f":{"username":["The user`)
	row("/in", `{"mins":-1}`, 422, `{"d":"mail: is required","f":{"X-Secret":["is required"],"mail":["is required"],"mins":["must be a number of minutes above 0"]}`)
	row("/me", ``, 401, `{"d":"This operation needs a token: the header X-Token, or the query parameter key."}`)
	row("/jwt", ``, 401, `{"d":"This operation needs a token: Authorization: JWT TOKEN."}`)
	if got := h.get("/jwt", "Authorization", "JWT x").Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `JWT realm="authhub", error="invalid_token"`) {
		t.Errorf("the challenge is %s, want the client's scheme", got)
	}
	h.get("/jwt", "Authorization", "JWT x", "Authorization", "JWT y").WantBody(401, `{"d":"The request has more than one Authorization header. Send one."`)
	row("/again", `{}`, 401, `{"d":"This operation needs a token: renewal in the body, or the cookie rid."}`)
	row("/again", `{"renewal":7}`, 422, `{"d":"renewal: must be a string"`)
	row("/kind", `{}`, 400, `{"d":"The request lacks kind in the body."}`)
	row("/kind", `{"kind":"y"}`, 400, `{"d":"This path knows no such kind in the body."}`)

	shape(errors + `,"invalid_field":{"name":"other"},"invalid_field.password":{"name":"secret"},"register:invalid_field.email":{"body":["$field"]}`)
	row("/mail", `{"mail":"kim","secret":"long-enough"}`, 422, `["mail"]`) // the first field at fault
	row("/new", `{"user":{"nick":"kim","mail":"kim","secret":"long-enough"}}`, 422, `["user.mail"]`)
	row("/mail", `{"mail":"kim@x.test","secret":"short"}`, 422, `{"d":"secret: must be 8`)

	shape(``) // the hub's own shape, in the client's names all the same
	row("/in", `{}`, 422, `{"title":"Unprocessable Entity","status":422,"code":"invalid_field","detail":"mail: is required","errors":[{"field":"mail","detail":"is required"},{"field":"X-Secret",`)
	shape(`"token_*":{"status":403,"name":"NO_TOKEN","detail":"Not you."}`)
	row("/me", ``, 403, `{"title":"Forbidden","status":403,"code":"NO_TOKEN","detail":"Not you."}`)
}

func TestADescriptionIsReadChangedAndPutBack(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "oauth2")
	description := string(h.get("/lab/dialect").Want(200).Body)
	h.put("/lab/dialect", strings.ReplaceAll(description, "/oauth/", "/v2/"), jsonType...).Want(200)
	form := "grant_type=password&username=demo&password=demo-password"
	h.post("/oauth/token", form, formType...).Want(404)
	h.post("/v2/token", form, formType...).Want(200)

	h.put("/lab/dialect", object{"name": "x", "operations": []object{{"op": "login", "on": "POST /a"}, {"op": "me", "on": "GET"}}}).Want(422, "invalid_field").WantField("operations[1].on")
	h.put("/lab/dialect", object{"name": "nosuch"}).Want(422, "invalid_field").WantField("name")
	h.put("/lab/dialect", `{"name":"supabase","name":"oauth2"}`, jsonType...).Want(422, "invalid_field").WantField("name")
	h.put("/lab/dialect", `{"name":"x","templates":{"a":`+strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000)+`}}`, jsonType...).Want(422)
	h.put("/lab/dialect", strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000), jsonType...).Want(400, "malformed_body")
	h.put("/lab/dialect", strings.Repeat(" ", 70_000), jsonType...).Want(413)
	h.put("/lab/dialect", `{"name":"x","operations":[{"op":"me","on":"GET /a","headers":{"X":"a\r\nb"}}]}`, jsonType...).Want(422).WantField("operations[0].headers.X")
	h.put("/lab/dialect", `{"name":"x","templates":{"a":["@a"]},"operations":[{"op":"me","on":"GET /a","out":"@a"}]}`, jsonType...).Want(422).WantField("templates.a[0]")
	h.post("/v2/token", form, formType...).Want(200) // the one in force stays

	h.post("/lab/reset", nil).Want(204)
	h.get("/lab/dialect").Want(404, "no_dialect")
}

func TestASnapshotKeepsTheDialect(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "directus")
	snapshot := string(h.get("/lab/snapshot").Want(200).Body)
	h.post("/lab/reset", nil).Want(204)
	h.put("/lab/snapshot", snapshot, jsonType...).Want(204)
	if name := h.get("/lab/dialect").Want(200).Text("name"); name != "directus" {
		t.Errorf("the dialect is %q", name)
	}
	h.put("/lab/snapshot", strings.Replace(snapshot, `"POST /auth/login"`, `"POST"`, 1), jsonType...).Want(422).WantField("dialect.operations[0].on")
}

func TestTheProcessSpeaksItsDialectEverywhere(t *testing.T) {
	t.Parallel()
	_, description, _ := run(t, "-print-dialect", "simplejwt")
	file := testkit.WriteFile(t, "mine.json", strings.ReplaceAll(description, "/api/token/", "/auth/jwt/"))
	h := start(t, "-ephemeral", "-lab", "-dialect", file)
	h.faulty = true
	for _, h := range []*hub{h, h.space("a")} {
		pair := h.post("/auth/jwt/", object{"username": "demo", "password": "demo-password"}).Want(200)
		again := h.post("/auth/jwt/refresh/", object{"refresh": pair.Text("refresh")}).Want(200)
		if again.JSON()["refresh"] != nil || again.Text("access") == "" {
			t.Errorf("refresh gives %s, want an access token alone", again.Body)
		}
		h.post("/auth/jwt/refresh/", object{"refresh": pair.Text("refresh")}).Want(200) // there is no rotation
		h.delete("/lab/dialect").Want(204)
		h.post("/auth/jwt/", object{"username": "demo", "password": "demo-password"}).Want(404)
		h.post("/lab/reset", nil).Want(204)
		pair = h.post("/auth/jwt/", object{"username": "demo", "password": "demo-password"}).Want(200)
		h.clock(object{"advance": "6m"}) // simplejwt's access tokens live 5 minutes
		h.get("/api/me", bearer(pair.Text("access"))...).WantBody(401, `{"detail":"Given token not valid`)
	}
	for _, wrong := range []string{"nosuch", testkit.WriteFile(t, "bad.json", `{"name":"x","operations":[{"op":"me"}]}`)} {
		if status, _, stderr := run(t, "-dialect", wrong); status != 2 || !strings.Contains(stderr, "operations[0].on: is missing") && !strings.Contains(stderr, "built-in dialect (cookie, ") {
			t.Errorf("-dialect %s: exit %d, %s", wrong, status, stderr)
		}
	}
}

// Well-known addresses take the namespace behind (RFC 8414 section 3.1) as well as before.
func TestWellKnownAddresses(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "oauth2")
	root, space, _ := strings.Cut(h.base, "/ns/")
	for _, address := range []string{h.base + "/.well-known/oauth-authorization-server", root + "/.well-known/oauth-authorization-server/ns/" + space} {
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(body), `"issuer":"`+h.base+`","token_endpoint":"`+h.base+`/oauth/token"`) {
			t.Errorf("%s: %s %s", address, resp.Status, body)
		}
	}
}

// Faults act on the answer as the client gets it.
func TestFaultsOnADialect(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "oauth2")
	form := "grant_type=password&username=demo&password=demo-password"
	h.fault(object{"operation": "login", "status": 503, "headers": object{"Retry-After": "1"}})
	h.post("/oauth/token", form, formType...).Want(503)
	h.fault(object{"operation": "login", "truncate": 20})
	if _, err := h.try("POST", "/oauth/token", form, formType...); err == nil {
		t.Error("a cut answer arrived whole")
	}
	pair := h.post("/oauth/token", form, formType...).Want(200).Pair()
	h.fault(object{"operation": "refresh", "drop": "after"})
	if _, err := h.try("POST", "/oauth/token", "grant_type=refresh_token&refresh_token="+pair.Refresh, formType...); err == nil {
		t.Error("a dropped answer arrived")
	}
	h.post("/oauth/token", "grant_type=refresh_token&refresh_token="+pair.Refresh, formType...).WantBody(400, `{"error":"invalid_grant"`)
	if code := h.requests("?operation=refresh")[1]["code"]; code != "token_reused" {
		t.Errorf("the record has code %v, want the hub's own", code)
	}
}

// Introspection and the revocation of dead tokens are no use of a token.
func TestIntrospectionIsNoFinding(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "oauth2")
	pair := h.post("/oauth/token", "grant_type=password&username=demo&password=demo-password", formType...).Want(200).Pair()
	introspect := func(token string, active bool) {
		t.Helper()
		if a := h.post("/oauth/introspect", "token="+token, formType...).Want(200); a.JSON()["active"] != active {
			t.Errorf("%s, want active %t", a.Body, active)
		}
	}
	introspect(pair.Access, true)
	introspect(pair.Refresh, true)
	next := h.post("/oauth/token", "grant_type=refresh_token&refresh_token="+pair.Refresh, formType...).Want(200).Pair()
	for range 6 {
		introspect(pair.Refresh, false)
	}
	h.get("/oauth/userinfo", bearer(next.Access)...).Want(200) // a spent token that was only looked at ends nothing
	for range 6 {
		h.post("/oauth/revoke", "token="+next.Refresh, formType...).WantBody(200, "{}")
		introspect(next.Access, false)
	}
	if found := h.get("/lab/report").Want(200).List("findings"); len(found) > 0 {
		t.Errorf("findings %v", found)
	}
}

func TestHostileRequestsInADialect(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "firebase")
	for _, row := range [][]string{
		{"/identitytoolkit.googleapis.com/v1/accounts:lookup", `{"idToken":{"a":1}}`},
		{"/identitytoolkit.googleapis.com/v1/accounts:lookup", `{"idToken":"a\r\nb"}`},
		{"/identitytoolkit.googleapis.com/v1/accounts:signUp", `{"email":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`},
		{"/identitytoolkit.googleapis.com/v1/accounts:signUp", strings.Repeat("x", 70_000)},
		{"/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword", `{"email":1e999,"password":[]}`},
		{"/securetoken.googleapis.com/v1/token", `{"grant_type":["refresh_token"]}`},
		{"/securetoken.googleapis.com/v1/token?a=%zz", `{}`},
	} {
		if a := h.post(row[0], row[1], jsonType...); a.Status < 400 || a.Status > 499 || !strings.HasPrefix(string(a.Body), `{"error":{"code":`) {
			t.Errorf("%s: %d %s", row[0], a.Status, a.Body)
		}
	}
	cookies := []string{"a=b; a=c", "=", "; ;", "my-app-auth=\"x\"", strings.Repeat("a=b; ", 500)}
	other := newDialectHub(t, "dj-rest-auth")
	for _, cookie := range cookies {
		if a := other.get("/dj-rest-auth/user/", "Cookie", cookie); a.Status != 401 {
			t.Errorf("cookie %.40s: %d %s", cookie, a.Status, a.Body)
		}
	}
}

// A token that a test orders says what the dialect's own tokens say.
func TestOrderedTokensHaveTheClaimsOfTheDialect(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "firebase")
	for _, order := range []object{{"user": "demo"}, {"user": "demo", "defect": "expired"}, {"user": "demo", "claims": object{"email": "else@example.test"}}} {
		claims := h.order(order).JSON()["claims"].(object)
		email := "demo@example.test"
		if order["claims"] != nil {
			email = "else@example.test"
		}
		if claims["auth_time"] != math.Floor(claims["iat"].(float64)) || claims["user_id"] != "user-demo" || claims["email"] != email {
			t.Errorf("%v has the claims %v", order, claims)
		}
	}
	h.me(h.order(object{"user": "demo"}).Text("token")).Want(200)
	if claims := h.order(object{"user": "demo", "kind": "refresh"}).JSON()["claims"].(object); claims["auth_time"] != nil {
		t.Errorf("a refresh token has the claims %v", claims)
	}
}

func TestLogoutOfOthersInADialect(t *testing.T) {
	t.Parallel()
	h := newDialectHub(t, "supabase")
	own, other := h.login("demo"), h.login("demo")
	h.post("/auth/v1/logout?scope=others", nil, bearer(own.Access)...).Want(204)
	h.me(own.Access).Want(200)
	h.me(other.Access).Want(401, "token_revoked")
	if codes := h.requests("?operation=logout"); !slices.ContainsFunc(codes, func(r object) bool { return r["status"] == 204.0 }) {
		t.Errorf("the record has %v", codes)
	}
}

// Addresses and cookies follow the way the client came: here by the namespace's name as host.
func TestADialectByHostName(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab", "-dialect", "oauth2")
	_, port, _ := strings.Cut(strings.TrimPrefix(h.base, "http://"), ":")
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, h.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "Shop.localhost:" + port
		r.Header.Set("Content-Type", "application/json")
		resp, err := h.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	metadata, _ := io.ReadAll(ask("GET", "/.well-known/oauth-authorization-server", "").Body)
	if want := `{"issuer":"http://Shop.localhost:` + port + `","token_endpoint":"http://Shop.localhost:` + port + `/oauth/token"`; !strings.HasPrefix(string(metadata), want) {
		t.Errorf("metadata %s, want %s", metadata, want)
	}
	ask("PUT", "/lab/dialect", `{"name":"cookie"}`)
	login := ask("POST", loginPath, `{"username":"demo","password":"demo-password"}`)
	if cookie := login.Header.Get("Set-Cookie"); !strings.Contains(cookie, "; Path=/api/authentication; ") {
		t.Errorf("cookie %s", cookie)
	}
	h.space("shop").get("/lab/dialect").Want(200)
}
