// Accounts: registration, login, guessing, users of a file.

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/testkit"
)

func TestSessionBodyHoldsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)

	a := h.post(registerPath, object{"username": "Kim-1", "password": "12345678", "email": "kim@example.test", "name": "Kim", "remember": true}).Want(201)

	body := a.JSON()
	if got := keysOf(body); !slices.Equal(got, []string{"access_token", "expires_in", "refresh_expires_in", "refresh_token", "token_type", "user"}) {
		t.Errorf("members %v", got)
	}
	if body["token_type"] != "Bearer" || body["expires_in"] != 900.0 || body["refresh_expires_in"] != 604800.0 {
		t.Errorf("%v %v %v", body["token_type"], body["expires_in"], body["refresh_expires_in"])
	}
	user := body["user"].(object)
	want := object{"username": "Kim-1", "email": "kim@example.test", "name": "Kim", "role": "user", "created_at": "2026-03-01T12:00:00.000Z", "id": user["id"]}
	if fmt.Sprint(user) != fmt.Sprint(want) {
		t.Errorf("user %v", user)
	}
	if got := h.me(a.Pair().Access).Want(200).JSON(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("me %v", got)
	}
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
}

func TestRegistrationTakesWhatTheContractAllows(t *testing.T) {
	t.Parallel()
	type m = object
	for _, row := range []struct {
		name   string
		body   m
		status int
		field  string // at fault
	}{
		{"least", m{"username": "abc", "password": "12345678"}, 201, ""},
		{"longest", m{"username": strings.Repeat("u", 64), "password": strings.Repeat("p", 256)}, 201, ""},
		{"all characters of a name", m{"username": "aZ09._@+-", "password": "12345678"}, 201, ""},
		{"any characters in a password", m{"username": "abc", "password": "påß \x00\t🔑"}, 201, ""},
		{"e-mail address as the user name", m{"email": "a.b@example.test", "password": "12345678"}, 201, ""},
		{"empty name and an e-mail address, as forms send it", m{"username": "", "email": "a.b@example.test", "password": "12345678"}, 201, ""},
		{"null counts as absent", m{"username": "abc", "password": "12345678", "email": nil, "name": nil}, 201, ""},
		{"no name", m{"password": "12345678"}, 422, "username"},
		{"empty name", m{"username": "", "password": "12345678"}, 422, "username"},
		{"short name", m{"username": "ab", "password": "12345678"}, 422, "username"},
		{"long name", m{"username": strings.Repeat("u", 65), "password": "12345678"}, 422, "username"},
		{"space in a name", m{"username": "a b", "password": "12345678"}, 422, "username"},
		{"letter beyond ASCII", m{"username": "zoë", "password": "12345678"}, 422, "username"},
		{"name is a number", m{"username": 12345, "password": "12345678"}, 422, "username"},
		{"no password", m{"username": "abc"}, 422, "password"},
		{"short password", m{"username": "abc", "password": "1234567"}, 422, "password"},
		{"long password", m{"username": "abc", "password": strings.Repeat("p", 257)}, 422, "password"},
		{"bad e-mail address", m{"username": "abc", "password": "12345678", "email": "nobody"}, 422, "email"},
		{"e-mail address with a name", m{"username": "abc", "password": "12345678", "email": "N <n@example.test>"}, 422, "email"},
		{"long own name", m{"username": "abc", "password": "12345678", "name": strings.Repeat("n", 257)}, 422, "name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newStillHub(t)
			a := h.post(registerPath, row.body)
			if row.status == 201 {
				h.me(a.Want(201).Pair().Access).Want(200)
				return
			}
			faults := a.Want(422, "invalid_field").JSON()["errors"].([]any)
			if got := faults[0].(object)["field"]; len(faults) != 1 || got != row.field {
				t.Errorf("faults %v, want one in %s", faults, row.field)
			}
		})
	}
}

func TestNamesAreUniqueWithoutRegardToCase(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.post(registerPath, object{"username": "Kim", "password": "12345678", "email": "Kim@example.test"}).Want(201)

	h.post(registerPath, object{"username": "kIM", "password": "12345678"}).Want(409, "username_taken")
	h.post(registerPath, object{"username": "lee", "password": "12345678", "email": "kim@EXAMPLE.test"}).Want(409, "email_taken")
	h.post(registerPath, object{"username": "DEMO", "password": "12345678"}).Want(409, "username_taken")
	h.post(loginPath, object{"username": "KIM", "password": "12345678"}).Want(200)
	h.post(loginPath, object{"email": "KIM@example.test", "password": "12345678"}).Want(200)
	h.post(loginPath, object{"username": "kim@example.test", "password": "12345678"}).Want(200) // one field for both
	h.post(loginPath, object{"email": "kim", "password": "12345678"}).Want(200)
}

