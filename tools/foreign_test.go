package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
)

// An agent that is another program is held by the same rules as our own tools: the gate is asked for each path, for the script and for the
// address that it names, and for its own words where it names none.
func TestPermitForeign(t *testing.T) {
	b, out := newBench(t), newBench(t)
	b.put("a.go", "x")
	outside := filepath.ToSlash(filepath.Join(out.dir, "x"))
	for _, test := range []struct {
		f    Foreign
		want string
	}{
		{Foreign{Tool: "read", Title: "Read a", Paths: []string{"a.go", filepath.Join(b.dir, "b.go")}}, `read ["a.go"] ["*"] {"filepath":"a.go","title":"Read a"}; read ["b.go"] ["*"] {"filepath":"b.go","title":"Read a"}`},
		{Foreign{Tool: "edit", Title: "t", Paths: []string{"a.go"}}, `edit ["a.go"] ["*"] {"filepath":"a.go","title":"t"}`},
		{Foreign{Tool: "edit", Title: "t", Paths: []string{".git/config"}}, "; edit: .git/config is not written by file tools"},
		{Foreign{Tool: "read", Title: "t", Paths: []string{".git/config"}}, `read [".git/config"] ["*"] {"filepath":".git/config","title":"t"}`},
		{Foreign{Tool: "read", Title: "t", Paths: []string{outside}}, `external_directory ["` + outside + `"] ["` + filepath.ToSlash(out.dir) + `/*"] {"filepath":"` + outside + `","parentDir":"` + filepath.ToSlash(out.dir) + `"}; read ["` + outside + `"] ["*"] {"filepath":"` + outside + `","title":"t"}`},
		{Foreign{Tool: "edit", Title: "Edit it"}, `edit ["Edit it"] ["Edit it"] {"title":"Edit it"}`},
		{Foreign{Tool: "webfetch", Title: "t", URL: "https://a.b"}, `webfetch ["https://a.b"] ["https://a.b"] {"title":"t"}`},
		{Foreign{Tool: "think"}, `think ["think"] ["think"] {"title":""}`},
		{Foreign{Tool: "bash", Title: "Run", Script: "make x"}, `bash ["make x"] ["make x *"] {"command":"make x","description":"Run","workdir":"."}`},
		{Foreign{Tool: "bash", Title: "ls -l"}, `bash ["ls -l"] ["ls *"] {"command":"ls -l","description":"ls -l","workdir":"."}`},
		{Foreign{Tool: "read", Title: "t", Paths: []string{"a\x00"}}, "; read: the path contains a NUL byte"},
	} {
		b.gate.asked, b.gate.rules = nil, []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
		var got []string
		b.gate.then = func(a Access) {
			meta, _ := json.Marshal(a.Metadata)
			got = append(got, fmt.Sprintf("%s %q %q %s", a.Permission, a.Patterns, a.Always, meta))
		}
		err := PermitForeign(t.Context(), b.Call, test.f)
		said := strings.Join(got, "; ")
		if err != nil {
			said += "; " + err.Error()
		}
		want(t, test.f.Tool+" "+test.f.Title, said, test.want)
		b.gate.rules = append(b.gate.rules, permission.Rule{Permission: "*", Pattern: "*", Action: permission.Deny})
		if PermitForeign(t.Context(), b.Call, test.f) == nil {
			t.Errorf("%+v is done although it is denied", test.f)
		}
	}
}

