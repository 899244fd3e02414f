package passwd

import (
	"strings"
	"testing"
)

func TestHashesMayBePadded(t *testing.T) {
	t.Parallel()
	hash := Credential{rounds: 10, salt: make([]byte, 16), hash: make([]byte, 32)}.String()
	parts := strings.Split(hash, "$")
	padded := strings.Join(append(parts[:3:3], parts[3]+"==", parts[4]+"="), "$")
	if got, err := ParseHash(padded); err != nil || got.String() != hash {
		t.Errorf("%s: %v %v", padded, got, err)
	}
}
