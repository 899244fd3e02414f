package lab

import (
	"net/http/httptest"
	"testing"
)

func TestWhoIsABrowser(t *testing.T) {
	t.Parallel()
	const chromium, webkit = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15"
	for name, row := range map[string]struct {
		agent, host string
		headers     []string
		want        bool
	}{
		"Chromium":                     {chromium, "127.0.0.1:8080", []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"}, true},
		"WebKit":                       {webkit, "localhost", nil, true},
		"a browser of another machine": {chromium, "hub.test", nil, true},
		"jsdom, which only says so":    {"Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) jsdom/24.1.3", "localhost", nil, false},
		"a server that hands on the agent of its visitor by Node's fetch": {chromium, "localhost", []string{"Sec-Fetch-Mode"}, false},
		"curl": {"curl/8.14.1", "hub.test", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Host = row.host
			r.Header.Set("User-Agent", row.agent)
			for _, header := range row.headers {
				r.Header.Set(header, "any")
			}
			if got := isBrowser(r); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
