package request

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"authhub/internal/reply"
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
func TestHalfASurrogatePairIsNoText(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"password":"\ud800"}`: false, `{"password":"\uDFFF x"}`: false, `{"password":"\ud800\ud800"}`: false, `{"\udc00":1}`: false,
		`{"password":"\ud83d\ude00"}`: true, `{"password":"\\ud800"}`: true, `{"password":"\\\ud800"}`: false, `{"password":"\u00e9"}`: true,
		`{"password":"\n\ud83d\ude00\ud83d"}`: false, `{"password":"\ufffd"}`: true, `{"password":"\`: false, `{"password":"\u12"}`: false,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		in, err := ReadForm(httptest.NewRecorder(), r, false)
		if (err == nil) != good {
			t.Errorf("%s: %v, %v", body, in, err)
		}
		if err != nil && reply.As(err).Code != "malformed_body" {
			t.Errorf("%s: %v", body, err)
		}
	}
}
