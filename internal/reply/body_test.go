package reply

import (
	"net/http/httptest"
	"strings"
	"testing"
)

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
		if err != nil && As(err).Code != "malformed_body" {
			t.Errorf("%s: %v", body, err)
		}
	}
}
