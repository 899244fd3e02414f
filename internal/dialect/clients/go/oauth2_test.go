// Package clients runs golang.org/x/oauth2 against the hub at AUTHHUB, which speaks the dialect oauth2.
package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// startHub returns the address of a hub that ends with the test.
func startHub(t *testing.T) string {
	t.Helper()
	hub := exec.Command(os.Getenv("AUTHHUB"), "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "off", "-exit-with-stdin", "-dialect", "oauth2")
	stdin, err := hub.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := hub.StdoutPipe()
	if err == nil {
		err = hub.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); hub.Wait() })
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// ask sends a request to the lab and reads the answer into v.
func ask(t *testing.T, method, address, body string, v any) {
	t.Helper()
	r, _ := http.NewRequest(method, address, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s", method, address, answer.Status, content)
	}
	if v != nil {
		if err := json.Unmarshal(content, v); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOAuth2(t *testing.T) {
	address := startHub(t) + "/ns/go"
	config := &oauth2.Config{ClientID: "app", Scopes: []string{"profile"}, Endpoint: oauth2.Endpoint{TokenURL: address + "/oauth/token"}}

	_, err := config.PasswordCredentialsToken(t.Context(), "demo", "wrong")
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		t.Fatalf("a wrong password: %v", err)
	}
	token, err := config.PasswordCredentialsToken(t.Context(), "demo", "demo-password")
	if err != nil {
		t.Fatal(err)
	}

	ask(t, "PUT", address+"/lab/clock", `{"advance":"16m"}`, nil)
	token.Expiry = token.Expiry.Add(-16 * time.Minute) // time passes for the client, too
	client := config.Client(context.Background(), token)
	var five sync.WaitGroup
	for range 5 {
		five.Go(func() {
			answer, err := client.Get(address + "/oauth/userinfo")
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if content, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 || !strings.Contains(string(content), `"sub":"user-demo"`) {
				t.Errorf("%s %s", answer.Status, content)
			}
		})
	}
	five.Wait()

	var record struct{ Requests []any }
	if ask(t, "GET", address+"/lab/requests?operation=refresh", "", &record); len(record.Requests) != 1 {
		t.Errorf("%d refreshes, want 1", len(record.Requests))
	}
	clean(t, address)
}

// x/oauth2 keeps the token that it has until a refresh succeeds, so after a lost answer every call sends the spent
// one.
func TestOAuth2LosesARefresh(t *testing.T) {
	address := startHub(t) + "/ns/go"
	config := &oauth2.Config{ClientID: "app", Endpoint: oauth2.Endpoint{TokenURL: address + "/oauth/token"}}
	token, err := config.PasswordCredentialsToken(t.Context(), "demo", "demo-password")
	if err != nil {
		t.Fatal(err)
	}
	ask(t, "PUT", address+"/lab/clock", `{"advance":"16m"}`, nil)
	ask(t, "POST", address+"/lab/faults", `{"operation":"refresh","drop":"after"}`, nil)
	token.Expiry = token.Expiry.Add(-16 * time.Minute)
	client := config.Client(context.Background(), token)

	var refused *oauth2.RetrieveError
	if _, err := client.Get(address + "/oauth/userinfo"); err == nil || errors.As(err, &refused) {
		t.Fatalf("a lost answer: %v", err)
	}
	if _, err := client.Get(address + "/oauth/userinfo"); !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		t.Fatalf("the next call: %v", err)
	}
	var record struct {
		Requests []struct{ Code string }
	}
	ask(t, "GET", address+"/lab/requests?operation=refresh", "", &record)
	if r := record.Requests; len(r) != 2 || r[0].Code != "" || r[1].Code != "token_reused" {
		t.Errorf("the refreshes are %v, want a lost and a refused one", r)
	}

	if token, err = config.PasswordCredentialsToken(t.Context(), "demo", "demo-password"); err != nil {
		t.Fatal(err)
	}
	answer, err := config.Client(context.Background(), token).Get(address + "/oauth/userinfo")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 200 {
		t.Errorf("a new session: %s", answer.Status)
	}
	clean(t, address)
}

// clean fails the test unless the report finds nothing.
func clean(t *testing.T, address string) {
	t.Helper()
	var report struct{ Findings []any }
	if ask(t, "GET", address+"/lab/report", "", &report); len(report.Findings) > 0 {
		t.Errorf("the report finds %v", report.Findings)
	}
}
