// The page as it is served.

package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

func TestPageIsServedWithItsPolicyAndRevalidated(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, row := range []struct{ path, mediaType, begins string }{
		{"/", "text/html; charset=utf-8", "<!doctype html>"},
		{"/web/app.js", "text/javascript; charset=utf-8", "//"},
		{"/web/style.css", "text/css; charset=utf-8", "/*"},
		{"/web/icon.svg", "image/svg+xml", "<svg"},
		{"/openapi.json", "application/json", "{"},
	} {
		a := h.get(row.path).Want(200)
		if !strings.HasPrefix(string(a.Body), row.begins) || a.Header.Get("Content-Type") != row.mediaType {
			t.Errorf("%s: %s %.20q", row.path, a.Header.Get("Content-Type"), a.Body)
		}
		if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", row.path, policy)
		}
		h.get(row.path, "If-None-Match", a.Header.Get("ETag")).Want(304)
		if head := h.do("HEAD", row.path, nil).Want(200); len(head.Body) != 0 || head.Header.Get("ETag") != a.Header.Get("ETag") {
			t.Errorf("%s: HEAD has %d bytes and ETag %s", row.path, len(head.Body), head.Header.Get("ETag"))
		}
	}
}

func TestPageHasNoOtherParts(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, path := range []string{"/web/", "/web/nothing.js", "/web/test/client.ts", "/web/..%2fhub.go", "/web/%2e%2e%2fopenapi.json", "/index.html", "/web/openapi.json"} {
		h.get(path).Want(404, "not_found")
	}
	h.post("/", nil).Want(405, "method_not_allowed")
}

// Whatever the page loads it names relative to itself, so that it works below /ns/NAME/ too, and it is there.
func TestPageNamesItsPartsRelatively(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	index := string(h.get("/").Want(200).Body)
	named := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(index, -1)
	if len(named) < 4 {
		t.Fatalf("found %d addresses in the page", len(named))
	}
	for _, m := range named {
		if strings.HasPrefix(m[1], "/") || strings.Contains(m[1], ":") {
			t.Errorf("the page names %s", m[1])
		}
		h.get("/" + m[1]).Want(200)
	}
	parts, err := filepath.Glob(root + "/web/*.*")
	if err != nil || len(parts) < 5 {
		t.Fatal(parts, err)
	}
	for _, name := range parts {
		if strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".json") {
			continue
		}
		if at := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://[^w]`).FindString(testkit.ReadFile(t, name)); at != "" {
			t.Errorf("%s has %s", name, at)
		}
	}
}
