// Descriptions and requests by chance.

package dialect_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"authhub/internal/dialect"
)

// FuzzParse: a description is refused or serves; its text reads as the same again.
func FuzzParse(f *testing.F) {
	// Small ones: Go's fuzzing spends its time on making large ones smaller.
	for _, rest := range []string{
		`"when":{"query.g":"p"},"in":{"username":"body.a.0|basic.username","expires_in":"body.m in minutes"},"status":201}]`,
		`"headers":{"X":"${user.name}","Y":null},"out":["@t",{"a":"$claims|now"},"${now} s"]}],"templates":{"t":"$body.a|'b'"},"claims":{"a":"$auth_time"}`,
		`"in":{}}],"errors":{"*":{"status":400,"name":"n","body":"$fields"},"login:token_*":{"detail":"d"}},"rotation":false`,
		`"in":{}}],"cookies":{"refresh_token":{"name":"r","path":"/x"},"csrf":{"name":"c","header":"X-C"}},"lifetimes":{"access":"5m"}`,
	} {
		f.Add([]byte(`{"name":"x","operations":[{"op":"login","on":"POST /{a}",`+rest+`}`), "/a%0A")
	}
	f.Fuzz(func(t *testing.T, description []byte, path string) {
		d, err := dialect.Parse(description)
		if err != nil {
			if faults, ok := err.(dialect.Faults); !ok || len(faults) == 0 || err.Error() == "" {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again, err := dialect.Parse(d.Description())
		if err != nil || string(again.Description()) != string(d.Description()) {
			t.Fatalf("does not read as itself again: %v", err)
		}
		for _, op := range d.Operations() {
			serve(t, d, op.Method, op.Path, `{"username":"demo","password":"demo-password"}`, "application/json", "Bearer "+token("access"), "")
		}
		serve(t, d, "POST", path, "", "", "", "")
	})
}

// FuzzDescribed: descriptions put together by chance, many of which are sound, and requests by chance to what they
// describe, some of which are hostile.
func FuzzDescribed(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := chance{rand.New(rand.NewPCG(seed, 1))}
		description := c.description()
		d, err := dialect.Parse([]byte(description))
		if err != nil {
			if faults, ok := err.(dialect.Faults); !ok || len(faults) == 0 {
				t.Fatalf("%s: %v", description, err)
			}
			return
		}
		for _, op := range d.Operations() {
			target := strings.ReplaceAll(op.Path, "{a}", c.of("x", "%0A", "%F0%9F%98%80", strings.Repeat("y", 300)))
			target += c.of("", "/", "?a=1", "?a=%zz", "?a=%00&b=2", "?"+strings.Repeat("a=1&", 100))
			body := strings.ReplaceAll(c.body(), `"VALUE"`, c.of(`"demo"`, `7`, `-1e400`, `null`, `{"a":[]}`, `"`+token("refresh")+`"`, `"\u0000\r\n"`, `"$now@t${b}"`))
			serve(t, d, c.of(op.Method, op.Method, "HEAD", "PATCH"), target, body, c.of("application/json", "", "application/x-www-form-urlencoded", "text/plain", "a/b+json"),
				c.of("", "Bearer "+token("access"), "Basic eDp5", "JWT  x", "Basic /w==", "Bearer"), c.of("", "a="+token("access")+"; b=1", "a=\"q\"; =; ;;", "a=b; a=c", "a=\xff"))
		}
	})
}

// chance chooses.
type chance struct{ *rand.Rand }

func (c chance) of(choices ...string) string { return choices[c.IntN(len(choices))] }

