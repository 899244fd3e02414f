// A client of the WebDriver protocol (W3C WebDriver), as much of it as the tests of the page need.

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is one window of a headless Chromium that tests share, one after the other. Each hub of theirs is an origin
// of its own, so that nothing that a page stores meets another test, but for cookies, which a browser forgets in
// between.
type browser struct {
	t       *testing.T
	session string // address of the WebDriver session
}

// browsers are those that no test uses just now; nil is one that was not started yet. Two are open at most: a browser
// takes seconds to start and then keeps a processor busy.
var browsers = make(chan *browser, 2)

func init() { browsers <- nil; browsers <- nil }

// driverURL is the address of the one chromedriver that all tests share, or why there is none. It ends with the
// test process, whose pipe it reads.
var driverURL = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("chromedriver")
	if err != nil {
		return "", fmt.Errorf("chromedriver is not installed (Debian: chromium-driver)")
	}
	driver := exec.Command(path, "--port=0")
	driver.SysProcAttr = endWithParent()
	out, err := driver.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := driver.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(patience, func() { driver.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var port int
		if _, rest, ok := strings.Cut(lines.Text(), "started successfully on port "); ok {
			fmt.Sscanf(rest, "%d", &port)
			go io.Copy(io.Discard, out)
			return fmt.Sprintf("http://127.0.0.1:%d", port), nil
		}
	}
	return "", fmt.Errorf("chromedriver says no port: %v", driver.Wait())
})

// unavailable skips the test, or fails it in CI, where everything has to be installed.
func unavailable(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// newBrowser opens a window of this size in the light or the dark theme. A test that asks for a window runs in CI, and
// where somebody asks for it: the tests of the page take as long as all other tests of the hub's binary together.
func newBrowser(t *testing.T, width, height int, theme string) *browser {
	t.Helper()
	if os.Getenv("CI") == "" && os.Getenv("AUTHHUB_BROWSER") == "" {
		t.Skip("a test in a browser, which CI runs; here it runs with AUTHHUB_BROWSER=1")
	}
	driver, err := driverURL()
	if err != nil {
		unavailable(t, err.Error())
	}
	b, next := <-browsers, (*browser)(nil)
	t.Cleanup(func() { browsers <- next }) // nil, and another is started, if this one has failed
	if b == nil {
		b = startBrowser(t, driver)
	}
	b.t = t
	b.prepare(width, height, theme)
	t.Cleanup(func() {
		b.leave()
		next = b
	})
	return b
}

// startBrowser starts a Chromium.
func startBrowser(t *testing.T, driver string) *browser {
	t.Helper()
	b := &browser{t: t, session: driver}
	made := b.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome",
		"goog:chromeOptions": map[string]any{"args": []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion", "--disable-dev-shm-usage",
			"--disable-extensions", "--disable-features=SpareRendererForSitePerProcess,BackForwardCache", "--renderer-process-limit=1"}},
		"goog:loggingPrefs": map[string]string{"browser": "ALL", "performance": "ALL"},
		"timeouts":          map[string]int{"script": 60_000},
	}}})
	b.session += "/session/" + made.(map[string]any)["sessionId"].(string)
	return b
}

// prepare gives the window its size and theme, and empties its logs.
func (b *browser) prepare(width, height int, theme string) {
	b.t.Helper()
	b.call("POST", "/window/rect", map[string]int{"width": width, "height": height})
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}})
	for _, log := range []string{"browser", "performance"} {
		b.call("POST", "/se/log", map[string]string{"type": log})
	}
}

// leave leaves the page, and forgets all cookies.
func (b *browser) leave() {
	b.open("about:blank")
	b.devtools("Network.clearBrowserCookies", map[string]any{})
}

// devtools sends a command of the Chrome DevTools protocol.
func (b *browser) devtools(command string, parameters any) {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": command, "params": parameters})
}

// quitBrowsers ends the browsers, which no test uses any more.
func quitBrowsers() {
	client := &http.Client{Timeout: 10 * time.Second}
	close(browsers)
	for b := range browsers {
		if b == nil {
			continue
		}
		if r, err := http.NewRequest("DELETE", b.session, nil); err == nil {
			if resp, err := client.Do(r); err == nil {
				resp.Body.Close()
			}
		}
	}
}

// call sends a command and returns its value; an error of the browser fails the test.
func (b *browser) call(method, path string, body any) any {
	b.t.Helper()
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	r, err := http.NewRequest(method, b.session+path, reader)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		b.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		failure, _ := answer.Value.(map[string]any)
		message, _ := failure["message"].(string)
		message, _, _ = strings.Cut(message, "\n#0")
		b.t.Fatalf("%s %s %v: %s", method, path, body, message)
	}
	return answer.Value
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("POST", "/url", map[string]string{"url": url})
}

// js runs a function body in the page.
func (b *browser) js(body string, args ...any) any {
	b.t.Helper()
	return b.call("POST", "/execute/sync", map[string]any{"script": body, "args": append([]any{}, args...)})
}

