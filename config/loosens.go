package config

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"centurion/trust"
)

// loosens reports whether a project's value for a key would remove a protection of the person's, from their own files or by default.
func loosens(key string, person, project *Own) bool {
	const defaultCost = 10 // USD, the default of --max-cost
	switch key {
	case "isolation": // shared: agents write straight into the person's files
		return project.Isolation == "shared" && person.Isolation != "shared"
	case "ask":
		return project.Ask == "allow" && person.Ask != "allow" || project.Ask == "ask" && person.Ask == "deny"
	case "yes":
		return project.Yes && !person.Yes
	case "merge":
		return project.Merge && !person.Merge
	case "verify": // another list would replace the person's
		return len(person.Verify) > 0
	case "require_proof":
		return !project.RequireProof && person.RequireProof
	case "detach": // asks would go unseen
		return project.Detach && !person.Detach
	case "sandbox":
		return project.Sandbox != "require" && person.Sandbox == "require" || project.Sandbox == "off" && person.Sandbox != "off"
	case "max_cost":
		return project.MaxCost != nil && *project.MaxCost > *cmp.Or(person.MaxCost, new(float64(defaultCost)))
	case "search": // search queries would go there
		s := project.Search
		return s.Brave+s.Tavily+s.GitHub != "" || s.SearXNG != "" && (person.Search.SearXNG != "" || !loopback(s.SearXNG))
	case "concurrency":
		return project.Concurrency.wider(person.Concurrency)
	case "max_tokens":
		return person.MaxTokens > 0 && project.MaxTokens > person.MaxTokens
	case "max_duration":
		return person.MaxDuration > 0 && project.MaxDuration > person.MaxDuration
	case "max_rounds":
		return person.MaxRounds > 0 && project.MaxRounds > person.MaxRounds
	case "max_tool_calls":
		return person.MaxToolCalls > 0 && project.MaxToolCalls > person.MaxToolCalls
	case "agent": // who does the work, and by which models
		return project.Agent != person.Agent || !reflect.DeepEqual(project.Agents, person.Agents)
	case "fallback":
		return !reflect.DeepEqual(project.Fallback, person.Fallback)
	case "profile": // assistant: without a plan, proof and checkouts
		return project.Profile != cmp.Or(person.Profile, "mission")
	case "task_budget":
		return looserTask(person.TaskBudget, project.TaskBudget)
	}
	return loosensLimit(key, person, project)
}

// loosensLimit is loosens for the constants of the orchestrator: a smaller limit counts. The defaults are those of docs/configuration.md.
func loosensLimit(key string, person, project *Own) bool {
	switch key {
	case "max_workers":
		return project.MaxWorkers > cmp.Or(person.MaxWorkers, 50)
	case "max_per_agent":
		return project.MaxPerAgent > cmp.Or(person.MaxPerAgent, 10)
	case "max_commands":
		return project.MaxCommands > cmp.Or(person.MaxCommands, max(2, runtime.NumCPU()))
	case "stall_timeout":
		return project.StallTimeout > cmp.Or(person.StallTimeout, 5*time.Minute)
	case "session_ttl":
		return project.SessionTTL > cmp.Or(person.SessionTTL, time.Hour)
	case "sub_agent_idle":
		return project.SubAgentIdle > cmp.Or(person.SubAgentIdle, 2*time.Minute)
	case "idle_timeout":
		return project.IdleTimeout > cmp.Or(person.IdleTimeout, 2*time.Minute)
	case "wait_timeout":
		return project.WaitTimeout > cmp.Or(person.WaitTimeout, 5*time.Minute)
	case "ask_timeout":
		return person.AskTimeout > 0 && project.AskTimeout > person.AskTimeout
	case "max_attempts":
		return project.MaxAttempts > cmp.Or(person.MaxAttempts, 3)
	case "max_retries":
		return project.MaxRetries > cmp.Or(person.MaxRetries, 8)
	case "stuck_rounds":
		return project.StuckRounds > cmp.Or(person.StuckRounds, 3)
	case "pause_rounds":
		return project.PauseRounds > cmp.Or(person.PauseRounds, 5)
	case "max_reopened":
		return project.MaxReopened > cmp.Or(person.MaxReopened, 3)
	case "countdown":
		return project.Countdown > cmp.Or(person.Countdown, 2*time.Second)
	case "poll_interval":
		return project.PollInterval > cmp.Or(person.PollInterval, time.Second)
	case "gate_release":
		return project.GateRelease > cmp.Or(person.GateRelease, 5*time.Second)
	case "retry_delay":
		return project.RetryDelay > cmp.Or(person.RetryDelay, 5*time.Second)
	case "retention":
		return project.Retention > cmp.Or(person.Retention, 10*time.Minute)
	case "archive_after":
		return project.ArchiveAfter > cmp.Or(person.ArchiveAfter, 30*time.Minute)
	case "archive_failed_after":
		return project.ArchiveFailedAfter > cmp.Or(person.ArchiveFailedAfter, 10*time.Minute)
	case "keep_tasks":
		return project.KeepTasks > cmp.Or(person.KeepTasks, 1000)
	case "max_processes", "max_memory": // the machine is the person's
		return true
	}
	return false
}

