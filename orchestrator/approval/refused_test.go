package approval

import (
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
	"centurion/store"
)

// A command of the host that may not run is refused with why and what to do; it is recorded as an ask of its task where nobody was there to
// answer, and a plugin that answers is told of.
func TestHostCommandIsRefused(t *testing.T) {
	t.Parallel()
	const rule, trusts = "allow it with a permission rule, or run with --ask allow", "look at it and trust it: centurion trust; then resume; or allow it with a permission rule"
	const plan = "look at it and trust it: centurion trust plan.md; then resume; or allow it with a permission rule"
	for name, c := range map[string]struct {
		rec    centurion.Mission
		action permission.Action
		hook   string // what plugins say
		what   string
		why    string // after the rule's reason, if that begins with +; "" if it runs
		fix    string
		text   string // of the ask that is kept, likewise
		event  string // of a plugin
	}{
		"by a rule":           {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}, permission.Deny, "", acceptance, "+", rule, "", ""},
		"nobody is there":     {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}}, permission.Ask, "", acceptance, "+; there is no one to ask (--ask deny)", rule, acceptance + " of the plan: ", ""},
		"it came with it":     {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}, permission.Ask, "", "setup command", "it came with the project and is not trusted, which --ask allow does not replace", trusts, "setup command: ", ""},
		"it came in a plan":   {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}, Adopted: []string{"make"}, Todo: "plan.md"}, permission.Ask, "", acceptance, "it came with the project and is not trusted, which --ask allow does not replace", plan, acceptance + " of the plan: ", ""},
		"a plugin refuses":    {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}, permission.Ask, "deny", acceptance, "the plugin one, two refused it", rule, "", `{"hook":"permission.ask","by":"plugin one, two","answer":"deny","about":"make"}`},
		"a plugin allows":     {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}}, permission.Ask, "allow", acceptance, "", "", "", `{"hook":"permission.ask","by":"plugin one, two","answer":"allow","about":"make"}`},
		"trust is a person's": {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}}, permission.Ask, "allow", "setup command", "+; there is no one to ask (--ask deny)", trusts, "setup command: ", ""},
	} {
		m := deciding(t, c.rec, map[string][]permission.Level{"worker": level("opencode.json", c.action)})
		m.cfg.Hooks = &plugins{status: c.hook}
		c.rec.Session = "ses_0"
		reason := m.ruling(c.rec, "make", "worker", c.what).decide().Reason
		why := c.why
		if why != "" && why[0] == '+' {
			why = reason + why[1:]
		}
		err := m.MayRun(t.Context(), c.rec, "make", "worker", "tsk_1", c.what)
		if want := mayNot(c.what, "make", why, c.fix); why == "" && err != nil || why != "" && !reflect.DeepEqual(err, want) {
			t.Errorf("%s: %+v, want %+v", name, err, want)
		}
		asks, aerr := m.st.Store.Asks(t.Context(), "msn_1", false)
		if aerr != nil || (len(asks) == 1) != (c.text != "") {
			t.Fatalf("%s: kept %+v, %v", name, asks, aerr)
		}
		for _, got := range asks {
			want := store.Ask{ID: got.ID, Created: got.Created, Answered: got.Answered, Type: store.AskPermission, Mission: "msn_1", Session: "ses_0", Task: "tsk_1", Permission: "bash", Patterns: []string{"make"},
				Always: []string{"make"}, Title: "make", Text: c.text + reason, Answer: "reject", By: "policy"}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: kept\n%+v\nwant\n%+v", name, got, want)
			}
		}
		all, eerr := m.st.Store.Events(t.Context(), store.EventQuery{})
		var event strings.Builder
		for _, e := range all {
			if e.Type == centurion.EventPluginActed && e.Mission == "msn_1" && e.Session == "ses_0" && e.Task == "tsk_1" {
				event.WriteString(string(e.Data))
			}
		}
		if eerr != nil || event.String() != c.event {
			t.Errorf("%s: told %s, %v", name, event.String(), eerr)
		}
	}
	want := &centurion.Error{Kind: centurion.KindPermission, Msg: "the acceptance command `make` may not run: why", Hint: "fix"}
	if err := mayNot(acceptance, "make", "why", "fix"); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("%+v", err)
	}
}
