// The Compose file of examples/many-hubs, without a container engine: its commands, with ports of this machine in the
// place of the services' names.

package engine_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"authhub/internal/engine/enginetest"
	"authhub/internal/testkit"
)

// composeFile is the file's text.
func composeFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "many-hubs", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// command returns the arguments that the file has for a service, or for a part that services share.
func command(t *testing.T, text, service string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?ms)^ *` + service + `:.*?^ *command: \[(.*?)\]$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no command", service)
	}
	var args []string
	for _, arg := range regexp.MustCompile(`"[^"]*"|[^ ,]+`).FindAllString(m[1], -1) {
		args = append(args, strings.Trim(arg, `"`))
	}
	return args
}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	etcd, text := enginetest.Binary(t), composeFile(t)
	nodes := []string{"n1", "n2", "n3"}
	var names []string
	for _, node := range nodes {
		names = append(names, node+":2379", testkit.FreeAddress(t), node+":2380", testkit.FreeAddress(t))
	}
	here := strings.NewReplacer(names...)
	for i, node := range nodes {
		own := strings.NewReplacer("0.0.0.0:2379", names[4*i+1], "0.0.0.0:2380", names[4*i+3], "/data", t.TempDir())
		var args []string
		for _, arg := range command(t, text, node) {
			args = append(args, own.Replace(here.Replace(arg)))
		}
		process := exec.Command(etcd, append(args, "--log-level", "error")...)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	}

	args, shared := command(t, text, "x-hub"), t.TempDir()
	for i := range args {
		args[i] = strings.Replace(here.Replace(args[i]), "/data", shared, 1)
	}
	var hubs []*hub
	for range 2 {
		addr := testkit.FreeAddress(t)
		h := startHub(t, append(args, "-addr", addr)...)
		h.addr = addr // what it says is -base-url, the balancer's
		hubs = append(hubs, h)
	}
	balancer := &hub{base: balance(t, hubs)}
	for round := range 2 {
		pair := balancer.login("demo", "demo-password").want(t, 200, "")
		balancer.me(pair.Access).want(t, 200, "")
		balancer.logout(pair.Access).want(t, 204, "")
		balancer.me(pair.Access).want(t, 401, "token_revoked")
		balancer.me(pair.Access).want(t, 401, "token_revoked")
		ask("POST", balancer.base+runPath, "", "").want(t, 200, "")
		ask("GET", balancer.base+filesPath+"/impact", "", "").want(t, 200, "")
		if round == 0 {
			hubs[0].kill()
		}
	}
}

// balance is what nginx.conf asks for: hubs in turn, and the next one where a connection can't be made.
func balance(t *testing.T, hubs []*hub) string {
	var turn atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "hubs" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			first := int(turn.Add(1))
			c, err := new(net.Dialer).DialContext(ctx, network, hubs[first%len(hubs)].addr)
			if err != nil {
				c, err = new(net.Dialer).DialContext(ctx, network, hubs[(first+1)%len(hubs)].addr)
			}
			return c, err
		}, DisableKeepAlives: true},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}
