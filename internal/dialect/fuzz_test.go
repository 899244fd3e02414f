// Descriptions and requests by chance.

package dialect_test

import (
	"encoding/json"
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
