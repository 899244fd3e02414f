// The tour that -tour gives.

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

func tourOf(t *testing.T, args ...string) (status int, out, complaint string) {
	t.Helper()
	return run(t, append([]string{"-tour"}, args...)...)
}

func TestTourOfItsOwnHub(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"-protect", "files,run"}} {
		status, out, complaint := tourOf(t, flags...)
		if status != 0 || complaint != "" {
			t.Fatalf("%v: exit %d: %s\n%s", flags, status, complaint, out)
		}
		for _, want := range []string{"POST /api/authentication/login", "→ 200 OK", "→ 204 No Content", "token_revoked", "alertesph.json", "All 12 answers are as expected."} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", flags, want, out)
			}
		}
		if strings.Count(out, "eyJ") == 0 || strings.Contains(out, "eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJpc3MiOiJhdXRoaHViIiwic3ViIjoidXNlci1kZW1v") {
			t.Errorf("%v: a token is printed whole", flags)
		}
	}
}

func TestTourOfARunningHub(t *testing.T) {
	t.Parallel()
	p := start(t, "-ephemeral")
	if status, out, complaint := tourOf(t, "-base-url", p.base); status != 0 || !strings.Contains(out, "A tour of the hub at "+p.base+"\n") {
		t.Fatalf("exit %d: %s\n%s", status, complaint, out)
	}
}

func TestTourFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := start(t, "-ephemeral")
	target, _ := url.Parse(p.base)
	spoil := func(path string, change func(*http.Response)) string {
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ModifyResponse = func(r *http.Response) error {
			if r.Request.URL.Path == path {
				change(r)
			}
			return nil
		}
		server := httptest.NewServer(proxy)
		t.Cleanup(server.Close)
		return server.URL
	}
	for _, row := range []struct{ name, base, complaint string }{
		{"nobody there", "http://127.0.0.1:1", "step 1: "},
		{"status", spoil(logoutPath, func(r *http.Response) { r.StatusCode = 200 }), "step 11: the status is not 204"},
		{"media type", spoil("/healthz", func(r *http.Response) { r.Header.Set("Content-Type", "text/html") }), "step 1: the media type is not application/json"},
		{"no challenge", spoil(mePath, func(r *http.Response) { r.Header.Del("WWW-Authenticate") }), "step 4: it is no token_missing"},
		{"no ETag", spoil(listingPath+"/impact", func(r *http.Response) { r.Header.Del("ETag") }), "step 9: it has no ETag"},
	} {
		status, _, complaint := tourOf(t, "-base-url", row.base)
		if status != 1 || !strings.Contains(complaint, row.complaint) {
			t.Errorf("%s: exit %d: %s", row.name, status, complaint)
		}
	}
}
