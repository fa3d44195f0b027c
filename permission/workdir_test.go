package permission

import (
	"slices"
	"testing"
)

// A script's paths start where it runs, and what lies in the project is not outside because it lies above that directory.
func TestScriptInDirectoryBelow(t *testing.T) {
	at := Place{Dir: "/p", Workdir: "sub/deep", Home: "/home/u"}
	t.Parallel()
	for script, c := range map[string]struct {
		outside  []string
		readOnly bool
		action   Action
	}{
		"cat ../go.mod":          {nil, true, Allow},
		"cat $PWD/../go.mod":     {nil, true, Allow},
		"cat ../../go.mod":       {nil, true, Allow},
		"cat ../../../elsewhere": {[]string{"/elsewhere"}, false, Ask},
		"cat /etc/passwd":        {[]string{"/etc/passwd"}, false, Ask},
		"cat ../secret/key":      {nil, true, Deny},
	} {
		s := at.Parse(script)
		if !slices.Equal(s.Outside, c.outside) || s.ReadOnly != c.readOnly {
			t.Errorf("%s: outside %q, only reads %v (%s)", script, s.Outside, s.ReadOnly, s.Why)
		}
		rules := []Level{{Name: DefaultLevel, Rules: []Rule{{"*", "*", Allow}, {"bash", "*", Ask}, {"external_directory", "*", Ask}}},
			{Name: "yours", Rules: []Rule{{"read", "sub/secret/*", Deny}}}}
		if d := at.Decide(rules, script, false); d.Action != c.action {
			t.Errorf("%s: %s, %s", script, d.Action, d.Reason)
		}
	}
}
