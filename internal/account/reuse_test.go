package account

import (
	"fmt"
	"testing"
)

func TestSessionsEndedByReuseAreForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	s, err := NewMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3*maxReused + 1 {
		s.rememberReused(fmt.Sprint(i), 1)
		if len(s.reused) > maxReused {
			t.Fatalf("%d are remembered", len(s.reused))
		}
	}
}
