package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/text"
)

// MaxText limits the text of an answer, in bytes: as much as a model gets of a file at once.
const MaxText = 50 << 10

// Result is what a server answered.
type Result struct {
	Text  string // for a model; never empty
	Files []centurion.File
}

// answer collects the parts of a result.
type answer struct {
	text  strings.Builder
	total int // bytes of text, including those left out
	files []centurion.File
	bytes int
}

func (a *answer) add(s string) {
	if a.total > 0 && s != "" {
		s = "\n" + s
	}
	a.total += len(s)
	a.text.WriteString(text.Printed(text.Whole(s[:max(0, min(len(s), MaxText-a.text.Len()))]))) // JSON is UTF-8, so that this only becomes shorter
}

// file adds data as an attachment if models accept it, otherwise a line that says what it was.
func (a *answer) file(what, name, mime string, data []byte) {
	f, err := centurion.NewFile(text.Clean(name), data)
	if err != nil || len(a.files) == centurion.MaxFiles || a.bytes+len(data) > centurion.MaxFilesBytes {
		a.add(fmt.Sprintf("[%s %s, %s, %s: not shown]", what, text.Clean(name), text.Clean(mime), centurion.Bytes(int64(len(data)))))
		return
	}
	a.files, a.bytes = append(a.files, f), a.bytes+len(data)
	a.add(f.Label())
}

func (a *answer) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
	case r.Blob != nil:
		a.file("resource", r.URI, r.MIMEType, r.Blob)
	default:
		a.add(r.Text)
	}
}

func (a *answer) content(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		a.add(c.Text)
	case *sdk.ImageContent:
		a.file("image", "answer", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		a.file("audio", "answer", c.MIMEType, c.Data)
	case *sdk.EmbeddedResource:
		a.resource(c.Resource)
	case *sdk.ResourceLink:
		a.add("[resource " + strings.Join(text.Filled(text.Clean(c.URI), text.Clean(c.Name), text.Clean(c.Description)), ", ") + "]")
	}
}

// result returns what was collected.
func (a *answer) result() Result {
	out := a.text.String()
	if over := a.total - MaxText; over > 0 {
		out += fmt.Sprintf("\n[cut here: the answer has %s, and %s are left out]", centurion.Bytes(int64(a.total)), centurion.Bytes(int64(over)))
	}
	if strings.TrimSpace(out) == "" {
		out = "[the answer is empty]"
	}
	return Result{Text: out, Files: a.files}
}

// resultOf converts the answer to a call. Structured content counts where there is no text: servers repeat in a text what it says.
func resultOf(r *sdk.CallToolResult) Result {
	var a answer
	for _, c := range r.Content {
		a.content(c)
	}
	if b, err := json.Marshal(r.StructuredContent); err == nil && r.StructuredContent != nil && a.total == 0 {
		a.add(string(b))
	}
	return a.result()
}
