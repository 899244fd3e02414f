package enginetest_test

import (
	"testing"

	"authhub/internal/engine/enginetest"
)

func TestThreeNodesHaveOneLeader(t *testing.T) {
	t.Parallel()
	c := enginetest.Start(t, 3)
	if leader := c.Leader(); leader < 0 {
		t.Error("nobody leads")
	}
}
