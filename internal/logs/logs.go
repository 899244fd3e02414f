// Package logs makes the logs of the process: text, JSON, short coloured lines on a terminal, or none.
package logs

import (
	"io"
	"log/slog"
	"os"
	"runtime"
)

// Logs are the logs of a process.
type Logs struct {
	Hub      *slog.Logger
	Requests *slog.Logger // a line a request; nil where there is no log
	Alarms   *slog.Logger // what is told even where there is no log: panics, and warnings about who can get in
}

// New returns logs in this format (text, json, off) from this level on.
func New(format string, level slog.Level, stderr io.Writer) Logs {
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(stderr, options)
	switch {
	case format == "json":
		handler = slog.NewJSONHandler(stderr, options)
	case isTerminal(stderr):
		handler = newConsole(stderr, level)
	}
	log := slog.New(handler)
	if format == "off" {
		return Logs{Hub: slog.New(slog.DiscardHandler), Alarms: log}
	}
	return Logs{log, log, log}
}

// isTerminal reports whether w is a terminal that takes colours (NO_COLOR: no-color.org).
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || runtime.GOOS == "windows" || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
