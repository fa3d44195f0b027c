package approval

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
	"centurion/workspace"
)

// deciding returns the approvals of a mission under the rules of each agent.
func deciding(t *testing.T, rec centurion.Mission, rules map[string][]permission.Level) *Approvals {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	st := storetest.Open(t)
	rec.ID, rec.Status = "msn_1", centurion.MissionRunning
	if err := st.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&rec) }); err != nil {
		t.Fatal(err)
	}
	return New(state.New(t.Context(), nil, st, rec, nil), nil, nil, Config{Workspace: ws, Confined: true, Rules: func(agent string) []permission.Level { return rules[agent] }})
}

func level(name string, a permission.Action) []permission.Level {
	return []permission.Level{{Name: name, Rules: []permission.Rule{{Permission: "*", Pattern: "*", Action: a}}}}
}

// One of the host's own commands runs and has the network by what a person has written, answered or accepted. One that came with the
// project does not run by a policy, and a rule against it always counts.
func TestMayCheck(t *testing.T) {
	t.Parallel()
	ask, deny, allow := level("opencode.json", permission.Ask), level("opencode.json", permission.Deny), level("opencode.json", permission.Allow)
	for name, c := range map[string]struct {
		rec    centurion.Mission
		rules  []permission.Level
		says   string // "" if it may run
		hint   string
		online bool
		silent bool // no refusal is kept
	}{
		"by a rule":                 {centurion.Mission{}, allow, "", "", true, true},
		"by a default rule":         {centurion.Mission{}, level(permission.DefaultLevel, permission.Allow), "", "", false, true},
		"by no rule at all":         {centurion.Mission{}, nil, "", "", false, true},
		"against a rule":            {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}, deny, "the acceptance command `make` may not run: ", "--ask allow", false, true},
		"by the policy":             {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}, ask, "", "", true, true},
		"no one to ask":             {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}}, ask, "there is no one to ask (--ask deny)", "--ask allow", false, false},
		"shipped, by the policy":    {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}, Adopted: []string{"make"}}, ask, "which --ask allow does not replace", "trust it", false, false},
		"shipped, by a default":     {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}, Adopted: []string{"make"}}, level(permission.DefaultLevel, permission.Allow), "which --ask allow does not replace", "trust it", false, false},
		"shipped, by a rule":        {centurion.Mission{Adopted: []string{"make"}}, allow, "", "", true, true},
		"configured, not trusted":   {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow", Verify: []string{"make"}, AskVerify: true}}, ask, "is not trusted", "trust it", false, false},
		"given by the person":       {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny", Verify: []string{"make"}}}, ask, "", "", true, true},
		"accepted with the plan":    {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}, Approved: []string{"make"}}, deny, "", "", true, true},
		"another one was accepted":  {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny"}, Approved: []string{"make it"}}, ask, "no one to ask", "--ask allow", false, false},
		"all checks are trusted":    {centurion.Mission{Options: centurion.MissionOptions{Ask: "deny", TrustVerify: true}}, ask, "", "", true, true},
		"another one came with it":  {centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}, Adopted: []string{"make it"}}, ask, "", "", true, true},
		"asks nobody for what runs": {centurion.Mission{Options: centurion.MissionOptions{Ask: "ask"}}, allow, "", "", true, true},
	} {
		m := deciding(t, c.rec, map[string][]permission.Level{"worker": c.rules, "commander": allow})
		allowed := m.Allows(t.Context(), "make", "worker")
		if asks, err := m.st.Store.Asks(t.Context(), "msn_1", false); allowed != (c.says == "") || len(asks) > 0 || err != nil {
			t.Errorf("%s: allowed ahead: %v, asked %v, %v", name, allowed, asks, err)
		}
		err := m.MayCheck(t.Context(), "make", "worker", "")
		if (err == nil) != (c.says == "") || err != nil && (centurion.KindOf(err) != centurion.KindPermission || !strings.Contains(err.Error(), c.says) || !strings.Contains(centurion.HintOf(err), c.hint)) {
			t.Errorf("%s: %v, %s", name, err, centurion.HintOf(err))
		}
		asks, aerr := m.st.Store.Asks(t.Context(), "msn_1", false)
		if m.Online("make") != c.online || (len(asks) == 0) != c.silent || aerr != nil {
			t.Errorf("%s: online %v, kept %+v, %v", name, m.Online("make"), asks, aerr)
		}
		for _, a := range asks {
			if a.Answer != "reject" || a.By != state.ByPolicy || a.Answered.IsZero() || a.Title != "make" {
				t.Errorf("%s: kept %+v", name, a)
			}
		}
	}
}

// A command that prepares a checkout always counts as the project's: no policy and no built-in rule lets it run, even where it was never
// configured or adopted.
func TestMayRunSetup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules  []permission.Level
		runs   bool
		online bool
	}{
		"by a rule":         {level("opencode.json", permission.Allow), true, true},
		"by a default rule": {level(permission.DefaultLevel, permission.Allow), false, false},
		"by the policy":     {level("opencode.json", permission.Ask), false, false},
		"by no rule at all": {nil, false, false},
	} {
		rec := centurion.Mission{Options: centurion.MissionOptions{Ask: "allow"}}
		m := deciding(t, rec, map[string][]permission.Level{"worker": c.rules})
		err := m.MayRun(t.Context(), rec, "npm ci", "worker", "", "setup command")
		if (err == nil) != c.runs || !c.runs && (centurion.KindOf(err) != centurion.KindPermission || !strings.Contains(err.Error(), "the setup command `npm ci` may not run")) || m.Online("npm ci") != c.online {
			t.Errorf("%s: %v, online %v", name, err, m.Online("npm ci"))
		}
	}
}

