// Addresses and answers of any kind.

package etcd

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// FuzzDial: what is taken for an address names nodes and keeps no password in them; what is not is not repeated.
func FuzzDial(f *testing.F) {
	for _, address := range []string{"http://n1:2379,http://n2:2379/authhub", "https://user:pass@n1:2379", "n1:2379", "http://user:p%zz@n1", "http://a@b@c/"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		c, path, err := Dial(address, slog.New(slog.DiscardHandler))
		if err != nil {
			if err != ErrAddress {
				t.Errorf("%v", err)
			}
			return
		}
		if len(c.Nodes()) == 0 || strings.HasPrefix(path, "/") {
			t.Errorf("%v at %q", c.Nodes(), path)
		}
		for _, node := range c.Nodes() {
			if strings.Contains(node, "@") || !strings.HasPrefix(node, "http") {
				t.Errorf("node %q", node)
			}
		}
	})
}

// FuzzJudge: no answer that is judged passes for success, and one that may have changed something never says that it
// has not.
func FuzzJudge(f *testing.F) {
	f.Add(401, []byte(`{"code":16,"message":"etcdserver: invalid auth token"}`))
	f.Add(503, []byte(`{"code":14,"message":"etcdserver: request timed out"}`))
	f.Add(502, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, said []byte) {
		err := judge(&node{address: "http://n1"}, status, said)
		if err == nil {
			t.Fatal("success")
		}
		var failed *tryError
		if errors.As(err, &failed) && !failed.sent && len(said) == 0 && status >= 500 {
			t.Errorf("%d without a word: %v", status, err)
		}
	})
}
