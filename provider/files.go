package provider

import (
	"strings"

	"centurion"
)

// resultFiles precedes files of tool results, where an API accepts them only from the user.
const resultFiles = "Files that the results above have brought:"

// unsendable describes a file that its API does not support.
func unsendable(f centurion.File) string {
	return "[" + f.Describe() + " is left out: it cannot be sent here]"
}

// fromUser moves the files of results into the following message of the user, a new one if there is none, so that calls and their
// results stay together. They are at its front, since later parts may change.
func fromUser(messages []Message) []moved {
	out := make([]moved, 0, len(messages)+1)
	var files []centurion.File
	for _, m := range messages {
		next := moved{Message: m}
		switch {
		case m.Role == Tool:
			files = append(files, m.Files...)
			next.Files = nil
		case len(files) > 0 && m.Role == User && !m.Fleeting:
			next.before, files = files, nil
		case len(files) > 0:
			out = append(out, moved{Message: Message{Role: User}, before: files})
			files = nil
		}
		out = append(out, next)
	}
	if len(files) > 0 {
		out = append(out, moved{Message: Message{Role: User}, before: files})
	}
	return out
}

// moved is a message of the user with the files of the preceding results.
type moved struct {
	Message
	before []centurion.File
}

// bare reports whether the message is a single text.
func (m moved) bare() bool { return len(m.before)+len(m.Files) == 0 }

// each calls the functions for the message's parts in order: files precede the text.
func (m moved) each(text func(string), file func(centurion.File)) {
	if len(m.before) > 0 {
		text(resultFiles)
	}
	for _, f := range m.before {
		file(f)
	}
	for _, f := range m.Files {
		file(f)
	}
	if strings.TrimSpace(m.Text) != "" {
		text(m.Text)
	}
}

// chatParts formats a message of the user as a list of parts. Chat completions support images, but no common format for PDFs.
func chatParts(m moved) (out []chatPart) {
	text := func(s string) { out = append(out, chatPart{Type: "text", Text: s}) }
	m.each(text, func(f centurion.File) {
		if !centurion.IsImage(f.Mime) {
			text(unsendable(f))
			return
		}
		out = append(out, chatPart{Type: "image_url", Image: &chatImage{f.DataURL()}})
	})
	return out
}

// itemFile is a file in a message or a result of /responses.
type itemFile struct {
	Type     string `json:"type"`
	Filename string `json:"filename,omitzero"`
	FileData string `json:"file_data,omitzero"`
	ImageURL string `json:"image_url,omitzero"`
}

// itemParts formats a message as the content of an item.
func itemParts(m moved) (out []any) {
	m.each(func(s string) { out = append(out, itemText{"input_text", s}) }, func(f centurion.File) { out = append(out, itemFileOf(f)) })
	return out
}

func itemFileOf(f centurion.File) any {
	switch {
	case centurion.IsImage(f.Mime):
		return itemFile{Type: "input_image", ImageURL: f.DataURL()}
	case f.Mime == centurion.MimePDF:
		return itemFile{Type: "input_file", Filename: f.Name, FileData: f.DataURL()}
	}
	return itemText{"input_text", unsendable(f)}
}

// resultParts is the output of a call with files: its text and the files.
func resultParts(text string, files []centurion.File) []any {
	out := []any{itemText{"input_text", text}}
	for _, f := range files {
		out = append(out, itemFileOf(f))
	}
	return out
}
