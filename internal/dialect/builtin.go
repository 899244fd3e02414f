// The built-in dialects.

package dialect

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed builtin/*.json
var builtin embed.FS

// Builtin returns the description of that name as it is written, with false if there is none.
func Builtin(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	description, err := builtin.ReadFile("builtin/" + name + ".json")
	return description, err == nil
}

// Names returns the names of the built-in dialects in alphabetical order.
func Names() []string {
	entries, _ := fs.ReadDir(builtin, "builtin") // it is embedded
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	slices.Sort(names)
	return names
}
