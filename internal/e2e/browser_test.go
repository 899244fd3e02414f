// The page in a real browser, from the first click to a hub that is gone.

package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// startPage opens a section of the page of a hub of its own.
func startPage(t *testing.T, b *browser, section string, flags ...string) *hub {
	t.Helper()
	p := start(t, append([]string{"-ephemeral"}, flags...)...)
	b.open(p.base + "/#" + section)
	b.wait(`document.querySelector('#pulse').dataset.state === 'here'`)
	return p
}

func TestPageTellsTheStoryOfASession(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	p := startPage(t, b, "accounts")

	b.click("[data-key=demo-disabled]")
	b.wait(`document.querySelector('.note').innerText.includes('disabled')`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	for _, want := range []string{`{"alg":"HS256","typ":"at+jwt"}`, "issued ", "expires ", "user-demo", "14:5", "left of 15 min"} {
		if got := b.text(".token[data-kind=access]"); !strings.Contains(got, want) {
			t.Errorf("the access token does not show %q:\n%s", want, got)
		}
	}
	if got := b.text(".token[data-kind=refresh]"); !strings.Contains(got, "generation 0") {
		t.Errorf("the refresh token shows\n%s", got)
	}
	first := b.text(".token[data-kind=access] .count b")
	b.wait(fmt.Sprintf(`document.querySelector('.token[data-kind=access] .count b').innerText !== %q`, first))

	b.click("[data-key=me]")
	b.wait(`document.querySelector('.note').innerText.includes('The hub knows you: demo')`)
	b.click("[data-key=refresh]")
	b.wait(`document.querySelector('.gens').innerText.includes('generation 1')`)
	if got := b.text("#wire"); !strings.Contains(got, "/api/authentication/refresh") || !strings.Contains(got, "200 OK") || !strings.Contains(got, "cache-control") {
		t.Errorf("the panel shows\n%s", got)
	}
	if got := b.text(".curl"); !strings.HasPrefix(got, "curl -i -X POST -H 'Authorization: Bearer ey") || !strings.HasSuffix(got, "'"+p.base+"/api/authentication/refresh'") {
		t.Errorf("the curl line is %s", got)
	}

	b.click("[data-key=replay]")
	b.wait(`document.querySelectorAll('.token[data-state=ended]').length === 2`)
	if got := b.text("#wire .code"); got != "token_reused" {
		t.Errorf("the replay was answered %q", got)
	}
	b.click("[data-key=me]")
	b.wait(`document.querySelector('#wire .code').innerText === 'token_revoked'`)

	b.wantQuiet("401", "403")
	b.wantOnly(p.base)
}

func TestPageRegistersAndLogsOut(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 390, 844, "dark")
	p := startPage(t, b, "accounts")
	const hostile = `<img src=x onerror=alert(1)>`

	b.click("[data-key=form-register]")
	b.fill("[name=username]", "newcomer")
	b.fill("[name=name]", hostile)
	b.fill("[name=password]", "short")
	b.click("[data-key=submit]")
	b.wait(`document.querySelector('.note').innerText.includes('8 to 256 bytes')`)
	b.fill("[name=password]", "long enough")
	b.click("[data-key=submit]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	if got := b.text(".who h3"); got != hostile {
		t.Errorf("the name shows as %q", got)
	}
	b.click("[data-key=logout]")
	b.wait(`document.querySelectorAll('.token[data-state=ended]').length === 2`)
	if wide := b.js(`return document.documentElement.scrollWidth - innerWidth`); wide.(float64) > 0 {
		t.Errorf("the page is %v pixels wider than the window", wide)
	}

	b.wantQuiet("422")
	b.wantOnly(p.base)
}

