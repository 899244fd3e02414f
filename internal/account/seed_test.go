package account

import (
	"strings"
	"testing"
)

func parse(t *testing.T, seeds string) ([]*User, error) {
	t.Helper()
	return ParseSeeds(strings.NewReader(seeds))
}

// TestSeedsOfAnyNameNeedNoID: an id made of the user name fits for every user name there may be, and is the same each
// time.
func TestSeedsOfAnyNameNeedNoID(t *testing.T) {
	t.Parallel()
	ids := map[string]int{}
	for n := 3; n <= 64; n++ {
		for _, last := range []string{"a", "B"} {
			name := strings.Repeat("n", n-1) + last
			seeds := `[{"username":"` + name + `","password":"password-1"}]`
			users, err := parse(t, seeds)
			must(t, err)
			again, _ := parse(t, seeds)
			if users[0].ID != again[0].ID || !isWordID(users[0].ID) {
				t.Errorf("%s has the ids %q and %q", name, users[0].ID, again[0].ID)
			}
			if n <= 59 && users[0].ID != "user-"+strings.ToLower(name) {
				t.Errorf("%s has the id %q", name, users[0].ID)
			}
			ids[users[0].ID]++
		}
	}
	if len(ids) != 2*62 {
		t.Errorf("%d ids of %d names", len(ids), 2*62)
	}
}

// TestCostlyHashes: a hash of ten million rounds is refused in -users and in a snapshot, and says why.
func TestCostlyHashes(t *testing.T) {
	t.Parallel()
	hash := "$pbkdf2-sha256$i=10000000$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	if _, err := parse(t, `[{"username":"kim","password_hash":"`+hash+`"}]`); err == nil || !strings.Contains(err.Error(), "rounds") {
		t.Errorf("a seed: %v", err)
	}
	faults := map[string]string{}
	store, err := NewMemory(nil)
	must(t, err)
	store.Check([]UserRecord{{ID: "kim", Username: "kim", Role: "user", Hash: hash}}, nil, func(place, detail string) { faults[place] = detail })
	if !strings.Contains(faults["users.0"], "rounds") {
		t.Errorf("a snapshot: %v", faults)
	}
	s, err := NewMemory(nil)
	must(t, err)
	must(t, s.Replay([]byte(`{"user":{"id":"kim","username":"kim","role":"user","created":0,"hash":"`+hash+`"}}`))) // of an older hub
}
