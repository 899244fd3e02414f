package logs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestConsoleLinesAreShortAndCannotBeForged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(newConsole(&out, slog.LevelInfo)).With("hub", "a")
	log.Debug("unseen")
	log.Info("request", "method", "GET", "path", "/\x1b[2J\n", "status", 401, "ms", 0.2, "bytes", 12, "remote", "127.0.0.1:1", "code", "token_expired")
	log.Warn("a warning", "cause", "x y")
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || strings.Contains(out.String(), "[2J\n") || strings.Contains(lines[0], "remote") {
		t.Fatalf("%q", lines)
	}
	for i, want := range []string{yellow + "401" + plain + ` GET "/\x1b[2J\n" `, yellow + "a warning" + plain} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("no %q in %q", want, lines[i])
		}
	}
	if !strings.Contains(lines[0], "token_expired") || !strings.Contains(lines[1], `"x y"`) || !strings.Contains(lines[0], "hub=") {
		t.Errorf("%q", lines)
	}
}

func TestOffStillTellsAlarms(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := New("off", slog.LevelInfo, &out)
	l.Hub.Error("unheard")
	l.Alarms.Error("heard")
	if l.Requests != nil || !strings.Contains(out.String(), "msg=heard") || strings.Contains(out.String(), "unheard") {
		t.Errorf("%q", &out)
	}
}
