// Package flags reads the command line and the environment, and says what is wrong with them and what to do about it.
package flags

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"authhub/internal/dialect"
)

const (
	MinSecret   = 32                        // bytes of a secret
	maxLifetime = 10 * 365 * 24 * time.Hour // of a token
)

// ErrMisuse marks an error that the caller made, not the hub: exit status 2.
var ErrMisuse = errors.New("see authhub -help")

// Options are the flags and what the environment says.
type Options struct {
	Addr, Dir, BaseURL, ReadyFile string
	Readings, Users               string // paths; "" for the embedded ones
	Ephemeral, Run, ExitWithStdin bool
	AccessTTL, RefreshTTL         time.Duration
	ProtectFiles, ProtectRun      bool
	CORS                          []string // origins as browsers send them; * for all
	Store                         string   // of many hubs; "" for the hub's own
	Import                        string   // folder of the hub whose journal is to be moved into Store; "" for none
	Lab                           bool
	LabKey                        string // AUTHHUB_LAB_KEY, which lab requests must carry; "" for none
	Secret                        string // AUTHHUB_SECRET
	LogFormat                     string // text, json, off
	LogLevel                      slog.Level
	Dialect                       *dialect.Dialect // nil: none

	Check         string // the hub to ask whether it is ready
	PrintDialect  string // name of a built-in dialect to print
	Tour, Version bool
}

// Parse reads the command line and, for flags that it does not give, the environment. Errors: flag.ErrHelp, or one that
// is ErrMisuse.
func Parse(args []string, getenv func(string) string) (*Options, error) {
	o := &Options{LabKey: getenv("AUTHHUB_LAB_KEY"), Secret: getenv("AUTHHUB_SECRET")}
	f := o.flagSet()
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		err = explain(err)
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q; flags come first and begin with -", f.Arg(0))
	default:
		if err = readEnvironment(f, getenv); err == nil {
			err = o.check(f)
		}
	}
	if err != nil {
		between := " "
		if strings.Contains(err.Error(), "\n") { // faults of a description, each on a line of its own
			between = "\n"
		}
		return nil, fmt.Errorf("%w%s(%w)", err, between, ErrMisuse)
	}
	return o, nil
}

