package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/roots"
	"centurion/provider/scripted"
	"centurion/server"
)

// A host that nobody sits at reads the configuration again for what clients begin. What works there keeps its own, and has notes of what
// is faulty; a host that is made of an older reading catches up.
func TestHostReadsConfigurationAgain(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	works, hold := make(chan struct{}), make(chan struct{})
	x := newProject(t, func(r scripted.Request) scripted.Answer {
		if strings.Contains(r.First(), "hold") && r.Step() == 1 {
			close(works)
			<-hold
			return scripted.Answer{Calls: []scripted.Call{{Name: "glob", Arguments: `{"pattern":"*"}`}}}
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Model)
		return scripted.Answer{Say: "done"}
	})
	writeTo := func(name, text string) {
		t.Helper()
		path := filepath.Join(x.home, ".config", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) { t.Helper(); writeTo("opencode/opencode.json", text) }
	write(`{"model": "custom/oldest"}`)
	renew := x.renewer()
	oldest := renew.Models(t.Context())
	write(`{"model": "custom/one"}`)
	renew.Models(t.Context())
	renew.Note = nil // its notes go into the journal
	h, err := Own(t.Context(), x.Place, x.ws, oldest, oldest.Config, Options{Renew: renew})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	c, _, err := x.Connect(t.Context())
	if c == nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := func(goal string) centurion.Mission {
		m, err := c.Start(t.Context(), goal, centurion.MissionOptions{Profile: agents.ProfileAssistant})
		if err != nil {
			t.Error(err)
		}
		return m.Noun()
	}
	end := func(m centurion.Mission) (notes []string) {
		for e, err := range c.Events(t.Context(), server.EventQuery{Mission: m.ID, Follow: true}) {
			if err != nil {
				t.Error(err)
			}
			notes = append(notes, string(e.Data))
			if e.Type == centurion.EventMissionCompleted {
				break
			}
		}
		return notes
	}
	held := start("hold")
	<-works
	write(`{"model": "custom/other"}`)
	if opened, err := c.Open(t.Context(), roots.Opening{Profile: agents.ProfileAssistant}); err != nil || opened.Model.ID != "other" {
		t.Errorf("a conversation is opened with %+v, %v", opened.Model, err)
	}
	var g guard.Group
	for range 3 {
		g.Go("start", func() error { end(start("go")); return nil })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	writeTo("centurion/config.jsonc", `{"keep_tasks": 9, "concurrency": {"providers": {"custom": 7}}}`)
	end(start("go"))
	write(`{"model": "custom/other", "permission": {}}`)
	end(start("go"))
	write(`{"model": "custom/faulty" "x"}`)
	end(start("go"))
	write(`{"model": "custom/faulty" "x" }`) // the same fault
	end(start("go"))
	close(hold)
	if notes := strings.Join(end(held), "\n"); strings.Count(notes, "opencode.json:1: not valid JSON") != 1 || strings.Count(notes, "concurrency, keep_tasks") != 1 {
		t.Errorf("the mission at work has the notes %s", notes)
	}
	if want := append(slices.Repeat([]string{"other"}, 7), "one"); !slices.Equal(asked, want) {
		t.Errorf("asked were %q, want %q", asked, want)
	}
}
