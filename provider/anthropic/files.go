package anthropic

import (
	"encoding/base64"
	"strings"

	"centurion"
	"centurion/provider"
)

// source is the content of an image or a document.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// fileBlocks formats files as blocks; other types than images and PDFs are described in words.
func fileBlocks(files []centurion.File) (out []block) {
	for _, f := range files {
		b := block{Source: &source{"base64", f.Mime, base64.StdEncoding.EncodeToString(f.Data)}}
		switch {
		case centurion.IsImage(f.Mime):
			b.Type = "image"
		case f.Mime == centurion.MimePDF:
			b.Type, b.Title = "document", f.Name
		default:
			b = block{Type: "text", Text: "[" + f.Describe() + " is left out: it cannot be sent here]"}
		}
		out = append(out, b)
	}
	return out
}

// textBlocks is the text of a message of the user. With files it may be empty.
func textBlocks(m provider.Message) []block {
	if len(m.Files) > 0 && strings.TrimSpace(m.Text) == "" {
		return nil
	}
	return []block{{Type: "text", Text: filled(m.Text), fleeting: m.Fleeting}}
}

// resultBlock is the result of a call, with its files.
func resultBlock(m provider.Message) block {
	b := block{Type: "tool_result", ToolUseID: safeID(m.CallID)}
	switch {
	case len(m.Files) > 0:
		var inner []block
		if strings.TrimSpace(m.Text) != "" {
			inner = append(inner, block{Type: "text", Text: m.Text})
		}
		b.Content = append(inner, fileBlocks(m.Files)...)
	case m.Text != "":
		b.Content = m.Text
	}
	return b
}