// withholdChoices takes back the model and the agent that an untrusted file of the project chooses, unless the person's are the same: what
// they have configured costs their money. A model of a provider that needs trust itself stays, so that a run says so.
func (l *loader) withholdChoices() error {
	c := l.c
	for _, at := range []struct {
		key       string
		all, mine *node
		value     *string
	}{{"model", c.own, l.mineOwn, nil}, {"model", c.open, c.mineOpen, &c.Model}, {"default_agent", c.open, c.mineOpen, &c.DefaultAgent}} {
		n, mine := at.all.get(at.key), at.mine.get(at.key)
		switch {
		case n == nil || n.kind != kindString || !n.src.foreign() || mine != nil && mine.text == n.text:
			continue
		case at.key == "model" && (n.text == l.mineModel() || c.shipsProvider(n.text)):
			continue
		case mine == nil && slices.Contains(OpenCodeAgents, strings.ToLower(n.text)): // none of ours, as a run says
			continue
		}
		n.src.withholds(n.line, trust.Setting, "%s: %s", at.key, n.rawJSON())
		if at.key == "model" {
			c.withheldModel = n
		}
		if mine == nil {
			mine = &node{src: &source{}} // null: as if it were missing
		}
		at.all.set(member{key: at.key, value: mine})
		if at.value != nil {
			*at.value = mine.text
		}
	}
	return nil
}

// mineModel returns the model that the person has configured; "" if none.
func (l *loader) mineModel() string {
	for _, n := range []*node{l.mineOwn.get("model"), l.c.mineOpen.get("model")} {
		if n != nil && n.kind == kindString {
			return n.text
		}
	}
	return ""
}

// shipsProvider reports whether the provider of a model rests on an untrusted file of the project: it is refused when it is used.
func (c *Config) shipsProvider(model string) bool {
	id, _, _ := strings.Cut(model, "/")
	own, _, err := c.ownURL(id, c.mine[id])
	return err == nil && c.untrusted(c.Providers[id], own) != nil
}

// Lost names a restriction that the project's files had at an earlier reading, and that one which is not trusted has taken back or widened
// since; "" if there is none. A start does without: there the person says what is to be in force. Rules are kept in any case.
func (c *Config) Lost(before *Config) string {
	now := map[string]*node{}
	for _, m := range append(c.own.restrictions(), c.open.restrictions()...) {
		now[m.key] = m.value
	}
	for _, m := range append(before.own.restrictions(), before.open.restrictions()...) {
		src, key := m.value.src, m.key
		i := slices.IndexFunc(c.sources, func(s *source) bool { return s.name == src.name })
		n := now[key]
		switch {
		case !src.project, i >= 0 && c.sources[i].trusted, n != nil && (!n.src.project || string(n.rawJSON()) == string(m.value.rawJSON())):
		case n == nil, c.own.get(key) == nil, loosens(key, &before.Own, &c.Own):
			return src.name + ": " + key
		}
	}
	return ""
}

// restrictions are the members that may restrict, those of providers with their whole path.
func (n *node) restrictions() (all []member) {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		switch m.key {
		case "$schema", "model", "default_agent", "agent", "command", "mcp", "plugin", "format", "dirty", "profile", "fallback", "worktree", "search", "persist", "tool_policy",
			"notify", "session_headers", "co_authored_by", "compaction":
		case "provider":
			for _, p := range m.value.members {
				for _, list := range []string{"whitelist", "blacklist"} {
					if v := p.value.get(list); v != nil {
						all = append(all, member{m.key + "." + p.key + "." + list, v.line, v})
					}
				}
			}
		default:
			all = append(all, m)
		}
	}
	return all
}
