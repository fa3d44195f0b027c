package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"centurion"
)

// reported are findings a line each, without what depends on the machine.
func reported(o Options, all []Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s %s: %s | %s\n", f.Name, f.Status, f.Detail, f.Hint)
	}
	s := strings.ReplaceAll(b.String(), filepath.Dir(o.Home), "BASE")
	s = regexp.MustCompile(`[0-9.]+ GB free`).ReplaceAllString(s, "N GB free")
	s = regexp.MustCompile(`git version [^ ;]+`).ReplaceAllString(s, "git version N")
	return regexp.MustCompile(`offers: .+ \(used`).ReplaceAllString(s, "offers: ALL (used")
}

// The whole report of a machine: its lines stand in the order in which they are read, and those that need nothing have no hint.
func TestWholeReport(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("places and confinement have other names here")
	}
	o := world(t, map[string]string{"OPENAI_API_KEY": "k"}, map[string]string{"home/.config/centurion/config.jsonc": `{"model":"openai/gpt-5"}`, "project/AGENTS.md": "x", "home/.local/share/centurion/.keep": ""})
	o.HTTP = &http.Client{Transport: servers{"https://api.openai.com/v1/models": `{"data":[{"id":"gpt-5"}]}`}}
	o.InForce, o.Notify = []string{"a", "b"}, func() (bool, string) { return true, "" }
	o.Confinement = func() (centurion.Confinement, error) {
		return centurion.Confinement{Way: "full", Gaps: []string{"x"}}, nil
	}
	o.Missions = func(context.Context) []Finding { return []Finding{{Name: "missions", Status: OK, Detail: "none"}} }
	want := `configuration ok: BASE/home/.config/centurion/config.jsonc | 
model ok: openai/gpt-5 at https://api.openai.com/v1 (from ~/.config/centurion/config.jsonc), key from OPENAI_API_KEY | 
server ok: openai at https://api.openai.com/v1 answered: 1 model | 
keys ok: OPENAI_API_KEY | 
instructions ok: 1 file (AGENTS.md), 0 skills | 
git ok: git version N; this directory is in no repository, which is not needed: sessions share it | 
terminal ok: none: plain lines are printed and nothing is asked | 
sandbox ok: confinement of commands: full; not stopped: x | 
sandbox ok: in force for each command: a, b | 
sandbox ok: this system offers: ALL (used unless --sandbox is off) | 
state ok: BASE/home/.local/share/centurion, N GB free | 
missions ok: none | 
notices ok: desktop notices can be shown | 
`
	if got := reported(o, Run(t.Context(), o)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	o = world(t, nil, map[string]string{"home/.config/centurion/config.jsonc": "{\n\"modle\":1}", "home/.local/share/centurion": "a file"})
	got := reported(o, Run(t.Context(), o))
	for _, line := range []string{"configuration fail: ", "\nkeys ok: none in the environment or stored | \n",
		"\nsandbox warn: confinement of commands: not known | leave permission asks on, or run in a container\n",
		"\nstate fail: BASE/home/.local/share/centurion cannot be written: BASE/home/.local/share/centurion is not a directory | make it writable or set CENTURION_HOME to another directory\n"} {
		if !strings.Contains("\n"+got, line) && !strings.HasPrefix(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
	if strings.Contains(got, "instructions") || strings.Contains(got, "model") || strings.Contains(got, "missions") || strings.Contains(got, "notices") {
		t.Errorf("what cannot be known or was not asked is told:\n%s", got)
	}
}

// A check that crashes is told as one, the others stay; a file that cannot be read, and confinement that is not whole, say why.
func TestWholeTrouble(t *testing.T) {
	o := world(t, nil, nil)
	o.Notify = func() (bool, string) { panic("boom") }
	if n := find(t, Run(t.Context(), o), "notices"); len(n) != 1 || n[0].Status != Fail || n[0].Hint != "please report this" {
		t.Errorf("%+v", n)
	}
	o.Confinement = func() (centurion.Confinement, error) {
		return centurion.Confinement{Way: "files", Gaps: []string{"sockets"}}, errors.New("no namespaces\n")
	}
	hint, why := "leave permission asks on, or run in a container", " (no namespaces)"
	if restricted(apparmorSwitch) {
		hint, why = appArmorCommand(), ""
	}
	if s := find(t, Run(t.Context(), o), "sandbox")[0]; s != (Finding{"sandbox", Warn, "confinement of commands: " + centurion.Confinement{Way: "files", Gaps: []string{"sockets"}}.String() + why, hint}) {
		t.Errorf("%+v", s)
	}
	if got := failed("x", &centurion.Error{Kind: centurion.KindConfig, Msg: "m", Hint: "h"}); got != (Finding{"x", Fail, "m", "h"}) {
		t.Errorf("%+v", got)
	}
}
