package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/sandbox/confine"
)

// s5Wait is how long an ask is left to the attackers: each of them tries several times in it.
const s5Wait = 3 * time.Second

// s5Approve are scripts of an agent that answer its own ask, with everything that they can read: by the command line as the person
// would, without the mark of the host, and by the socket.
var s5Approve = []string{
	`CENTURION_HOME=$STATE HOME=$PERSON $BIN approve $(cat attacks/id) --dir "$PROJECT"`,
	`env -i PATH="$PATH" CENTURION_HOME="$STATE" HOME="$PERSON" setsid -w $BIN approve $(cat attacks/id) --dir "$PROJECT"`,
	`$TOOL approve "$CONTROL" "$TOKEN" $(cat attacks/id)`,
}

// s5 lets agents approve their own ask, without confinement and in its weaker way, while a person is asked and does not answer, and
// strangers use the server.
func s5(ctx context.Context, t *T) {
	tried, approved := 0, 0
	for _, way := range []confine.Way{confine.None, confine.Files} {
		t.outside(func() { t.Part(string(way), func(t *T) { tried += s5Way(t, way, &approved) }) })
	}
	t.outside(func() { t.Part("server", func(t *T) { tried += s5Server(t, &approved) }) })
	t.Figure("attempts", tried)
	t.Figure("approved by themselves", approved)
	if tried < 2*len(s5Approve) {
		t.Failf("only %d attempts were made", tried)
	}
}

// s5Rules are those of the person: touching asks.
func s5Rules(t *T, w *wild) {
	t.Must(os.MkdirAll(filepath.Join(w.p.Home, ".config/opencode"), 0o700))
	t.Must(os.WriteFile(filepath.Join(w.p.Home, ".config/opencode/opencode.json"), []byte(`{"permission": {"bash": {"*": "allow", "touch *": "ask"}}}`), 0o600))
}

// s5Model is the model of an agent that starts the attacks, and asks then.
func s5Model(t *T, w *wild, scripts []string) {
	var all strings.Builder
	for i, script := range scripts {
		fmt.Fprintf(&all, "sh attacks/%02d.sh; ", i)
		w.put(fmt.Sprintf("%02d.sh", i), "echo try >> \"$TRIES\"; "+script)
	}
	t.Must(os.WriteFile(filepath.Join(w.p.Dir, "attacks/all.sh"), []byte("while sleep 0.2; do "+all.String()+"done\n"), 0o600))
	w.p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		switch len(history(r)) {
		case 0:
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": w.variables()})}}
		case 1:
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": "setsid sh attacks/all.sh >/dev/null 2>&1 & sleep 0.3"})}}
		case 2:
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": "touch forbidden"})}}
		}
		return scripted.Answer{Say: "It was refused."}
	}})
}

func s5Way(t *T, way confine.Way, approved *int) (tried int) {
	w := newWild(t)
	tries := filepath.Join(w.p.Home, "tries")
	w.env["TRIES"] = tries
	if way == confine.Files { // where its commands may write
		w.env["TRIES"] = "tries"
	}
	s5Rules(t, w)
	s5Model(t, w, s5Approve)
	args := []string{"run", "--format", "json", "--model", "custom/m", "--isolation", "shared", "--sandbox", "off", "--ask", "ask", "Touch it."}
	change := func(*exec.Cmd) {}
	if way == confine.Files {
		args[8], change = "auto", withoutNamespaces
	}
	c := w.p.StartWith(change, args...)
	if !c.Until(t, `"type":"permission.asked"`, waitLimit) {
		t.Failf("nothing was asked: %s", lastLines(c.Stdout()+c.Stderr(), 3))
		return 0
	}
	told, err := c.Events()
	t.Must(err)
	asked, err := event.Decode[event.AskData](told[slices.IndexFunc(told, func(e centurion.Event) bool { return e.Type == centurion.EventPermissionAsked })])
	t.Must(err)
	t.Must(os.WriteFile(filepath.Join(w.p.Dir, "attacks/id"), []byte(asked.ID), 0o600))
	time.Sleep(s5Wait) // what is under test
	told, err = c.Events()
	t.Must(err)
	for _, e := range told {
		d, err := event.Decode[event.AskData](e)
		if e.Type == centurion.EventPermissionReplied && err == nil {
			*approved++
			t.Failf("%s: the ask was answered %s by %s, process %d, %s", way, d.Answer, d.By, d.PID, d.Command)
		}
	}
	if _, err := os.Stat(filepath.Join(w.p.Dir, "forbidden")); err == nil {
		t.Failf("%s: the command has run", way)
	}
	for _, name := range []string{tries, filepath.Join(w.p.Dir, "tries")} {
		tried += strings.Count(readAll(name), "try")
	}
	if way == confine.Files { // the host is in a namespace of its own here, and the person is not
		c.Kill()
		return tried
	}
	// The person's own answer counts, and is recorded with its process.
	if code, out := w.p.Run("deny", asked.ID); code != 0 {
		t.Failf("the person's answer: %d, %s", code, out)
	}
	c.Wait(t, waitLimit)
	for _, e := range w.p.Told(c) {
		var d struct {
			By  string
			PID int
		}
		if e.Type == centurion.EventPermissionReplied && json.Unmarshal(e.Data, &d) == nil && (d.By != "person" || d.PID == 0) {
			t.Failf("the person's answer is recorded as %s's, process %d", d.By, d.PID)
		}
	}
	return tried
}