// What one may not do it cannot hand on either, but for what only the default rules ask about; and a line that was allowed for always is
// asked about no more, though a rule against it counts.
func TestNarrowedByThoseAbove(t *testing.T) {
	t.Parallel()
	m := deciding(t, centurion.Mission{}, map[string][]permission.Level{"may": level("a", permission.Allow), "asks": level("b", permission.Ask), "not": level("c", permission.Deny),
		"default": level(permission.DefaultLevel, permission.Ask), "none": nil})
	a := tools.Access{Permission: "bash", Patterns: []string{"make"}, Script: "make"}
	for _, c := range []struct {
		agent string
		above []string
		want  permission.Action
		why   string
	}{
		{"may", nil, permission.Allow, ""},
		{"may", []string{"may", "default", "none"}, permission.Allow, ""},
		{"may", []string{"asks"}, permission.Ask, "for the asks, which handed this work on"},
		{"may", []string{"may", "not"}, permission.Deny, "for the not, which handed this work on"},
		{"not", []string{"may"}, permission.Deny, ""},
	} {
		d := Desk{Approvals: m, Caller: Caller{Agent: c.agent, Above: c.above}}.narrowed(a, m.cfg.Workspace)
		if d.Action != c.want || !strings.Contains(d.Reason, c.why) {
			t.Errorf("%s below %v: %s, %s", c.agent, c.above, d.Action, d.Reason)
		}
	}
	m.always.add(store.Ask{Type: store.AskPermission, Answer: "always", By: state.ByPerson, Permission: "bash", Always: []string{"make"}})
	for agent, want := range map[string]permission.Action{"asks": permission.Allow, "not": permission.Deny} {
		if d := m.Decide(agent, a); d.Action != want {
			t.Errorf("%s, allowed for always: %s", agent, d.Action)
		}
	}
	if d := m.Decide("asks", tools.Access{Permission: "bash", Patterns: []string{"make it"}, Script: "make it"}); d.Action != permission.Ask {
		t.Errorf("another line: %s", d.Action)
	}
}

// An "always" is a rule for what was asked about, and for a directory only if a command named it.
func TestRulesOfAnAnswer(t *testing.T) {
	t.Parallel()
	outside := tools.OutsidePrefix + "/tmp/*"
	for name, c := range map[string]struct {
		ask  store.Ask
		want []permission.Rule
	}{
		"a command":     {store.Ask{Permission: "bash", Always: []string{"ls *", outside}}, []permission.Rule{{Permission: "bash", Pattern: "ls *", Action: permission.Allow}, {Permission: strings.TrimSpace(tools.OutsidePrefix), Pattern: "/tmp/*", Action: permission.Allow}}},
		"another tool":  {store.Ask{Permission: "edit", Always: []string{outside}}, []permission.Rule{{Permission: "edit", Pattern: outside, Action: permission.Allow}}},
		"nothing named": {store.Ask{Permission: "bash"}, nil},
	} {
		if got := rulesOf(c.ask); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	var g grants
	if g.add(store.Ask{Type: store.AskPermission, Answer: "always", By: state.ByPerson, Permission: "edit", Always: []string{"a.go"}}); len(g.rules) != 1 || len(g.commands) != 0 {
		t.Errorf("an edit by no call: %+v", g)
	}
}

// A call never ran if the ask about this very call was closed by its host's end, and an endpoint may use a number again.
func TestOnlyAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks []store.Ask
		want bool
	}{
		"closed":                       {[]store.Ask{{Session: "ses_1", Call: "c1", By: state.ByEnd}}, true},
		"answered":                     {[]store.Ask{{Session: "ses_1", Call: "c1", By: state.ByPerson}}, false},
		"never asked":                  {nil, false},
		"another call":                 {[]store.Ask{{Session: "ses_1", Call: "c2", By: state.ByEnd}}, false},
		"another session":              {[]store.Ask{{Session: "ses_2", Call: "c1", By: state.ByEnd}}, false},
		"the number of an earlier one": {[]store.Ask{{Session: "ses_1", Call: "c1", By: state.ByEnd, Created: centurion.MillisTime(10)}}, false},
		"closed, then answered":        {[]store.Ask{{Session: "ses_1", Call: "c1", By: state.ByEnd}, {Session: "ses_1", Call: "c1", By: state.ByPerson}}, false},
	} {
		m := deciding(t, centurion.Mission{}, nil)
		if err := m.st.Store.Update(t.Context(), func(tx *store.Tx) error {
			for i, a := range c.asks {
				a.ID, a.Type, a.Mission = "per_"+string(rune('1'+i)), store.AskPermission, "msn_1"
				if a.Created.IsZero() {
					a.Created = centurion.MillisTime(int64(1000 + i))
				}
				if err := tx.PutAsk(&a); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		call := centurion.Part{SessionID: "ses_1", CallID: "c1", State: &centurion.ToolState{Time: centurion.PartTime{Start: 1000}}}
		if got := m.OnlyAsked(t.Context(), call); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
