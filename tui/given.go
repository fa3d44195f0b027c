package tui

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"centurion"
	"centurion/text"
)

// PromptHash identifies a system prompt: the SHA-256 of its bytes in hexadecimal.
func PromptHash(system string) string {
	sum := sha256.Sum256([]byte(system))
	return hex.EncodeToString(sum[:])
}

// given prints the text before a session's first message: its system prompt, by name and hash or complete, and the shared notes in the
// message.
func (p *page) given(c *centurion.Session, o ShowOptions) {
	if c.Metadata.System == "" {
		return
	}
	from := cmp.Or(c.Metadata.AgentFile, "built in")
	p.field("prompt", text.Dots(text.Clean(c.Agent), text.Clean(from), centurion.Count(len(c.Metadata.System), "byte"), "sha256 "+PromptHash(c.Metadata.System)[:12]))
	var files []string
	for _, g := range c.Metadata.Given {
		how := text.If(g.Whole, "whole", "in part")
		files = append(files, fmt.Sprintf("%s %s (%s, version %.12s)", text.Clean(g.Path), how, centurion.Count(g.Bytes, "byte"), g.Version))
	}
	p.field("given", strings.Join(files, ", "))
	if !o.Prompt {
		return
	}
	p.line("")
	p.line(p.theme.paint(strong, "◇ system"))
	p.text(strings.TrimRight(c.Metadata.System, "\n"), plain, o)
}
