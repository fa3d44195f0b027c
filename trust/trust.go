// Package trust owns what a person has trusted of a project: the content of files that came with the project or that an agent wrote, as
// far as they run a command or widen what agents may do. Trust is bound to a file's name and the hash of its content. The package keeps
// two files in the project's state directory and is pure otherwise: its callers read the project's files and say what needs trust.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/guard/durable"
)

// Command is the command by which a person sees and trusts what a project ships.
const Command = "centurion trust"

// Kind says what an item of a file does.
type Kind string

// The kinds of items.
const (
	Permission Kind = "permission" // a rule that allows more
	Agent      Kind = "agent"      // an agent, or what a built-in one is told and does
	Setting    Kind = "setting"    // a value that removes a protection
	Endpoint   Kind = "endpoint"   // where conversations and keys go, or what is sent with them
	Variable   Kind = "variable"   // a variable of the person's environment
	Shell      Kind = "shell"      // a shell command in a slash command
	Setup      Kind = "setup"      // a command that prepares a worktree
	Verify     Kind = "verify"     // an acceptance command
	Server     Kind = "server"     // an MCP server
	Plugin     Kind = "plugin"     // a plugin, or a file with tools
)

// Item is one thing that runs or counts only when its file is trusted.
type Item struct {
	Line int    `json:"line"` // counted from 1
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// String returns an item as notices name it.
func (i Item) String() string { return string(i.Kind) + " " + i.Text }

// same reports whether two items say the same, in whatever line.
func (i Item) same(as Item) bool { return i.Kind == as.Kind && i.Text == as.Text }

// File is a file with its items.
type File struct {
	Name  string `json:"file"`   // for display; relative to the project if the file is in it
	Sum   string `json:"sha256"` // see [Sum]
	Items []Item `json:"items"`
}

// Sum returns the SHA-256 of a file's content, in hexadecimal digits.
func Sum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// record is a trusted file.
type record struct {
	File
	Since centurion.Time `json:"since"`
}

// Book is what a person has trusted of one project. It is not safe for concurrent use.
type Book struct {
	path  string // empty for a project without a state directory
	files []record

	// Seen are the permission rules of the project's files at the person's last start, by file and agent: see package config. [Book.See]
	// changes them.
	Seen map[string][]string
}

// Path returns the file of a project's book in its state directory.
func Path(state string) string { return filepath.Join(state, "trust.json") }

// Open reads the book of a project from its state directory; "" gives an empty book that cannot be written. A missing file is an empty
// book. If the file cannot be read, the book is empty too, and the error has [centurion.KindConfig].
func Open(state string) (*Book, error) {
	if state == "" {
		return &Book{}, nil
	}
	b := &Book{path: Path(state)}
	if data, err := os.ReadFile(b.seenPath()); err == nil {
		_ = json.Unmarshal(data, &b.Seen) // without them the present rules are the first
	}
	data, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &b.files)
	}
	if err != nil {
		b.files = nil
		return b, &centurion.Error{Op: "read " + b.path, Kind: centurion.KindConfig, Err: err, Hint: "nothing is trusted until you run: " + Command + " --revoke"}
	}
	return b, nil
}

// find returns the record of a file's name, or nil.
func (b *Book) find(name string) *record {
	if i := slices.IndexFunc(b.files, func(r record) bool { return r.Name == name }); i >= 0 {
		return &b.files[i]
	}
	return nil
}

// Trusts reports whether a file of that name is trusted with the content of that sum.
func (b *Book) Trusts(name, sum string) bool {
	r := b.find(name)
	return r != nil && r.Sum == sum
}

// Holds reports whether content of that sum is trusted, whatever its file's name: a plan may have been moved.
func (b *Book) Holds(sum string) bool {
	return slices.ContainsFunc(b.files, func(r record) bool { return r.Sum == sum })
}

// Trust records files as trusted with their present content.
func (b *Book) Trust(files ...File) error {
	for _, f := range files {
		r := record{f, centurion.Now()}
		if old := b.find(f.Name); old != nil {
			*old = r
		} else {
			b.files = append(b.files, r)
		}
	}
	return b.write()
}