func TestPageShowsATokenRunOut(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 820, 1100, "light")
	startPage(t, b, "accounts", "-access-ttl", "1500ms")

	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelector('.token[data-kind=access]').dataset.state === 'expired'`)
	b.wait(`document.querySelector('#say').textContent === 'The access token has expired.'`)
	b.click("[data-key=me]")
	b.wait(`document.querySelector('#wire .code').innerText === 'token_expired'`)
	b.click("[data-key=refresh]")
	b.wait(`['live', 'soon'].includes(document.querySelector('.token[data-kind=access]').dataset.state)`)
	b.wantQuiet("401")
}

func TestPageSaysThatTheHubIsGoneAndGoesOnWhenItIsBack(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	p := startPage(t, b, "accounts")

	p.process.stop(t)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelector('#gone').innerText.includes('no longer answers')`)
	if got := b.text("#account .note"); !strings.Contains(got, "no answer") {
		t.Errorf("the card says %q", got)
	}
	address, _ := url.Parse(p.base)
	start(t, "-ephemeral", "-addr", address.Host)
	b.wait(`document.querySelector('#gone').innerText === '' && document.querySelector('#pulse').dataset.state === 'here'`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	b.wantQuiet("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
}

func TestPageRunsAndDraws(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	p := startPage(t, b, "phase2")

	b.wait(`document.querySelectorAll('.files [data-tone=idle]').length === 3`)
	b.click("#run-now")
	b.wait(`document.querySelectorAll('.files [data-tone=good]').length === 3 && document.querySelector('#chart canvas')`)
	b.wait(`document.querySelector('#run').innerText.includes('11,156 of 11,300 readings accepted')`)
	b.js(`window.inks = c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size`)
	b.wait(`inks(document.querySelector('#chart canvas')) >= 20`) // colours: the chart is drawn

	b.click(".alerts [data-alert]:nth-of-type(2) button")
	b.wait(`document.activeElement.id === 'chart' && document.querySelector('#range').innerText.includes('10 Mar 2025')`)
	b.press("0")
	b.wait(`document.querySelector('#range').innerText === 'all of the time'`)
	b.js(`document.querySelector('#chart').scrollIntoView({block: 'center', behavior: 'instant'})`)
	b.drag("#chart", 0.4, 0.6)
	b.wait(`document.querySelector('#range').innerText.includes('–')`)
	zoomed := b.text("#range")
	b.press("+")
	b.wait(fmt.Sprintf(`document.querySelector('#range').innerText !== %q`, zoomed))
	b.press("0")
	b.press("n")
	b.wait(`document.querySelector('#range').innerText !== 'all of the time' && document.querySelector('#chart').getAttribute('aria-valuetext').includes('pH')`)
	if rows := b.js(`return document.querySelectorAll('.impact tbody tr').length`); rows.(float64) != 4 {
		t.Errorf("%v stations in the table of impact", rows)
	}

	b.wantQuiet()
	b.wantOnly(p.base)
}

func TestPageRunsOnAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 820, 1100, "dark")
	startPage(t, b, "phase2")
	b.wait(`document.querySelectorAll('.files [data-tone=idle]').length === 3`)

	b.attach("#csv", testkit.WriteFile(t, "empty.csv", "time,station,ph\n"))
	b.click("#run-now")
	b.wait(`document.querySelector('#run .note[data-tone=bad]')?.innerText.includes('existing files')`)

	b.attach("#csv", testkit.WriteFile(t, "long.csv", manyReadings(12_000)))
	b.fill("[name=interval]", "1m")
	b.click("#run-now")
	b.wait(`document.querySelector('#chart canvas') && document.querySelector('.chart-card').innerText.includes('long.csv')`)
	frame := b.call("POST", "/execute/async", map[string]any{"args": []any{}, "script": `
		const done = arguments[0], chart = document.querySelector('#chart'), r = chart.getBoundingClientRect(), times = [];
		const next = () => { if (times.length === 40) return done(times.sort((a, b) => a - b)[20]);
			const began = performance.now();
			chart.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + 100 + times.length * 10, clientY: r.top + 20}));
			requestAnimationFrame(() => setTimeout(() => { times.push(performance.now() - began); next() })) };
		next()`}).(float64)
	t.Logf("a frame with 12,000 points takes %.1f ms", frame)
	if frame > 250 {
		t.Errorf("a frame with 12,000 points takes %.0f ms", frame)
	}
	b.wantQuiet()
}

