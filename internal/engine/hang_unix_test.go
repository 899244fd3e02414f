//go:build unix

package engine_test

import (
	"testing"
	"time"

	"authhub/internal/engine/enginetest"
)

// TestLeaderThatHangs: a node that neither answers nor breaks its connections costs a pause, and no wrong answer.
func TestLeaderThatHangs(t *testing.T) {
	t.Parallel()
	cluster := enginetest.Start(t, 3)
	h := startQuickHub(t, "-store", cluster.Address(), "-dir", t.TempDir())
	pair := h.login("demo", "demo-password").want(t, 200, "")

	leader := cluster.Leader()
	if leader < 0 {
		t.Fatal("nobody leads")
	}
	cluster.Pause(leader)
	defer cluster.Resume(leader)
	hung := time.Now()
	a := h.refresh(pair.Refresh)
	for a.Status == 503 && time.Since(hung) < patience { // it may have been applied, so log in anew
		if pair = h.login("demo", "demo-password"); pair.Status == 200 {
			a = h.refresh(pair.Refresh)
		}
	}
	a.want(t, 200, "")
	t.Logf("a pause of %v", time.Since(hung).Round(time.Millisecond))

	cluster.Resume(leader)
	h.me(a.Access).want(t, 200, "")
	h.logout(a.Access).want(t, 204, "")
	h.me(a.Access).want(t, 401, "token_revoked")
}
