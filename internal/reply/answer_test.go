package reply

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"
)

// FuzzParseStrings: whatever the quick reader of bodies takes, it reads as encoding/json does.
func FuzzParseStrings(f *testing.F) {
	for _, body := range []string{
		`{"username":"demo","password":"demo-password"}`,
		" {\t\"a\" :\r\n\"b\" , \"c\":\"\" } ",
		`{"a":"b","a":"c"}`, `{"a":"é"}`, `{"a":"\n"}`, "{\"a\":\"\n\"}", `{"a":1}`, `{"a":"b",}`, `{"a":"b"}x`, `{}`, `}`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parseStrings(string(body))
		if !ok || bytes.ContainsRune(body, '\uFFFD') || !bytes.Equal(body, bytes.ToValidUTF8(body, nil)) {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v (%v)", body, got, want, err)
		}
	})
}
