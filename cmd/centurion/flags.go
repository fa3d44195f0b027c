package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/config"
)

// runner runs a mission according to the flags of run or resume.
type runner struct {
	*cli
	f *runFlags
}

// runFlags are the flags of run and resume.
type runFlags struct {
	dir, model, agent, format, isolation, ask, dirty, profile, sandbox string
	maxWorkers, maxPerAgent, maxRounds, level                          int
	maxCost                                                            float64
	maxTokens                                                          int64
	maxDuration                                                        time.Duration
	yes, detach, merge, requireProof                                   bool
	costSet                                                            bool // --max-cost was given
	modelKnown                                                         bool // the mission has chosen the model before: no notes about it
	maxToolCalls                                                       int
	files                                                              []string // given with --file
	plan                                                               string   // given with --plan
}

func (f *runFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "the project directory (default: here)")
	fl.StringVar(&f.model, "model", "", "provider/model, such as openai/gpt-5")
	fl.StringVar(&f.agent, "agent", "", "agent that owns the mission (default: the profile's)")
	fl.StringVar(&f.format, "format", "", "text or json, one event on each line (default text)")
	fl.StringVar(&f.isolation, "isolation", "", "auto, shared or worktree (default auto)")
	fl.Var((*sessionCap)(&f.maxWorkers), "max-workers", "maximum of concurrent sessions (default 50)")
	fl.Var((*sessionCap)(&f.maxPerAgent), "max-per-agent", "maximum of concurrent sessions of an agent (default 10)")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "pause after spending this many USD (default 10)")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "pause after using this many tokens")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "pause after this time, such as 90m")
	fl.IntVar(&f.maxRounds, "max-rounds", 0, "pause after this many requests to models")
	fl.IntVar(&f.maxToolCalls, "max-tool-calls", 0, "pause after this many tool calls")
	fl.StringVar(&f.ask, "ask", "", "for requests that no rule covers: ask, deny or allow")
	fl.BoolVar(&f.yes, "yes", false, "do not show the plan for approval")
	fl.StringVar(&f.dirty, "dirty", "", "uncommitted work: include or ignore (default include)")
	fl.IntVar(&f.level, "level", 0, "1, 2 or 3 (default: the Commander decides)")
	fl.StringVar(&f.profile, "profile", "", "mission, or assistant for one agent (default mission)")
	fl.StringVar(&f.sandbox, "sandbox", "", "how commands are confined: auto, require to refuse less than namespaces, or off (default auto)")
	fl.BoolVar(&f.detach, "detach", false, "run in a background host and print the mission's id")
	for flag, values := range map[string][]cobra.Completion{"format": {"text", "json"}, "ask": {"ask", "deny", "allow"}, "level": {"1", "2", "3"},
		"profile": {agents.ProfileMission, agents.ProfileAssistant}, "isolation": {"auto", "shared", "worktree"}, "dirty": {"include", "ignore"}, "sandbox": {"auto", "require", "off"}} {
		completeValues(cmd, flag, values...)
	}
	fl.BoolVar(&f.merge, "merge", false, "merge the finished work; exit with 4 on a conflict")
	fl.BoolVar(&f.requireProof, "require-proof", false, "exit with 4 without a passed check, proof or review")
}

// settle fills in the configured values and refuses invalid ones.
func (f *runFlags) settle(own config.Own) error {
	f.model = cmp.Or(f.model, own.Model)
	f.format = cmp.Or(f.format, own.Format, "text")
	f.isolation = cmp.Or(f.isolation, own.Isolation, "auto")
	f.ask = cmp.Or(f.ask, own.Ask)
	f.dirty = cmp.Or(f.dirty, own.Dirty, "include")
	f.profile = cmp.Or(f.profile, own.Profile, "mission")
	f.sandbox = cmp.Or(f.sandbox, own.Sandbox, "auto")
	f.agent = cmp.Or(f.agent, own.Agent)
	f.maxWorkers = cmp.Or(f.maxWorkers, own.MaxWorkers)
	f.maxPerAgent = cmp.Or(f.maxPerAgent, own.MaxPerAgent)
	f.maxTokens = cmp.Or(f.maxTokens, own.MaxTokens)
	f.maxDuration = cmp.Or(f.maxDuration, own.MaxDuration)
	f.maxRounds = cmp.Or(f.maxRounds, own.MaxRounds)
	f.maxToolCalls = cmp.Or(f.maxToolCalls, own.MaxToolCalls)
	if f.profile != agents.ProfileAssistant { // which has no levels
		f.level = cmp.Or(f.level, own.Level)
	}
	f.yes, f.merge, f.detach = f.yes || own.Yes, f.merge || own.Merge, f.detach || own.Detach
	f.requireProof = f.requireProof || own.RequireProof
	if !f.costSet && own.MaxCost != nil {
		f.maxCost, f.costSet = *own.MaxCost, true
	}
	for _, o := range []struct {
		flag, value string
		all         []string
		later, step string // a value that comes with a later step
	}{
		{"format", f.format, []string{"text", "json"}, "", ""},
		{"isolation", f.isolation, []string{"auto", "shared", "worktree"}, "", ""},
		{"ask", f.ask, []string{"", "ask", "deny", "allow"}, "", ""},
		{"dirty", f.dirty, []string{"include", "ignore"}, "", ""},
		{"profile", f.profile, []string{"mission", "assistant", "solo"}, "solo", "a later version"},
		{"sandbox", f.sandbox, []string{"auto", "require", "off"}, "", ""},
	} {
		if !slices.Contains(o.all, o.value) {
			return badValue(o.flag, o.value, o.all)
		}
		if o.step != "" && o.value == o.later {
			return notYet("--"+o.flag+" "+o.value, o.step)
		}
	}
	if f.level < 0 || f.level > 3 {
		return badValue("level", fmt.Sprint(f.level), []string{"1", "2", "3"})
	}
	for _, l := range []struct {
		flag  string
		value any
		below bool
	}{
		{"max-cost", f.maxCost, f.maxCost < 0}, {"max-tokens", f.maxTokens, f.maxTokens < 0}, {"max-rounds", f.maxRounds, f.maxRounds < 0},
		{"max-tool-calls", f.maxToolCalls, f.maxToolCalls < 0}, {"max-duration", f.maxDuration, f.maxDuration < 0},
		{"max-workers", f.maxWorkers, f.maxWorkers < 0}, {"max-per-agent", f.maxPerAgent, f.maxPerAgent < 0},
	} {
		if l.below {
			return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("a limit cannot be negative: --%s %v", l.flag, l.value), Hint: "see: centurion run --help"}
		}
	}
	return nil
}

// sessionCap is a number of simultaneous sessions. 0 is an error, not the default: nothing would ever run.
type sessionCap int

func (n *sessionCap) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err == nil && v < 1 {
		err = strconv.ErrRange
	}
	*n = sessionCap(v)
	return err
}

func (n *sessionCap) String() string { return strconv.Itoa(int(*n)) }

func (n *sessionCap) Type() string { return "number" }
