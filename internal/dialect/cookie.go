// Cookies (RFC 6265): tokens that a browser keeps out of reach of scripts, and a pair against forged requests.

package dialect

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
	c.checkApart(n)
	return c
}

// checkApart refuses two that browsers take for one (RFC 6265 section 5.3, step 11), since each replaces the other.
func (c *cookies) checkApart(n node) {
	names := []string{"access_token", "refresh_token", "csrf"}
	all := []*cookie{c.access, c.refresh, c.csrf}
	for i, one := range all {
		for j, other := range all[:i] {
			if one != nil && other != nil && one.name == other.name && one.path == other.path {
				n.fault(fmt.Sprintf(`%s and %s are one cookie, %s with the path %s; give one of them another "name" or "path"`, names[j], names[i], one.name, one.path))
			}
		}
	}
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

// checkCookies reports a token of op that no cookie of a browser can bring: "cookies" sets it under another name, or
// for other paths. A cookie that "cookies" does not set may come from a script of the client.
func (d *Dialect) checkCookies(n node, op *operation) {
	for _, name := range []string{"token", "refresh_token"} {
		at := node{n.p, join(join(n.path, "in"), name), nil}
		places := op.in[name].places
		var read []string
		var known []*cookie
		for _, p := range places {
			if p.kind == "cookie" {
				read = append(read, p.path[0])
				known = append(known, d.cookies.named(p.path[0])...)
			}
		}
		meant := d.cookies.meantBy(op, name)
		switch {
		case read == nil || meant == nil:
		case known == nil:
			at.fault(fmt.Sprintf(`reads the cookie %s, which "cookies" does not set; write "cookie.%s"`, strings.Join(read, ", "), meant[0].name))
		case len(known) == len(places) && !slices.ContainsFunc(known, op.gets):
			at.fault(fmt.Sprintf(`reads the cookie %s, which browsers send to paths under %s only; make its "path" the beginning of %s, or "/"`,
				known[0].name, known[0].path, op.path))
		}
	}
}

// named returns the cookies of tokens that have this name.
func (c *cookies) named(name string) []*cookie {
	return slices.DeleteFunc(c.ofTokens(true, true), func(one *cookie) bool { return one.name != name })
}

// meantBy returns the cookies of the tokens that op takes in this value.
func (c *cookies) meantBy(op *operation, value string) []*cookie {
	return c.ofTokens(value == "token", value == "refresh_token" || op.verb.name != "me")
}

// ofTokens returns the cookies of access tokens, of refresh tokens, or of both, as far as they are set.
func (c *cookies) ofTokens(access, refresh bool) []*cookie {
	var all []*cookie
	if c != nil && c.access != nil && access {
		all = append(all, c.access)
	}
	if c != nil && c.refresh != nil && refresh {
		all = append(all, c.refresh)
	}
	return all
}

// gets reports whether a browser sends a cookie to op (RFC 6265 section 5.1.4). A part in braces may be any.
func (op *operation) gets(c *cookie) bool {
	want := split(c.path)
	if c.path == "/" {
		return true
	}
	if len(want) > len(op.segments) {
		return false
	}
	for i, segment := range want {
		if segment != op.segments[i] && !strings.HasPrefix(op.segments[i], "{") {
			return false
		}
	}
	return true
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
