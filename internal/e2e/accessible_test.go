// The page for people who can't see it or use no mouse, in a real browser.

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// axe is axe-core, which .ci/run puts where web/test/package.json says.
func axe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root, "web", "test", "node_modules", "axe-core", "axe.min.js")
	source, err := os.ReadFile(path)
	if err != nil {
		unavailable(t, "axe-core is not installed (npm ci --prefix web/test)")
	}
	return string(source)
}

func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	source := axe(t)
	for theme, width := range map[string]int{"light": 1440, "dark": 390} {
		t.Run(fmt.Sprintf("%s-%d", theme, width), func(t *testing.T) {
			t.Parallel()
			b := newBrowser(t, width, 900, theme)
			startPage(t, b, "accounts", "-run")
			if dark := b.js(`return matchMedia('(prefers-color-scheme: dark)').matches`); dark != (theme == "dark") {
				t.Fatalf("the browser is not in the %s theme", theme)
			}
			b.wantAccessible(source, "the way in")
			b.click("[data-key=form-register]")
			b.wantAccessible(source, "the way in, registering")
			b.click("[data-key=demo-demo]")
			b.wait(`document.querySelectorAll('.token[data-state=live]').length === 2`)
			b.wantAccessible(source, "logged in")
			b.click("[data-key=logout]")
			b.wait(`document.querySelectorAll('.token[data-state=ended]').length === 2`)
			b.wantAccessible(source, "logged out")
			b.click(`nav a[href="#phase2"]`)
			b.wait(`document.querySelector('#chart canvas')`)
			b.wantAccessible(source, "the results")
		})
	}
}

// wantAccessible runs axe-core on the page as it stands: no finding may be serious or critical.
func (b *browser) wantAccessible(source, state string) {
	b.t.Helper()
	b.js(source + "; window.axe = axe ?? window.axe;")
	result := b.call("POST", "/execute/async", map[string]any{"args": []any{},
		"script": `const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done({passes: r.passes.length, violations: r.violations.map(v => ({impact: v.impact, id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.target.join(' ') + ': ' + n.failureSummary)}))}), e => done({error: String(e)}))`}).(map[string]any)
	if result["error"] != nil || result["passes"].(float64) < 10 {
		b.t.Fatalf("axe did not run: %v", result)
	}
	for _, v := range result["violations"].([]any) {
		violation := v.(map[string]any)
		text, _ := json.MarshalIndent(violation, "", "  ")
		if violation["impact"] == "serious" || violation["impact"] == "critical" {
			b.t.Errorf("%s: %s", state, text)
		} else {
			b.t.Logf("%s: %s", state, text)
		}
	}
}
