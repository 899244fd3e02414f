// The page: what is in web/, and the description of the API, embedded and served as they are.

package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"authhub/internal/reply"
)

//go:embed web/*.html web/*.css web/*.js web/*.svg openapi.json
var page embed.FS

// pagePolicy lets the page load its own files and ask its own hub, and nothing else: no inline script or style,
// no other origin (Content Security Policy Level 3).
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

func (h *Hub) showPage(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, "web/index.html")
}

func (h *Hub) showAsset(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, "web/"+r.PathValue("file"))
}

func (h *Hub) showDescription(w http.ResponseWriter, r *http.Request) error {
	if h.settings.lab {
		return servePage(w, r, "openapi.json")
	}
	return servePage(w, r, withoutLab)
}

// asset is one file of the page.
type asset struct {
	content []byte
	tag     string // of the bytes, since an embedded file has no date
}

// servePage answers with a part of the page.
func servePage(w http.ResponseWriter, r *http.Request, name string) error {
	a, ok := assets()[name]
	if !ok {
		return reply.Fail(http.StatusNotFound, "not_found", "The page has no such part.")
	}
	header := w.Header()
	header["Content-Type"] = []string{pageTypes[path.Ext(name)]}
	header["Content-Security-Policy"] = []string{pagePolicy}
	header["Cache-Control"] = revalidate
	header["Etag"] = []string{a.tag}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
	return nil
}

// assets are the embedded files by name, read when the first of them is asked for.
var assets = sync.OnceValue(func() map[string]asset {
	all := make(map[string]asset)
	add := func(name string, content []byte) {
		sum := sha256.Sum256(content)
		all[name] = asset{content, `"` + hex.EncodeToString(sum[:16]) + `"`}
	}
	fs.WalkDir(page, ".", func(name string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() {
			content, _ := page.ReadFile(name) // it is embedded, so it can be read
			add(name, content)
		}
		return nil
	})
	add(withoutLab, dropLab(all["openapi.json"].content))
	return all
})

// withoutLab names the description of a hub that has no lab.
const withoutLab = "openapi-without-lab.json"

// dropLab returns the description without the lab: its paths, and the last of the servers and of the tags.
func dropLab(content []byte) []byte {
	var doc struct {
		OpenAPI    json.RawMessage            `json:"openapi"`
		Info       json.RawMessage            `json:"info"`
		Servers    []json.RawMessage          `json:"servers"`
		Tags       []json.RawMessage          `json:"tags"`
		Paths      map[string]json.RawMessage `json:"paths"`
		Components json.RawMessage            `json:"components"`
	}
	json.Unmarshal(content, &doc) // it is valid: openapi_test.go
	doc.Servers, doc.Tags = doc.Servers[:len(doc.Servers)-1], doc.Tags[:len(doc.Tags)-1]
	maps.DeleteFunc(doc.Paths, func(path string, _ json.RawMessage) bool {
		return strings.HasPrefix(path, "/lab") || strings.HasPrefix(path, "/ns/")
	})
	short, _ := json.Marshal(doc)
	return short
}
