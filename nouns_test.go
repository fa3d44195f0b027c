package centurion

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The tries of a race have names of their own and hold files under one; an item names its newest task, but none that has lost.
func TestRaceNames(t *testing.T) {
	try := func(id string, n int, lost bool) Task {
		return Task{ID: id, Item: "T2", Race: &Race{Try: n, Lost: lost}}
	}
	all := []Task{{ID: "tsk_1", Item: "T1"}, {ID: "tsk_2", Item: "T2"}, try("tsk_3", 1, false), try("tsk_4", 2, true), {ID: "tsk_5", Number: 7}, {ID: "tsk_6"}}
	for i, want := range []string{"T1 T1 false", "T2 T2 false", "T2/1 T2 false", "T2/2 T2 true", "w7 w7 false", "tsk_6 tsk_6 false"} {
		if got := fmt.Sprint(all[i].Name(), " ", all[i].Holder(), " ", all[i].Lost()); got != want {
			t.Errorf("%s: %s, want %s", all[i].ID, got, want)
		}
	}
	for name, want := range map[string]string{"t1": "tsk_1", "T2": "tsk_3", "t2/1": "tsk_3", "T2/2": "tsk_4", "W7": "tsk_5", "tsk_6": "tsk_6", "T3": "", "": ""} {
		if got, ok := TaskNamed(all, name); got.ID != want || ok != (want != "") {
			t.Errorf("%q is %s, %v; want %s", name, got.ID, ok, want)
		}
	}
	if all[2].Race == nil {
		t.Error("asking for a holder changes the task")
	}
}

// What plugins, models and commands are told of a session.
func TestSessionIsTold(t *testing.T) {
	s := Session{ID: "ses_1", Slug: "slug", Title: "title", Agent: "worker", ParentID: "ses_0", Metadata: SessionMeta{Mission: "msn_1", Task: "tsk_1", Address: "0/1", System: "you are"}}
	if got, want := s.HookedBy(), (Hooked{Session: "ses_1", Agent: "worker", Mission: "msn_1", Task: "tsk_1", Parent: "ses_0"}); got != want {
		t.Errorf("hooked by %+v", got)
	}
	for want, plugged := range map[string]*Plugged{"you are": nil, "you were": {System: "you were"}} {
		if s.Metadata.Plugged = plugged; s.Metadata.Prompt() != want {
			t.Errorf("the prompt is %q, want %q", s.Metadata.Prompt(), want)
		}
	}
	if s.Metadata.Plugged = new(Plugged); s.Metadata.Prompt() != "you are" {
		t.Errorf("plugged in without a prompt: %q", s.Metadata.Prompt())
	}
	if got := (Confinement{Way: "files", Gaps: []string{"a", "b"}}).String(); got != "files; not stopped: a, b" {
		t.Error(got)
	}
}

// The texts of a person's message are apart; those of a model's answer are one text.
func TestTextsAreJoined(t *testing.T) {
	parts := []Part{{Type: PartText, Text: "a"}, {Type: PartReasoning, Text: "no"}, {Type: PartText, Text: "b"}, {Type: PartText}, {Type: PartText, Text: "\nc"}, {Type: PartText, Text: "d", Ignored: true}}
	for role, want := range map[Role]string{RoleUser: "a\n\nb\nc", RoleAssistant: "ab\nc"} {
		if got := (Message{Role: role, Parts: parts}).Text(); got != want {
			t.Errorf("%s: %q, want %q", role, got, want)
		}
	}
}

// Files are given to models as such unless they are text or a directory.
func TestFilesOf(t *testing.T) {
	file := func(mime string) Part { return FilePart("ses_1", "msg_1", File{Mime: mime, Name: mime}) }
	var got []string
	for _, f := range FilesOf([]Part{file(MimePDF), file(MimeText), file(MimeDir), file("image/png"), {Type: PartFile}, {Type: PartText, File: &File{Mime: MimePDF}}}) {
		got = append(got, f.Name)
	}
	if strings.Join(got, " ") != MimePDF+" image/png" {
		t.Errorf("%q", got)
	}
}

// A part of each kind is the same after it was written and read, and one without what it needs is not written.
func TestPartsAreRead(t *testing.T) {
	source := json.RawMessage(`{"type":"file","path":"a.go","text":{"value":"@a.go","start":1,"end":5}}`)
	for _, p := range []Part{
		{Type: PartText, Text: "a", Ignored: true}, {Type: PartReasoning, Text: "a", Metadata: map[string]any{"k": "v"}},
		{Type: PartFile, File: &File{Mime: MimePDF, Name: "a", Data: []byte("x"), Path: "a.go", Source: source}},
		{Type: PartFile, File: &File{Mime: MimePDF, Name: "a", URL: "https://a.test/b"}},
		{Type: PartAgent, Meant: &Meant{Name: "a", Source: json.RawMessage(`{"start":1}`)}}, {Type: PartSubtask, Meant: &Meant{Agent: "a", Prompt: "p", Description: "d", Command: "c"}},
		{Type: PartTool, CallID: "c", Tool: "t", State: &ToolState{Status: ToolError, Input: json.RawMessage("{}"), Error: "no", Metadata: map[string]any{"k": "v"}}},
	} {
		p.ID, p.SessionID, p.MessageID = "prt_1", "ses_1", "msg_1"
		var got Part
		data, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", p.Type, err, got, p)
		}
	}
	for want, p := range map[string]Part{
		"part prt_1 is a tool call without a state": {Type: PartTool}, "part prt_1 is a file without one": {Type: PartFile}, `part prt_1 has unknown type "x"`: {Type: "x"},
		`tool state has unknown status "x"`: {Type: PartTool, State: &ToolState{Status: "x"}},
	} {
		p.ID = "prt_1"
		if _, err := p.MarshalJSON(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	data, err := json.Marshal(Message{ID: "msg_1", Role: RoleUser, Heard: true})
	var m Message
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil || !m.Heard || m.ID != "msg_1" {
		t.Errorf("a message that plugins have had: %+v, %v", m, err)
	}
	var f File
	if err := json.Unmarshal([]byte(`{"filename":"a","url":"data:x;base64,!"}`), &f); err == nil || !strings.HasPrefix(err.Error(), "the data of file a: ") {
		t.Errorf("data that is none: %v", err)
	}
}
