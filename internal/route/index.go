// index.go owns the list of operations that GET /api answers with.

package route

import "strings"

// Index lists operations with their whole addresses.
type Index struct {
	BaseURL    string      `json:"base_url"` // without a slash at the end
	Name       string      `json:"name"`
	Operations []indexLine `json:"operations"`
	Version    string      `json:"version"`
}

// indexLine is one operation of an index.
type indexLine struct {
	Method  string `json:"method"`
	Href    string `json:"href"`
	Purpose string `json:"purpose"`
	Token   string `json:"token"`
}

// Add adds operations, but for those without a purpose.
func (x *Index) Add(operations ...Operation) {
	for _, o := range operations {
		if o.Purpose != "" {
			x.Operations = append(x.Operations, indexLine{o.Method, x.BaseURL + strings.TrimSuffix(o.Path, "{$}"), o.Purpose, o.Token})
		}
	}
}
