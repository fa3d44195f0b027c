package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"centurion/server"
)

// movingPlan is a host whose mission's plan takes another name each time that somebody asks.
type movingPlan struct {
	missionAPI
	mission server.Mission
	names   []string
}

func (p *movingPlan) Mission(context.Context, string) (server.Mission, error) {
	p.mission.Todo, p.names = p.names[0], p.names[1:]
	return p.mission, nil
}

// When a newer mission is started the plan of an older one takes another name: the dialog shows and opens that.
func TestPlanIsReadWhereItStandsNow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"todo.md": "- [ ] T1 Of the newer one\n", "todo-a.md": "- [ ] T1 Of this one\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	api := &movingPlan{mission: server.Mission{Directory: dir}, names: []string{"todo.md", "todo-a.md", "todo-a.md", ""}}
	file := planFile(api, "msn_a")
	if got, err := file(t.Context()); err != nil || got != filepath.Join(dir, "todo.md") {
		t.Errorf("at first it is %q, %v", got, err)
	}
	if got, err := file(t.Context()); err != nil || got != filepath.Join(dir, "todo-a.md") {
		t.Errorf("then it is %q, %v", got, err)
	}
	if items, err := planReader(file)(t.Context()); err != nil || len(items) != 1 || items[0].Title != "Of this one" {
		t.Errorf("read: %+v, %v", items, err)
	}
	if got, err := file(t.Context()); err == nil {
		t.Errorf("a mission without a plan has %q", got)
	}
}
