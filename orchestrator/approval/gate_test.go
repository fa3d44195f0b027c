package approval

import (
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/permission"
	"centurion/tools"
)

// A command of an agent has the network if a rule of the configuration or a person allowed it, not where only a built-in rule did, or none:
// then it connects to single hosts.
func TestNetworkOfACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask     string
		rules   []permission.Level
		network bool
		hosts   bool
		kind    centurion.Kind
	}{
		"by a rule":         {"ask", level("opencode.json", permission.Allow), true, false, ""},
		"by a default rule": {"ask", level(permission.DefaultLevel, permission.Allow), false, true, ""},
		"by no rule at all": {"ask", nil, false, true, ""},
		"by the policy":     {"allow", level("opencode.json", permission.Ask), true, false, ""},
		"no one to ask":     {"deny", level("opencode.json", permission.Ask), false, false, centurion.KindPermission},
		"against a rule":    {"allow", level("opencode.json", permission.Deny), false, false, centurion.KindPermission},
	} {
		m := deciding(t, centurion.Mission{Options: centurion.MissionOptions{Ask: c.ask}}, map[string][]permission.Level{"worker": c.rules})
		m.iso = &isolation.Checkouts{}
		call := &tools.Call{Workspace: m.cfg.Workspace}
		err := Desk{Approvals: m, Caller: Caller{Agent: "worker"}}.Ask(t.Context(), call, tools.Access{Permission: "bash", Patterns: []string{"make"}, Script: "make"})
		if centurion.KindOf(err) != c.kind || call.Network != c.network || (call.Connect != nil) != c.hosts {
			t.Errorf("%s: network %v, hosts %v, %v", name, call.Network, call.Connect != nil, err)
		}
	}
}
