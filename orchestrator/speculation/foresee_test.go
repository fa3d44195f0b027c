package speculation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// work is a landing of a plan. A commit is the names of the landings in it, such as "base.1.2".
type work struct {
	Landing
	name      string
	red       bool   // its acceptance command fails
	breaks    bool   // the mission's check fails with it
	conflicts string // with this one, if it is below
}

const ownCheck = "whole"

func (w *work) lay(_ context.Context, at string) (string, bool) {
	switch {
	case holds(at, w.name):
		return at, true
	case w.conflicts != "" && holds(at, w.conflicts):
		return "", false
	}
	return at + "." + w.name, true
}

func holds(commit, name string) bool { return slices.Contains(strings.Split(commit, "."), name) }

// plan is landings in the order of the line.
type plan []*work

// newPlan makes a plan from words such as "red", "breaks", "empty", "conflicts 1" and "" for good work, numbered from 1.
func newPlan(words ...string) (p plan) {
	for i, word := range words {
		w := &work{name: fmt.Sprint(i + 1), red: word == "red", breaks: word == "breaks"}
		w.conflicts, _ = strings.CutPrefix(word, "conflicts ")
		if w.conflicts == word {
			w.conflicts = ""
		}
		w.Landing = Landing{Commands: []string{"check " + w.name}, Empty: word == "empty", Lay: w.lay,
			Passes: func(r centurion.Receipt) bool { return r.Passed }}
		if word == "unchecked" {
			w.Commands = nil
		}
		p = append(p, w)
	}
	return p
}

func (p plan) landings() (all []*Landing) {
	for _, w := range p {
		all = append(all, &w.Landing)
	}
	return all
}

// passes is the truth about a check.
func (p plan) passes(c Check) bool {
	return !slices.ContainsFunc(p, func(w *work) bool {
		return c.Proves && w.red && c.Command == "check "+w.name || !c.Proves && w.breaks && holds(c.After, w.name)
	})
}

// text names a check: "2@base.1" proves what leads to the commit base.1.2, "whole@base.1" is the mission's.
func text(c Check) string {
	if c.Proves {
		return strings.TrimPrefix(c.Command, "check ") + "@" + c.Before
	}
	return c.Command + "@" + c.After
}

func texts(all []Wanted) string {
	var out []string
	for _, w := range all {
		out = append(out, text(w.Check))
	}
	return strings.Join(out, " ")
}

// What is asked for next, with what is known: results by the text of their check, true if green.
func TestForesee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan  []string
		known map[string]bool
		most  int
		want  string
	}{
		"as if each were green":          {[]string{"", "", ""}, nil, 9, "1@base 2@base.1 3@base.1.2 whole@base whole@base.1.2.3"},
		"as many as fit":                 {[]string{"", "", ""}, nil, 2, "1@base 2@base.1"},
		"one":                            {[]string{"", "", ""}, nil, 1, "1@base"},
		"what is known is not asked":     {[]string{"", "", ""}, map[string]bool{"1@base": true, "whole@base": true}, 9, "2@base.1 3@base.1.2 whole@base.1.2.3"},
		"the first is red":               {[]string{"red", "", ""}, map[string]bool{"1@base": false}, 9, "2@base 3@base.2 whole@base whole@base.2.3"},
		"a later one is red":             {[]string{"", "red", ""}, map[string]bool{"2@base.1": false}, 9, "1@base 3@base.1 whole@base whole@base.1.3 2@base.1.3 whole@base.1.3.2"},
		"the first conflicts":            {[]string{"conflicts base", ""}, nil, 9, "2@base whole@base whole@base.2"},
		"a later one conflicts":          {[]string{"", "conflicts 1", ""}, nil, 9, "1@base 3@base.1 whole@base whole@base.1.3"},
		"nothing changed":                {[]string{"empty", ""}, nil, 9, "1@base 2@base whole@base whole@base.2"},
		"without a check of its own":     {[]string{"unchecked", ""}, nil, 9, "2@base.1 whole@base whole@base.1.2"},
		"the next batch":                 {[]string{"", "", "", "", "", "", ""}, map[string]bool{"1@base": true, "2@base.1": true, "3@base.1.2": true, "4@base.1.2.3": true, "5@base.1.2.3.4": true, "whole@base": true}, 9, "whole@base.1.2.3.4.5 6@base.1.2.3.4.5 7@base.1.2.3.4.5.6 whole@base.1.2.3.4.5.6.7"},
		"who waits longer comes first":   {[]string{"unchecked", "red", "unchecked", "unchecked", "unchecked", "", ""}, map[string]bool{"2@base.1": false, "whole@base": true, "whole@base.1.3.4.5": true}, 2, "2@base.1.3.4.5 6@base.1.3.4.5.2"},
		"the mission's is red":           {[]string{"unchecked", "unchecked", "unchecked", "unchecked", "unchecked", ""}, map[string]bool{"whole@base": true, "whole@base.1.2.3.4.5": false}, 9, "whole@base.1.2.3 whole@base.1 whole@base.1.2 whole@base.1.2.3.4"},
		"it is halved":                   {[]string{"unchecked", "unchecked", "unchecked", "unchecked", "unchecked"}, map[string]bool{"whole@base": true, "whole@base.1.2.3.4.5": false, "whole@base.1.2.3": false}, 9, "whole@base.1.2 whole@base.1"},
		"the mission's was red before":   {[]string{"", ""}, map[string]bool{"whole@base": false, "whole@base.1.2": false, "1@base": true, "2@base.1": true}, 9, ""},
		"everything is known":            {[]string{""}, map[string]bool{"1@base": true, "whole@base": true, "whole@base.1": true}, 9, ""},
		"a batch of nothing to be added": {[]string{"empty"}, map[string]bool{"1@base": true}, 9, ""},
	} {
		all := newPlan(c.plan...).landings()
		n := min(len(all), Crowd)
		got := Foresee(t.Context(), Course{Tip: "base", At: "base", Batch: all[:n], Line: all[n:]}, []string{ownCheck}, func(w Wanted) (passed, known bool) {
			passed, known = c.known[text(w.Check)]
			return passed, known
		}, c.most)
		if texts(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, texts(got), c.want)
		}
	}
}

