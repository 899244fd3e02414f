// What tests set up: the lab's controls, many requests at once, users with cheap passwords.

package e2e

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// clock turns the hub's clock.
func (h *hub) clock(setting object) object {
	h.t.Helper()
	return h.put("/lab/clock", setting).Want(200).JSON()
}

// advance lets time pass for the hub.
func (h *hub) advance(d time.Duration) {
	h.t.Helper()
	h.clock(object{"advance": d.String()})
}

// policy sets the refresh policy.
func (h *hub) policy(body object) {
	h.t.Helper()
	h.put("/lab/refresh-policy", body).Want(200)
}

// fault queues a fault and returns its id.
func (h *hub) fault(order object) string {
	h.t.Helper()
	h.faulty = true
	return h.post("/lab/faults", order).Want(201).Text("id")
}

// left returns how many requests a fault will still take.
func (h *hub) left(id string) any {
	h.t.Helper()
	for _, f := range h.get("/lab/faults").Want(200).List("faults") {
		if f["id"] == id {
			return f["left"]
		}
	}
	h.t.Fatalf("no fault %s", id)
	return nil
}

// sessions returns the live sessions.
func (h *hub) sessions() []object {
	h.t.Helper()
	return h.get("/lab/sessions").Want(200).List("sessions")
}

// requests returns the requests that the lab has seen.
func (h *hub) requests(query ...string) []object {
	h.t.Helper()
	return h.get("/lab/requests" + strings.Join(query, "")).Want(200).List("requests")
}

// order orders a token.
func (h *hub) order(body object) *answer {
	h.t.Helper()
	return h.post("/lab/tokens", body).Want(201)
}

// atOnce makes n calls at the same time and counts the answers by status and code.
func atOnce(n int, call func() *answer) map[string]int {
	var mu sync.Mutex
	counts := map[string]int{}
	inParallel(n, func() {
		a := call()
		mu.Lock()
		defer mu.Unlock()
		if a.Status >= 400 {
			counts[fmt.Sprint(a.Status, " ", a.Text("code"))]++
		} else {
			counts[fmt.Sprint(a.Status)]++
		}
	}).Wait()
	return counts
}

// inParallel makes n calls at once. The group is done when all have ended.
func inParallel(n int, call func()) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for range n {
		all.Go(call)
	}
	return all
}

// passwordHash returns a hash with so few rounds that logins cost next to nothing.
func passwordHash(t testing.TB, password string) string {
	t.Helper()
	return passwordHashOf(t, password, 1)
}

// passwordHashOf returns a hash with this many rounds of PBKDF2.
func passwordHashOf(t testing.TB, password string, rounds int) string {
	t.Helper()
	salt := make([]byte, 16)
	rand.Read(salt)
	key, err := pbkdf2.Key(sha256.New, password, salt, rounds, 32)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("$pbkdf2-sha256$i=%d$", rounds) + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(key)
}

// writeUsers makes a -users file of the demo accounts and of user0 … user(n-1). Each password is the name and
// "-password", hashed as passwordHash does.
func writeUsers(t testing.TB, n int) string {
	t.Helper()
	seeds := []object{{"username": "admin", "role": "admin"}, {"username": "demo"}, {"username": "disabled", "disabled": true}}
	for i := range n {
		seeds = append(seeds, object{"username": fmt.Sprintf("user%d", i)})
	}
	for _, seed := range seeds {
		seed["password_hash"] = passwordHash(t, seed["username"].(string)+"-password")
	}
	data, err := json.Marshal(seeds)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.WriteFile(t, "users.json", string(data))
}

// keysOf returns the names of an object's members, sorted.
func keysOf(o object) []string {
	var keys []string
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
