// The command line: usage, flags, environment, and what is wrong with them.

package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/passwd"
)

const usage = `authhub: a test hub for authentication, and a file service for pH barrier runs

Usage:
  authhub [flags]          run the hub
  authhub -check URL       exit 0 if the hub at URL is ready, 1 if not
  authhub -tour            play the story of a hub and print it; with -base-url, against a running one
  authhub -version

Flags:
  -addr HOST:PORT      address to listen on (127.0.0.1:8080; port 0 picks a free one)
  -dir DIR             folder for secret, journal and files (authhub-data)
  -ephemeral           keep everything in memory and a temporary folder, gone at exit
  -readings FILE       CSV of pH readings, read afresh at every run (embedded ones)
  -users FILE          JSON array of accounts in place of the demo accounts
  -access-ttl DURATION   lifetime of access tokens (15m)
  -refresh-ttl DURATION  lifetime of refresh tokens (168h)
  -protect GROUPS      ask for an access token on: files, run, or files,run
  -cors ORIGINS        origins, separated by commas, whose pages may use the hub besides loopback ones; * for all
  -base-url URL        address that clients know the hub by (the one it listens on)
  -lab                 offer the lab for tests: namespaces, clock, faults, request record, report under /lab and /ns
  -run                 produce the three files before the hub is announced
  -ready-file FILE     write the base URL to FILE, by atomic rename, once the hub listens; gone when it stops
  -exit-with-stdin     stop when standard input ends
  -log FORMAT          text, json or off (text)

Environment:
  AUTHHUB_SECRET       at least 32 bytes to derive the signing keys from, in place of DIR/secret
  AUTHHUB_LAB_KEY      key that lab requests carry as Authorization: Bearer KEY; a must with -lab on an address
                       that is not loopback

Standard output carries one line, the base URL. Exit status: 0 after a signal, 2 for misuse, 1 otherwise.

Examples:
  authhub
  authhub -addr 127.0.0.1:0 -ephemeral -exit-with-stdin
  authhub -readings plant.csv -run -protect files,run
  authhub -tour -base-url http://127.0.0.1:8080
`

// errMisuse marks an error that the caller made, not the hub: exit status 2.
var errMisuse = errors.New("see authhub -help")

// options are the flags.
type options struct {
	settings
	addr, dir, users, baseURL, readyFile, logFormat, check string
	ephemeral, run, exitWithStdin, version, tour           bool
	cors                                                   []string
	secret                                                 string // AUTHHUB_SECRET
	now                                                    func() time.Time
	rand                                                   io.Reader
	rounds                                                 int // of password hashes at rest
}

// parseFlags reads the command line and the environment. Errors: flag.ErrHelp, or one that is errMisuse.
func parseFlags(args []string) (*options, error) {
	o := &options{settings: settings{labKey: os.Getenv("AUTHHUB_LAB_KEY")}, secret: os.Getenv("AUTHHUB_SECRET"), rounds: passwd.DurableRounds, now: time.Now, rand: rand.Reader}
	o.timeouts = usualTimeouts()
	var protect, cors string
	f := flag.NewFlagSet("authhub", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "")
	f.StringVar(&o.dir, "dir", "authhub-data", "")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "")
	f.StringVar(&o.readings, "readings", "", "")
	f.StringVar(&o.users, "users", "", "")
	f.DurationVar(&o.accessTTL, "access-ttl", 15*time.Minute, "")
	f.DurationVar(&o.refreshTTL, "refresh-ttl", 7*24*time.Hour, "")
	f.StringVar(&protect, "protect", "", "")
	f.StringVar(&cors, "cors", "", "")
	f.StringVar(&o.baseURL, "base-url", "", "")
	f.BoolVar(&o.lab, "lab", false, "")
	f.BoolVar(&o.run, "run", false, "")
	f.StringVar(&o.readyFile, "ready-file", "", "")
	f.BoolVar(&o.exitWithStdin, "exit-with-stdin", false, "")
	f.StringVar(&o.logFormat, "log", "text", "")
	f.Func("check", "", func(base string) error {
		if o.check = base; base == "" {
			return errors.New("names no hub")
		}
		return nil
	})
	f.BoolVar(&o.tour, "tour", false, "")
	f.BoolVar(&o.version, "version", false, "")
	if err := f.Parse(args); err != nil {
		return nil, misuse(err)
	}
	if f.NArg() > 0 {
		return nil, misuse(fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	if err := errors.Join(o.setProtect(protect), o.setCORS(cors), o.checkFlags()); err != nil {
		return nil, misuse(err)
	}
	return o, nil
}

func misuse(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, errMisuse)
}

func (o *options) setProtect(groups string) error {
	for group := range strings.SplitSeq(groups, ",") {
		switch group {
		case "files":
			o.protectFiles = true
		case "run":
			o.protectRun = true
		case "":
		default:
			return fmt.Errorf("-protect: %q is neither files nor run", group)
		}
	}
	return nil
}

func (o *options) setCORS(origins string) error {
	for origin := range strings.SplitSeq(origins, ",") {
		if origin = strings.TrimSpace(origin); origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*")) {
			return fmt.Errorf("-cors: %q is not an origin such as https://app.example", origin)
		}
		o.cors = append(o.cors, origin)
	}
	return nil
}

func (o *options) checkFlags() error {
	_, port, err := net.SplitHostPort(o.addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	if o.dir == "" {
		return errors.New("-dir: names no folder")
	}
	for name, ttl := range map[string]time.Duration{"-access-ttl": o.accessTTL, "-refresh-ttl": o.refreshTTL} {
		if ttl < time.Millisecond || ttl > account.MaxTTL {
			return fmt.Errorf("%s: must be 1ms to ten years", name)
		}
	}
	if !slices.Contains([]string{"text", "json", "off"}, o.logFormat) {
		return fmt.Errorf("-log: %q is none of text, json, off", o.logFormat)
	}
	if o.secret != "" && len(o.secret) < minSecret {
		return fmt.Errorf("AUTHHUB_SECRET: must be at least %d bytes", minSecret)
	}
	if o.baseURL == "" {
		return nil
	}
	base, err := parseAddress(o.baseURL)
	if err != nil {
		return fmt.Errorf("-base-url: %w", err)
	}
	o.baseURL = base
	return nil
}

// parseAddress returns the address of a hub as browsers write it: scheme and host in lower case, no port that goes
// without saying, no slash at the end.
func parseAddress(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.HasSuffix(u.Host, ":") || strings.ContainsAny(base, "?#") {
		return "", fmt.Errorf("%q is not an http or https address", base)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return "", fmt.Errorf("%q has a port that is none", base)
	}
	u.Host = strings.ToLower(u.Host)
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return strings.TrimRight(u.String(), "/"), nil
}
