package anthropic_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
)

// LOOP-77: images and documents are blocks of their own, also within a tool's result. The end of what the next request repeats
// stays what is marked for the cache.
func TestFiles(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	img, err := centurion.NewFile("a.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(img.DataURL(), ",")
	pdf := centurion.File{Mime: centurion.MimePDF, Name: "x.pdf", Data: []byte("%PDF-1")}
	_, body, err := anthropic.Wire{}.Request(ref, provider.Request{Messages: []provider.Message{
		{Role: provider.User, Text: "Read them.", Files: []centurion.File{pdf}},
		{Role: provider.Assistant, Calls: []provider.Call{{ID: "1", Name: "read", Arguments: "{}"}}},
		{Role: provider.Tool, CallID: "1", Text: "[image a.png, 1×1]", Files: []centurion.File{img}},
		{Role: provider.Tool, CallID: "2", Text: " ", Files: []centurion.File{img}},
		{Role: provider.User, Text: "look", Files: []centurion.File{img, pdf}},
		{Role: provider.User, Text: "\n", Files: []centurion.File{img}},
		{Role: provider.User, Text: "hear", Files: []centurion.File{{Mime: "audio/ogg", Name: "a.ogg", Data: []byte("OggS")}}},
		{Role: provider.User, Text: "<status>", Fleeting: true},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Messages json.RawMessage }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"}}`
	want := `[{"role":"user","content":[{"type":"document","title":"x.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}},{"type":"text","text":"Read them.","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"read","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"[image a.png, 1×1]"},` + image + `]},{"type":"tool_result","tool_use_id":"2","content":[` + image + `]},` +
		image + `,{"type":"document","title":"x.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}},{"type":"text","text":"look"},` + image + `,{"type":"text","text":"[file a.ogg is left out: it cannot be sent here]"},{"type":"text","text":"hear","cache_control":{"type":"ephemeral"}},{"type":"text","text":"<status>"}]}]`
	if s := strings.ReplaceAll(string(got.Messages), data, "DATA"); s != want {
		t.Errorf("\n got %s\nwant %s", s, want)
	}
}
