package provider

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"centurion"
)

// seen is a picture of one pixel, and its data in base64.
func seen(t testing.TB, name string) (f centurion.File, data string) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	f, err := centurion.NewFile(name, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ = strings.Cut(f.DataURL(), ",")
	return f, data
}

// withFiles is a conversation in which a person sends a picture and a tool brings one, which more is said after.
func withFiles(t testing.TB) (msgs []Message, data string) {
	a, data := seen(t, "a.png")
	b, _ := seen(t, "b.png")
	return []Message{
		{Role: User, Text: "Look at [image a.png, 1×1].", Files: []centurion.File{a}},
		{Role: Assistant, Calls: []Call{{ID: "1", Name: "read", Arguments: "{}"}, {ID: "2", Name: "ls", Arguments: "{}"}}},
		{Role: Tool, CallID: "1", Text: "[image b.png, 1×1]", Files: []centurion.File{b}},
		{Role: Tool, CallID: "2", Text: "b.png"},
		{Role: User, Text: "<status>", Fleeting: true},
	}, data
}

// list returns a field of a request as JSON, with the picture's data as DATA.
func list(t *testing.T, body map[string]any, field, data string) string {
	t.Helper()
	b, err := json.Marshal(body[field])
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), data, "DATA")
}

// LOOP-77, LOOP-13: over chat completions images are parts of what the user says. Those of results stand in the message of the user
// that follows them all, so that calls and results stay together, and in front of what changes from request to request.
func TestFilesOverChat(t *testing.T) {
	msgs, data := withFiles(t)
	const img = `{"image_url":{"url":"data:image/png;base64,DATA"},"type":"image_url"}`
	const until = `[{"content":[` + img + `,{"text":"Look at [image a.png, 1×1].","type":"text"}],"role":"user"},` +
		`{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"1","type":"function"},{"function":{"arguments":"{}","name":"ls"},"id":"2","type":"function"}]},` +
		`{"content":"[image b.png, 1×1]","role":"tool","tool_call_id":"1"},{"content":"b.png","role":"tool","tool_call_id":"2"},` +
		`{"content":[{"text":"Files that the results above have brought:","type":"text"},` + img
	e := Endpoint{Model: centurion.ModelRef{ID: "gpt-4.1"}}
	for name, tt := range map[string]struct {
		msgs []Message
		end  string
	}{
		"with a status":  {msgs, `],"role":"user"},{"content":"\u003cstatus\u003e","role":"user"}]`},
		"without one":    {msgs[:4], `],"role":"user"}]`},
		"and an answer":  {append(msgs[:4:4], Message{Role: Assistant, Text: "ok"}, Message{Role: User, Text: "go on"}), `],"role":"user"},{"content":"ok","role":"assistant"},{"content":"go on","role":"user"}]`},
		"files and none": {append(msgs[:4:4], Message{Role: User, Files: msgs[0].Files}), "," + img + `],"role":"user"}]`},
	} {
		body, _ := sent(t, e, Request{Messages: tt.msgs})
		if got := list(t, body, "messages", data); got != until+tt.end {
			t.Errorf("%s:\n got %s\nwant %s", name, got, until+tt.end)
		}
	}
	pdf := centurion.File{Mime: centurion.MimePDF, Name: "x.pdf", Data: []byte("%PDF-1")}
	body, _ := sent(t, e, Request{Messages: []Message{{Role: User, Text: "read", Files: []centurion.File{pdf}}}})
	if got := list(t, body, "messages", "none"); !strings.Contains(got, "[PDF x.pdf is left out: it cannot be sent here]") || strings.Contains(got, "base64") {
		t.Errorf("a PDF over chat completions: %s", got)
	}
}

// LOOP-77: over responses a result holds its picture itself at OpenAI; elsewhere it follows as the user's.
func TestFilesOverResponses(t *testing.T) {
	msgs, data := withFiles(t)
	pdf := centurion.File{Mime: centurion.MimePDF, Name: "x.pdf", Data: []byte("%PDF-1")}
	msgs[0].Files = append(msgs[0].Files, pdf)
	const img = `{"image_url":"data:image/png;base64,DATA","type":"input_image"}`
	const first = `[{"content":[` + img + `,{"file_data":"data:application/pdf;base64,JVBERi0x","filename":"x.pdf","type":"input_file"},{"text":"Look at [image a.png, 1×1].","type":"input_text"}],"role":"user"},` +
		`{"arguments":"{}","call_id":"1","name":"read","type":"function_call"},{"arguments":"{}","call_id":"2","name":"ls","type":"function_call"},{"call_id":"1","output":`
	const second = `,"type":"function_call_output"},{"call_id":"2","output":"b.png","type":"function_call_output"},{"content":[`
	for provider, want := range map[string]string{
		"openai": first + `[{"text":"[image b.png, 1×1]","type":"input_text"},` + img + `]` + second + `{"text":"\u003cstatus\u003e","type":"input_text"}],"role":"user"}]`,
		"other": first + `"[image b.png, 1×1]"` + second + `{"text":"Files that the results above have brought:","type":"input_text"},` + img +
			`],"role":"user"},{"content":[{"text":"\u003cstatus\u003e","type":"input_text"}],"role":"user"}]`,
	} {
		_, raw, err := Responses{}.Request(centurion.ModelRef{Provider: provider, ID: "m"}, Request{Messages: msgs}, nil)
		var body map[string]any
		if err != nil || json.Unmarshal(raw, &body) != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		if got := list(t, body, "input", data); got != want {
			t.Errorf("%s:\n got %s\nwant %s", provider, got, want)
		}
	}
}
