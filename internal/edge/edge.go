// Package edge is what every request passes between the socket and a hub: the check of Host (DNS rebinding), CORS, the
// refusal of foreign origins, security headers, the log line, and the last resort against a panic.
package edge

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"authhub/internal/reply"
	"authhub/internal/request"
)

// Config is what an edge needs to know.
type Config struct {
	Next     http.Handler
	Loopback bool         // bound to a loopback address: the Host must be loopback or BaseHost
	BaseHost string       // of the base URL
	Origins  []string     // that may use the hub, besides loopback origins; * for all
	Log      *slog.Logger // nil: no line a request
	Panics   *slog.Logger // a panic is logged in any case

	// Credentials reports whether pages send cookies with their requests to what r asks for.
	Credentials func(r *http.Request) bool
}

// edge wraps the handler of a process.
type edge struct {
	Config
	baseName    string
	anyOrigin   bool
	crossOrigin *http.CrossOriginProtection
}

// New returns the edge of c.Next.
func New(c Config) http.Handler {
	return &edge{c, request.HostName(c.BaseHost), slices.Contains(c.Origins, "*"), http.NewCrossOriginProtection()}
}

func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := witnesses.Get().(*witness)
	*seen = witness{ResponseWriter: w}
	path, start := r.URL.Path, time.Now()
	defer func() { // also where the connection is cut
		if e.Log != nil {
			e.log(levelOf(path), seen, r, time.Since(start))
		}
		*seen = witness{}
		witnesses.Put(seen)
	}()
	e.serve(seen, r)
	seen.status = cmp.Or(seen.status, http.StatusOK) // as net/http answers where nothing was written
}

// witnesses keeps those of requests that are over: without it each request makes one more allocation.
var witnesses = sync.Pool{New: func() any { return new(witness) }}

func (e *edge) serve(w *witness, r *http.Request) {
	defer e.recover(w, r)
	setSecurityHeaders(w.Header())
	if err := e.admit(w.Header(), r); err != nil {
		reply.Write(w, err)
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
		answerPreflight(w, r)
		return
	}
	e.Next.ServeHTTP(w, r)
}

// recover answers a panic with a 500, or cuts the connection where a part of another answer has gone out already. A
// panic is a defect of the hub, so the log has the stack.
func (e *edge) recover(w *witness, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause) // net/http's own way to cut a connection
	}
	e.Panics.Error("panic", "operation", r.Pattern, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	reply.Write(w, fmt.Errorf("panic: %v", cause))
}

// The values are shared by all answers and never written to.
var (
	noSniff      = []string{"nosniff"}
	sameOrigin   = []string{"same-origin"}
	lockedPolicy = []string{"default-src 'none'; frame-ancestors 'none'"}
	varyOrigin   = []string{"Origin"}
	allowed      = []string{"true"}
	exposed      = []string{"Allow, Content-Encoding, Content-Range, ETag, Last-Modified, Location, Preference-Applied, Retry-After, WWW-Authenticate"}
)

func setSecurityHeaders(h http.Header) {
	h["X-Content-Type-Options"] = noSniff
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	h["Content-Security-Policy"] = lockedPolicy
}

// varyIfKept says of an answer that a cache may keep that it depends on the origin, whether or not this request has
// named one (RFC 9110 section 12.5.5).
func varyIfKept(h http.Header) {
	if kept := h["Cache-Control"]; h["Vary"] == nil && (len(kept) != 1 || kept[0] != "no-store") {
		h["Vary"] = varyOrigin
	}
}

// admit refuses what a page of a foreign origin may not do, which is anything but being linked to, and marks the answer
// as readable by the origin that asks where it may read it.
func (e *edge) admit(answer http.Header, r *http.Request) error {
	if e.Loopback && r.Host != e.BaseHost && !request.IsLoopback(r.Host) && request.HostName(r.Host) != e.baseName {
		return reply.Fail(http.StatusForbidden, "forbidden_host",
			"This hub only answers requests to a loopback host or to its base URL. Set -base-url to the address that clients use.")
	}
	if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil {
		return nil // no browser, or one too old to say where it is
	}
	answer["Vary"] = varyOrigin
	origin := r.Header.Get("Origin")
	byName := origin != "" && e.names(origin)
	if byName || origin != "" && e.anyOrigin && !e.forges(r) {
		answer["Access-Control-Allow-Origin"] = []string{origin}
		answer["Access-Control-Expose-Headers"] = exposed
		if byName && e.Credentials != nil && e.Credentials(r) {
			answer["Access-Control-Allow-Credentials"] = allowed
		}
		return nil
	}
	if !e.isForeign(r, origin) {
		return nil
	}
	return reply.Fail(http.StatusForbidden, "forbidden_origin",
		"Pages of this origin may not use the hub. Start the hub with -cors ORIGIN to allow them.")
}

// isForeign reports whether a page of another origin has made the request. Browsers say so in Origin (Fetch standard)
// and in Sec-Fetch-Site (Fetch Metadata). They send no Origin for images, say, but name the page in Referer.
func (e *edge) isForeign(r *http.Request, origin string) bool {
	if origin == "" {
		foreign := !e.anyOrigin && r.Header.Get("Sec-Fetch-Site") == "cross-site" && !followsLink(r) && !e.names(refererOrigin(r))
		return foreign || e.crossOrigin.Check(r) != nil
	}
	if r.Method == http.MethodOptions {
		return true
	}
	asked := *r
	asked.Method = http.MethodPost // the check lets safe methods pass unread
	return e.crossOrigin.Check(&asked) != nil
}

// refererOrigin returns the origin of the page that r names in Referer (RFC 9110 section 10.1.3), or "" if it names
// none.
func refererOrigin(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// followsLink reports whether the answer becomes the document of a tab, as when a user follows a link. A frame in a
// foreign page navigates, too, but is not one.
func followsLink(r *http.Request) bool {
	into := r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && (into == "" || into == "document")
}

// forges reports whether a request that brings cookies would change something. Where every origin may ask, none that
// is not named may do so on behalf of a user whose browser adds the cookies.
func (e *edge) forges(r *http.Request) bool {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	return !safe && r.Header["Cookie"] != nil && e.Credentials != nil && e.Credentials(r)
}

// names reports whether pages of origin may read answers because it is a loopback origin or one that is named.
func (e *edge) names(origin string) bool {
	if slices.Contains(e.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == origin && request.IsLoopback(u.Host)
}

// answerPreflight lets an allowed origin send whatever it asks to send (Fetch standard, CORS preflight).
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Access-Control-Allow-Methods"] = []string{"GET, HEAD, POST, PUT, PATCH, DELETE"}
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h["Access-Control-Allow-Headers"] = []string{asked}
	}
	h["Access-Control-Max-Age"] = []string{"600"}
	h["Vary"] = []string{"Origin, Access-Control-Request-Headers"}
	w.WriteHeader(http.StatusNoContent)
}
