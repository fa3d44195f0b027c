package v1

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"centurion"
	"centurion/server/opencode/v1/contract"
)

// Each part of a message stays one. What a model does not get as it is becomes a text before it.
func TestParts(t *testing.T) {
	x := newRig(t)
	dir := "file://" + x.mission.Directory
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, test := range map[string]struct{ given, goal, want string }{
		"two texts":             {`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "a\n\nb", "text a|text b"},
		"what others have said": {`[{"type":"text","text":"a","synthetic":true},{"type":"text","text":"b","ignored":true},{"type":"text","text":"c"}]`, "c", "synthetic a|ignored b|text c"},
		"an id of a part":       {`[{"id":"prt_1","type":"text","text":"a"}]`, "a", "text a"},
		"file":                  {`[{"type":"text","text":"look"},{"type":"file","mime":"text/markdown","filename":"R","url":"` + dir + `/README.md"}]`, "look", "text look|synthetic File README.md:\n\n# A\n\nA needle.\n|file text/plain R " + dir + "/README.md"},
		"file alone":            {`[{"type":"file","mime":"text/plain","filename":"R.md","url":"` + dir + `/README.md"}]`, "[file R.md]", "synthetic File README.md:\n\n# A\n\nA needle.\n|file text/plain R.md " + dir + "/README.md"},
		"file and blanks":       {`[{"type":"text","text":" \n"},{"type":"file","mime":"text/plain","filename":"R.md","url":"` + dir + `/README.md"}]`, "[file R.md]", "text  \n|synthetic File README.md:\n\n# A\n\nA needle.\n|file text/plain R.md " + dir + "/README.md"},
		"lines":                 {`[{"type":"file","mime":"text/plain","url":"` + dir + `/README.md?start=3&end=3"}]`, "[file]", "synthetic File README.md, lines 3 to 3:\n\nA needle.\n|file text/plain  " + dir + "/README.md?start=3&end=3"},
		"lines to the end":      {`[{"type":"file","mime":"text/plain","url":"` + dir + `/README.md?start=2"}]`, "[file]", "synthetic File README.md, lines 2 to 4:\n\n\nA needle.\n|file text/plain  " + dir + "/README.md?start=2"},
		"lines that are none":   {`[{"type":"file","mime":"text/plain","url":"` + dir + `/README.md?start=99&end=1"}]`, "[file]", "synthetic File README.md, lines 4 to 4:\n\n|file text/plain  " + dir + "/README.md?start=99&end=1"},
		"directory":             {`[{"type":"file","mime":"application/x-directory","filename":"src","url":"` + dir + `/src"}]`, "[file src]", "synthetic Directory src:\n\nhello.go|file application/x-directory src " + dir + "/src"},
		"text":                  {`[{"type":"file","mime":"text/plain","filename":"n.txt","url":"data:text/plain;base64,` + b64("hi") + `"}]`, "[file n.txt]", "synthetic File n.txt:\n\nhi|file text/plain n.txt data:text/plain;base64," + b64("hi")},
		"text in the open":      {`[{"type":"file","mime":"text/plain","filename":"n.txt","url":"data:text/plain,a%20b"}]`, "[file n.txt]", "synthetic File n.txt:\n\na b|file text/plain n.txt data:text/plain,a%20b"},
		"document":              {`[{"type":"file","mime":"application/octet-stream","filename":"n.pdf","url":"data:;base64,` + b64("%PDF-1.4\n") + `"}]`, "[file n.pdf]", "file application/pdf n.pdf data:application/pdf;base64," + b64("%PDF-1.4\n")},
		"agent":                 {`[{"type":"text","text":"@worker go"},{"type":"agent","name":"worker","source":{"value":"@worker","start":0,"end":7}}]`, "@worker go", `text @worker go|agent worker {"value":"@worker","start":0,"end":7}|synthetic Give this to the agent worker, with a prompt that has what it needs to know of the above.`},
		"work":                  {`[{"type":"subtask","agent":"worker","description":"d","prompt":"do it"}]`, "do it", "subtask worker d do it|synthetic Give this to the agent worker, and say what it has answered:\n\ndo it"},
	} {
		t.Run(name, func(t *testing.T) {
			var given []centurion.Part
			if err := json.Unmarshal([]byte(test.given), &given); err != nil {
				t.Fatal(err)
			}
			goal, parts, err := x.project.Content(t.Context(), given)
			if err != nil || goal != test.goal {
				t.Errorf("goal %q, want %q: %v", goal, test.goal, err)
			}
			var got []string
			for _, p := range parts {
				if p.ID != "" {
					t.Errorf("a client has chosen the id %s", p.ID)
				}
				p.ID, p.SessionID, p.MessageID = centurion.NewID(centurion.PrefixPart), centurion.NewID(centurion.PrefixSession), centurion.NewID(centurion.PrefixMessage)
				b, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := contract.Shape("Part", b); err != nil {
					t.Errorf("%s: %v", b, err)
				}
				var again centurion.Part
				if err := json.Unmarshal(b, &again); err != nil || again.ID != p.ID {
					t.Errorf("%s cannot be read: %v", b, err)
				}
				got = append(got, inWords(again))
			}
			if have := strings.Join(got, "|"); have != test.want {
				t.Errorf("got\n%s, want\n%s", have, test.want)
			}
		})
	}
}

func inWords(p centurion.Part) string {
	switch {
	case p.Synthetic:
		return "synthetic " + p.Text
	case p.Ignored:
		return "ignored " + p.Text
	case p.Type == centurion.PartText:
		return "text " + p.Text
	case p.Type == centurion.PartFile:
		url := p.File.URL
		if url == "" {
			url = p.File.DataURL()
		}
		return "file " + p.File.Mime + " " + p.File.Name + " " + url
	case p.Type == centurion.PartAgent:
		return "agent " + p.Meant.Name + " " + string(p.Meant.Source)
	}
	return string(p.Type) + " " + p.Meant.Agent + " " + p.Meant.Description + " " + p.Meant.Prompt
}
