package workspace

import (
	"fmt"
	"strings"
	"testing"

	"centurion/workspace/todo"
)

// historyOf is a process that has seen some texts of a plan, the newest last.
func historyOf(t *testing.T, texts ...string) *history {
	t.Helper()
	h := &history{}
	for _, text := range texts {
		if !h.remember([]byte(text), true) {
			t.Fatalf("%q is no plan", text)
		}
	}
	return h
}

// remembered lists the versions: a number, "-" for those that were found, and the text.
func remembered(h *history) string {
	var all []string
	for _, v := range h.list {
		all = append(all, strings.TrimLeft(fmt.Sprintf("%d%s%s", v.n, map[bool]string{false: "-"}[v.own], v.text), "0"))
	}
	return strings.Join(all, "|")
}

const (
	planA = "- [ ] T1 a\n- [ ] T2 b\n- [ ] T3 c\n"
	planB = "- [x] T1 a\n- [ ] T2 b\n- [ ] T3 c\n"              // T1 is done
	planC = "- [x] T1 a\n- [ ] T2 b\n  - note: n\n- [ ] T3 c\n" // and T2 has a note
)

// What an unknown text is based on, and what becomes of it: the version with the fewest other lines, the newest of several, and its
// later changes come back, but nothing that the text means to be as it is.
func TestBaseOfAText(t *testing.T) {
	t.Parallel()
	slip := strings.Replace(planA, "- [ ] T2", "-[ ] T2", 1) // is read as no item
	noted := strings.Replace(slip, "a\n", "a\n  - note: n\n", 1)
	last := strings.Replace(planA, "- [ ] T3", "-[ ] T3", 1) // likewise, another line
	for name, tt := range map[string]struct {
		versions []string
		text     string
		base     int
		want     string // "" for the text
	}{
		"the first":                {nil, planA, -1, ""},
		"the only one":             {[]string{planA}, planA + "x\n", 0, ""},
		"the newest":               {[]string{planA, planB}, planB + "x\n", 1, ""},
		"an earlier one":           {[]string{planA, planB, planC}, planA + "x\n", 0, planC + "x\n"},
		"the one between":          {[]string{planA, planB, planC}, planB + "x\n", 1, planC + "x\n"},
		"equal to an earlier one":  {[]string{planA, planB}, planA, 1, ""},
		"as far from two":          {[]string{planA, planB}, strings.Replace(planA, "[ ] T1", "[~] T1", 1), 1, ""},
		"blank":                    {[]string{planA, planB}, " \n", 1, ""},
		"half of it":               {[]string{planA + "- [ ] T4 d\n", planB + "- [ ] T4 d\n"}, "- [ ] T1 a\n- [ ] T2 b\n", 1, ""},
		"more than half of it":     {[]string{planA, planB}, "- [ ] T1 a\n- [ ] T2 b\n", 0, "- [x] T1 a\n- [ ] T2 b\n"},
		"a line corrected":         {[]string{planA, slip, noted}, strings.Replace(planA, "c\n", "d\n", 1), 1, strings.Replace(strings.Replace(planA, "c\n", "d\n", 1), "a\n", "a\n  - note: n\n", 1)},
		"none corrected":           {[]string{planA, slip, noted}, strings.Replace(slip, "c\n", "d\n", 1), 1, strings.Replace(noted, "c\n", "d\n", 1)},
		"two corrected, the later": {[]string{planA, slip, noted, strings.Replace(noted, "- [ ] T3", "-[ ] T3", 1)}, planA + "x\n", 3, ""},
		"two corrected, the first": {[]string{planA, last, strings.Replace(last, "a\n", "a\n  - note: n\n", 1), strings.Replace(strings.Replace(last, "a\n", "a\n  - note: n\n", 1), "- [ ] T2", "-[ ] T2", 1)}, planA + "x\n", 3, ""},
		"wrong from the start":     {[]string{slip, noted}, planA + "x\n", 0, strings.Replace(planA, "a\n", "a\n  - note: n\n", 1) + "x\n"},
	} {
		h := historyOf(t, tt.versions...)
		doc, err := todo.Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := h.base([]byte(tt.text), doc, cut(doc)); got != tt.base {
			t.Errorf("%s: it is based on %d, want %d", name, got, tt.base)
		}
		if tt.want == "" {
			tt.want = tt.text
		}
		before := remembered(h)
		if got := string(h.meet([]byte(tt.text))); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		n := len(tt.versions) + 1
		after := strings.TrimPrefix(fmt.Sprintf("%s|%d-%s", before, n, tt.text), "|")
		if tt.want != tt.text {
			after += fmt.Sprintf("|%d%s", n+1, tt.want)
		}
		if got := remembered(h); got != after {
			t.Errorf("%s: it remembers %q, want %q", name, got, after)
		}
		if again := string(h.meet([]byte(tt.want))); again != tt.want || remembered(h) != after {
			t.Errorf("%s, once more: %q, %q", name, again, remembered(h))
		}
	}
}

