// Faults of the disk under a whole hub: what clients are told while it lasts, and what the next start finds.

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"authhub/internal/account"
	"authhub/internal/disk/disktest"
	"authhub/internal/flags"
	"authhub/internal/jwt"
)

// newHubOn returns a hub whose journal is on d and whose keys are those of signer.
func newHubOn(t *testing.T, d *disktest.Disk, signer *jwt.Signer) *testHub {
	t.Helper()
	h := newTestHub(t)
	h.Hub.rand = rand.Reader // the next start must not give the same ids again
	s, err := account.Open(d, "/journal", mustSeeds(t), quietLog())
	if err != nil {
		t.Fatal(err)
	}
	own := h.Hub.store
	t.Cleanup(func() { s.Close(); h.Hub.store = own })
	h.Hub.store, h.Hub.log, h.Hub.signer = s, quietLog(), signer
	return h
}

func mustSigner(t testing.TB) *jwt.Signer {
	t.Helper()
	s, err := jwt.NewSigner([]byte(strings.Repeat("s", flags.MinSecret)), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFailedDisk: the first answer says what happened, the later ones that the store has failed; reading goes on;
// and after the restart everything that was acknowledged is there.
func TestFailedDisk(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		op     string
		cause  error
		status int
		code   string
	}{
		{"write", syscall.EIO, 503, "store_unavailable"},
		{"sync", syscall.EIO, 503, "store_unavailable"},
		{"write", syscall.ENOSPC, 507, "disk_full"},
		{"sync", syscall.ENOSPC, 507, "disk_full"},
		{"sync", syscall.EDQUOT, 507, "disk_full"},
	} {
		t.Run(row.op+" "+row.cause.Error(), func(t *testing.T) {
			t.Parallel()
			d := disktest.New("", nil)
			h := newHubOn(t, d, mustSigner(t))
			registered := h.post(registerPath, right("registered")).want(201).pair()
			spent := h.login("demo")
			current := h.refreshWith(spent.refresh).want(200).pair()
			out := h.login("demo")
			h.post(logoutPath, nil, bearerOf(out.access)...).want(204)

			d.SetFault(func(op string) error {
				if op == row.op {
					return row.cause
				}
				return nil
			})
			h.post(registerPath, right("unlucky")).want(row.status, row.code)
			h.post(registerPath, right("unlucky-too")).want(503, "store_unavailable")
			h.post(loginPath, right("demo")).want(503, "store_unavailable")
			h.refreshWith(current.refresh).want(503, "store_unavailable")
			h.post(logoutPath, nil, bearerOf(current.access)...).want(503, "store_unavailable")
			h.get("/healthz").want(503, "store_unavailable")
			h.me(current.access).want(200)
			h.me(out.access).want(401, "token_revoked")
			h.post(loginPath, guessAt("demo")).want(401, "invalid_credentials")
			h.get(listingPath).want(200)
			h.runOn(fourReadings).want(200)
			d.SetFault(nil)
			h.post(loginPath, right("demo")).want(503, "store_unavailable") // until restart

			for name, left := range map[string]*disktest.Disk{"a kill": d.AfterKill(), "a power cut": d.AfterPowerCut(disktest.Survival{})} {
				next := newHubOn(t, left, h.signer)
				next.get("/healthz").want(200)
				next.me(registered.access).want(200)
				next.me(current.access).want(200)
				next.me(out.access).want(401, "token_revoked")
				next.login("registered")
				next.refreshWith(current.refresh).want(200)
				if a := next.refreshWith(spent.refresh); a.status == 200 {
					t.Errorf("after %s a spent token works again", name)
				}
			}
		})
	}
}

// TestFailedDiskReachesAllWhoWait: of many writers at the moment of the fault none is told of a success that the
// next start doesn't know.
func TestFailedDiskReachesAllWhoWait(t *testing.T) {
	t.Parallel()
	d := disktest.New("", nil)
	h := newHubOn(t, d, mustSigner(t))
	syncs := 0
	d.SetFault(func(op string) error {
		if op == "sync" {
			if syncs++; syncs > 5 {
				return syscall.EIO
			}
		}
		return nil
	})
	var all sync.WaitGroup
	acknowledged := make(chan pair, 100)
	for i := range 100 {
		all.Go(func() {
			if a := h.post(registerPath, right(fmt.Sprintf("user-%d", i))); a.status == 201 {
				acknowledged <- a.pair()
			} else if a.status != 503 {
				t.Errorf("status %d", a.status)
			}
		})
	}
	all.Wait()
	close(acknowledged)
	next := newHubOn(t, d.AfterPowerCut(disktest.Survival{}), h.signer)
	n := 0
	for p := range acknowledged {
		next.me(p.access).want(200)
		n++
	}
	t.Logf("%d of 100 acknowledged before the fault", n)
}

// TestFullDiskWhileWriting: a set that finds no room leaves the old one, and nothing of itself.
func TestFullDiskWhileWriting(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "-dir", t.TempDir())
	h.runOn(fourReadings).want(200)
	before := h.get(listingPath + "/impact").want(200)
	for at := range resultFile(resultFiles) {
		err := h.output.publish(func(file resultFile, w io.Writer) error {
			io.WriteString(w, strings.Repeat("x", 100_000))
			if file == at {
				return syscall.ENOSPC
			}
			return nil
		}, h.now())
		if e := answerFor(err); !errors.Is(err, account.ErrDiskFull) || e.Status != 507 || e.Code != "disk_full" {
			t.Errorf("%s: %v", at.name(), err)
		}
		if after := h.get(listingPath + "/impact").want(200); string(after.body) != string(before.body) {
			t.Errorf("%s: another file", at.name())
		}
		if names := mustList(t, h.output.path); len(names) != resultFiles {
			t.Errorf("%s: left behind: %v", at.name(), names)
		}
	}
}

