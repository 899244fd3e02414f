// Package web holds the page and the description of the API, and serves them as they are.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"authhub/internal/reply"
)

//go:generate gzip -9nkf openapi.json

// Files are the files of the page and openapi.json, an eighth of its 159 kB.
//
//go:embed *.html *.css *.js *.svg openapi.json.gz
var Files embed.FS

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

// Names of files: the page and the description (OpenAPI 3.1), of a hub with a lab and of one without.
const (
	page               = "index.html"
	pageOfLab          = "index-with-lab.html"
	description        = "openapi-without-lab.json"
	descriptionWithLab = "openapi.json"
	packedDescription  = "openapi.json.gz"
)

// asset is one file of the page.
type asset struct {
	content []byte
	tag     string // of the bytes, since an embedded file has no date
}

// ServePage answers with the page, of a hub with a lab or of one without.
func ServePage(w http.ResponseWriter, r *http.Request, lab bool) error {
	if lab {
		return serve(w, r, assets(), pageOfLab)
	}
	return serve(w, r, assets(), page)
}

// ServeDescription answers with the description, of a hub with a lab or of one without.
func ServeDescription(w http.ResponseWriter, r *http.Request, lab bool) error {
	if lab {
		return serve(w, r, descriptions(), descriptionWithLab)
	}
	return serve(w, r, descriptions(), description)
}

// ServeAsset answers with the part of the page of this name. Errors: a 404 where there is none. The page itself has an
// address of its own.
func ServeAsset(w http.ResponseWriter, r *http.Request, name string) error {
	if strings.HasPrefix(name, "index") {
		name = ""
	}
	return serve(w, r, assets(), name)
}

// serve answers with the file of this name. Errors: a 404 where there is none.
func serve(w http.ResponseWriter, r *http.Request, files map[string]asset, name string) error {
	a, ok := files[name]
	if !ok {
		return reply.Fail(http.StatusNotFound, "not_found", "The page has no file of this name.")
	}
	header := w.Header()
	header["Content-Type"] = []string{pageTypes[path.Ext(name)]}
	header["Content-Security-Policy"] = []string{pagePolicy}
	header["X-Frame-Options"] = []string{"DENY"}
	header["Referrer-Policy"] = []string{"no-referrer"}
	header["Cache-Control"] = []string{"no-cache"}
	header["Etag"] = []string{a.tag}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
	return nil
}

func newAsset(content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{content, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// assets are the files of the page by name, read when the first of them is asked for.
var assets = sync.OnceValue(func() map[string]asset {
	all := make(map[string]asset)
	entries, _ := Files.ReadDir(".") // they are embedded, so they can be read
	for _, entry := range entries {
		if name := entry.Name(); name != packedDescription {
			content, _ := Files.ReadFile(name)
			all[name] = newAsset(content)
		}
	}
	all[pageOfLab] = newAsset(markLab(all[page].content))
	return all
})

// descriptions are both descriptions by name, made when the first of them is asked for: that takes some milliseconds
// and a megabyte, which the page can do without.
var descriptions = sync.OnceValue(func() map[string]asset {
	packed, _ := Files.ReadFile(packedDescription)
	whole := inflate(packed)
	return map[string]asset{descriptionWithLab: newAsset(whole), description: newAsset(dropLab(whole))}
})

// inflate returns the content of an embedded gzip file.
func inflate(packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // the tests read it
	}
	content, _ := io.ReadAll(z)
	return content
}

// dropLab returns the description without the lab: without its paths, its tag, and the server of a namespace.
func dropLab(content []byte) []byte {
	var doc struct {
		OpenAPI    json.RawMessage            `json:"openapi"`
		Info       json.RawMessage            `json:"info"`
		Servers    []map[string]any           `json:"servers"`
		Tags       []map[string]any           `json:"tags"`
		Paths      map[string]json.RawMessage `json:"paths"`
		Components json.RawMessage            `json:"components"`
	}
	json.Unmarshal(content, &doc) // it is valid: the tests read it
	doc.Servers = slices.DeleteFunc(doc.Servers, func(server map[string]any) bool {
		url, _ := server["url"].(string)
		return strings.Contains(url, "/ns/")
	})
	doc.Tags = slices.DeleteFunc(doc.Tags, func(tag map[string]any) bool { return tag["name"] == "lab" })
	maps.DeleteFunc(doc.Paths, func(path string, _ json.RawMessage) bool {
		return strings.HasPrefix(path, "/lab") || strings.HasPrefix(path, "/ns/")
	})
	short, _ := json.Marshal(doc)
	return short
}

// markLab returns the page with the mark by which its program knows that there is a lab. It need not ask the hub, whose
// answer may be a fault.
func markLab(page []byte) []byte {
	return bytes.Replace(page, []byte("<html "), []byte("<html data-lab "), 1)
}
