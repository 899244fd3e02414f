package flags

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// parse reads a command line, in which VAR=value stands for the environment.
func parse(line string) (*Options, error) {
	environment := make(map[string]string)
	var args []string
	for word := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "AUTHHUB_") {
			environment[name] = value
		} else {
			args = append(args, word)
		}
	}
	return Parse(args, func(name string) string { return environment[name] })
}

func TestAWrongStartSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-addr 19003":                          `say 127.0.0.1:19003 or :19003`,
		"AUTHHUB_ADDR=19003":                   `say 127.0.0.1:19003 or :19003`,
		"-addr localhost":                      `say HOST:PORT`,
		"-addr 127.0.0.1:http-no-such":         `say HOST:PORT`,
		"-access-ttl 15":                       `say 15s for seconds or 15m for minutes`,
		"AUTHHUB_REFRESH_TTL=7":                `AUTHHUB_REFRESH_TTL=7: has no unit; say 7s for seconds`,
		"-access-ttl 0s":                       `must be a duration from 1ms to ten years`,
		"-access-ttl 0s -refresh-ttl -1s":      `-access-ttl`,
		"-port 8080":                           `say -addr 127.0.0.1:PORT`,
		"-nonsense":                            `there is no -nonsense`,
		"nonsense":                             `unexpected argument "nonsense"`,
		"-ephemeral -dir x":                    `give one of them`,
		"AUTHHUB_EPHEMERAL=true AUTHHUB_DIR=x": `give one of them`,
		"AUTHHUB_LAB=maybe":                    `AUTHHUB_LAB=maybe: must be true or false`,
		"-ephemeral=maybe":                     `value "maybe" for -ephemeral: must be true or false`,
		"-cors https://app.example/":           `say https://app.example`,
		"-cors https://App.Example:443/page?x": `say https://app.example`,
		"-cors app.example":                    `is not an origin such as https://app.example`,
		"-cors https://*.example":              `is not an origin`,
		"-cors https://bücher.example":         `xn--`,
		"-cors null":                           `is not an origin`,
		"-base-url hub.example":                `is not an http or https address`,
		"-log xml":                             `must be text, json or off`,
		"-log-level loud":                      `must be debug, info, warn or error`,
		"-protect me":                          `"me" is neither files nor run`,
		"-protect ,":                           `"" is neither files nor run`,
		"-check=":                              `needs the address of a hub`,
		"AUTHHUB_SECRET=short":                 `must be at least 32 bytes`,
	} {
		for range 20 { // the same text from run to run
			if _, err := parse(line); !errors.Is(err, ErrMisuse) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", line, err, want)
				break
			}
		}
	}
}

func TestAFaultyDescriptionLeadsToItsDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "faulty.json")
	if err := os.WriteFile(path, []byte(`{"name":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, leads := range map[string]bool{"-dialect " + path: true, "AUTHHUB_DIALECT=" + path: true, "-dialect nosuch": false} {
		_, err := parse(line)
		if !errors.Is(err, ErrMisuse) || strings.Contains(err.Error(), "docs/dialects.md") != leads {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestTheEnvironmentStandsInForFlags(t *testing.T) {
	t.Parallel()
	o, err := parse("AUTHHUB_ADDR=127.0.0.1:1 AUTHHUB_LAB=true AUTHHUB_ACCESS_TTL=1m AUTHHUB_LOG_LEVEL=debug AUTHHUB_VERSION=1.2.3 AUTHHUB_PORT=tcp://10.0.0.1:80 -access-ttl 2m")
	if err != nil || o.Addr != "127.0.0.1:1" || !o.Lab || o.AccessTTL != 2*time.Minute || o.LogLevel != slog.LevelDebug || o.Version {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parse("AUTHHUB_LAB=true AUTHHUB_DIR=/data -lab=false -ephemeral")
	if err != nil || o.Lab || !o.Ephemeral || o.Dir == "/data" {
		t.Errorf("a flag does not win: %+v, %v", o, err)
	}
	if o, err = parse("AUTHHUB_EPHEMERAL=true -dir d"); err != nil || o.Ephemeral || o.Dir != "d" {
		t.Errorf("a flag does not win: %+v, %v", o, err)
	}
}

func TestOriginsAreReadAsBrowsersSendThem(t *testing.T) {
	t.Parallel()
	o, err := parse("-cors https://App.Example,https://b.example:443,http://c.example:80,HTTPS://d.example:8443,app://x,*")
	want := []string{"https://app.example", "https://b.example", "http://c.example", "https://d.example:8443", "app://x", "*"}
	if err != nil || !slices.Equal(o.CORS, want) {
		t.Errorf("%q, %v", o.CORS, err)
	}
}

func TestBaseURLsAreReadAsBrowsersWriteThem(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://hub.example/":        "https://hub.example",
		"HTTPS://Hub.Example:443/a/b": "https://hub.example/a/b",
		"http://hub.example:80":       "http://hub.example",
		"http://hub.example:8080//":   "http://hub.example:8080",
		"http://[::1]:80":             "http://[::1]",
	} {
		if got, err := Address(given); got != want || err != nil {
			t.Errorf("%s: %q, %v", given, got, err)
		}
	}
}

// TestUsageNamesEveryFlag holds the help text and the flags against each other.
func TestUsageNamesEveryFlag(t *testing.T) {
	t.Parallel()
	f := new(Options).flagSet()
	for name := range given(f) {
		t.Errorf("%s is set before anything is read", name)
	}
	for word := range strings.FieldsSeq(Usage[:strings.Index(Usage, "Environment:")]) {
		if name, ok := strings.CutPrefix(strings.Trim(word, "[].,;"), "-"); ok && name != "flags" && f.Lookup(name) == nil {
			t.Errorf("the help names -%s, which is no flag", name)
		}
	}
	f.VisitAll(func(one *flag.Flag) {
		if !strings.Contains(strings.ReplaceAll(Usage, "\n", " "), " -"+one.Name+" ") {
			t.Errorf("the help does not name -%s", one.Name)
		}
	})
}