// TestFullDisk fills a small disk for real: uploads and runs are 507 and leave the old files and no others, the
// journal fails as it should, and with room again nothing that was acknowledged is missing.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	require(t, mountSmall(disk, 512<<10) == nil, "right to mount a small disk")
	defer unmount(disk)
	dir := filepath.Join(disk, "state")
	clock := newTestClock()
	h, stop := openLoggingHub(t, quietLog(), clock, "-dir", dir)
	defer func() { stop() }()
	h.Hub.rand = rand.Reader // the next start must not give the same ids again
	h.runOn(fourReadings).want(200)
	before := h.get(listingPath + "/impact").want(200)
	demo := h.login("demo")

	h.runOn(fourReadings+strings.Repeat("x\n", 1<<20)).want(507, "disk_full") // no room for the body
	h.mustBeUntouched(t, before)
	h.refreshWith(demo.refresh).want(200) // the room is there again

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	h.post(runPath, nil).want(507, "disk_full") // no room for the files
	h.mustBeUntouched(t, before)
	var told []string
	for len(told) < 500 && !strings.Contains(strings.Join(told, " "), "disk_full") {
		told = append(told, h.post(loginPath, right("demo")).str("code"))
	}
	if told[len(told)-1] != "disk_full" {
		t.Fatalf("the journal never ran out of room")
	}
	h.post(loginPath, right("demo")).want(503, "store_unavailable")
	h.me(demo.access).want(200)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	h.post(loginPath, right("demo")).want(503, "store_unavailable")
	h.post(runPath, nil).want(200) // runs need no restart

	stop()
	h, stop = openTestHub(t, clock, "-dir", dir)
	h.me(demo.access).want(200)
	h.refreshWith(demo.refresh).want(401, "token_reused")
	h.login("demo")
	h.get("/healthz").want(200)
}

// mustBeUntouched checks that the old set stands and nothing is beside it.
func (h *testHub) mustBeUntouched(t *testing.T, before *answer) {
	t.Helper()
	if after := h.get(listingPath + "/impact").want(200); string(after.body) != string(before.body) {
		t.Error("another file")
	}
	if names := mustList(t, h.output.path); len(names) != resultFiles {
		t.Errorf("left behind: %v", names)
	}
}

// fill writes until nothing more goes in.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for part := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(part)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestClockSteppedBack: what a restart finds does not depend on which expired sessions were forgotten on the way,
// even where the clock was ahead for a while.
func TestClockSteppedBack(t *testing.T) {
	t.Parallel()
	clock, dir := newTestClock(), t.TempDir()
	h, stop := openTestHub(t, clock, "-dir", dir, "-refresh-ttl", "1m", "-access-ttl", "1m")
	h.Hub.rand = rand.Reader
	var pairs []pair
	for range 100 {
		pairs = append(pairs, h.login("demo"))
	}
	clock.advance(time.Hour)
	h.login("admin") // which lets a few of the others be forgotten
	clock.advance(-time.Hour)
	var kept []pair
	for _, p := range pairs {
		if a := h.refreshWith(p.refresh); a.status == 200 {
			kept = append(kept, a.pair())
		}
	}
	stop()

	h, stop = openTestHub(t, clock, "-dir", dir, "-refresh-ttl", "1m", "-access-ttl", "1m")
	defer stop()
	for _, p := range kept {
		h.me(p.access).want(200)
	}
	if len(kept) < 50 {
		t.Errorf("only %d sessions were there to keep", len(kept))
	}
}
