// Descriptions: which are sound, and how the faults of the others are told.

package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"authhub/internal/dialect"
)

func TestFaultsOfDescriptionsAreNamed(t *testing.T) {
	t.Parallel()
	op := func(members string) string {
		return `{"name":"x","operations":[{"op":"me","on":"GET /a"},{"op":"login","on":"POST /b"},` + members + `]}`
	}
	with := func(members string) string {
		return `{"name":"x","operations":[{"op":"me","on":"GET /a"}],` + members + `}`
	}
	cookie := func(on, in, path string) string {
		return `{"name":"x","operations":[{"op":"me","on":"` + on + `","in":{"token":"` + in + `"}}],"cookies":{"access_token":{"name":"at",` + path + `}}}`
	}
	for _, row := range []struct{ description, path, detail string }{
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
		{with(`"name":"y"`), "name", "given twice"},
		{with(`"operation":[]`), "operation", "is not a known member; there are name, templates, operations"},
		{op(`{"op":"signin","on":"GET /c"}`), "operations[2].op", "must be one of document, introspect, login"},
		{op(`{"op":"me"}`), "operations[2].on", "METHOD /path"},
		{op(`{"op":"me","on":"/c"}`), "operations[2].on", "METHOD /path"},
		{op(`{"op":"me","on":"GET /c?x=1"}`), "operations[2].on", `"when"`},
		{op(`{"op":"me","on":"GET /lab/x"}`), "operations[2].on", "path of the lab"},
		{op(`{"op":"me","on":"GET /a{b}"}`), "operations[2].on", "/tenants/{tenant}/login"},
		{op(`{"op":"me","on":"GET /a/"}`), "operations[2].on", "never reached: operations[0]"},
		{op(`{"op":"login","on":"POST /b","when":{"query.x":"1"}}`), "operations[2].on", "never reached: operations[1]"},
		{op(`{"op":"me","on":"GET /c","when":{"x":"1"}}`), "operations[2].when.x", "must be body.NAME"},
		{op(`{"op":"me","on":"GET /c","when":{"query.x":null}}`), "operations[2].when.query.x", "a string, a number"},
		{op(`{"op":"me","on":"GET /c","in":{"password":"body.x"}}`), "operations[2].in.password", "is not a known member; there are token"},
		{op(`{"op":"me","on":"GET /c","in":{"token":"bearer"}}`), "operations[2].in.token", "authorization.SCHEME"},
		{op(`{"op":"me","on":"GET /c","in":{"token":"path.x"}}`), "operations[2].in.token", "names no {part}"},
		{op(`{"op":"me","on":"GET /c","in":{"token":"body.x in minutes"}}`), "operations[2].in.token", "expires_in"},
		{op(`{"op":"login","on":"POST /c","in":{"expires_in":"body.x in hours"}}`), "operations[2].in.expires_in", "in minutes"},
		{op(`{"op":"login","on":"POST /c","status":302}`), "operations[2].status", "from 200 to 299"},
		{op(`{"op":"login","on":"POST /c","status":204,"out":{}}`), "operations[2].out", "no body"},
		{op(`{"op":"login","on":"POST /c","out":{"a":["$tokn"]}}`), "operations[2].out.a[0]", "$tokn is no value of login; there are access_token"},
		{op(`{"op":"login","on":"POST /c","out":"a ${now"}`), "operations[2].out", "without its }"},
		{op(`{"op":"login","on":"POST /c","out":"@user"}`), "operations[2].out", "@user names no template"},
		{op(`{"op":"login","on":"POST /c","headers":{"X-A":"a\r\nSet-Cookie: b"}}`), "operations[2].headers.X-A", "one line"},
		{op(`{"op":"login","on":"POST /c","headers":{"Content-Length":"1"}}`), "operations[2].headers.Content-Length", "is set by the hub itself"},
		{op(`{"op":"login","on":"POST /c","headers":{"set-cookie":"a=b"}}`), "operations[2].headers.set-cookie", `is set by "cookies"`},
		{op(`{"op":"login","on":"POST /c","out":"$acess_token"}`), "operations[2].out", "$acess_token is no value of login; did you mean $access_token? There are access_token, "},
		{op(`{"op":"login","on":"POST /c","out":"$user.emial"}`), "operations[2].out", "did you mean $user.email? There"},
		{op(`{"op":"login","on":"POST /c","out":"$expires_im"}`), "operations[2].out", "did you mean $expires_in? There"},
		{with(`"errors":{"*":{"body":"$errors.0.field"}}`), "errors.*.body", "$errors has no members to pick; there are name"},
		{op(`{"op":"me","on":"GET /c>d"}`), "operations[2].on", "characters that a path can't contain"},
		{with(`"errors":{"not_found":{}}`), "errors.not_found", "can't be changed: not_found is the hub's own answer"},
		{with(`"lifetimes":{"refresh":"30d"}`), "lifetimes.refresh", `so 30 days are "720h"`},
		{with(`"lifetimes":{"refresh":3600}`), "lifetimes.refresh", "its units are h, m, s and ms"},
		{op(`{"op":"document","on":"GET /d"}`), "operations[2].out", "is missing"},
		{op(`{"op":"me","on":"GET /d","inactive":{}}`), "operations[2].inactive", "belongs to introspect"},
		{op(`{"op":"login","on":"POST /b"}`), "operations[2].on", `operations[1] takes the same requests; give one of them a "when" and put that one first`},
		{op(`{"op":"me","on":"GET /c","when":{"query.x":"1"}},{"op":"me","on":"GET /c","when":{"query.x":1}}`), "operations[3].on", `operations[2] has the same "when"; change one of them or remove it`},
		{op(`{"op":"me","on":"GET /c"},{"op":"me","on":"GET /c","when":{"query.x":1}}`), "operations[3].on", "put this one before it"},
		{op(`{"op":"me","on":"GET /c","when":{"path.x":"1"}}`), "operations[2].when.path.x", `path.x names no {part} of "on", which has none`},

		{op(`{"op":"me","on":"GET /c","in":null}`), "operations[2].in", "must be an object"},
		{op(`{"op":"me","on":"GET /c","in":{}}`), "operations[2].in.token", `is missing, and me can't do without it: say where the client sends it, such as "authorization.Bearer"`},
		{op(`{"op":"login","on":"POST /c","in":{"username":"body.u"}}`), "operations[2].in.password", "is missing"},
		{op(`{"op":"login","on":"POST /c","in":{"password":"body.p"}}`), "operations[2].in.username", "is missing (or email)"},
		{op(`{"op":"register","on":"POST /c","in":{"name":"body.n"}}`), "operations[2].in.password", `"body.password"`},
		{op(`{"op":"refresh","on":"POST /c","in":{}}`), "operations[2].in.refresh_token", "is missing"},
		{op(`{"op":"logout","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},
		{op(`{"op":"revoke","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},
		{op(`{"op":"introspect","on":"POST /c","in":{}}`), "operations[2].in.token", "is missing"},

		{op(`{"op":"me","on":"GET /c","out":{"t":"$access_token"}}`), "operations[2].out.t", "$access_token is no value of me; there are user, user.id"},
		{op(`{"op":"me","on":"GET /c","out":{"t":"$auth_time"}}`), "operations[2].out.t", "$auth_time is no value of me"},
		{op(`{"op":"me","on":"GET /c","out":{"t":"$access_token|'x'"}}`), "operations[2].out.t", "$access_token is no value of me"},
		{op(`{"op":"logout","on":"POST /c","out":["$user.id"]}`), "operations[2].out[0]", "$user.id is no value of logout; there are now,"},
		{op(`{"op":"document","on":"GET /c","headers":{"X":"a ${claims.sub}"},"out":{}}`), "operations[2].headers.X", "$claims.sub is no value of document"},
		{op(`{"op":"introspect","on":"POST /c","inactive":{"u":"$user.id"}}`), "operations[2].inactive.u", `$user.id is no value of "inactive"`},
		{op(`{"op":"verify","on":"POST /c","out":{"u":"$refresh_token"}}`), "operations[2].out.u", "$refresh_token is no value of verify; there are user"},
		{op(`{"op":"login","on":"POST /c","out":"$name"}`), "operations[2].out", "$name is no value of login"},
		{op(`{"op":"login","on":"POST /c","out":"$csrf_token"}`), "operations[2].out", `$csrf_token is no value of login without "csrf" in "cookies"`},
		{op(`{"op":"login","on":"POST /c","out":"$token_kind"}`), "operations[2].out", "$token_kind is no value of login"},
		{op(`{"op":"login","on":"POST /c","out":"$claims.tenant"}`), "operations[2].out", `$claims.tenant is no value of login; claims are iss, sub, sid, jti, iat, exp, username, role and those of "claims"`},
		{op(`{"op":"me","on":"GET /c/{a}","out":"$path.b"}`), "operations[2].out", `path.b names no {part} of "on", which has a`},
		{`{"name":"x","operations":[{"op":"me","on":"GET /c","out":"@t"}],"templates":{"t":{"x":["$expires_in"]}}}`, "templates.t.x[0]", "$expires_in is no value of me (operations[0])"},
		{with(`"errors":{"*":{"body":"$user.id"}}`), "errors.*.body", `$user.id is no value of "errors"; there are name, code, detail`},
		{with(`"errors":{"me:*":{"headers":{"X":"${path.b}"}}}`), "errors.me:*.headers.X", `path.b names no {part} of "on"`},
		{with(`"claims":{"a":"$access_token"}`), "claims.a", `$access_token is no value of "claims"; there are user, user.id`},
		{with(`"claims":{"a":"$body.x"}`), "claims.a", `$body.x is no value of "claims"`},
		{op(`{"op":"login","on":"POST /c","out":"$body.nul|${user.id}"}`), "operations[2].out", `"$body.nul|${user.id}" has ${user.id} among its names, which stand without $ after a |: "$body.nul|user.id"`},
		{op(`{"op":"login","on":"POST /c","out":"$user.name|$user.id"}`), "operations[2].out", "has $user.id among its names"},
		{with(`"templates":{"a":{"x":"@b"},"b":["@a"]}`), "templates.b[0]", "in itself: a → b → a"},
		{with(`"templates":{"a":"@a"}`), "templates.a", "in itself: a → a"},
		{with(`"templates":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`), "templates.a" + strings.Repeat("[0]", 30), "lies too deep"},
		{with(`"errors":{"nosuch":{}}`), "errors.nosuch", "names no error"},
		{with(`"errors":{"invalid_field.mail":{}}`), "errors.invalid_field.mail", "names no error"},
		{with(`"errors":{"token_expired.email":{}}`), "errors.token_expired.email", "names no error"},
		{with(`"errors":{"login:token_*":{}}`), "errors.login:token_*", `"operations" does not have`},
		{with(`"errors":{"*":{"status":302}}`), "errors.*.status", "from 400 to 599"},
		{op(`{"op":"login","on":"POST /c","headers":{"X":"$nope"}}`), "operations[2].headers.X", "$nope is no value of login"},
		{op(`{"op":"login","on":"POST /c","headers":{"X":"@session"}}`), "operations[2].headers.X", "can't be a template"},
		{with(`"errors":{"*":{"headers":{"X":"$user.id"}}}`), "errors.*.headers.X", `$user.id is no value of "errors"`},
		{with(`"errors":{"*":{"detail":"${code}: gone $name"}}`), "errors.*.detail", `these go into "body" and "headers"`},
		{with(`"errors":{"*":{"name":"$code"}}`), "errors.*.name", "is a plain text"},
		{with(`"errors":{"*":{"name":"@name"}}`), "errors.*.name", "is a plain text"},
		{op(`{"op":"login","on":"POST /c","out":"$user.email|"}`), "operations[2].out", `"$user.email|" has an empty name; write '' behind the last |`},
		{cookie("GET /me", "cookie.rtt", `"path":"/"`), "operations[0].in.token", `reads the cookie rtt, which "cookies" does not set; write "cookie.at"`},
		{cookie("GET /v9/me", "cookie.at", `"path":"/other"`), "operations[0].in.token", `reads the cookie at, which browsers send to paths under /other only; make its "path" the beginning of /v9/me, or "/"`},
		{cookie("GET /v9", "cookie.at", `"path":"/v9/renew"`), "operations[0].in.token", `send to paths under /v9/renew only`},
		{cookie("GET /v99/me", "cookie.at", `"path":"/v9"`), "operations[0].in.token", `send to paths under /v9 only`},
		{with(`"cookies":{}`), "cookies", "must have access_token or refresh_token"},
		{with(`"cookies":{"refresh_token":{"name":"a b"}}`), "cookies.refresh_token.name", "letters, digits"},
		{with(`"cookies":{"refresh_token":{"name":"a","path":"/x; Domain=y"}}`), "cookies.refresh_token.path", "must be a path"},
		{with(`"cookies":{"refresh_token":{"name":"a","same_site":"none"}}`), "cookies.refresh_token", `needs "secure": true`},
		{with(`"lifetimes":{"access":"5"}`), "lifetimes.access", "must be a duration"},
		{with(`"rotation":"no"`), "rotation", "must be true or false"},
		{with(`"claims":{"sub":"x"}`), "claims.sub", "said by the hub itself"},
	} {
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
			"  operations[0].out: is missing: the document",
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
		`"operations":[{"op":"me","on":"GET /me","out":"@used"}],"templates":{"used":"$user.id","unused":"$access_token"}`,
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
	_, err := dialect.Parse([]byte(`{"name":"x","templates":{` + strings.Join(all, ",") + `},"operations":[{"op":"me","on":"GET /a"}]}`))
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
