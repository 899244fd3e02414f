// Moving a journal in: going on where it was, and refusing what differs.

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/engine"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/etcd/wire"
)

// content returns n users, each with two sessions, the second of which is over for every third user.
func content(t *testing.T, n int) (users []account.UserRecord, sessions []account.Session) {
	hash := quickHash(t, "password")
	for i := range n {
		u := newUser(fmt.Sprint("user", i))
		u.Credential = hash
		users = append(users, *u.Stored())
		one, two := newSession(u, now), newSession(u, now)
		if i%3 == 0 {
			two = newSession(u, now.Add(-8*24*time.Hour))
		}
		sessions = append(sessions, one, two)
	}
	return users, sessions
}

func openToImport(t *testing.T, cluster *etcdtest.Cluster) *engine.Store {
	t.Helper()
	c := config(t, cluster.Address())
	c.Import = true
	s, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestImportGoesOnWhereItWas: an import that breaks off keeps hubs from starting, and a second one finishes it, without
// bringing back what has ended since.
func TestImportGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	users, sessions := content(t, 200)
	s := openToImport(t, cluster)
	seen := 0
	cluster.Fail(func(path string) etcdtest.Fault {
		if path == wire.TxnPath {
			seen++
		}
		switch {
		case path == wire.TxnPath && seen == 3:
			return etcdtest.Fault{Lost: true}
		case path == wire.TxnPath && seen > 10:
			return etcdtest.Fault{Status: 403, Code: wire.CodePermissionDenied, Message: "etcdserver: permission denied"}
		}
		return etcdtest.Fault{}
	})
	if _, err := s.Import(t.Context(), users, sessions); err == nil {
		t.Fatal("the import has not noticed that etcd refuses it")
	}
	cluster.Fail(nil)
	if _, err := engine.Open(t.Context(), config(t, cluster.Address())); !errors.Is(err, engine.ErrImporting) {
		t.Fatalf("a hub starts on half of an import: %v", err)
	}
	ended := sessions[1*2].Ref()
	if _, _, err := s.Live(t.Context(), ended); err != nil {
		t.Fatalf("nothing has been moved in yet: %v", err)
	}
	if err := s.EndSession(t.Context(), ended, false); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if got, err := s.Import(t.Context(), users, sessions); err != nil || got != (engine.Imported{Users: 200, Sessions: 400}) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	hub := openAt(t, cluster.Address())
	for i, one := range sessions {
		want := error(nil)
		if i%6 == 1 || one.Ref() == ended {
			want = account.ErrRevoked
		}
		if _, _, err := hub.Live(t.Context(), one.Ref()); !errors.Is(err, want) {
			t.Fatalf("session %d: %v, want %v", i, err, want)
		}
	}
	if u, err := hub.UserNamed(t.Context(), "USER7@example.test"); err != nil || u == nil || u.ID != users[7].ID || u.Credential.String() != users[7].Hash {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestImportRefusesDifferences: another content than the first, and a name that somebody has.
func TestImportRefusesDifferences(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1)
	users, sessions := content(t, 3)
	s := openToImport(t, cluster)
	if _, err := s.Import(t.Context(), users, sessions); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), users[:2], sessions[:4]); err == nil || !strings.Contains(err.Error(), "not the content") {
		t.Errorf("another content: %v", err)
	}

	cluster = etcdtest.New(t, 1)
	s = openToImport(t, cluster)
	taken := newUser("User1")
	if err := s.Register(t.Context(), taken, newSession(taken, now)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), users, sessions); err == nil || !strings.Contains(err.Error(), `"user1"`) {
		t.Errorf("a name that somebody has: %v", err)
	}
}