// In the middle of a round the chain stays as it is, and who has been put back waits for the next one.
func TestForeseeFromTheMiddle(t *testing.T) {
	t.Parallel()
	p := newPlan("", "red", "", "")
	c := Course{Tip: "base", At: "base.1", Chain: []Step{{&p[0].Landing, "base.1"}}, Batch: p.landings()[2:3], Line: []*Landing{&p[1].Landing, &p[3].Landing}}
	got := texts(Foresee(t.Context(), c, []string{ownCheck}, func(Wanted) (passed, known bool) { return false, false }, 9))
	if want := "3@base.1 whole@base whole@base.1.3 2@base.1.3 4@base.1.3.2 whole@base.1.3.2.4"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if len(c.Chain) != 1 || c.At != "base.1" {
		t.Errorf("the course was changed: %+v", c)
	}
}

// The needed one runs, then the wanted in their order; what is not among the first is stopped, and counts until it has ended.
func TestSteer(t *testing.T) {
	t.Parallel()
	check := func(s string) Check { return Check{Command: s} }
	for name, c := range map[string]struct {
		wanted  string
		running map[string]bool // true: stopped
		most    int
		stop    string
		start   string
	}{
		"room for all":                {"need a b", map[string]bool{"need": false}, 3, "", "a b"},
		"room for one":                {"need a b", map[string]bool{"need": false}, 2, "", "a"},
		"none beside it":              {"need a b", map[string]bool{"need": false}, 1, "", ""},
		"not foreseen":                {"a b", map[string]bool{"need": false}, 2, "", "a"},
		"one goes on":                 {"need a b", map[string]bool{"need": false, "a": false}, 3, "", "b"},
		"not wanted any more":         {"need a", map[string]bool{"need": false, "x": false}, 2, "x", ""},
		"no room beside the last":     {"need a b", map[string]bool{"need": false, "a": false, "b": false}, 2, "b", ""},
		"one that ends has its place": {"need a b", map[string]bool{"need": false, "x": true}, 3, "", "a"},
		"nothing is wanted":           {"", map[string]bool{"need": false, "x": false}, 3, "x", ""},
	} {
		var wanted []Wanted
		for s := range strings.FieldsSeq(c.wanted) {
			wanted = append(wanted, Wanted{Check: check(s)})
		}
		running := map[Check]bool{}
		for s, stopped := range c.running {
			running[check(s)] = stopped
		}
		stop, start := steer(check("need"), wanted, running, c.most)
		if got := texts(start); strings.ReplaceAll(got, "@", "") != c.start {
			t.Errorf("%s: started %q, want %q", name, got, c.start)
		}
		names := slices.Sorted(maps.Keys(func() map[string]bool {
			m := map[string]bool{}
			for _, s := range stop {
				m[s.Command] = true
			}
			return m
		}()))
		if got := strings.Join(names, " "); got != c.stop {
			t.Errorf("%s: stopped %q, want %q", name, got, c.stop)
		}
	}
}

// The tries of a race are all proven on the same commit, and at most one of them is below what follows.
func TestForeseeRace(t *testing.T) {
	p := newPlan("", "", "", "")
	p[1].Race, p[2].Race = "r", "r"
	var got []string
	for _, w := range Foresee(t.Context(), Course{Tip: "base", At: "base", Batch: p.landings()}, nil, func(Wanted) (bool, bool) { return false, false }, 10) {
		got = append(got, text(w.Check))
	}
	if want := "1@base 2@base.1 3@base.1 4@base.1.2"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