// A text that was sent, not saved, is what it equals: what came later is done to it, too.
func TestRenewed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		versions   []string
		text, want string
	}{
		"nothing is known":        {nil, planA, planA},
		"the newest":              {[]string{planA, planB}, planB, planB},
		"equal to an earlier one": {[]string{planA, planB, planC}, planA, planC},
		"equal to two":            {[]string{planA, planB, planA, planC}, planA, planC},
		"based on an earlier one": {[]string{planA, planB, planC}, planA + "x\n", planC + "x\n"},
		"no plan":                 {[]string{planA, planB}, "```\n", "```\n"},
	} {
		h := historyOf(t, tt.versions...)
		before := remembered(h)
		if got := string(h.renewed([]byte(tt.text))); got != tt.want || remembered(h) != before {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A change of somebody else is told from the last text that had one: a blank file was an editor's in the middle of a save.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		versions []string
		text     string
		want     string
	}{
		"a change":              {[]string{planA}, planB, planA + ">" + planB},
		"of an earlier one":     {[]string{planA, planB}, planA + "x\n", planA + ">" + planA + "x\n"},
		"behind blank ones":     {[]string{planA, "", " \n"}, planB, planA + ">" + planB},
		"nothing but blank":     {[]string{"", "\n"}, planB, ""},
		"the first":             {nil, planB, ""},
		"it becomes blank":      {[]string{planA}, "\n", ""},
		"the newest, no change": {[]string{planA}, planA, ""},
		"no plan":               {[]string{planA}, "```\n", ""},
	} {
		h := historyOf(t, tt.versions...)
		h.meet([]byte(tt.text))
		var got []string
		for _, f := range h.foreign {
			got = append(got, string(f.From.Bytes())+">"+string(f.To.Bytes()))
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Half a save is told from a whole text.
func TestPartialTexts(t *testing.T) {
	t.Parallel()
	newest := planA + planB + planC + "12345678\n"
	if len(newest)%4 != 0 {
		t.Fatalf("%d bytes", len(newest))
	}
	part := newest[len(newest)/4:]
	for name, tt := range map[string]struct {
		versions []string
		text     string
		want     bool
	}{
		"nothing is known":                  {nil, planA, false},
		"empty":                             {[]string{newest}, "", false},
		"the newest":                        {[]string{newest}, newest, false},
		"longer":                            {[]string{newest}, newest + "x", false},
		"cut off in a line":                 {[]string{newest}, newest[1 : len(newest)-1], true},
		"without an end, as the newest":     {[]string{newest + "x"}, newest[1:len(newest)-1] + "y", false},
		"cut off after a line of others":    {[]string{newest}, strings.Replace(newest[:len(newest)-9], planA[:2], "", 1), true},
		"a change of one with this end":     {[]string{planA + planB, planA + planB + "# x\n"}, strings.Replace(planA+planB, planA[:2], "", 1), false},
		"less than three quarters":          {[]string{newest}, part[1:], true},
		"three quarters":                    {[]string{newest}, part, false},
		"the beginning":                     {[]string{planA}, planA[:22], true},
		"the beginning of the newest":       {[]string{newest}, newest[:len(newest)-9], true},
		"the beginning of an earlier one":   {[]string{planC + planA, planB + "# other words\n"}, planC, true},
		"an earlier one":                    {[]string{planC, planB + "# other words\n"}, planC, false},
		"an earlier one, with a newer line": {[]string{planB, planC}, planB, false},
	} {
		h := historyOf(t, tt.versions...)
		if got := h.partial([]byte(tt.text)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Numbers of another process are taken over without any of its own left; a text that is no plan is not remembered; and however long the
// texts are, the two newest stay.
func TestRemember(t *testing.T) {
	t.Parallel()
	h := historyOf(t, planA, planB, planB)
	if h.remember([]byte("```\n"), true) || remembered(h) != "1"+planA+"|2"+planB || !h.isNewest([]byte(planB)) || h.isNewest([]byte(planA)) || h.isNewest(nil) {
		t.Errorf("remembered %q", remembered(h))
	}
	c := h.clone()
	c.remember([]byte(planC), false)
	if remembered(h) != "1"+planA+"|2"+planB || remembered(c) != "1"+planA+"|2"+planB+"|3-"+planC {
		t.Errorf("remembered %q and %q", remembered(h), remembered(c))
	}
	c.unnumber()
	if c.remember([]byte(planA), false); remembered(c) != planA+"|"+planB+"|-"+planC+"|1-"+planA {
		t.Errorf("without numbers: %q", remembered(c))
	}
	large := "# " + strings.Repeat("x", maxRemembered/2)
	h = historyOf(t, planA, large+"1\n", large+"2\n", large+"3\n")
	if got := len(h.list); got != 2 || h.bytes != 2*len(large)+4 || !h.isNewest([]byte(large+"3\n")) {
		t.Errorf("%d versions of %d bytes", got, h.bytes)
	}
}
