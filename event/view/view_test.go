package view_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

func fact(typ centurion.EventType, data string) centurion.Event {
	return centurion.Event{Type: typ, Data: json.RawMessage(data)}
}

// What stands under one name in two forms is read in both, and what is of no form that is known leaves the rest as it is.
func TestRead(t *testing.T) {
	asked := view.Read(fact(centurion.EventQuestionAsked, `{"id":"que_1","options":["a","b"]}`))
	if c := asked.Choices(); len(c) != 2 || c[1] != "b" || asked.ID != "que_1" {
		t.Errorf("a question: %+v", asked)
	}
	started := view.Read(fact(centurion.EventMissionStarted, `{"goal":"g","options":{"max_workers":7}}`))
	if started.Options.MaxWorkers != 7 || started.Choices() != nil || view.Read(fact("", `{}`)).Choices() != nil {
		t.Errorf("a mission: %+v", started.Options)
	}
	failed := view.Read(fact(centurion.EventTaskFailed, `{"error":{"kind":"timeout","message":"m","hint":"h"},"status":"failed"}`))
	if e := failed.TaskError(); e == nil || e.Hint != "h" || failed.Error.Text != "" || failed.TaskStatus() != centurion.TaskFailed {
		t.Errorf("a task: %+v", failed.Error)
	}
	if e := view.Read(fact(centurion.EventSessionError, `{"error":"said"}`)); e.Error.Text != "said" || e.Error.Message != "said" || e.TaskError() != nil {
		t.Errorf("a session: %+v", e.Error)
	}
	for _, data := range []string{`{"tokens":5,"cost":0.5}`, `{"usage":{"tokens":{"output":5},"cost":0.5}}`, `{"tokens":{"output":5},"cost":0.5}`} {
		if u := view.Read(fact(centurion.EventMessageUpdated, data)).Usage; u.Tokens.Output != 5 || u.USD != 0.5 {
			t.Errorf("%s is %+v", data, u)
		}
	}
	bad, err := view.Decode(fact(centurion.EventTaskQueued, `{"title":7,"agent":"worker"}`))
	if err == nil || bad.Agent != "worker" || bad.Title != "" {
		t.Errorf("%+v, %v", bad, err)
	}
	delta := centurion.Event{Type: centurion.EventDelta, Data: event.Data(event.DeltaData{Field: "text", Delta: "x"})}
	if d := view.Read(delta); d.Delta != "x" || d.Field != "text" {
		t.Errorf("a delta: %+v", d)
	}
}

// 14.5: those who tell of the journal have no decoders of their own.
func TestOneDecoder(t *testing.T) {
	own := regexp.MustCompile(`event\.Decode\[event\.|json\.Unmarshal\(e\.Data|json\.Unmarshal\(raw`)
	for _, dir := range []string{"../../tui", "../../report", "../../notify", "../toast"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(b), "\n") {
				if !strings.HasSuffix(file, "_test.go") && own.MatchString(line) {
					t.Errorf("%s:%d decodes a fact itself: %s; use view.Read", file, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
