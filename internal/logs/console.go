// Lines for somebody who watches a terminal.

package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Colours (ECMA-48 section 8.3.117, SGR).
const (
	plain  = "\x1b[0m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// console is a slog.Handler that writes one short line a record: of a request its status, method, path and why it was
// refused.
type console struct {
	level slog.Level
	mu    *sync.Mutex
	out   io.Writer
	attrs []slog.Attr
}

func newConsole(out io.Writer, level slog.Level) *console {
	return &console{level: level, mu: new(sync.Mutex), out: out}
}

func (c *console) Enabled(_ context.Context, level slog.Level) bool { return level >= c.level }

func (c *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *c
	with.attrs = append(with.attrs[:len(with.attrs):len(with.attrs)], attrs...)
	return &with
}

// WithGroup is not used by the hub; the names of a group's attributes stay as they are.
func (c *console) WithGroup(string) slog.Handler { return c }

func (c *console) Handle(_ context.Context, r slog.Record) error {
	attrs := c.attrs[:len(c.attrs):len(c.attrs)]
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	colour := plain
	switch {
	case r.Level >= slog.LevelError:
		colour = red
	case r.Level >= slog.LevelWarn:
		colour = yellow
	}
	text := colour + r.Message + plain
	if r.Message == "request" {
		text, attrs = requestLine(attrs)
	}
	var rest strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&rest, " %s%s=%s%s", faint, a.Key, plain, legible(a.Value.String()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := fmt.Fprintf(c.out, "%s%s%s %s%s\n", faint, r.Time.Format("15:04:05"), plain, text, &rest)
	return err
}

// requestLine returns the line of a request and the attributes that are not in it.
func requestLine(attrs []slog.Attr) (string, []slog.Attr) {
	said := make(map[string]slog.Value)
	var others []slog.Attr
	for _, a := range attrs {
		switch a.Key {
		case "method", "path", "status", "ms":
			said[a.Key] = a.Value
		case "bytes", "remote":
		default:
			others = append(others, a)
		}
	}
	status := said["status"].String()
	colour := green
	switch {
	case status >= "5" || status == "0":
		colour = red
	case status >= "4":
		colour = yellow
	}
	return fmt.Sprintf("%s%s%s %s %s %s%sms%s", colour, status, plain, legible(said["method"].String()), legible(said["path"].String()),
		faint, said["ms"], plain), others
}

// legible quotes what is not one printable word, so that nobody writes to the terminal but the hub.
func legible(text string) string {
	if text == "" || strings.ContainsFunc(text, func(c rune) bool { return c == ' ' || c == '"' || !unicode.IsPrint(c) }) {
		return strconv.Quote(text)
	}
	return text
}
