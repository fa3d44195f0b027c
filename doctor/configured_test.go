package doctor

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion/config"
)

// Each provider that the person has configured is named with what it answered, and what to do; one that came with the project is not asked without trust,
// and what is not in force, and is only a notice, is told.
func TestConfigurationWhole(t *testing.T) {
	const url = "https://api.openai.com/v1/models"
	o := world(t, map[string]string{"OPENAI_API_KEY": "sk-canary", "ANTHROPIC_API_KEY": "sk-2"}, map[string]string{"project/opencode.json": `{"provider":{"corp":{"options":{"baseURL":"http://127.0.0.1:9/v1"}}}}`,
		"home/.config/opencode/opencode.json": `{"provider":{"near":{"options":{"baseURL":"https://near.example/v1"}}}}`, "home/.config/centurion/config.jsonc": `{"model":"openai/gpt-5"}`})
	base := filepath.Dir(o.Home)
	begin := "configuration ok BASE/home/.config/opencode/opencode.json, BASE/project/opencode.json, BASE/home/.config/centurion/config.jsonc | \n" +
		"configuration warn opencode.json came with the project and is not trusted; not in force: endpoint provider.corp: the conversation and its key go to http://127.0.0.1:9/v1 (see: centurion trust) | \n" +
		"model ok openai/gpt-5 at https://api.openai.com/v1 (from ~/.config/centurion/config.jsonc), key from OPENAI_API_KEY | \n"
	const end = "server warn near: https://near.example/v1 cannot be reached: connection refused | start it, correct its URL, or name a model with --model near/NAME\nkeys ok OPENAI_API_KEY, ANTHROPIC_API_KEY | \n"
	for want, answers := range map[string]servers{
		"server fail openai: https://api.openai.com/v1: the key from OPENAI_API_KEY was refused | set a key that is valid there\n":                                    {url: "401"},
		"server warn openai: https://api.openai.com/v1/models answered 404 Not Found | start it, correct its URL, or name a model with --model openai/NAME\n":         {url: "404"},
		"server fail openai: https://api.openai.com/v1 cannot be reached: connection refused | start it, correct its URL, or name a model with --model openai/NAME\n": {},
		"server ok openai at https://api.openai.com/v1 answered: 1 model | \n":                                                                                        {url: `{"data":[{"id":"a"}]}`},
	} {
		o.HTTP = &http.Client{Transport: answers}
		var got strings.Builder
		for _, f := range (&doctor{o}).configuration(t.Context()) {
			fmt.Fprintf(&got, "%s %s %s | %s\n", f.Name, f.Status, strings.ReplaceAll(f.Detail, base, "BASE"), f.Hint)
		}
		if got.String() != begin+want+end {
			t.Errorf("got\n%s\nwant\n%s", got.String(), begin+want+end)
		}
	}
	c, err := config.Load((&doctor{o}).config())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := askServer(t.Context(), c, "corp", true), (Finding{"server", Warn, "corp was not asked: its address came with the project", "look at it, and trust it if you want to: centurion trust"}); got != want {
		t.Errorf("%+v", got)
	}
	c.Dropped = []string{"one", "two"}
	if got := ignored(c); len(got) != 3 || got[0] != (Finding{"configuration", Warn, "one", ""}) || got[1].Detail != "two" {
		t.Errorf("%+v", got)
	}
	if got := askServers(t.Context(), c, "near"); len(got) != 1 {
		t.Errorf("a provider that is the mission's and the person's is asked %d times: %+v", len(got), got)
	}
}

// Each look at the machine has its name; the place of the state is the nearest directory that there is.
func TestNamesOfChecks(t *testing.T) {
	o := world(t, nil, map[string]string{"home/file": "x"})
	var names []string
	for _, f := range Run(t.Context(), o) {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	if want := strings.Fields("configuration model keys instructions git terminal sandbox state"); !slices.Equal(names[:len(want)], want) && !slices.Equal(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(want, n) }), want) {
		t.Errorf("it looks at %q", names)
	}
	file := filepath.Join(o.Home, "file")
	if at, err := existing(filepath.Join(o.Home, "a", "b")); at != o.Home || err != nil {
		t.Errorf("%s, %v", at, err)
	}
	if _, err := existing(file); err == nil || err.Error() != file+" is not a directory" {
		t.Errorf("a file: %v", err)
	}
	if _, err := existing(filepath.Join(file, "a")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
	for text, want := range map[string]bool{"1\n": true, "0\n": false} {
		on := filepath.Join(o.Home, "switch")
		if err := os.WriteFile(on, []byte(text), 0o600); err != nil || restricted(on) != want {
			t.Errorf("%q: restricted %t, %v", text, !want, err)
		}
	}
}
