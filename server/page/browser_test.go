//go:build browser

package page

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/internal/browser"
)

// Issue "Real OpenCode clients" 10: in a real browser, wide and on a telephone, by light and in the dark, the page complains of nothing, asks no
// other server, and fits. It follows what happens, and an ask is answered by keyboard.
func TestBrowser(t *testing.T) {
	x := newRig(t)
	b := browser.Open(t)
	x.asks(plan)
	link := x.asks(question)
	x.task(centurion.Task{ID: "tsk_3", Number: 3, Title: strings.Repeat("Langwortohnepause", 20) + " <script>alert(1)</script>", Agent: strings.Repeat("agent", 9), Status: centurion.TaskFailed, Reason: strings.Repeat("w", 300)})
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 390} {
			for _, page := range []string{x.base, x.base + "mission/" + x.mission.ID, x.origin + link} {
				where := fmt.Sprintf("%s, %s, %d px", strings.TrimPrefix(page, x.origin), scheme, width)
				b.Window(width, scheme)
				for _, wrong := range b.Load(page, x.origin) {
					t.Errorf("%s: %s", where, wrong)
				}
				b.Fits(where)
				b.None(where, "has no name", unnamed)
				b.None(where, "is too small for a finger", small)
			}
		}
	}
	b.Load(x.base+"mission/"+x.mission.ID, x.origin)
	b.Await(`document.getElementById("state").textContent === "Live"`)
	x.asks(permission)
	b.Await(`document.getElementById("per_1")`)
	b.Eval(`document.querySelector("#que_1 [name=words]").value = "not yet sent"; document.querySelector("#per_1 [name=answer]").focus()`)
	b.Press("ArrowDown") // always allow
	x.task(centurion.Task{ID: "tsk_2", Number: 2, Item: "T2", Title: "Refuse what is too much", Agent: "worker", Status: centurion.TaskVerifying})
	b.Await(`document.querySelector("#tsk_2 .badge").textContent === "verifying"`)
	if got := b.Eval(`document.activeElement.value + " " + document.activeElement.checked + " " + document.querySelector("#que_1 [name=words]").value`); got != "always true not yet sent" {
		t.Errorf("after something else has changed the person has %v", got)
	}
	b.Press("Tab") // the reason for a refusal is not asked for
	if got := b.Eval(`document.activeElement.tagName + " " + getComputedStyle(document.activeElement).outlineStyle`); got != "BUTTON solid" {
		t.Fatalf("after the choice %v has the focus", got)
	}
	if got := x.answered("per_1"); got != "" {
		t.Errorf("one tap answered %q", got)
	}
	b.Press("Enter")
	b.Await(`!document.getElementById("per_1")`)
	if got := x.answered("per_1"); got != "always" {
		t.Errorf("the answer is %q", got)
	}
	if got := b.Eval(`document.activeElement.id + " " + document.getElementById("state").textContent`); got != "waits Answered: always" {
		t.Errorf("afterwards the focus and the state are %v", got)
	}
	b.Eval(`document.querySelector("#que_2 button").click()`) // nothing is chosen: the browser says so
	if got := b.Eval(`document.activeElement.name`); got != "answer" || x.answered("que_2") != "" {
		t.Errorf("without a choice %v has the focus, and the answer is %q", got, x.answered("que_2"))
	}
	for _, wrong := range b.Wrong(x.origin) {
		t.Error(wrong)
	}
	b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	b.Load(x.origin+link, x.origin)
	b.Leave(func() {
		b.Eval(`document.querySelector("[value='2']").click(); document.querySelector("button").click()`)
	})
	if got := b.Eval(`document.querySelector("h1").textContent`); got != "Answered: Postgres" || x.answered("que_1") != "Postgres" {
		t.Errorf("without the script it says %q, and the answer is %q", got, x.answered("que_1"))
	}
}

const (
	// unnamed are landmarks, headings, controls and groups without a name, or an order of headings with a gap.
	unnamed = `[...document.querySelectorAll("section, nav, article, button, a, input, [role=group], fieldset")].filter(e => {
		const by = e.getAttribute("aria-labelledby");
		return !(by ? document.getElementById(by)?.textContent : e.getAttribute("aria-label") || e.closest("label")?.textContent || e.querySelector("legend")?.textContent || (e.tagName === "A" || e.tagName === "BUTTON") && e.textContent);
	}).map(e => e.outerHTML.slice(0, 80)).concat([...document.querySelectorAll("h1, h2, h3, h4")].filter((h, i, all) => h.tagName[1] - (all[i - 1]?.tagName[1] ?? 0) > 1).map(h => "heading " + h.outerHTML),
		document.querySelectorAll("main").length === 1 && document.querySelectorAll("h1").length === 1 ? [] : ["one main and one h1"])`
	// small are controls that are lower than a finger is wide.
	small = `[...document.querySelectorAll("button, .choice, .words input")].filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 80))`
)
