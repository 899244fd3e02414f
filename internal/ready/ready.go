// Package ready announces that a hub listens, and asks another hub whether it is ready.
package ready

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"authhub/internal/disk"
	"authhub/internal/flags"
	"authhub/internal/logs"
)

const goodLabKey = 16 // bytes of a key that nobody guesses

// Notice is what there is to tell.
type Notice struct {
	*flags.Options
	Bound *net.TCPAddr
}

// Announce tells the world that the hub listens: the ready file, a welcome, and the one line on stdout, after which
// both of the others are there.
func (n Notice) Announce(stdout, stderr io.Writer, to logs.Logs) error {
	if n.ReadyFile != "" {
		if err := disk.ReplaceFile(disk.OS{}, n.ReadyFile, []byte(n.BaseURL+"\n"), 0o644); err != nil {
			return fmt.Errorf("-ready-file: %w", err)
		}
	}
	demo := n.Users == ""
	if n.LogFormat == "text" {
		fmt.Fprint(stderr, n.welcome(demo, Address(n.Bound)))
	} else {
		to.Hub.Info("ready", "base_url", n.BaseURL, "addr", n.Bound.String())
	}
	if !n.Bound.IP.IsLoopback() && demo {
		to.Alarms.Warn("anyone on the network can use the demo accounts, because their passwords are public; replace them with -users", "addr", n.Bound.String())
	}
	if !n.Bound.IP.IsLoopback() && n.Lab && len(n.LabKey) < goodLabKey {
		to.Alarms.Warn(fmt.Sprintf("AUTHHUB_LAB_KEY can be guessed, because it is short; use %d random bytes or more", goodLabKey), "addr", n.Bound.String())
	}
	fmt.Fprintln(stdout, n.BaseURL)
	return nil
}

// Prepare takes the ready file of an earlier hub away, which is not true any more. Errors: a folder or a device
// has its name.
func Prepare(path string) error {
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
		return fmt.Errorf("-ready-file: %s is no regular file; name one that the hub may replace", path)
	}
	os.Remove(path)
	return nil
}

// Withdraw takes the ready file away with the hub, unless a later hub has written it since.
func (n Notice) Withdraw() {
	if stands, err := os.ReadFile(n.ReadyFile); err == nil && string(stands) == n.BaseURL+"\n" {
		os.Remove(n.ReadyFile)
	}
}

func (n Notice) welcome(demo bool, address string) string {
	state := "State is kept in " + n.Dir + "."
	switch {
	case n.Ephemeral:
		state = "Nothing is kept after it stops."
	case n.Store != "":
		state = "Users and sessions are kept in etcd, files in " + n.Dir + "."
	}
	if address != n.BaseURL {
		state = "It listens on " + address + ".\n" + state
	}
	if n.Lab {
		state += "\nThe lab is on: " + n.BaseURL + "/lab, and a hub for each test at " + n.BaseURL + "/ns/NAME"
	}
	if n.Dialect != nil {
		state += "\n" + n.speaks()
	}
	if !demo {
		return fmt.Sprintf("authhub is ready at %[1]s\n%[2]s\nThe page: %[1]s/\nOperations: %[1]s/api\n", n.BaseURL, state)
	}
	return fmt.Sprintf(`authhub is ready at %[1]s
%[2]s
Accounts: demo / demo-password, admin / admin-password, disabled / disabled-password
The page: %[1]s/
In a terminal, try:
  curl -s %[1]s/api/authentication/login -d username=demo -d password=demo-password
  curl -s -X POST %[1]s/api/run-ph-barrier-phase2
  curl -s %[1]s/api/files/phase2
`, n.BaseURL, state)
}

// speaks tells the first operations of the dialect.
func (n Notice) speaks() string {
	const most = 4
	var all []string
	for _, o := range n.Dialect.Operations() {
		if on := o.Method + " " + o.Path; !slices.Contains(all, on) {
			all = append(all, on)
		}
	}
	if len(all) > most {
		all = append(all[:most], "… (all at "+n.BaseURL+"/api)")
	}
	return "It speaks " + n.Dialect.Name() + ": " + strings.Join(all, ", ")
}

// Check asks the hub at base, which may be the address of its health itself, whether it is ready.
func Check(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := flags.Address(base); err != nil {
		return fmt.Errorf("-check: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(strings.TrimRight(base, "/"), "/healthz")+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	return nil
}

// Address returns the base URL of a socket. One bound to every address is reached from here by loopback.
func Address(bound *net.TCPAddr) string {
	ip := bound.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return "http://" + net.JoinHostPort(ip.String(), fmt.Sprint(bound.Port))
}