// Nobody takes a login away from its owner by registering it as the other kind of name.
func TestANameIsNobodyElsesAddress(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.post(registerPath, object{"username": "kim", "password": "12345678", "email": "kim@example.test"}).Want(201)
	h.post(registerPath, object{"username": "lee@example.test", "password": "12345678"}).Want(201)

	for field, body := range map[string]object{
		"username": {"username": "Kim@example.test", "password": "87654321"},
		"email":    {"username": "pat", "password": "87654321", "email": "Lee@example.test"},
	} {
		faults := h.post(registerPath, body).Want(409, field+"_taken").JSON()["errors"].([]any)
		if len(faults) != 1 || faults[0].(object)["field"] != field {
			t.Errorf("faults %v, want one in %s", faults, field)
		}
	}
	h.post(registerPath, object{"email": "kim@example.test", "password": "87654321"}).Want(409, "email_taken")
	h.post(registerPath, object{"email": "lee@example.test", "password": "87654321"}).Want(409, "username_taken")
	h.post(loginPath, object{"username": "kim@example.test", "password": "12345678"}).Want(200)
	h.post(loginPath, object{"email": "lee@example.test", "password": "12345678"}).Want(200)
}

func TestOneOfManyRegistersAName(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 16 {
		wg.Go(func() {
			a := h.post(registerPath, object{"username": "race", "password": "12345678"})
			mu.Lock()
			defer mu.Unlock()
			statuses[a.Status]++
		})
	}
	wg.Wait()
	if statuses[201] != 1 || statuses[409] != 15 {
		t.Errorf("statuses %v", statuses)
	}
}

func TestBodiesAreJSONOrForms(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	const good = `{"username":"demo","password":"demo-password"}`
	for _, row := range []struct {
		name, contentType, body string
		status                  int
		code                    string
	}{
		{"JSON", "application/json", good, 200, ""},
		{"JSON with a charset", "Application/JSON; charset=utf-8", good, 200, ""},
		{"JSON and white space", "application/json", " \n" + good + " \r\n", 200, ""},
		{"form", "application/x-www-form-urlencoded", "username=demo&password=demo-password&remember=on", 200, ""},
		{"form of the first value", "application/x-www-form-urlencoded", "username=demo&password=demo-password&password=x", 200, ""},
		{"no type", "", good, 415, "unsupported_media_type"},
		{"text", "text/plain", good, 415, "unsupported_media_type"},
		{"multipart", "multipart/form-data; boundary=x", "--x--", 415, "unsupported_media_type"},
		{"nonsense type", ";;;", good, 415, "unsupported_media_type"},
		{"empty JSON", "application/json", "", 400, "malformed_body"},
		{"cut JSON", "application/json", good[:20], 400, "malformed_body"},
		{"array", "application/json", "[" + good + "]", 400, "malformed_body"},
		{"null", "application/json", "null", 400, "malformed_body"},
		{"string", "application/json", `"demo"`, 400, "malformed_body"},
		{"trailing data", "application/json", good + "{}", 400, "malformed_body"},
		{"trailing brace", "application/json", good + "}", 400, "malformed_body"},
		{"invalid UTF-8", "application/json", "{\"username\":\"\xff\"}", 400, "malformed_body"},
		{"invalid UTF-8 in a form", "application/x-www-form-urlencoded", "username=%ff&password=x", 400, "malformed_body"},
		{"bad escape in a form", "application/x-www-form-urlencoded", "username=%zz", 400, "malformed_body"},
		{"empty form", "application/x-www-form-urlencoded", "", 422, "invalid_field"},
		{"empty object", "application/json", "{}", 422, "invalid_field"},
		{"object for a string", "application/json", `{"username":{},"password":"x"}`, 422, "invalid_field"},
		{"64 KiB", "application/json", good + strings.Repeat(" ", 64<<10-len(good)), 200, ""},
		{"a byte more", "application/json", good + strings.Repeat(" ", 64<<10-len(good)+1), 413, "body_too_large"},
		{"deep nesting", "application/json", `{"x":` + strings.Repeat("[", 30_000), 400, "malformed_body"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var options []string
			if row.contentType != "" {
				options = []string{"Content-Type", row.contentType}
			}
			a := h.post(loginPath, row.body, options...).Want(row.status)
			if row.code != "" {
				a.Want(row.status, row.code)
			}
		})
	}
}

