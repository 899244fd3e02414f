// The page: what is in web/, and the description of the API, embedded and served as they are.

package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"
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
	return servePage(w, r, "web/"+path.Base(r.URL.Path))
}

func (h *Hub) showDescription(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, "openapi.json")
}

// servePage answers with an embedded file. Its ETag is of its bytes, since an embedded file has no date.
func servePage(w http.ResponseWriter, r *http.Request, name string) error {
	content, err := page.ReadFile(name)
	if err != nil {
		return fail(http.StatusNotFound, "not_found", "The page has no such part.")
	}
	header := w.Header()
	header["Content-Type"] = []string{pageTypes[path.Ext(name)]}
	header["Content-Security-Policy"] = []string{pagePolicy}
	header["Cache-Control"] = revalidate
	header["Etag"] = []string{pageTags()[name]}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return nil
}

// pageTags are the ETags of the embedded files, worked out when the first of them is asked for.
var pageTags = sync.OnceValue(func() map[string]string {
	tags := make(map[string]string)
	fs.WalkDir(page, ".", func(name string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() {
			content, _ := page.ReadFile(name)
			sum := sha256.Sum256(content)
			tags[name] = `"` + hex.EncodeToString(sum[:12]) + `"`
		}
		return nil
	})
	return tags
})