// Its files are those of the workspace: read whole, and written as our own tool writes them.
func TestForeignFiles(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\n")
	b.put("large", strings.Repeat("x", maxWhole+1))
	read := func(name string) string {
		content, err := ReadForeign(t.Context(), b.Call, name)
		if err != nil {
			return fmt.Sprintf("%s: %v (%s)", centurion.KindOf(err), err, centurion.HintOf(err))
		}
		return content
	}
	for name, says := range map[string]string{"a.txt": "one\n", filepath.Join(b.dir, "a.txt"): "one\n",
		"none.txt": "not_found: read file: none.txt does not exist (list the directory to see what is there)", ".": "usage: read: . is a directory (list it with ls{\"path\": \".\"})",
		"../x": "permission: read: " + filepath.ToSlash(filepath.Dir(b.dir)) + "/x is outside of your working directory (use a path in " + b.dir + ")"} {
		want(t, name, read(name), says)
	}
	want(t, "a file that is too large", read("large"), "usage: read file: large has 10485761 bytes, more than the 10485760 that are read at once (read a part of it)")
	b.gate.asked = nil
	read("a.txt")
	wantList(t, "asked", b.gate.permissions(), "read a.txt")
	b.gate.rules = []permission.Rule{{Permission: "read", Pattern: "*", Action: permission.Deny}}
	if got := read("a.txt"); !strings.HasPrefix(got, "permission: ") {
		t.Errorf("read although it is denied: %s", got)
	}
	write := func(name, content string) string {
		b.gate.asked = nil
		if err := WriteForeign(t.Context(), b.Call, name, content); err != nil {
			return err.Error()
		}
		return strings.Join(b.gate.permissions(), "; ")
	}
	want(t, "the same", write("a.txt", "one\n"), "")
	want(t, "changed", write("a.txt", "two\n"), "edit a.txt")
	want(t, "new", write("sub/b.txt", "b"), "edit sub/b.txt")
	want(t, "outside", write("../x", "b"), "write: "+filepath.ToSlash(filepath.Dir(b.dir))+"/x is outside of your working directory")
	want(t, "protected", write(".git/x", "b"), "write: .git/x is not written by file tools")
	want(t, "file", b.get("a.txt")+b.get("sub/b.txt"), "two\nb")
	want(t, "change", Diff("f", "a\n", "b\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
}

// others is what runs the tools of others.
type others struct {
	tools []centurion.ExternalTool
	ran   []string
}

func (o *others) Tools() []centurion.ExternalTool { return o.tools }

func (o *others) Run(_ context.Context, c *Call, name string, in json.RawMessage) (Result, error) {
	o.ran = append(o.ran, c.ID+" "+name+" "+string(in))
	return Result{Output: "done"}, nil
}

// A tool of others is offered if its role holds it and its schema is one, asks by its name, and says when nobody runs it any more.
func TestExternalTools(t *testing.T) {
	b, of := newBench(t), &others{}
	for name, schema := range map[string]string{"a_good": `{"type":"object"}`, "a_list": `{"type":"array"}`, "a_null": `null`, "a_bad": `{"type":"object","$ref":"#/none"}`, "a_broken": `{`, "read": `{"type":"object"}`, "b_other": `{"type":"object"}`} {
		of.tools = append(of.tools, centurion.ExternalTool{Name: name, Schema: json.RawMessage(schema)})
	}
	held := HeldExternal(of, func(name string) bool { return name != "b_other" })
	if len(held) != 1 || held[0].Name != "a_good" || HeldExternal(nil, func(string) bool { return true }) != nil {
		t.Errorf("held %+v", held)
	}
	for schema, says := range map[string]string{`{"type":"array"}`: "a_x: its schema is not that of an object", `null`: "a_x: its schema is not that of an object"} {
		_, err := NewExternal(centurion.ExternalTool{Name: "a_x", Schema: json.RawMessage(schema)}, of)
		want(t, schema, fmt.Sprint(centurion.KindOf(err), " ", err), "usage "+says)
	}
	_, err := NewExternal(centurion.ExternalTool{Name: "a_x", Schema: json.RawMessage(`7`)}, of)
	if centurion.KindOf(err) != centurion.KindUsage || !strings.HasPrefix(err.Error(), "a_x: its schema cannot be used: ") {
		t.Errorf("got %v", err)
	}
	about := centurion.ExternalTool{Name: "a_good", Description: "does good", Schema: json.RawMessage(`{"type":"object", "x":1}`)}
	tl, err := NewExternal(about, of)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "spec", fmt.Sprintf("%s %s %s", tl.Name(), tl.Description(), Spec(tl).Schema), `a_good does good {"type":"object", "x":1}`)
	for _, x := range []struct{ only, away bool }{{true, false}, {false, true}, {false, false}} {
		about.ReadOnly, about.Away = x.only, x.away
		tl, _ := NewExternal(about, of)
		if e := tl.Effect(nil); e.ReadOnly != x.only || e.Outside == x.away || e.Writes != nil {
			t.Errorf("%+v: %+v", x, e)
		}
	}
	if _, err = tl.Run(t.Context(), b.Call, json.RawMessage(`{"a":1}`)); centurion.KindOf(err) != centurion.KindPermission || len(of.ran) > 0 {
		t.Errorf("without a rule: %v, ran %q", err, of.ran)
	}
	wantList(t, "asked", b.gate.permissions(), "a_good *")
	want(t, "metadata", fmt.Sprintf("%s %q", b.gate.asked[0].Metadata["input"], b.gate.asked[0].Always), `{"a":1} ["*"]`)
	b.gate.rules = []permission.Rule{{Permission: "a_*", Pattern: "*", Action: permission.Allow}}
	r, err := tl.Run(t.Context(), b.Call, json.RawMessage(`{"a":1}`))
	if err != nil || r.Output != "done" {
		t.Errorf("%+v, %v", r, err)
	}
	wantList(t, "ran", of.ran, `call_1 a_good {"a":1}`)
	tl, _ = NewExternal(about, nil)
	_, err = tl.Run(t.Context(), b.Call, nil)
	want(t, "gone", fmt.Sprint(centurion.KindOf(err), " ", err), "not_found a_good: its server is no longer configured")
}

// The arguments of a tool of others are repaired and refused like those of our own, whatever its schema leaves open.
func TestArgumentsOfOthers(t *testing.T) {
	tl, err := NewExternal(centurion.ExternalTool{Name: "a_x", Schema: json.RawMessage(`{"type":"object","required":["b"],"properties":{
		"a":{"type":"array"},"b":{"type":"array","items":{"type":"string"}},"n":{"type":"number","minimum":0,"maximum":5},"i":{"type":"integer"},"o":{"type":"object"},"s":{"type":"string"},"any":{}}}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, says := range map[string]string{
		`{"b":"x"}`:           `{"b":["x"]}`,
		`{"b":""}`:            `{"b":[]}`,
		`{"b":["x"],"a":[1]}`: `{"b":["x"],"a":[1]}`,
		`{"b":["x"],"a":"x"}`: `a_x: "a" is "x" and has to be a list`,
		`{"b":null}`:          `a_x: "b" is null and has to be a list`,
		`{"b":[],"n":0}`:      `{"b":[],"n":0}`,
		`{"b":[],"n":5}`:      `{"b":[],"n":5}`,
		`{"b":[],"n":-1}`:     `a_x: "n" is -1 and has to be at least 0`,
		`{"b":[],"n":6}`:      `a_x: "n" is 6 and has to be at most 5`,
		`{"b":[],"s":true}`:   `{"b":[],"s":"true"}`,
		`{"b":[],"o":[]}`:     `a_x: "o" is [] and has to be an object`,
		`{"b":[],"i":"5.0"}`:  `{"b":[],"i":5}`,
		`{"b":[],"i":5.5}`:    `a_x: "i" is 5.5 and has to be a whole number`,
		`{"b":[],"i":1e30}`:   `a_x: "i" is 1e30 and has to be a whole number`,
		`{"b":[],"more":1}`:   `{"b":[],"more":1}`,
		`{"b":[],"any":null}`: `{"b":[]}`,
		`{"b":[1,2]}`:         `{"b":["1","2"]}`,
		`{"B":[],"S":"x"}`:    `{"b":[],"s":"x"}`,
		`{"b":[],"i":` + strings.Repeat("1", 41) + `}`: `a_x: "i" is ` + strings.Repeat("1", 41) + ` and has to be a whole number`,
	} {
		got, err := Normalize(tl, json.RawMessage(in))
		said := string(got)
		if err == nil {
			err = Check(tl, got)
		}
		if err != nil {
			said = err.Error()
		}
		want(t, in, said, says)
	}
}