// flagSet returns the flags, which write to o.
func (o *Options) flagSet() *flag.FlagSet {
	f := flag.NewFlagSet("authhub", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.Addr = "127.0.0.1:8080"
	f.Func("addr", "", o.setAddr)
	f.StringVar(&o.Dir, "dir", "authhub-data", "")
	f.BoolVar(&o.Ephemeral, "ephemeral", false, "")
	f.StringVar(&o.Readings, "readings", "", "")
	f.StringVar(&o.Users, "users", "", "")
	o.AccessTTL, o.RefreshTTL = 15*time.Minute, 7*24*time.Hour
	f.Func("access-ttl", "", lifetime(&o.AccessTTL))
	f.Func("refresh-ttl", "", lifetime(&o.RefreshTTL))
	f.Func("protect", "", o.setProtect)
	f.Func("cors", "", o.setCORS)
	f.Func("base-url", "", o.setBaseURL)
	f.Func("dialect", "", o.setDialect)
	f.StringVar(&o.PrintDialect, "print-dialect", "", "")
	f.StringVar(&o.Store, "store", "", "")
	f.StringVar(&o.Import, "import", "", "")
	f.BoolVar(&o.Lab, "lab", false, "")
	f.BoolVar(&o.Run, "run", false, "")
	f.StringVar(&o.ReadyFile, "ready-file", "", "")
	f.BoolVar(&o.ExitWithStdin, "exit-with-stdin", false, "")
	o.LogFormat = "text"
	f.Func("log", "", o.setLogFormat)
	f.Func("log-level", "", o.setLogLevel)
	f.Func("check", "", func(base string) error {
		if o.Check = base; base == "" {
			return errors.New("needs the address of a hub")
		}
		return nil
	})
	f.BoolVar(&o.Tour, "tour", false, "")
	f.BoolVar(&o.Version, "version", false, "")
	return f
}

// commands are flags that ask for something else than a hub, so the environment can't give them.
var commands = []string{"check", "import", "print-dialect", "tour", "version"}

// rivals are flags of which only one can be given.
var rivals = map[string]string{"dir": "ephemeral", "ephemeral": "dir"}

// readEnvironment sets the flags that the command line leaves open.
func readEnvironment(f *flag.FlagSet, getenv func(string) string) error {
	onLine := given(f)
	var err error
	f.VisitAll(func(one *flag.Flag) {
		name := "AUTHHUB_" + strings.ReplaceAll(strings.ToUpper(one.Name), "-", "_")
		value := getenv(name)
		if err != nil || value == "" || onLine[one.Name] || onLine[rivals[one.Name]] || slices.Contains(commands, one.Name) {
			return
		}
		if wrong := f.Set(one.Name, value); wrong != nil {
			err = fmt.Errorf("%s=%s: %w", name, value, explain(wrong))
		}
	})
	return err
}

// given returns the names of the flags that have been set.
func given(f *flag.FlagSet) map[string]bool {
	names := make(map[string]bool)
	f.Visit(func(one *flag.Flag) { names[one.Name] = true })
	return names
}

// explain adds to an error of package flag what to do about it.
func explain(err error) error {
	if said, truth := strings.CutSuffix(err.Error(), "parse error"); truth { // other flags than those have texts of their own
		return errors.New(said + "must be true or false")
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: ")
	switch {
	case !unknown:
		return err
	case name == "-port" || name == "-p":
		return fmt.Errorf("there is no %s; say -addr 127.0.0.1:PORT", name)
	case name == "-host":
		return fmt.Errorf("there is no %s; say -addr HOST:PORT", name)
	}
	return fmt.Errorf("there is no %s", name)
}

// check holds the options against each other.
func (o *Options) check(f *flag.FlagSet) error {
	o.lifetimesOfDialect(given(f))
	switch names := given(f); {
	case o.Dir == "":
		return errors.New("-dir: the name of the folder is empty")
	case o.Ephemeral && names["dir"]:
		return errors.New("-ephemeral keeps nothing, and -dir names a folder to keep it in: give one of them")
	case o.Store != "" && o.Ephemeral:
		return errors.New("-store keeps users and sessions, and -ephemeral keeps nothing: give one of them")
	case o.Store != "" && o.Lab:
		return errors.New("-store shares users and sessions between hubs, and -lab changes those of one hub: give one of them")
	case o.Store != "" && o.Secret == "":
		return errors.New("-store: set AUTHHUB_SECRET, the same for all hubs of the store")
	case o.Import != "" && o.Store == "":
		return errors.New("-import moves a hub's folder into a store: say which one with -store")
	case o.Secret != "" && len(o.Secret) < MinSecret:
		return fmt.Errorf("AUTHHUB_SECRET: must be at least %d bytes", MinSecret)
	}
	return nil
}

// setAddr takes HOST:PORT.
func (o *Options) setAddr(addr string) error {
	o.Addr = addr
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err == nil {
		return nil
	}
	if _, wrong := strconv.ParseUint(addr, 10, 16); wrong == nil {
		return fmt.Errorf("is a port without a host; say 127.0.0.1:%s or :%[1]s", addr)
	}
	return fmt.Errorf("%w; say HOST:PORT, for example 127.0.0.1:8080", err)
}

// lifetime returns a function that reads a lifetime of tokens.
func lifetime(to *time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if _, number := strconv.ParseFloat(text, 64); err != nil && number == nil {
			return fmt.Errorf("has no unit; say %ss for seconds or %[1]sm for minutes", text)
		}
		if err != nil || d < time.Millisecond || d > maxLifetime {
			return errors.New("must be a duration from 1ms to ten years, such as 15m or 168h")
		}
		*to = d
		return nil
	}
}

// setDialect takes the name of a built-in dialect or the path of a description.
func (o *Options) setDialect(nameOrFile string) error {
	description, ok := dialect.Builtin(nameOrFile)
	if !ok {
		var err error
		if description, err = os.ReadFile(nameOrFile); err != nil {
			return fmt.Errorf("is neither a built-in dialect (%s) nor a file that can be read: %w", strings.Join(dialect.Names(), ", "), err)
		}
	}
	var err error
	if o.Dialect, err = dialect.Parse(description); err != nil {
		return fmt.Errorf("%w\ndocs/dialects.md says how to write a description", err)
	}
	return nil
}

// WriteDialect writes the description of a built-in dialect, to be copied and changed. Errors: ErrMisuse for a name
// that no built-in dialect has.
func WriteDialect(w io.Writer, name string) error {
	description, ok := dialect.Builtin(name)
	if !ok {
		return fmt.Errorf("-print-dialect: there is no dialect %q; there are %s (%w)", name, strings.Join(dialect.Names(), ", "), ErrMisuse)
	}
	_, err := w.Write(description)
	return err
}

// lifetimesOfDialect takes over the lifetimes that the dialect comes with, where no flag says another.
func (o *Options) lifetimesOfDialect(given map[string]bool) {
	if o.Dialect == nil {
		return
	}
	access, refresh := o.Dialect.Lifetimes()
	if access > 0 && !given["access-ttl"] {
		o.AccessTTL = access
	}
	if refresh > 0 && !given["refresh-ttl"] {
		o.RefreshTTL = refresh
	}
}

func (o *Options) setProtect(groups string) error {
	if groups == "" {
		return nil
	}
	for group := range strings.SplitSeq(groups, ",") {
		switch group {
		case "files":
			o.ProtectFiles = true
		case "run":
			o.ProtectRun = true
		default:
			return fmt.Errorf("%q is neither files nor run", group)
		}
	}
	return nil
}

func (o *Options) setLogFormat(format string) error {
	if o.LogFormat = format; !slices.Contains([]string{"text", "json", "off"}, format) {
		return errors.New("must be text, json or off")
	}
	return nil
}

func (o *Options) setLogLevel(level string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	known := false
	if o.LogLevel, known = levels[level]; !known {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

// Version is the module's version as the go command recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
