// Descriptions: which are sound, and how the faults of the others are told.

package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"authhub/internal/dialect"
)

func withOperation(members string) string {
	return `{"name":"x","operations":[{"op":"me","on":"GET /a"},{"op":"login","on":"POST /b"},` + members + `]}`
}

func withMembers(members string) string {
	return `{"name":"x","operations":[{"op":"me","on":"GET /a"}],` + members + `}`
}

func withCookie(on, in, path string) string {
	return `{"name":"x","operations":[{"op":"me","on":"` + on + `","in":{"token":"` + in + `"}}],"cookies":{"access_token":{"name":"at",` + path + `}}}`
}

var faultyDescriptions = []struct{ description, path, detail string }{
	{` `, "", "is empty"},
	{`{"name"`, "", "is not JSON: it breaks off (line 1)"},
	{"{\n\"name\": \"x\"\n\"y\": 1}", "", "(line 3)"},
	{"{\n\"name\":\nnul}", "", "(line 3)"},
	{"{\"name\":\"x\"}\n 1", "", "is not JSON: something follows the JSON value (line 2)"},
	{`[]`, "", "must be an object"},
	{`{"operations":[{"op":"me","on":"GET /a"}]}`, "name", "is missing"},
	{`{"name":"x"}`, "name", `is no built-in dialect; there are cookie, directus, directus-cookie, dj-rest-auth, dummyjson, firebase, oauth2, simplejwt, supabase. One of your own comes with "operations"`},
	{`{"name":"oauth2","name":"oauth2"}`, "name", "is given twice"},
	{`{"name":7}`, "name", "is no built-in dialect"},
	{`{"name":"x","rotation":false}`, "operations", "is missing"},
	{`{"name":"x","operations":{}}`, "operations", "must be an array of 1 to 64"},
	{withMembers(`"name":"y"`), "name", "given twice"},
	{withMembers(`"operation":[]`), "operation", "is not a known member; there are name, templates, operations"},
	{withOperation(`{"op":"signin","on":"GET /c"}`), "operations[2].op", "must be one of document, introspect, login"},
	{withOperation(`{"op":"me"}`), "operations[2].on", "METHOD /path"},
	{withOperation(`{"op":"me","on":"/c"}`), "operations[2].on", "METHOD /path"},
	{withOperation(`{"op":"me","on":"GET /c?x=1"}`), "operations[2].on", `"when"`},
	{withOperation(`{"op":"me","on":"GET /lab/x"}`), "operations[2].on", "path of the lab"},
	{withOperation(`{"op":"me","on":"GET /tenants/:tenant/me"}`), "operations[2].on", `any text is in braces, is all that is between two slashes and has a name of its own, as in "/tenants/{tenant}/login"`},
	{withOperation(`{"op":"login","on":"POST /c","out":{"a":"Bearer $access_token"}}`), "operations[2].out.a", "has $access_token in a longer text, where it is ${access_token}"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"X":"${now}, $user.id."}}`), "operations[2].headers.X", "has $user.id in a longer text"},
	{withMembers(`"errors":{"*":{"body":"no $body.a here"}}`), "errors.*.body", "has $body.a in a longer text"},
	{withOperation(`{"op":"me","on":"GET /a{b}"}`), "operations[2].on", "/tenants/{tenant}/login"},
	{withOperation(`{"op":"me","on":"GET /a/"}`), "operations[2].on", "never reached: operations[0]"},
	{withOperation(`{"op":"login","on":"POST /b","when":{"query.x":"1"}}`), "operations[2].on", "never reached: operations[1]"},
	{withOperation(`{"op":"me","on":"GET /c","when":{"x":"1"}}`), "operations[2].when.x", "must be body.NAME"},
	{withOperation(`{"op":"me","on":"GET /c","when":{"query.x":null}}`), "operations[2].when.query.x", "a string, a number"},
	{withOperation(`{"op":"me","on":"GET /c","in":{"password":"body.x"}}`), "operations[2].in.password", "is not a known member; there are token"},
	{withOperation(`{"op":"me","on":"GET /c","in":{"token":"bearer"}}`), "operations[2].in.token", "authorization.SCHEME"},
	{withOperation(`{"op":"me","on":"GET /c","in":{"token":"path.x"}}`), "operations[2].in.token", "names no {part}"},
	{withOperation(`{"op":"me","on":"GET /c","in":{"token":"body.x in minutes"}}`), "operations[2].in.token", "expires_in"},
	{withOperation(`{"op":"login","on":"POST /c","in":{"expires_in":"body.x in hours"}}`), "operations[2].in.expires_in", "in minutes"},
	{withOperation(`{"op":"login","on":"POST /c","status":302}`), "operations[2].status", "from 200 to 299"},
	{withOperation(`{"op":"login","on":"POST /c","status":204,"out":{}}`), "operations[2].out", "no body"},
	{withOperation(`{"op":"login","on":"POST /c","out":{"a":["$tokn"]}}`), "operations[2].out.a[0]", "$tokn is no value of login; there are access_token"},
	{withOperation(`{"op":"login","on":"POST /c","out":"a ${now"}`), "operations[2].out", "without its }"},
	{withOperation(`{"op":"login","on":"POST /c","out":"@user"}`), "operations[2].out", "@user names no template"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"X-A":"a\r\nSet-Cookie: b"}}`), "operations[2].headers.X-A", "one line"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"Content-Length":"1"}}`), "operations[2].headers.Content-Length", "is set by the hub itself"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"set-cookie":"a=b"}}`), "operations[2].headers.set-cookie", `is set by "cookies"`},
	{withOperation(`{"op":"login","on":"POST /c","out":"$acess_token"}`), "operations[2].out", "$acess_token is no value of login; did you mean $access_token? There are access_token, "},
	{withOperation(`{"op":"login","on":"POST /c","out":"$user.emial"}`), "operations[2].out", "did you mean $user.email? There"},
	{withOperation(`{"op":"login","on":"POST /c","out":"$expires_im"}`), "operations[2].out", "did you mean $expires_in? There"},
	{withMembers(`"errors":{"*":{"body":"$errors.0.field"}}`), "errors.*.body", "$errors has no members to pick; there are name"},
	{withOperation(`{"op":"me","on":"GET /c>d"}`), "operations[2].on", "characters that a path can't contain"},
	{withMembers(`"errors":{"not_found":{}}`), "errors.not_found", "can't be changed: not_found is the hub's own answer"},
	{withMembers(`"lifetimes":{"refresh":"30d"}`), "lifetimes.refresh", `so 30 days are "720h"`},
	{withMembers(`"lifetimes":{"refresh":3600}`), "lifetimes.refresh", "its units are h, m, s and ms"},
	{withOperation(`{"op":"document","on":"GET /d"}`), "operations[2].out", `is missing: the document, or "status": 204 for none`},
	{withOperation(`{"op":"me","on":"GET /d","inactive":{}}`), "operations[2].inactive", "belongs to introspect"},
	{withOperation(`{"op":"login","on":"POST /b"}`), "operations[2].on", `operations[1] takes the same requests; give one of them a "when" and put that one first`},
	{withOperation(`{"op":"me","on":"GET /c","when":{"query.x":"1"}},{"op":"me","on":"GET /c","when":{"query.x":1}}`), "operations[3].on", `operations[2] has the same "when"; change one of them or remove it`},
	{withOperation(`{"op":"me","on":"GET /c"},{"op":"me","on":"GET /c","when":{"query.x":1}}`), "operations[3].on", "put this one before it"},
	{withOperation(`{"op":"me","on":"GET /c","when":{"path.x":"1"}}`), "operations[2].when.path.x", `path.x names no {part} of "on", which has none`},

	{withOperation(`{"op":"me","on":"GET /c","in":null}`), "operations[2].in", "must be an object"},
	{withOperation(`{"op":"me","on":"GET /c","in":{}}`), "operations[2].in.token", `is missing, and me can't do without it: say where the client sends it, such as "authorization.Bearer"`},
	{withOperation(`{"op":"login","on":"POST /c","in":{"username":"body.u"}}`), "operations[2].in.password", "is missing"},
	{withOperation(`{"op":"login","on":"POST /c","in":{"password":"body.p"}}`), "operations[2].in.username", "is missing (or email)"},
	{withOperation(`{"op":"register","on":"POST /c","in":{"name":"body.n"}}`), "operations[2].in.password", `"body.password"`},
	{withOperation(`{"op":"refresh","on":"POST /c","in":{}}`), "operations[2].in.refresh_token", "is missing"},
	{withOperation(`{"op":"logout","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},
	{withOperation(`{"op":"revoke","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},
	{withOperation(`{"op":"introspect","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},

	{withOperation(`{"op":"me","on":"GET /c","out":{"t":"$access_token"}}`), "operations[2].out.t", "$access_token is no value of me; there are user, user.id"},
	{withOperation(`{"op":"me","on":"GET /c","out":{"t":"$auth_time"}}`), "operations[2].out.t", "$auth_time is no value of me"},
	{withOperation(`{"op":"me","on":"GET /c","out":{"t":"$access_token|'x'"}}`), "operations[2].out.t", "$access_token is no value of me"},
	{withOperation(`{"op":"logout","on":"POST /c","out":["$user.id"]}`), "operations[2].out[0]", "$user.id is no value of logout; there are now,"},
	{withOperation(`{"op":"document","on":"GET /c","headers":{"X":"a ${claims.sub}"},"out":{}}`), "operations[2].headers.X", "$claims.sub is no value of document"},
	{withOperation(`{"op":"introspect","on":"POST /c","inactive":{"u":"$user.id"}}`), "operations[2].inactive.u", `$user.id is no value of "inactive"`},
	{withOperation(`{"op":"verify","on":"POST /c","out":{"u":"$refresh_token"}}`), "operations[2].out.u", "$refresh_token is no value of verify; there are user"},
	{withOperation(`{"op":"login","on":"POST /c","out":"$name"}`), "operations[2].out", "$name is no value of login"},
	{withOperation(`{"op":"login","on":"POST /c","out":"$csrf_token"}`), "operations[2].out", `$csrf_token is no value of login without "csrf" in "cookies"`},
	{withOperation(`{"op":"login","on":"POST /c","out":"$token_kind"}`), "operations[2].out", "$token_kind is no value of login"},
	{withOperation(`{"op":"login","on":"POST /c","out":"$claims.tenant"}`), "operations[2].out", `$claims.tenant is no value of login; claims are iss, sub, sid, jti, iat, exp, username, role and those of "claims"`},
	{withOperation(`{"op":"me","on":"GET /c/{a}","out":"$path.b"}`), "operations[2].out", `path.b names no {part} of "on", which has a`},
	{`{"name":"x","operations":[{"op":"me","on":"GET /c","out":"@t"}],"templates":{"t":{"x":["$expires_in"]}}}`, "templates.t.x[0]", "$expires_in is no value of me (operations[0])"},
	{withMembers(`"errors":{"*":{"body":"$user.id"}}`), "errors.*.body", `$user.id is no value of "errors"; there are name, code, detail`},
	{withMembers(`"errors":{"me:*":{"headers":{"X":"${path.b}"}}}`), "errors.me:*.headers.X", `path.b names no {part} of "on"`},
	{withMembers(`"claims":{"a":"$access_token"}`), "claims.a", `$access_token is no value of "claims"; there are user, user.id`},
	{withMembers(`"claims":{"a":"$body.x"}`), "claims.a", `$body.x is no value of "claims"`},
	{withOperation(`{"op":"login","on":"POST /c","out":"$body.nul|${user.id}"}`), "operations[2].out", `"$body.nul|${user.id}" has ${user.id} among its names, which stand without $ after a |: "$body.nul|user.id"`},
	{withOperation(`{"op":"login","on":"POST /c","out":"$user.name|$user.id"}`), "operations[2].out", "has $user.id among its names"},
	{withMembers(`"templates":{"a":"$user.id"}`), "templates.a", `is used nowhere: write "@a" where it belongs, or remove it`},
	{withMembers(`"templates":{"a":{"x":"@b"},"b":["@a"]},"claims":{"c":"@a"}`), "templates.b[0]", "in itself: a → b → a"},
	{withMembers(`"templates":{"a":"@a"},"claims":{"c":"@a"}`), "templates.a", "in itself: a → a"},
	{withMembers(`"templates":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`), "templates.a" + strings.Repeat("[0]", 30), "lies too deep"},
	{withMembers(`"errors":{"nosuch":{}}`), "errors.nosuch", "names no error"},
	{withMembers(`"errors":{"invalid_field.mail":{}}`), "errors.invalid_field.mail", "names no error"},
	{withMembers(`"errors":{"token_expired.email":{}}`), "errors.token_expired.email", "names no error"},
	{withMembers(`"errors":{"login:token_*":{}}`), "errors.login:token_*", `"operations" does not have`},
	{withMembers(`"errors":{"*":{"status":302}}`), "errors.*.status", "from 400 to 599"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"X":"$nope"}}`), "operations[2].headers.X", "$nope is no value of login"},
	{withOperation(`{"op":"login","on":"POST /c","headers":{"X":"@session"}}`), "operations[2].headers.X", "can't be a template"},
	{withMembers(`"errors":{"*":{"headers":{"X":"$user.id"}}}`), "errors.*.headers.X", `$user.id is no value of "errors"`},
	{withMembers(`"errors":{"*":{"detail":"${code}: gone $name"}}`), "errors.*.detail", `these go into "body" and "headers"`},
	{withMembers(`"errors":{"*":{"name":"$code"}}`), "errors.*.name", "is a plain text"},
	{withMembers(`"errors":{"*":{"name":"@name"}}`), "errors.*.name", "is a plain text"},
	{withOperation(`{"op":"login","on":"POST /c","out":"$user.email|"}`), "operations[2].out", `"$user.email|" has an empty name; write '' behind the last |`},
	{withCookie("GET /me", "cookie.rtt", `"path":"/"`), "operations[0].in.token", `reads the cookie rtt, which "cookies" does not set; write "cookie.at"`},
	{withCookie("GET /v9/me", "cookie.at", `"path":"/other"`), "operations[0].in.token", `reads the cookie at, which browsers send to paths under /other only; make its "path" the beginning of /v9/me, or "/"`},
	{withCookie("GET /v9", "cookie.at", `"path":"/v9/renew"`), "operations[0].in.token", `send to paths under /v9/renew only`},
	{withCookie("GET /v99/me", "cookie.at", `"path":"/v9"`), "operations[0].in.token", `send to paths under /v9 only`},
	{withMembers(`"cookies":{}`), "cookies", "must have access_token or refresh_token"},
	{withMembers(`"cookies":{"refresh_token":{"name":"a b"}}`), "cookies.refresh_token.name", "letters, digits"},
	{withMembers(`"cookies":{"refresh_token":{"name":"a","path":"/x; Domain=y"}}`), "cookies.refresh_token.path", "must be a path"},
	{withMembers(`"cookies":{"refresh_token":{"name":"a","same_site":"none"}}`), "cookies.refresh_token", `needs "secure": true`},
	{withMembers(`"cookies":{"access_token":{"name":"a"},"refresh_token":{"name":"a"}}`), "cookies", `access_token and refresh_token are one cookie, a with the path /; give one of them another "name" or "path"`},
	{withMembers(`"cookies":{"refresh_token":{"name":"a","path":"/b"},"csrf":{"name":"a","path":"/b","header":"X"}}`), "cookies", "refresh_token and csrf are one cookie"},
	{withMembers(`"lifetimes":{"access":"5"}`), "lifetimes.access", "must be a duration"},
	{withMembers(`"rotation":"no"`), "rotation", "must be true or false"},
	{withMembers(`"claims":{"sub":"x"}`), "claims.sub", "said by the hub itself"},
}

func TestFaultsOfDescriptionsAreNamed(t *testing.T) {
	t.Parallel()
	for _, row := range faultyDescriptions {
		_, err := dialect.Parse([]byte(row.description))
		faults, ok := err.(dialect.Faults)
		if !ok {
			t.Errorf("%s: %v, want faults", row.description, err)
			continue
		}
		if !slices.ContainsFunc(faults, func(f dialect.Fault) bool { return f.Path == row.path && strings.Contains(f.Detail, row.detail) }) {
			t.Errorf("%s:\n  %v\n  want %s: … %s", row.description, err, row.path, row.detail)
		}
	}
}

func TestFaultsStandOnLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]string{
		`{"op":"me"}`: `operations[0].on: is missing: METHOD /path, such as "POST /login"`,
		`{"op":"document","on":"GET /lab"}`: "2 faults\n  operations[0].on: is a path of the lab (/lab, /ns), which no dialect may take\n" +
			"  operations[0].out: is missing: the document, or \"status\": 204 for none",
	} {
		if _, err := dialect.Parse([]byte(`{"name":"x","operations":[` + operation + `]}`)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	many := `{"name":"x","operations":[{"op":"me","on":"GET /a","out":[` + strings.Repeat(`"$a",`, 5_000) + `1]}]}`
	if _, err := dialect.Parse([]byte(many)); strings.Count(err.Error(), "\n") > 70 {
		t.Errorf("%d lines, more than anybody reads", strings.Count(err.Error(), "\n"))
	}
}

// What some operation has is no fault elsewhere, and neither is a value that may be there.
func TestSoundDescriptions(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{
		`"operations":[{"op":"me","on":"GET /t/{tenant}","out":{"a":"$access_token|authorization.Bearer","b":"$claims.any","c":"$path.tenant","d":"$header.X|cookie.c|''"}}]`,
		`"operations":[{"op":"login","on":"POST /in","in":{"email":"body.mail","password":"basic.password"},"out":["$claims.tenant","$claims.exp","$csrf_token"]}],
			"claims":{"tenant":"x"},"cookies":{"refresh_token":{"name":"r"},"csrf":{"name":"c","header":"X-C"}}`,
		`"operations":[{"op":"login","on":"POST /t/{a}"},{"op":"me","on":"GET /t/{b}"}],"errors":{"*":{"body":["$path.a","$path.b"]},"me:*":{"body":"$path.b"}}`,
		`"operations":[{"op":"me","on":"GET /v9/{x}/me","in":{"token":"cookie.at"}},{"op":"verify","on":"POST /v9","in":{"token":"cookie.at"}},
			{"op":"logout","on":"POST /out","in":{"token":"cookie.rt|cookie.at"}},{"op":"logout","on":"POST /exit","in":{"token":"cookie.other|cookie.rt|header.X"}},
			{"op":"refresh","on":"POST /v9/renew","in":{"refresh_token":"body.rt|cookie.rt"}}],
			"cookies":{"access_token":{"name":"at","path":"/v9/"},"refresh_token":{"name":"rt"}}`,
		`"operations":[{"op":"me","on":"GET /me","in":{"token":"cookie.script"}}],"cookies":{"refresh_token":{"name":"rt"}}`,
		`"operations":[{"op":"me","on":"GET /me","in":{"token":"cookie.script"}}]`,
		`"operations":[{"op":"me","on":"GET /v1/accounts:lookup","out":["$$now","$$now $5","5 $ $accessToken"]}]`,
		`"operations":[{"op":"document","on":"GET /sanctum/csrf-cookie","status":204}]`,
		`"operations":[{"op":"me","on":"GET /me"}],"cookies":{"access_token":{"name":"a"},"refresh_token":{"name":"a","path":"/b"},"csrf":{"name":"__Host-c","secure":true,"header":"X"}}`,
		`"operations":[{"op":"me","on":"GET /me","out":"@a"}],"templates":{"a":["@b"],"b":"$user.id","c":"$code"},"errors":{"*":{"body":"@c"}}`,
	} {
		parse(t, `{"name":"x",`+rest+`}`)
	}
}

// Templates that name each other twice would grow without bounds.
func TestLargeTemplatesAreRefused(t *testing.T) {
	t.Parallel()
	all := []string{`"t0":["$now","$now"]`}
	for i := 1; i < 30; i++ {
		name := func(n int) string { return "t" + strings.Repeat("i", n) + "0" }
		all = append(all, `"`+name(i)+`":["@`+name(i-1)+`","@`+name(i-1)+`"]`)
	}
	_, err := dialect.Parse([]byte(`{"name":"x","templates":{` + strings.Join(all, ",") + `},"operations":[{"op":"me","on":"GET /a","out":"@t` + strings.Repeat("i", 29) + `0"}]}`))
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v, want a fault", err)
	}
}

// What a request says may be long, so an answer that repeats it often would be too large.
func TestAnswersThatRepeatTheRequestTooOftenAreRefused(t *testing.T) {
	t.Parallel()
	for _, description := range []string{
		`"operations":[{"op":"document","on":"POST /x","out":"` + strings.Repeat("${body.a}", 100) + `"}]`,
		`"operations":[{"op":"document","on":"POST /x","out":[` + strings.Repeat(`"$body.a",`, 100) + `1]}]`,
		`"operations":[{"op":"document","on":"POST /x","out":{},"headers":{"X":"` + strings.Repeat("${header.A}", 100) + `"}}]`,
		`"operations":[{"op":"document","on":"POST /x","out":"` + strings.Repeat("${now}", 5_000) + `"}]`,
	} {
		if _, err := dialect.Parse([]byte(`{"name":"x",` + description + `}`)); err == nil || !strings.Contains(err.Error(), "is too large") {
			t.Errorf("%.60s…: %v", description, err)
		}
	}
}
