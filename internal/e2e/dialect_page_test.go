// The page of a hub that speaks a dialect, in a real browser.

package e2e

import (
	"strings"
	"testing"

	"authhub/internal/testkit"
)

func TestThePageSpeaksTheDialect(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	p := startPage(t, b, "accounts", "-dialect", "oauth2")
	b.wait(`document.querySelector('#spoken').innerText.includes('oauth2')`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	if got, want := b.text(".curl"), "curl -i -X POST -H 'Content-Type: application/x-www-form-urlencoded' -d 'grant_type=password&username=demo&password=demo-password' '"+p.base+"/oauth/token'"; got != want {
		t.Errorf("the curl line is %s, want %s", got, want)
	}
	b.click("[data-key=me]")
	b.wait(`document.querySelector('#wire').innerText.includes('/oauth/userinfo')`)
	b.click("[data-key=refresh]")
	b.wait(`document.querySelector('.gens').innerText.includes('generation 1')`)
	b.click("[data-key=replay]")
	b.wait(`document.querySelector('#wire').innerText.includes('invalid_grant')`)
	b.wait(`document.querySelector('.note').innerText.includes('already spent')`)
	b.wantQuiet("400")
	b.wantOnly(p.base)
}

// The page puts values where the hub has read that they go.
func TestThePageFindsThePlaces(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	file := testkit.WriteFile(t, "places.json", `{"name":"places","operations":[
		{"op":"login","on":"POST /{shop}/in","when":{"query.v":2,"path.shop":"a b"},"in":{"username":"cookie.u|basic.username","password":"basic.password","expires_in":"body.life.ms in milliseconds"}},
		{"op":"me","on":"GET /me","in":{"token":"cookie.t|header.X-Token|query.t"}},
		{"op":"refresh","on":"PUT /again","in":{"refresh_token":"body.data.renewal"}}]}`)
	startPage(t, b, "accounts", "-dialect", file)
	b.wait(`document.querySelector('#spoken').innerText.includes('places')`)
	b.js(`const s = document.querySelector('[data-key=lifetime]'); s.value = '60'; s.dispatchEvent(new Event('change'))`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	for _, part := range []string{"/a%20b/in?v=2'", `-d '{"life":{"ms":60000}}'`, "'Authorization: Basic ZGVtbzpkZW1vLXBhc3N3b3Jk'"} {
		if got := b.text(".curl"); !strings.Contains(got, part) {
			t.Errorf("the curl line is %s, want %s in it", got, part)
		}
	}
	b.click("[data-key=me]")
	b.wait(`document.querySelector('.note').innerText.includes('knows you')`)
	b.click("[data-key=refresh]")
	b.wait(`document.querySelector('.gens').innerText.includes('generation 1')`)
	b.wantQuiet()
}

func TestThePageLeavesCookiesToTheBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	startPage(t, b, "accounts", "-dialect", "dj-rest-auth")
	b.wait(`document.querySelector('#spoken').innerText.includes('dj-rest-auth')`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 1`)
	b.click("[data-key=refresh]")
	b.wait(`document.querySelector('.note').innerText.includes('A new')`)
	b.click("[data-key=logout]")
	b.wait(`document.querySelector('#wire').innerText.includes('Successfully logged out.')`)
	b.wantQuiet()
}
