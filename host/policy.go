package host

import (
	"maps"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/session"
)

// policies returns which tool calls may overlap for the agents that have a configuration of their own, under the names
// that they have in the cast.
func policies(cfg *config.Config, cast *agents.Cast) (map[string]session.Policy, error) {
	out := map[string]session.Policy{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Own.Agents)) {
		policy := cfg.Own.Agents[name].ToolPolicy
		if policy == "" {
			continue
		}
		a, err := cast.Find(name)
		if err != nil {
			file, _ := cfg.Origin("agent")
			return nil, &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: "agent." + name + ".tool_policy (" + file + ")", Err: err, Hint: centurion.HintOf(err)}
		}
		out[a.Name] = session.Policy(policy)
	}
	return out, nil
}