// Revoke ends all trust and returns the names of the files that were trusted.
func (b *Book) Revoke() ([]string, error) {
	var names []string
	for _, r := range b.files {
		names = append(names, r.Name)
	}
	b.files = nil
	return names, b.write()
}

// seenPath is the file of [Book.Seen].
func (b *Book) seenPath() string { return filepath.Join(filepath.Dir(b.path), "rules.json") }

// See records the permission rules with which the person starts.
func (b *Book) See(rules map[string][]string) error {
	if b.path == "" || maps.EqualFunc(b.Seen, rules, slices.Equal) {
		return nil
	}
	b.Seen = rules
	return replace(b.seenPath(), rules)
}

func (b *Book) write() error { return replace(b.path, append([]record{}, b.files...)) }

func replace(path string, content any) error {
	data, err := json.MarshalIndent(content, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = durable.Replace(path, data, 0o600)
	}
	if err != nil {
		return &centurion.Error{Op: "record trust", Kind: centurion.KindConfig, Err: err, Hint: "set CENTURION_HOME to a directory that can be written"}
	}
	return nil
}

// Change is an item of a file and how it differs from the trusted content.
type Change struct {
	Op string `json:"op"` // "+" for new, "-" for gone, "=" for unchanged
	Item
}

// State is a file compared with what a person trusted of it.
type State struct {
	Name    string          `json:"file"`
	Sum     string          `json:"sha256"`
	Trusted bool            `json:"trusted"`         // with this very content
	Since   *centurion.Time `json:"since,omitempty"` // when the person trusted this or an earlier content; nil if never
	Items   []Change        `json:"items"`
}

// Compare returns the state of a file with its present content and items. For a trusted file the recorded items count.
func (b *Book) Compare(now File) State {
	s := State{Name: now.Name, Sum: now.Sum, Trusted: b.Trusts(now.Name, now.Sum), Items: []Change{}}
	var before []Item
	if r := b.find(now.Name); r != nil {
		s.Since, before = &r.Since, r.Items
	}
	if s.Trusted {
		now.Items = before
	}
	for _, i := range now.Items {
		op := "+"
		if slices.ContainsFunc(before, i.same) {
			op = "="
		}
		s.Items = append(s.Items, Change{op, i})
	}
	for _, i := range before {
		if !slices.ContainsFunc(now.Items, i.same) {
			s.Items = append(s.Items, Change{"-", i})
		}
	}
	return s
}

// File returns the file as it is now.
func (s State) File() File {
	f := File{Name: s.Name, Sum: s.Sum}
	for _, c := range s.Items {
		if c.Op != "-" {
			f.Items = append(f.Items, c.Item)
		}
	}
	return f
}

// Why says why a file is not trusted.
func (s State) Why() string {
	if s.Since != nil {
		return "has changed since you trusted it"
	}
	return "came with the project and is not trusted"
}

// maxNamed limits the items that a notice names; the command shows all.
const maxNamed = 3

// Notice is the line that tells a person what of an untrusted file is not in force.
func (s State) Notice() string {
	var names []string
	items := s.File().Items
	for _, i := range items[:min(len(items), maxNamed)] {
		names = append(names, centurion.Clip(i.String(), 200))
	}
	if more := len(items) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %s; not in force: %s (see: %s)", s.Name, s.Why(), strings.Join(names, ", "), Command)
}

// Covers reports whether a path with slashes names a file that configures agents, in any directory: such a file is untrusted after a change.
// Case does not count, as on some file systems.
func Covers(name string) bool {
	name = strings.ToLower(name)
	dir, base := path.Split(name)
	switch base {
	case "opencode.json", "opencode.jsonc":
		return true
	case "centurion.json", "centurion.jsonc":
		return path.Base(dir) == ".opencode"
	}
	_, below, ok := strings.Cut("/"+name, "/.opencode/")
	top, _, _ := strings.Cut(below, "/")
	return ok && path.Ext(base) == ".md" && slices.Contains([]string{"agent", "agents", "command", "commands"}, top)
}
