package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// places are the files of a case in testdata/whole.txt by their short names.
var places = map[string]string{"own": "../home/.config/centurion/config.jsonc", "open": "../home/.config/opencode/opencode.json", "their-own": ".opencode/centurion.jsonc", "their-open": "opencode.json"}

// What files are read as, in full: each case of testdata/whole.txt is some files, and what they set, what of them is said and withheld, and
// what they are refused for. After a change on purpose, run this test with -update and look at the difference.
func TestWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of another system")
	}
	const file = "testdata/whole.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for one := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		files, want := "", ""
		for line := range strings.Lines(one + "\n") {
			if strings.HasPrefix(line, "> ") {
				files += line
			} else {
				want += line
			}
		}
		got := readWhole(t, files)
		if got != want && !*update {
			t.Errorf("%sgot\n%swant\n%s", files, got, want)
		}
		out.WriteString(files + got + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readWhole(t *testing.T, files string) string {
	t.Helper()
	w := newWorld(t)
	for line := range strings.Lines(files) {
		name, text, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
		if place := places[name]; place != "" {
			name = place
		}
		w.write(filepath.Join(w.dir, name), strings.ReplaceAll(text, "⏎", "\n"))
	}
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	c, err := Load(w.opts)
	if err == nil {
		_, err = c.Rules()
	}
	if err == nil {
		_, err = c.Chains(t.Context())
	}
	if err == nil {
		_, err = c.Cast("mission")
	}
	if err != nil {
		say("%s: %v (%s)", centurion.KindOf(err), err, centurion.HintOf(err))
	}
	if c != nil {
		v := reflect.ValueOf(*c)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "Sources" || !f.IsExported() || v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Pointer {
				continue
			}
			if b, err := json.Marshal(v.Field(i).Interface()); err != nil {
				t.Error(err)
			} else if all := strings.Join(set(b), " "); all != "" {
				say("%s: %s", f.Name, all)
			}
		}
		for _, item := range withheld(c) {
			say("withheld: %s", item)
		}
	}
	return strings.ReplaceAll(out.String(), filepath.Dir(w.dir), "")
}

// set returns what is set of a JSON value, on one line.
func set(b []byte) []string {
	var all map[string]json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return []string{string(b)}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch v := string(all[name]); v {
		case "null", `""`, "0", "false", "{}":
		default:
			if inner := set(all[name]); v[0] != '{' {
				out = append(out, name+"="+v)
			} else if len(inner) > 0 {
				out = append(out, name+"("+strings.Join(inner, " ")+")")
			}
		}
	}
	return out
}