func (c chance) body() string {
	deep := c.IntN(15_000)
	return c.of(``, `{}`, `{"a":"VALUE"}`, `{"a":{"b":"VALUE"},"b":["VALUE"]}`, `a=1&b=2`, `a=%zz`, `[`, `{"a":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+`}`)
}

func (c chance) place() string {
	return c.of("body.a", "body.a.b", "body.b.0", "query.a", "header.Cookie", "cookie.a", "path.a", "authorization.Bearer", "authorization.JWT", "basic.username")
}

// template returns JSON that may name values and templates, at most so many levels deep.
func (c chance) template(depth int) string {
	name := c.of("now", "base_url", "user.name", "access_token", "expires_iso", "claims.sid", "detail", "errors", c.place())
	if depth == 0 {
		return c.of(`"$`+name+`"`, `"${`+name+`} x"`, `"$`+name+`|'y'"`, `"$$${now}"`, `"@@"`, `null`, `1.50`, `"\r\n"`)
	}
	inner := c.template(depth - 1)
	return c.of(`{"a":`+inner+`,"":`+inner+`}`, `[`+inner+`]`, inner, inner, `"@t"`)
}

func (c chance) description() string {
	var operations []string
	for i := range 1 + c.IntN(4) {
		op := c.of("register", "login", "me", "refresh", "logout", "logout_all", "revoke", "introspect", "verify", "document")
		needs := map[string]string{"register": `"username":"P","password":"P"`, "login": `"email":"P","password":"P","expires_in":"P in minutes"`, "refresh": `"refresh_token":"P|P"`, "document": ``}
		in, ok := needs[op]
		if !ok {
			in = `"token":"P|P"`
		}
		for strings.Contains(in, `P`) {
			in = strings.Replace(in, "P", c.place(), 1)
		}
		more := c.of(``, `,"in":{`+in+`}`, `,"when":{"`+c.place()+`":`+c.of(`"1"`, `true`, `-0`)+`}`) + c.of(``, `,"headers":{"X-A":"${`+c.place()+`}","Content-Type":null}`)
		operations = append(operations, fmt.Sprintf(`{"op":%q,"on":"%s /%s%d","out":%s%s}`, op, c.of("GET", "POST", "DELETE"), c.of("", "{a}/", "b/"), i, c.template(2), more))
	}
	rest := c.of(``, `,"cookies":{"access_token":{"name":"a"},"csrf":{"name":"b","header":"X-B"}}`) +
		c.of(``, `,"errors":{"*":{"status":`+c.of("200", "400", "499")+`,"body":`+c.template(1)+`,"headers":{"X-E":"${detail}","WWW-Authenticate":null}},"token_*":{"name":"n"}}`) + c.of(``, `,"claims":{"tenant":"${user.name}"}`)
	rest = strings.Join(operations, ",") + "]" + rest
	if strings.Contains(rest, `"@t"`) {
		rest += `,"templates":{"t":` + c.template(1) + `}`
	}
	return `{"name":"chance","operations":[` + rest + "}"
}

// FuzzRequest: no request makes a built-in dialect panic or answer with a 5xx.
func FuzzRequest(f *testing.F) {
	f.Add("oauth2", "POST", "/oauth/token?x=1", "grant_type=password&username=demo", "application/x-www-form-urlencoded", "Basic eDp5", "a=b")
	f.Add("supabase", "POST", "/auth/v1/token?grant_type=password", `{"email":"demo","password":"demo-password"}`, "application/json", "Bearer x", "")
	f.Add("dj-rest-auth", "POST", "/dj-rest-auth/logout/", "", "", "", "my-app-auth=eyJ")
	f.Add("firebase", "POST", "/identitytoolkit.googleapis.com/v1/accounts:lookup", `{"idToken":[]}`, "application/json", "", "")
	f.Fuzz(func(t *testing.T, name, method, target, body, contentType, authorization, cookie string) {
		description, ok := dialect.Builtin(name)
		if !ok {
			return
		}
		d, _ := dialect.Parse(description)
		serve(t, d, method, target, body, contentType, authorization, cookie)
	})
}

// serve sends one request and fails for a 5xx or an answer that is no JSON.
func serve(t *testing.T, d *dialect.Dialect, method, target, body, contentType, authorization, cookie string) {
	r, err := http.NewRequest(method, "http://hub.test"+target, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Cookie", cookie)
	w, _ := ask(t, d, new(stubHub), r)
	if w == nil {
		return
	}
	if w.Code >= 500 && !strings.Contains(string(d.Description()), `"status": 5`) {
		t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
	}
	for name, values := range w.Header() {
		if strings.ContainsAny(strings.Join(append(values, name), ""), "\r\n\x00") {
			t.Errorf("%s %s: header %s %q", method, target, name, values)
		}
	}
	if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
		t.Errorf("%s %s: no JSON: %s", method, target, w.Body)
	}
}