// What a person points at stays under the pointer, and what they look for stays in sight.
func TestPageKeepsThingsInPlace(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1240, 800, "light")
	p := startPage(t, b, "accounts", "-lab", "-run")
	top := func(css string) any {
		return b.js(`return Math.round(document.querySelector(arguments[0]).getBoundingClientRect().top)`, css)
	}

	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	b.click("[data-key=refresh]")
	b.wait(`!document.querySelector('[data-key=replay]').disabled`)
	if since := b.text(".facts"); !strings.Contains(since, "1 Jan 2026") {
		t.Errorf("the account says\n%s", since)
	}
	before := top("[data-key=replay]")
	b.click("[data-key=replay]")
	b.wait(`document.querySelectorAll('.token[data-state=ended]').length === 2`)
	if after := top("[data-key=replay]"); after != before {
		t.Errorf("after a replay its button is at %v, and was at %v", after, before)
	}

	b.click(`nav a[href="#phase2"]`)
	b.wait(`document.querySelector('#chart canvas')`)
	b.js(`document.querySelector('#chart').scrollIntoView({block: 'end', behavior: 'instant'})`)
	b.wait(`(r => r.top >= document.querySelector('#top').offsetHeight - 1 && r.bottom < innerHeight)(document.querySelector('#readout').getBoundingClientRect())`)
	if got := b.text("#readout"); !strings.Contains(got, "data/readings.csv") {
		t.Errorf("the readout names no file: %s", got)
	}
	b.attach("#csv", testkit.WriteFile(t, "semicolons.csv", "time;station;ph\n"))
	b.click("#run-now")
	b.wait(`document.querySelector('.earlier')?.innerText.includes('an earlier run, on data/readings.csv')`)

	b.click("#lab-link")
	b.wait(`document.querySelector('#seq-1')`)
	for range 20 {
		p.get("/api")
	}
	b.wait(`document.querySelectorAll('.requests tbody tr').length > 20`)
	b.js(`document.querySelector('#seq-15').scrollIntoView({block: 'center', behavior: 'instant'})`)
	b.hover("#seq-15")
	before = top("#seq-15")
	for range 20 {
		p.get("/api")
	}
	b.wait(`document.querySelectorAll('.requests tbody tr').length > 40`)
	if after := top("#seq-15"); after != before {
		t.Errorf("a row that is pointed at moves from %v to %v", before, after)
	}
	b.wantQuiet("401", "422")
}

// manyReadings is a CSV of n readings of one station, a minute apart, that swing through the band and out of it.
func manyReadings(n int) string {
	var csv strings.Builder
	csv.WriteString("time,station,ph\n")
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		fmt.Fprintf(&csv, "%s,tank,%d.%02d\n", at.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), 6+i/400%3, i*7%100)
	}
	return csv.String()
}

func TestPageWantsATokenWhereFilesAreProtected(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 900, "light")
	startPage(t, b, "phase2", "-protect", "files,run", "-run")

	b.wait(`document.querySelector('#files .note').innerText.includes('Log in')`)
	b.click(`nav a[href="#accounts"]`)
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
	b.click(`nav a[href="#phase2"]`)
	b.wait(`document.querySelector('#chart canvas')`)
	b.wantQuiet("401")
}

