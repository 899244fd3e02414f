// Package enginetest starts etcd for tests: one node without fsync where speed counts, three with it where nodes are
// killed.
package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/etcd"
	"authhub/internal/etcd/wire"
	"authhub/internal/testkit"
)

const (
	recipe = "go -C internal/engine/enginetest/etcd build -o bin/etcd go.etcd.io/etcd/server/v3"
	built  = "internal/engine/enginetest/etcd/bin/etcd"
)

// Cluster is a cluster of etcd processes that end with the test.
type Cluster struct {
	t     testing.TB
	path  string // of the binary
	nodes []*node
	args  []string
}

type node struct {
	name, dir    string
	client, peer string // addresses

	mu      sync.Mutex
	process *exec.Cmd // nil: not running
	ended   chan struct{}
	said    bytes.Buffer // on stderr; to be read when it has ended
}

// Start starts a cluster of that many nodes, with further arguments for each, and waits until it works.
func Start(t testing.TB, nodes int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, path: Binary(t), args: args}
	if nodes == 1 {
		c.args = append(c.args, "--unsafe-no-fsync")
	}
	for i := range nodes {
		n := &node{name: "n" + strconv.Itoa(i+1), dir: t.TempDir()}
		n.client, n.peer = "http://"+testkit.FreeAddress(t), "http://"+testkit.FreeAddress(t)
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.Kill(i)
		}
	})
	for i := range c.nodes {
		c.Restart(i)
	}
	c.Wait()
	return c
}

// Binary returns the path of etcd: AUTHHUB_ETCD, or what the recipe has built. Where there is none the test is skipped,
// but not in CI.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("AUTHHUB_ETCD"); path != "" {
		return path
	}
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if path := filepath.Join(dir, built); exists(path) {
			return path
		}
		dir = filepath.Dir(dir)
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no etcd; " + recipe)
	}
	t.Skip("there is no etcd; bring it, in about a minute, with: " + recipe)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Address returns the addresses of the nodes, separated by commas, without a path.
func (c *Cluster) Address() string {
	var addresses []string
	for i := range c.nodes {
		addresses = append(addresses, c.Node(i))
	}
	return strings.Join(addresses, ",")
}

// Node returns the address of one node.
func (c *Cluster) Node(i int) string { return c.nodes[i].client }

// Kill kills a node's process; it leaves a node that does not run alone.
func (c *Cluster) Kill(i int) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return
	}
	n.process.Process.Kill()
	<-n.ended
	n.process = nil
}

// Restart starts a node that does not run, on the data it had.
func (c *Cluster) Restart(i int) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return
	}
	var peers []string
	for _, other := range c.nodes {
		peers = append(peers, other.name+"="+other.peer)
	}
	process := exec.Command(c.path, append([]string{"--name", n.name, "--data-dir", n.dir, "--log-level", "error",
		"--listen-client-urls", n.client, "--advertise-client-urls", n.client,
		"--listen-peer-urls", n.peer, "--initial-advertise-peer-urls", n.peer,
		"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", c.nodes[0].peer}, c.args...)...)
	process.Stderr = &n.said
	if err := process.Start(); err != nil {
		c.t.Error(err)
		return
	}
	n.process, n.ended = process, make(chan struct{})
	go func() { process.Wait(); close(n.ended) }()
}

// signal sends s to a node that runs.
func (c *Cluster) signal(i int, s os.Signal) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.Process.Signal(s)
	}
}

// Leader returns the index of the node that leads, or -1.
func (c *Cluster) Leader() int {
	for i := range c.nodes {
		answer, err := http.Post(c.Node(i)+wire.StatusPath, "application/json", strings.NewReader("{}"))
		if err != nil {
			continue
		}
		var status struct {
			Leader string
			Header struct {
				Node string `json:"member_id"`
			}
		}
		err = json.NewDecoder(answer.Body).Decode(&status)
		answer.Body.Close()
		if err == nil && status.Leader != "" && status.Leader == status.Header.Node {
			return i
		}
	}
	return -1
}

// Wait waits until a transaction succeeds, or is refused because of c.args.
func (c *Cluster) Wait() {
	c.t.Helper()
	client, _, err := etcd.Dial(c.Address(), slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = client.Do(ctx, etcd.Txn{Then: []etcd.Op{etcd.Key("ready").Get()}})
	if refused := (*etcd.RefusedError)(nil); err != nil && !errors.As(err, &refused) {
		c.Kill(0)
		c.t.Fatalf("etcd does not start: %v\n%s", err, c.nodes[0].said.String())
	}
}
