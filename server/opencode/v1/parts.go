package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/workspace"
)

// ids are the ids of messages that a client may give: OpenCode's pattern, without what has a meaning in a URL.
var ids = centurion.Pattern(`^msg[\w.-]{0,100}$`)

// Content are the parts of a message that the person writes, and what is written to the model for those that it does not get as they are.
// goal is what the person says in words.
func (p *Project) Content(ctx context.Context, given []centurion.Part) (goal string, parts []centurion.Part, err error) {
	var words, named []string
	for i, part := range given {
		part.ID = ""
		var more []centurion.Part
		var perr error
		switch part.Type {
		case centurion.PartText:
			more = []centurion.Part{part}
			if !part.Synthetic && !part.Ignored && strings.TrimSpace(part.Text) != "" {
				words = append(words, part.Text)
			}
		case centurion.PartFile:
			more, perr = p.file(ctx, part)
			named = append(named, part.File.Label())
		case centurion.PartAgent:
			_, perr = p.ProfileOf(ctx, part.Meant.Name)
			more = []centurion.Part{part, added("Give this to the agent " + part.Meant.Name + ", with a prompt that has what it needs to know of the above.")}
		case centurion.PartSubtask:
			m := part.Meant
			_, perr = p.ProfileOf(ctx, m.Agent)
			if m.Agent == "" || m.Prompt == "" || m.Description == "" {
				perr = usage("a subtask has an agent, a description and a prompt")
			}
			more = []centurion.Part{part, added("Give this to the agent " + m.Agent + ", and say what it has answered:\n\n" + m.Prompt)}
			named = append(named, m.Prompt)
		default:
			perr = usage(fmt.Sprintf("there is no type %q of parts", part.Type))
		}
		if perr != nil {
			err = errors.Join(err, fmt.Errorf("parts[%d]: %w", i, perr))
		}
		parts = append(parts, more...)
	}
	if whole := (centurion.Message{Role: centurion.RoleUser, Parts: parts}).Text(); err == nil && len(whole) > mail.MaxPost {
		err = &centurion.Error{Kind: centurion.KindUsage, Msg: "parts: their text is longer than " + centurion.Bytes(mail.MaxPost), Hint: "name files instead of attaching them whole"}
	}
	if len(words) == 0 {
		words = named
	}
	return strings.TrimSpace(strings.Join(words, "\n\n")), parts, err
}

func usage(text string) error { return &centurion.Error{Kind: centurion.KindUsage, Msg: text} }

// added is a text of the host in a person's message.
func added(text string) centurion.Part {
	return centurion.Part{Type: centurion.PartText, Text: text, Synthetic: true}
}

// file are the parts for an attached file: a picture or a document, or a text or a directory, whose content is a text before it.
func (p *Project) file(ctx context.Context, part centurion.Part) ([]centurion.Part, error) {
	f := *part.File
	var from struct {
		Type   string `json:"type"`
		Server string `json:"clientName"`
		URI    string `json:"uri"`
	}
	if json.Unmarshal(f.Source, &from) == nil && from.Type == "resource" {
		return p.resource(ctx, part, from.Server, from.URI)
	}
	name, data := cmp.Or(f.Name, "file"), f.Data
	at, err := url.Parse(f.URL)
	switch {
	case f.URL == "" && data != nil:
	case err == nil && at.Scheme == "data":
		_, body, _ := strings.Cut(at.Opaque, ",")
		data = []byte(unescaped(body))
	case err == nil && at.Scheme == "file":
		rel, err := filepath.Rel(p.Directory, filepath.FromSlash(at.Path))
		if err != nil || !filepath.IsLocal(rel) {
			return nil, &centurion.Error{Kind: centurion.KindPermission, Msg: at.Path + " is not in the project"}
		}
		if name = filepath.ToSlash(rel); f.Mime == centurion.MimeDir {
			return p.directory(ctx, part, name)
		}
		if data, _, err = p.Files.ReadFile(name, maxContent); err != nil {
			return nil, err
		}
	default:
		return nil, usage("url: a file is a data: URL, or a file: URL in the project")
	}
	if centurion.DetectFile(data) != "" || strings.ToValidUTF8(string(data), "") != string(data) {
		got, err := centurion.NewFile(name, data)
		got.Source = f.Source
		return []centurion.Part{{Type: centurion.PartFile, File: &got}}, err
	}
	text, head := string(data), "File "+name
	if at != nil && at.Query().Has("start") {
		text, head = lines(text, head, at.Query())
	}
	f.Mime = centurion.MimeText
	part.File = &f
	return []centurion.Part{added(head + ":\n\n" + text), part}, nil
}

// resource are the parts for a resource of an MCP server: its text and files, before the part that names it.
func (p *Project) resource(ctx context.Context, part centurion.Part, from, uri string) ([]centurion.Part, error) {
	got, err := p.API().Content(ctx, server.ServerQuery{Server: from, URI: uri})
	if err != nil {
		return nil, err
	}
	parts := []centurion.Part{added("Resource " + uri + " of " + from + ":\n\n" + got.Text)}
	for _, f := range got.Files {
		parts = append(parts, centurion.Part{Type: centurion.PartFile, File: &f})
	}
	f := *part.File
	f.Mime, f.Data = centurion.MimeText, nil
	part.File = &f
	return append(parts, part), nil
}

// lines are the lines of a text that a URL selects, of which the first is 1.
func lines(text, head string, q url.Values) (string, string) {
	all := strings.SplitAfter(text, "\n")
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			n = otherwise
		}
		return min(max(n, 1), len(all))
	}
	from := number("start", 1)
	to := max(number("end", len(all)), from)
	return strings.Join(all[from-1:to], ""), fmt.Sprintf("%s, lines %d to %d", head, from, to)
}

// directory are the parts for an attached directory.
func (p *Project) directory(ctx context.Context, part centurion.Part, dir string) ([]centurion.Part, error) {
	var text strings.Builder
	text.WriteString("Directory " + dir + ":\n")
	for e, err := range p.Files.Walk(ctx, workspace.WalkOptions{Dir: dir, MaxDepth: 1, Hidden: true, Named: true}) {
		if err != nil {
			return nil, err
		}
		text.WriteString("\n" + path.Base(e.Path) + map[bool]string{true: "/"}[e.IsDir()])
	}
	return []centurion.Part{added(text.String()), part}, nil
}
