// Cookies (RFC 6265): tokens that a browser keeps out of reach of scripts, and a pair against forged requests.

package dialect

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"authhub/internal/reply"
)

// cookies are those that a dialect sets with each new pair of tokens, and clears at logout.
type cookies struct {
	access, refresh *cookie
	csrf            *cookie // readable by scripts, which send it back in a header
	csrfHeader      string
}

// cookie is one of them.
type cookie struct {
	name, path string
	sameSite   http.SameSite
	secure     bool
	httpOnly   bool
}

var sameSites = map[string]http.SameSite{"lax": http.SameSiteLaxMode, "strict": http.SameSiteStrictMode, "none": http.SameSiteNoneMode}

func parseCookies(n node) *cookies {
	o := n.object([]string{"access_token", "refresh_token", "csrf"})
	if o == nil {
		return nil
	}
	c := new(cookies)
	if at, ok := n.member(o, "access_token"); ok {
		c.access = at.cookie()
	}
	if at, ok := n.member(o, "refresh_token"); ok {
		c.refresh = at.cookie()
	}
	if at, ok := n.member(o, "csrf"); ok {
		c.csrf, c.csrfHeader = at.csrf()
	}
	if len(o.names) == 0 || c.access == nil && c.refresh == nil {
		n.fault("must have access_token or refresh_token")
	}
	return c
}

// cookie reads the cookie of a token.
func (n node) cookie() *cookie {
	o := n.object([]string{"name", "path", "http_only", "same_site", "secure"})
	if o == nil {
		return nil
	}
	c := n.cookieBasics(o)
	if at, ok := n.member(o, "http_only"); ok {
		c.httpOnly = at.truth()
	}
	return c
}

func (n node) cookieBasics(o *object) *cookie {
	c := &cookie{path: "/", sameSite: http.SameSiteLaxMode, httpOnly: true}
	name, _ := n.member(o, "name")
	if c.name, _ = name.value.(string); !isToken(c.name) || len(c.name) > 64 {
		name.fault("must be the cookie's name, of letters, digits and - _ .")
	}
	if at, ok := n.member(o, "path"); ok {
		c.path = at.text()
		if !strings.HasPrefix(c.path, "/") || len(c.path) > maxPathLength || strings.ContainsFunc(c.path, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' }) {
			at.fault(`must be a path such as "/auth"`)
		}
	}
	if at, ok := n.member(o, "same_site"); ok {
		c.sameSite = sameSites[at.oneOf("lax", "none", "strict")]
	}
	if at, ok := n.member(o, "secure"); ok {
		c.secure = at.truth()
	}
	if c.sameSite == http.SameSiteNoneMode && !c.secure {
		n.fault(`"same_site": "none" needs "secure": true, or browsers refuse the cookie`)
	}
	return c
}

// csrf reads the pair of a cookie and a header.
func (n node) csrf() (*cookie, string) {
	o := n.object([]string{"name", "path", "same_site", "secure", "header"})
	if o == nil {
		return nil, ""
	}
	c := n.cookieBasics(o)
	c.httpOnly = false
	at, _ := n.member(o, "header")
	field, _ := at.value.(string)
	if !isToken(field) {
		at.fault(`must be the name of the header that repeats the cookie, such as "X-CSRF-Token"`)
	}
	return c, field
}

// set writes the cookies of a new pair. prefix is what the hub's paths begin with as the client sees them.
func (c *cookies) set(h http.Header, prefix string, v values) {
	c.access.write(h, prefix, v["access_token"], v["expires_in"])
	c.refresh.write(h, prefix, v["refresh_token"], v["refresh_expires_in"])
	c.csrf.write(h, prefix, v["csrf_token"], v["refresh_expires_in"])
}

// clear ends them all.
func (c *cookies) clear(h http.Header, prefix string) {
	for _, one := range []*cookie{c.access, c.refresh, c.csrf} {
		one.write(h, prefix, "", nil)
	}
}

// write sets the cookie for so many seconds, or ends it.
func (c *cookie) write(h http.Header, prefix string, value, lifetime any) {
	if c == nil {
		return
	}
	token, _ := value.(string)
	seconds, _ := lifetime.(json.Number)
	age, _ := strconv.Atoi(seconds.String())
	if age <= 0 {
		age = -1
	}
	set := http.Cookie{Name: c.name, Value: token, Path: prefix + c.path, MaxAge: age, HttpOnly: c.httpOnly, SameSite: c.sameSite, Secure: c.secure}
	h.Add("Set-Cookie", set.String())
}

// checkCSRF refuses a request whose token came in a cookie, by a method that changes something, unless the header
// repeats the csrf cookie: a page of another origin can send the cookie and can't read it.
func (c *cookies) checkCSRF(q *question, from place) error {
	if c == nil || c.csrf == nil || from.kind != "cookie" || q.r.Method == http.MethodGet || q.r.Method == http.MethodHead {
		return nil
	}
	kept, err := q.r.Cookie(c.csrf.name)
	repeated := q.r.Header.Get(c.csrfHeader)
	if err == nil && kept.Value != "" && subtle.ConstantTimeCompare([]byte(kept.Value), []byte(repeated)) == 1 {
		return nil
	}
	return reply.Fail(http.StatusForbidden, "csrf_mismatch", "The header "+c.csrfHeader+" must repeat the cookie "+c.csrf.name+".")
}