func TestPageTurnsTheLab(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 1000, "dark")
	p := start(t, "-ephemeral", "-lab")
	base := p.base + "/ns/of-this-test"
	b.open(base + "/#accounts")
	b.click("[data-key=demo-demo]")
	b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)

	b.wait(`!document.querySelector('#lab-link').hidden`)
	b.click("#lab-link")
	b.wait(`document.querySelector('#lab').innerText.includes('This is the namespace of-this-test')`)
	b.js(`[...document.querySelectorAll('#lab button')].find(b => b.innerText === '+ 16m').click()`)
	b.wait(`document.querySelector('#lab').innerText.includes('Real time plus 16 min')`)
	b.js(`[...document.querySelectorAll('#lab button')].find(b => b.innerText === 'Refresh answers 503 once').click()`)
	b.wait(`document.querySelector('#queue .list').innerText.includes('1 to go')`)

	b.click(`nav a[href="#accounts"]`)
	b.wait(`document.querySelector('.token[data-kind=access]').dataset.state === 'expired'`)
	// In one go, since the second refresh ignores a Retry-After only if it comes at once.
	b.call("POST", "/execute/async", map[string]any{"args": []any{}, "script": `
		const done = arguments[0], refresh = () => document.querySelector('[data-key=refresh]').click();
		const look = () => document.querySelector('#wire .code')?.innerText === 'injected' ? done(refresh()) : setTimeout(look, 5);
		refresh(); look()`})
	b.wait(`document.querySelector('.token[data-kind=access]').dataset.state === 'live'`)

	b.click("#lab-link")
	b.wait(`document.querySelector('#seq-1') && document.querySelector('.requests').innerText.includes('injected') && document.querySelector('#queue .list').innerText.includes('spent')`)
	b.wait(`document.querySelector('.finding').innerText.includes('retry after ignored')`)
	b.js(`document.querySelector('.finding a').click()`)
	b.wantAccessible(axe(t), "the lab")
	b.js(`[...document.querySelectorAll('#lab button')].find(b => b.innerText === 'Reset').click()`)
	b.wait(`document.querySelector('#lab').innerText.includes('Nobody is logged in') && document.querySelector('#lab').innerText.includes('Real time.')`)

	b.wantQuiet("503")
	b.wantOnly(base)
}

// TestPageLooksOnWhileEverythingIsDown opens pages while a fault cuts every request.
func TestPageLooksOnWhileEverythingIsDown(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, 1440, 1000, "light")
	p := start(t, "-ephemeral", "-lab")
	ns := p.space("under-test")
	pair := ns.login("demo")
	for range 6 {
		ns.me(pair.Refresh).Want(401)
	}
	id := ns.fault(object{"operation": "*", "drop": "before", "times": 0})

	b.open(ns.base + "/")
	b.wait(`!document.querySelector('#lab').hidden && document.querySelector('#lab').innerText.includes('This is the namespace under-test')`)
	b.wait(`document.title === 'under-test · Lab · authhub' && document.querySelector('.brand').innerText.includes('under-test')`)
	b.wait(`[...document.querySelectorAll('#bench .card h3')].slice(0, 3).map(h => h.innerText).filter(t => t !== 'Lab key').join() === 'Report,Requests'`)
	b.wait(`document.querySelector('.finding') && document.querySelectorAll('.requests tbody tr').length === 7`)
	b.wait(`document.querySelector('[data-policy=strict]').getAttribute('aria-pressed') === 'true'`)

	if got := b.text("#bench"); strings.Contains(got, "null") || strings.Contains(got, "undefined") {
		t.Errorf("the page shows a value that is none:\n%s", got)
	}
	b.js(`document.querySelector('#seq-2 button').click()`)
	for _, want := range []string{"GET /api/authentication/me", "wrong type", "401 token_wrong_type", "(the hub’s clock)"} {
		if got := b.text(".detail"); !strings.Contains(got, want) {
			t.Errorf("the details lack %q:\n%s", want, got)
		}
	}
	b.js(`document.querySelector('.finding a').click()`)
	b.wait(`document.querySelector('.detail').innerText.includes(document.querySelector('.finding span').innerText)`)
	b.js(`{ const s = document.querySelector('[name=wanted-operation]'); s.value = 'login'; s.dispatchEvent(new Event('change')); }`)
	b.wait(`document.querySelectorAll('.requests tbody tr').length === 1`)
	b.wantAccessible(axe(t), "the lab of a namespace")
	if f := ns.get("/lab/faults").List("faults")[0]; f["id"] != id || f["hits"] != 0.0 {
		t.Errorf("looking on has met the fault: %v", f)
	}
	if got := ns.requests(); len(got) != 7 {
		t.Errorf("looking on is in the record: %v", got)
	}

	b.open(p.base + "/#lab")
	b.wait(`document.querySelector('#lab').innerText.includes('under-test')`)
	b.wantAccessible(axe(t), "the lab of the root")
	b.wantQuiet()
	b.wantOnly(p.base)
}