func TestWhatTheAddressSaysIsNotRead(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	p := h.login("demo")

	h.post(loginPath+"?username=demo&password=demo-password", "", formType...).Want(422, "invalid_field")
	h.get("/api/authentication/me?access_token="+p.Access).Want(401, "token_missing")
	h.post(refreshPath+"?refresh_token="+p.Refresh, nil).Want(401, "token_missing")
}

func TestLoginTellsWrongPasswordAndUnknownUserTheSame(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)

	wrong := h.post(loginPath, object{"username": "demo", "password": "x"}).Want(401, "invalid_credentials")
	unknown := h.post(loginPath, object{"username": "nobody", "password": "x"}).Want(401, "invalid_credentials")
	disabled := h.post(loginPath, object{"username": "disabled", "password": "x"}).Want(401, "invalid_credentials")
	h.post(loginPath, object{"username": "disabled", "password": "disabled-password"}).Want(403, "account_disabled")

	if string(wrong.Body) != string(unknown.Body) || string(wrong.Body) != string(disabled.Body) {
		t.Errorf("the answers differ:\n%s%s%s", wrong.Body, unknown.Body, disabled.Body)
	}
}

func TestANameGetsTenGuessesAMinute(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for round := range 2 {
		got := atOnce(100, func() *answer { return h.post(loginPath, wrong("demo")) })
		if got["401 invalid_credentials"] != 10 || got["429 too_many_attempts"] != 90 {
			t.Errorf("round %d: 100 guesses at once: %v", round, got)
		}
		h.advance(10 * time.Second)
		refused := h.post(loginPath, object{"username": "DEMO", "password": "demo-password"}).Want(429, "too_many_attempts")
		if got := refused.Header.Get("Retry-After"); got != "50" {
			t.Errorf("Retry-After %q ten seconds later", got)
		}
		h.post(loginPath, right("admin")).Want(200)
		h.advance(50*time.Second - time.Millisecond)
		h.post(loginPath, right("demo")).Want(429)
		h.advance(time.Millisecond)
	}
	h.post(loginPath, right("demo")).Want(200)
}

func TestThrottlingIsByAddress(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux sends from 127.0.0.2 unasked")
	}
	h := newHub(t)
	for range 10 {
		h.post(loginPath, wrong("demo")).Want(401, "invalid_credentials")
	}
	h.post(loginPath, right("demo")).Want(429, "too_many_attempts")
	h.from("127.0.0.2").post(loginPath, right("demo")).Want(200)
	h.from("127.0.0.1").post(loginPath, right("demo")).Want(429, "too_many_attempts") // another port
}

// TestValidLoginsAreNotThrottled: a client that knows the password may log in as often at once as it likes.
func TestValidLoginsAreNotThrottled(t *testing.T) {
	t.Parallel()
	hash := passwordHashOf(t, "demo-password", 100_000) // the first login takes its time, so that the others wait
	h := start(t, "-ephemeral", "-users", testkit.WriteFile(t, "users.json", `[{"username":"demo","password_hash":"`+hash+`"}]`))
	if got := atOnce(50, func() *answer { return h.post(loginPath, right("demo")) }); got["200"] != 50 {
		t.Errorf("50 valid logins at once: %v", got)
	}
}

func TestUsersOfAFile(t *testing.T) {
	t.Parallel()
	hash := passwordHash(t, "secret of kim")
	h := start(t, "-ephemeral", "-users", testkit.WriteFile(t, "users.json", `[
		{"id":"u-1","username":"kim","password_hash":"`+hash+`","role":"admin"},
		{"username":"lee","password":"lee-password","email":"lee@example.test","created_at":"2025-01-02T03:04:05Z"}]`))

	kim := h.post(loginPath, object{"username": "kim", "password": "secret of kim"}).Want(200).JSON()["user"].(object)
	lee := h.post(loginPath, object{"email": "lee@example.test", "password": "lee-password"}).Want(200).JSON()["user"].(object)
	h.post(loginPath, right("demo")).Want(401, "invalid_credentials")

	if kim["id"] != "u-1" || kim["role"] != "admin" || lee["id"] != "user-lee" || lee["created_at"] != "2025-01-02T03:04:05.000Z" {
		t.Errorf("%v %v", kim, lee)
	}
}

func TestUsersThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{
		"no array":       `{}`,
		"same address":   `[{"username":"kim","email":"k@x.example","password":"x"},{"username":"lee","email":"K@x.example","password":"x"}]`,
		"same name only": `[{"username":"kim","password":"x"},{"username":"KIM","password":"x"}]`,
		"null":           `null`,
		"no text":        `[{"username":5,"password":"x"}]`,
		"unknown member": `[{"username":"kim","pasword":"x"}]`,
		"no password":    `[{"username":"kim"}]`,
		"two passwords":  `[{"username":"kim","password":"x","password_hash":"` + passwordHash(t, "x") + `"}]`,
		"bad hash":       `[{"username":"kim","password_hash":"$2b$10$abc"}]`,
		"bad role":       `[{"username":"kim","password":"x","role":"root"}]`,
		"same name":      `[{"username":"kim","password":"x"},{"id":"u-2","username":"KIM","password":"x"}]`,
		"same id":        `[{"id":"u-2","username":"kim","password":"x"},{"id":"u-2","username":"lee","password":"x"}]`,
		"trailing":       `[] []`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, stdout, said := run(t, "-addr", "127.0.0.1:0", "-ephemeral", "-users", testkit.WriteFile(t, "bad.json", bad))
			if status != 1 || stdout != "" || strings.Contains(said, "main.") || strings.Count(said, "\n") != 1 {
				t.Errorf("exit status %d, %q", status, said)
			}
			if !strings.Contains(said, "-users") || strings.HasPrefix(name, "same") && !strings.Contains(said, "user 2 (") {
				t.Errorf("it does not say which file or which user: %q", said)
			}
		})
	}
}

func TestASeedOfTheNameOfARegisteredUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	h.post(registerPath, object{"username": "kim", "password": "12345678"}).Want(201)
	h.process.stop(t)
	status, _, said := run(t, "-addr", "127.0.0.1:0", "-dir", dir, "-users", testkit.WriteFile(t, "users.json", `[{"username":"KIM","password":"x"}]`))
	if status != 1 || !strings.Contains(said, `"kim" has registered`) || strings.Contains(said, "damaged") {
		t.Errorf("exit status %d, %q", status, said)
	}
}

func TestPasswordsAtRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, "-dir", dir).post(registerPath, object{"username": "kim", "password": "correct horse"}).Want(201)
	journal := testkit.ReadFile(t, filepath.Join(dir, "journal"))
	if strings.Contains(journal, "correct horse") || !regexp.MustCompile(`\$pbkdf2-sha256\$i=600000\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\b`).MatchString(journal) {
		t.Errorf("journal:\n%s", journal)
	}
}

// TestEachRefusalHasItsShape goes once through RFC 9457's members.
func TestEachRefusalHasItsShape(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	a := h.post(registerPath, object{"username": "x", "password": "y"}).Want(422, "invalid_field")
	body := a.JSON()
	if body["title"] != http.StatusText(http.StatusUnprocessableEntity) || body["status"] != 422.0 || body["detail"] == "" {
		t.Errorf("%v", body)
	}
	if faults := body["errors"].([]any); len(faults) != 2 {
		t.Errorf("faults %v", faults)
	}
}

// TestARefusalSaysWhatToDo: the detail is for people, who want to know more than what was wrong.
func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.post(runPath, nil).Want(200)
	for want, a := range map[string]*answer{
		"Check both":                   h.post(loginPath, object{"username": "demo", "password": "wrong"}).Want(401, "invalid_credentials"),
		"another account":              h.post(loginPath, object{"username": "disabled", "password": "disabled-password"}).Want(403, "account_disabled"),
		"Log in again":                 h.me("forged").Want(401, "token_malformed"),
		"as refresh_token in the body": h.post(refreshPath, object{"token": "x"}).Want(401, "token_missing"),
		"the other token":              h.me(h.login("demo").Refresh).Want(401, "token_wrong_type"),
		"or log in":                    h.post(registerPath, object{"username": "kim", "password": "12345678", "email": "demo@example.test"}).Want(409, "email_taken"),
		"Send a smaller":               h.post(loginPath, object{"username": strings.Repeat("x", 1<<16)}).Want(413, "body_too_large"),
		"Fetch the file":               h.get(listingPath+"/impact", "If-Match", `"other"`).Want(412, "precondition_failed"),
		"Content-Range say":            h.get(listingPath+"/impact", "Range", "bytes=9999999-").Want(416, "range_not_satisfiable"),
	} {
		if detail := a.Text("detail"); !strings.Contains(detail, want) {
			t.Errorf("%q does not say %q", detail, want)
		}
	}
}
