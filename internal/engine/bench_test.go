// What many hubs cost, beside raw transactions of the same cluster.

package engine_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"authhub/internal/engine/enginetest"
	"authhub/internal/etcd"
)

// BenchmarkMany measures two hubs on three nodes, all of them and the load on this machine, beside raw transactions of
// the same cluster. The number in a name is how many clients ask at once. Ratios hold, absolute figures do not.
func BenchmarkMany(b *testing.B) {
	cluster := enginetest.Start(b, 3)
	users := filepath.Join(b.TempDir(), "users.json")
	if err := os.WriteFile(users, []byte(benchUsers()), 0o600); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	var hubs []*hub
	for range 2 {
		hubs = append(hubs, startHub(b, "-store", cluster.Address(), "-dir", dir, "-users", users, "-log", "off"))
	}
	raw, _, err := etcd.Dial(cluster.Address(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	do := func(b *testing.B, op etcd.Op) {
		if _, err := raw.Do(b.Context(), etcd.Txn{Then: []etcd.Op{op}}); err != nil {
			b.Error(err)
		}
	}
	for _, clients := range []int{1, 32, 256} {
		login := func(i int) answer { return hubs[i%2].login(fmt.Sprint("client", i%8), "password-1") }
		pairs := make([]answer, clients)
		for i := range pairs {
			pairs[i] = login(i)
		}
		run := func(name string, one func(b *testing.B, client int)) {
			b.Run(fmt.Sprint(name, "/", clients), func(b *testing.B) { atOnce(b, clients, one) })
		}
		run("range", func(b *testing.B, _ int) { do(b, etcd.Key("/bench/key").Get()) })
		run("me", func(b *testing.B, i int) {
			if a := hubs[i%2].me(pairs[i].Access); a.Status != 200 {
				b.Errorf("me: %d %s", a.Status, a.Body)
			}
		})
		run("put", func(b *testing.B, i int) { do(b, etcd.Key(fmt.Sprint("/bench/", i)).Put([]byte("value"), 0)) })
		run("refresh", func(b *testing.B, i int) {
			a := hubs[i%2].refresh(pairs[i].Refresh)
			if a.Status != 200 {
				b.Errorf("refresh: %d %s", a.Status, a.Body)
				a = login(i)
			}
			pairs[i] = a
		})
		run("login", func(b *testing.B, i int) {
			if a := login(i); a.Status != 200 {
				b.Errorf("login: %d %s", a.Status, a.Body)
			}
		})
	}
}

func benchUsers() string {
	var users []string
	for i := range 8 {
		users = append(users, fmt.Sprintf(`{"username":"client%d","password":"password-1"}`, i))
	}
	return "[" + strings.Join(users, ",") + "]"
}

// atOnce has clients do one thing b.N times, all in all.
func atOnce(b *testing.B, clients int, one func(b *testing.B, client int)) {
	var done sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for i := range clients {
		done.Go(func() {
			for left.Add(-1) >= 0 {
				one(b, i)
			}
		})
	}
	done.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "a_second")
}
