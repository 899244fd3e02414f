package judge

import (
	"strings"
	"testing"
)

// relation is a script, and what holds between its last request and the one before it.
type relation struct {
	name, script string
	want         bool
}

func checkRelation(t *testing.T, holds func(before, e *Exchange) bool, rows []relation) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t)
			for line := range strings.SplitSeq(tt.script, "\n") {
				s.step(line)
			}
			findClients(s.record, s.now)
			n := len(s.record)
			if got := holds(s.record[n-2], s.record[n-1]); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// TestFollows: a request comes after an answer on its connection, on one opened since, or more than 100 ms later.
func TestFollows(t *testing.T) {
	t.Parallel()
	checkRelation(t, func(before, e *Exchange) bool { return e.follows(before) }, []relation{
		{"on the same connection", "c1 me a0 200\nc1 me a0 200", true},
		{"sent ahead on the same connection", "c1 me a0 | c1 me a0 200", false},
		{"on a connection opened since", "c1 me a0 200\nc2 me a0 200", true},
		{"on a connection opened before", "open c2\nc1 me a0 200\nc2 me a0 200", false},
		{"on a connection opened before, 100 ms later", "open c2\nc1 me a0 200\nafter 98ms\nc2 me a0 200", false},
		{"on a connection opened before, more than 100 ms later", "open c2\nc1 me a0 200\nafter 100ms\nc2 me a0 200", true},
		{"on a connection opened before, the hub's clock advanced", "open c2\nc1 me a0 200\nadvance 1m\nc2 me a0 200", true},
		{"side by side", "c1 me a0 | c2 me a0 200", false},
		{"before the answer", "c1 me a0 200 later\nafter 1s\nc2 me a0 200", false},
		{"on the connection that was cut", "c1 me a0 0 lost\nc1 me a0 200", false},
		{"on a connection opened since the cut", "c1 me a0 0 lost\nc2 me a0 200", false},
		{"more than 100 ms after the cut", "c1 me a0 0 lost\nafter 100ms\nc2 me a0 200", true},
		{"behind an answer that was cut short", "c1 me a0 200 malformed\nc2 me a0 200", true},
		{"through a proxy that hides when connections are opened", "proxy\nc1 me a0 200\nc2 me a0 200", false},
	})
}

// TestMayBeSame: requests may be of one client if they share a session or a connection, or if the second came over a
// connection that the client may have opened since, or if nothing is known.
func TestMayBeSame(t *testing.T) {
	t.Parallel()
	checkRelation(t, mayBeSame, []relation{
		{"of one session", "c1 me a0 200\nc2 me a0 200", true},
		{"over one connection", "c1 me a0 200\nc1 me b0 200 other", true},
		{"over two connections of one session", "c1 listing a0 200\nc2 listing a0 200\nc1 me a0 200\nc2 me b0 200 other", true},
		{"of a client that other namespaces know", "c1 login - 401 pool\nc2 login - 401 pool", true},
		{"over connections with one request each", "open c2\nc1 me a0 200\nc2 me b0 200 other", true},
		{"over two kept connections", "c1 me a0 200\nc2 me b0 200 other\nc1 me a0 200\nc2 me b0 200 other", false},
		{"over a connection opened since, with more behind it", "c1 me a0 200\nc1 me a0 401\nc2 me b0 200 other", true},
		{"over a connection opened before", "c1 me a0 200\nopen c2\nc1 me a0 401\nc2 me b0 200 other", false},
		{"of a browser behind a program", "c1 me a0 200\nc1 me a0 401\nbrowser\nc2 me b0 200 other", false},
		{"through a proxy that hides when connections are opened", "proxy\nc1 me a0 200\nc1 me a0 401\nc2 me b0 200 other", true},
	})
}
