package request

import "strings"

// SafePath returns a path for the log and the record: each of its parts is cut short, so that no token that a client
// puts there by mistake is kept whole.
func SafePath(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 8 {
		parts = append(parts[:8], "…")
	}
	for i, p := range parts {
		if len(p) > 24 {
			parts[i] = strings.ToValidUTF8(p[:16], "") + "…"
		}
	}
	return strings.Join(parts, "/")
}
