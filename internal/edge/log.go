// The line that the log has of each request.

package edge

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"authhub/internal/request"
)

// log writes the line of a request that has been answered.
func (e *edge) log(level slog.Level, seen *witness, r *http.Request, took time.Duration) {
	line := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", request.SafePath(r.URL.Path)), slog.Int("status", seen.status),
		slog.Int64("bytes", seen.bytes), slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("remote", r.RemoteAddr),
	}
	if seen.status >= 400 || seen.status == 0 || seen.noted("code") { // 0: the connection was cut; a dialect's errors may have 200
		line = append(line, seen.notes...)
	}
	if remedy := remedyOf(seen, r); remedy != "" {
		line = append(line, slog.String("remedy", remedy))
		level = slog.LevelWarn
	}
	e.Log.LogAttrs(r.Context(), level, "request", line...)
}

// remedyOf says how to start a hub that does not refuse a request for its origin or its host, or "".
func remedyOf(seen *witness, r *http.Request) string {
	for _, note := range seen.notes {
		switch note.Value.String() {
		case "forbidden_origin":
			return "start the hub with -cors " + nameable(r.Header.Get("Origin"), "ORIGIN")
		case "forbidden_host":
			return "start the hub with -base-url " + nameable("http://"+r.Host, "URL")
		}
	}
	return ""
}

// nameable returns an origin for the log, or otherwise for what may be anything.
func nameable(origin, otherwise string) string {
	if isHostOrigin(origin) {
		return origin
	}
	return otherwise
}

// isHostOrigin reports whether origin has a host that is nothing but a host: it has a dot or a port, as no password has
// that somebody puts into the header by mistake. Package regexp, for this alone, would be 242 kB of the binary.
func isHostOrigin(origin string) bool {
	const label, digits = "abcdefghijklmnopqrstuvwxyz0123456789-", "0123456789"
	scheme, host, _ := strings.Cut(origin, "://")
	host, port, hasPort := strings.Cut(host, ":")
	first, rest, hasDot := strings.Cut(host, ".")
	return (scheme == "http" || scheme == "https") && (hasDot || hasPort) && consists(first, label, 63) &&
		(!hasDot || consists(rest, label+".", 63)) && (!hasPort || consists(port, digits, 5))
}

// consists reports whether s is 1 to most of these characters.
func consists(s, of string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, of) == ""
}

// levelOf is the level of a request that succeeds: debug for those of the page, of the lab and of health checks.
func levelOf(path string) slog.Level {
	if rest, ok := strings.CutPrefix(path, "/ns/"); ok {
		_, inner, _ := strings.Cut(rest, "/")
		path = "/" + inner
	}
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "", "web", "lab", "ns", "healthz", "openapi.json", "favicon.ico":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// witness remembers of an answer what the log says of it.
type witness struct {
	http.ResponseWriter
	status int // 0: nothing has gone out
	bytes  int64
	notes  []slog.Attr
}

// Note takes what reply.Note says.
func (w *witness) Note(name, value string) {
	if !w.noted(name) {
		w.notes = append(w.notes, slog.String(name, value))
	}
}

func (w *witness) noted(name string) bool {
	return slices.ContainsFunc(w.notes, func(a slog.Attr) bool { return a.Key == name })
}

func (w *witness) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		varyIfKept(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the writer below.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }
