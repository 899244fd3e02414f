package edge

import (
	"regexp"
	"testing"
)

// FuzzIsHostOrigin holds isHostOrigin against the same form as a regular expression.
func FuzzIsHostOrigin(f *testing.F) {
	form := regexp.MustCompile(`^https?://([a-z0-9-]{1,63}\.[a-z0-9.-]{1,63}(:[0-9]{1,5})?|[a-z0-9-]{1,63}:[0-9]{1,5})$`)
	for _, origin := range []string{
		"https://app.test", "http://localhost:3000", "http://app.test:80", "https://a..b.:1", "http://[::1]:80", "http://a.é",
		"", "null", "secret", "http://secret", "http://", "http://:80", "http://.test", "http://a.", "http://app.test:", "ftp://app.test",
		"http://app.test:1:2", "http://app.test:123456", "http://app.test:8o", "http://APP.test", "http://app.test\n", "http://a://b.c",
		"http://me:pass@app.test", "http://app.test/", "http://0123456789012345678901234567890123456789012345678901234567890123.test",
	} {
		f.Add(origin)
	}
	f.Fuzz(func(t *testing.T, origin string) {
		if got, want := isHostOrigin(origin), form.MatchString(origin); got != want {
			t.Errorf("%q: got %t, want %t", origin, got, want)
		}
	})
}
