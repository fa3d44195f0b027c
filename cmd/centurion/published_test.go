//go:build published

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"centurion/plugin"
	"centurion/provider/scripted"
)

// published are plugins with a tool and its arguments, and a hook, that a mission of one worker exercises. The tools of the first two ask
// the project through their client.
var published = []struct{ spec, tool, args, hook string }{
	{"opencode-skills@0.1.7", "skills_count", `{}`, ""}, // it has no hook
	{"@tarquinen/opencode-dcp@3.1.14", "compress", `{"topic":"x","content":[{"startId":"m0001","endId":"m0001","summary":"s"}]}`, "experimental.chat.messages.transform"},
	{"opencode-wakatime@1.3.9", "", "", "event"}, // it has no tool
	{"opencode-orchestrator@1.7.22", "list_agents", `{}`, "tool.execute.before"},
	{"oh-my-opencode@4.19.4", "session_list", `{}`, "tool.execute.after"},
	{"opencode-pty@0.1.3", "pty_list", `{}`, "event"},
}

// wire stands for Bun: it runs the real one, and keeps what goes to it and comes from it.
const wire = "#!/bin/sh\ntee -a \"$XDG_CONFIG_HOME/in\" | \"$0.real\" \"$@\" | tee -a \"$XDG_CONFIG_HOME/out\"\n"

// A whole mission with each of six published plugins, unchanged and confined, ends proven. What was asked of the plugin is read from the wire.
func TestPublishedMissions(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	var specs []string
	for _, p := range published {
		specs = append(specs, p.spec)
	}
	dir := filepath.Join(cache, "centurion-test", "published")
	if _, err := plugin.Install(t.Context(), dir, specs, runProgram); err != nil {
		t.Fatal(err)
	}
	state, err := os.MkdirTemp(filepath.Dir(dir), "missions-") // beside it, since links cannot go elsewhere
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	modules := filepath.Join(state, "plugins")
	if out, err := exec.Command("cp", "-al", dir, modules).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tap(t, modules)
	exe := program(t)
	for i, p := range published {
		t.Run(p.spec, func(t *testing.T) {
			home, project := t.TempDir(), filepath.Join(t.TempDir(), fmt.Sprintf("project%d", i))
			model := scripted.Func(publishedWork(p.tool, p.args))
			url, err := model.Serve()
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			for _, dir := range []string{filepath.Join(home, ".config/opencode"), filepath.Join(project, ".opencode/skills/count")} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(home, ".config/opencode/opencode.json"), `{"plugin":["`+p.spec+`"],"agent":{"worker":{"tools":{"`+p.tool+`":true}}}}`)
			write(t, filepath.Join(project, ".opencode/skills/count/SKILL.md"), "---\nname: count\ndescription: Counts the lines of a file in a project\n---\nRun wc -l.\n")
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.Command(exe, args...)
				cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "CENTURION_HOME=" + state, "OPENAI_BASE_URL=" + url, "PATH=" + os.Getenv("PATH")}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s: %v\n%s\n%s", args, err, out, stderr.String())
				}
				return string(out)
			}
			run("plugin", "list")
			lines := strings.Split(strings.TrimSpace(run("run", "--format", "json", "--model", "custom/m", "--ask", "allow", "make a file")), "\n")
			var end struct {
				Type string
				Data struct {
					Verified int
					Unproven []string
				}
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Type != "mission.completed" || end.Data.Verified != 1 || len(end.Data.Unproven) > 0 {
				t.Errorf("it ended with %s (%v)", lines[len(lines)-1], err)
			}
			tapped, _ := filepath.Glob(filepath.Join(state, "projects", filepath.Base(project)+"-*", "plugins/data/config-*"))
			if len(tapped) != 1 {
				t.Fatalf("%q were tapped", tapped)
			}
			asked, failed := answers(t, tapped[0])
			for name, err := range failed {
				asked[name]++
				t.Errorf("%s: %s", name, err)
			}
			for _, want := range []string{"init", p.tool, p.hook} {
				if want != "" && asked[want] == 0 {
					t.Errorf("%s was not answered: %v", want, asked)
				}
			}
			t.Log(asked, failed)
		})
	}
}

// publishedWork is a mission with an item that a worker makes after it has used a tool.
func publishedWork(tool, args string) func(r scripted.Request) scripted.Answer {
	call := func(name, args string) scripted.Answer {
		return scripted.Answer{Calls: []scripted.Call{{Name: name, Arguments: args}}}
	}
	return func(r scripted.Request) scripted.Answer {
		commander := r.Agent() == "commander"
		switch step := r.Step(); {
		case commander && step == 1:
			return call("update_todo", `{"level":2,"content":"# A file\n- [ ] T1 Make it @worker\n  - files: made.txt\n  - verify: `+"`test -s made.txt`"+`\n"}`)
		case commander && step == 2:
			return call("delegate_task", `{"agent":"worker","description":"Make it","item":"T1","prompt":"Make made.txt."}`)
		case commander:
			return scripted.Answer{Say: "It is done."}
		case step == 1 && tool != "":
			return call(tool, args)
		case strings.Contains(r.Last(), "Wrote"):
			return scripted.Answer{Say: "Made."}
		case step == 2 || tool == "" && step == 1:
			return call("bash", `{"command":"sleep 0.2"}`)
		case step == 3 || tool == "" && step == 2:
			return call("write", `{"filePath":"made.txt","content":"made\n"}`)
		}
		return scripted.Answer{Say: "Made."}
	}
}

// tap puts what stands for Bun into its place.
func tap(t *testing.T, modules string) {
	bun, err := plugin.Installed(modules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bun.Path, bun.Path+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bun.Path, []byte(wire), 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(bun.Path)
	if err != nil {
		t.Fatal(err)
	}
	bun.Bytes, bun.Changed = info.Size(), info.ModTime()
	b, err := json.Marshal(bun)
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(modules, "bun.json")
	if err := os.Remove(record); err != nil { // it is a link
		t.Fatal(err)
	}
	write(t, record, string(b))
}

// answers counts what a plugin has answered, by the name of a message, hook or tool, and returns its errors.
func answers(t *testing.T, dir string) (all map[string]int, failed map[string]string) {
	t.Helper()
	names := map[int]string{}
	all, failed = map[string]int{}, map[string]string{}
	for _, file := range []string{"in", "out"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var m struct {
				ID     int
				Do     string
				Params struct{ Hook, Tool string }
				Result json.RawMessage
				Error  string
			}
			switch _ = json.Unmarshal([]byte(line), &m); {
			case m.Do == "events":
				names[m.ID] = "event"
			case m.Do == "answer": // to what a call has asked
			case m.Do != "":
				names[m.ID] = cmp.Or(m.Params.Hook, m.Params.Tool, m.Do)
			case m.Result != nil:
				all[names[m.ID]]++
			case m.Error != "":
				failed[names[m.ID]] = m.Error
			}
		}
	}
	return all, failed
}
