package record

import (
	"strconv"
	"sync"
	"testing"

	"authhub/internal/lab/judge"
)

// Clients become one by the sessions that several namespaces, side by side, have seen over their connections.
func TestClientsAreOneByTheirSessions(t *testing.T) {
	t.Parallel()
	const connections = 50
	clients := make([]*Client, connections+1)
	for i := range clients {
		clients[i] = NewClient(int64(i + 1))
	}
	var logs [4]Log
	use := func(l *Log, session string, c *Client, e judge.Exchange) {
		r := &Request{Exchange: e, Sender: c}
		l.Begin(r)
		l.End(r, func() { r.Session = session })
	}
	var all sync.WaitGroup
	for n := range logs {
		all.Go(func() {
			for i := range connections - 1 { // session i goes over connections i and i+1
				if i%len(logs) == n {
					use(&logs[n], strconv.Itoa(i), clients[i], judge.Exchange{})
					use(&logs[n], strconv.Itoa(i), clients[i+1], judge.Exchange{})
				}
			}
		})
	}
	all.Wait()
	for i, c := range clients[:connections] {
		if c.identity() != 1 {
			t.Errorf("the client of connection %d is %d", i+1, c.identity())
		}
	}

	last := clients[connections]
	use(&logs[0], "0", last, judge.Exchange{Operation: "introspect"})
	use(&logs[0], "0", last, judge.Exchange{Operation: "login", Lost: true})
	use(&logs[0], "", last, judge.Exchange{})
	if last.identity() != 0 {
		t.Error("a client is known that has used no session")
	}
	logs[0].Reset()
	use(&logs[0], "0", last, judge.Exchange{})
	if last.identity() != connections+1 {
		t.Error("a session of before the reset is one of after it")
	}
}
