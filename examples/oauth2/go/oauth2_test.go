// golang.org/x/oauth2, unmodified, against a hub that speaks OAuth 2.0: what it does well, and what its caller must
// not do.
//
//	go test ./...          builds the hub first; AUTHHUB=/path/to/authhub uses that binary

package oauth2example

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/hubtest"

	"golang.org/x/oauth2"
)

// expired returns the configuration of a client, and a token whose time is up for the hub and for the client.
func expired(t *testing.T, hub *hubtest.Hub) (*oauth2.Config, *oauth2.Token) {
	t.Helper()
	hub.Lab("PUT", "/dialect", map[string]string{"name": "oauth2"}, nil)
	config := &oauth2.Config{ClientID: "app", Endpoint: oauth2.Endpoint{TokenURL: hub.URL + "/oauth/token"}}
	token, err := config.PasswordCredentialsToken(t.Context(), "demo", "demo-password")
	if err != nil {
		t.Fatal(err)
	}
	hub.Advance(16 * time.Minute)
	token.Expiry = token.Expiry.Add(-16 * time.Minute)
	return config, token
}

// userinfo asks for the user with each of the clients at once, and returns the errors.
func userinfo(hub *hubtest.Hub, clients ...*http.Client) []error {
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	for i, client := range clients {
		all.Go(func() {
			resp, err := client.Get(hub.URL + "/oauth/userinfo")
			if errs[i] = err; err == nil {
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	return errs
}

// One client for all goroutines refreshes once.
func TestOneClient(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	config, token := expired(t, hub)
	client := config.Client(t.Context(), token)
	for _, err := range userinfo(hub, client, client, client, client, client) {
		if err != nil {
			t.Error(err)
		}
	}
	hub.NoFindings()
}

// A client for each request, made from one stored token, refreshes with the same token each time.
func TestAClientForEachRequest(t *testing.T) {
	t.Parallel()
	hub := hubtest.Start(t)
	config, token := expired(t, hub)
	hub.Lab("POST", "/faults", map[string]any{"operation": "refresh", "hold": 2}, nil) // lets both go together
	errs := userinfo(hub, config.Client(t.Context(), token), config.Client(t.Context(), token))
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("%v, want one refresh refused", errs)
	}

	var report struct{ Findings []struct{ Rule string } }
	hub.Lab("GET", "/report", nil, &report)
	if len(report.Findings) != 1 || report.Findings[0].Rule != "two_refreshes" {
		t.Errorf("the report finds %v, want two_refreshes", report.Findings)
	}
	for _, err := range errs {
		if err != nil && !strings.Contains(err.Error(), "invalid_grant") {
			t.Error(err)
		}
	}
}