// wait waits until a JavaScript expression is true, and fails the test with the page's state where it doesn't become
// so.
func (b *browser) wait(expression string) {
	b.t.Helper()
	const script = `const done = arguments[arguments.length - 1], until = performance.now() + 40000;
		const look = () => { let ok = false; try { ok = (%s) } catch {}
			if (ok) done(''); else if (performance.now() > until) done(document.body.innerText); else setTimeout(look, 15) }; look()`
	seen := b.call("POST", "/execute/async", map[string]any{"script": fmt.Sprintf(script, expression), "args": []any{}})
	if seen != "" {
		b.t.Fatalf("%s does not come true; the page says:\n%v", expression, seen)
	}
}

func (b *browser) element(css string) string {
	b.t.Helper()
	found := b.call("POST", "/element", map[string]string{"using": "css selector", "value": css})
	return found.(map[string]any)["element-6066-11e4-a52e-4f735466cecf"].(string)
}

// click clicks as a person does: the element has to be visible and nothing may cover it.
func (b *browser) click(css string) {
	b.t.Helper()
	b.call("POST", "/element/"+b.element(css)+"/click", map[string]any{})
}

func (b *browser) fill(css, text string) {
	b.t.Helper()
	e := b.element(css)
	b.call("POST", "/element/"+e+"/clear", map[string]any{})
	b.call("POST", "/element/"+e+"/value", map[string]string{"text": text})
}

// attach chooses a file in a file field.
func (b *browser) attach(css, path string) {
	b.t.Helper()
	b.call("POST", "/element/"+b.element(css)+"/value", map[string]string{"text": path})
}

// press sends keys to whatever has the focus.
func (b *browser) press(keys string) {
	b.t.Helper()
	var actions []map[string]any
	for _, key := range keys {
		actions = append(actions, map[string]any{"type": "keyDown", "value": string(key)}, map[string]any{"type": "keyUp", "value": string(key)})
	}
	b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keys", "actions": actions}}})
}

// drag moves the pressed mouse over an element, between two shares of its width.
func (b *browser) drag(css string, from, to float64) {
	b.t.Helper()
	at := b.js(`const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.width, r.top + r.height / 2]`, css).([]any)
	x := func(share float64) int { return int(at[0].(float64) + at[1].(float64)*share) }
	y := int(at[2].(float64))
	b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "pointer", "id": "mouse", "actions": []map[string]any{
		{"type": "pointerMove", "x": x(from), "y": y, "duration": 0}, {"type": "pointerDown", "button": 0},
		{"type": "pointerMove", "x": x((from + to) / 2), "y": y, "duration": 20}, {"type": "pointerMove", "x": x(to), "y": y, "duration": 20},
		{"type": "pointerUp", "button": 0},
	}}}})
}

// hover moves the mouse to the middle of an element.
func (b *browser) hover(css string) {
	b.t.Helper()
	at := b.js(`const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]`, css).([]any)
	b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "pointer", "id": "mouse", "actions": []map[string]any{
		{"type": "pointerMove", "x": int(at[0].(float64)), "y": int(at[1].(float64)), "duration": 0},
	}}}})
}

// text is what the first element that css selects shows.
func (b *browser) text(css string) string {
	b.t.Helper()
	s, _ := b.js(`return document.querySelector(arguments[0])?.innerText ?? ''`, css).(string)
	return s
}

// wantQuiet fails the test for every error in the console, but for the browser's own notes on failed requests that
// the test has provoked: expected are parts of those, such as "401".
func (b *browser) wantQuiet(expected ...string) {
	b.t.Helper()
	for _, entry := range b.call("POST", "/se/log", map[string]string{"type": "browser"}).([]any) {
		e := entry.(map[string]any)
		message := e["message"].(string)
		provoked := e["source"] == "network" && slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(message, part) })
		if e["level"] == "SEVERE" && !provoked {
			b.t.Errorf("console: %s", message)
		}
	}
}

// wantOnly fails the test for every request that went elsewhere than to base.
func (b *browser) wantOnly(base string) {
	b.t.Helper()
	asked := 0
	for _, entry := range b.call("POST", "/se/log", map[string]string{"type": "performance"}).([]any) {
		var line struct {
			Message struct {
				Method string
				Params struct {
					DocumentURL string // the page that asks
					Request     struct{ URL string }
				}
			}
		}
		if err := json.Unmarshal([]byte(entry.(map[string]any)["message"].(string)), &line); err != nil {
			b.t.Fatal(err)
		}
		url := line.Message.Params.Request.URL
		if line.Message.Method != "Network.requestWillBeSent" || !strings.HasPrefix(line.Message.Params.DocumentURL, base+"/") {
			continue
		}
		asked++
		if !strings.HasPrefix(url, base+"/") {
			b.t.Errorf("the page asked %s", url)
		}
	}
	if asked < 5 {
		b.t.Errorf("only %d requests were seen, so the log is not what it should be", asked)
	}
}
