package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"centurion"
)

var update = flag.Bool("update", false, "rewrite what the tests compare with")

const page = "../docs/configuration.md"

const pageHead = `# Configuration

Every key, made from the program's own tables by ` + "`go test -run TestConfigurationPage -update ./config`" + `; a test fails when this page is
out of date.

## Files

Later files win. Objects are merged key by key, everything else is replaced, and ` + "`null`" + ` counts for nothing; the entries of ` + "`instructions`" + ` are collected.

1. ` + "`~/.config/opencode/`: `config.json`, `opencode.json`, `opencode.jsonc`; then the file that `$OPENCODE_CONFIG` names, which is a project's file if it lies in the project" + `
2. ` + "`opencode.json(c)`" + ` from the root of the repository down to the project
3. ` + "`.opencode/opencode.json(c)`" + ` in the same directories, agents and commands as Markdown below ` + "`.opencode/`" + `; then ` + "`$OPENCODE_CONFIG_CONTENT`" + `
4. Centurion's own keys: ` + "`~/.config/centurion/config.jsonc`, then `.opencode/centurion.jsonc`" + `. A flag beats every file.

` + "`{env:NAME}` and `{file:path}`" + ` in a string are replaced as in OpenCode. A project's file may do less before you trust it with ` + "`centurion trust`" + `:
` + "`{env:NAME}`" + ` counts only as the ` + "`apiKey`" + ` of a known provider, at that provider's own address, with that provider's own variable; an address,
key or header of its own, on this machine too, makes a run that needs that provider end with exit code 2, or ask on a terminal. Its ` + "`permission`" + `
can only restrict: ` + "`agents.md`" + `. A ` + "`model`, `agent`, `profile` or `fallback`" + ` of its own choice, and limits wider than yours or the defaults, do not
count; a run says so in one line, and uses yours. ` + "`{file:path}`" + ` must always stay inside the project.

## While a process runs

A process that hosts a project (` + "`centurion serve`, `run`, `rpc`, a background host" + `) looks at these files, your keys and your trust before something begins, and
reads them again if one has changed. Missions and conversations that begin or continue then use what is in force; those at work keep what they began with, and a
conversation its model and agent. A faulty file changes nothing: its fault is told once, with file and line, in the log and as a notice in OpenCode's clients, and what was
read before stays in force until the file is correct. A project's file that has changed needs your trust again, as at a start. Until then, rules that it has lost stay
in force; if it has lost a limit or another restriction, or made it wider, nothing of the change counts until that is put back or the process is started again.

Only a start reads ` + "`sandbox`, `max_commands`, `max_checks`, `max_processes`, `max_memory`, `concurrency`, `worktree.workspaces`, `co_authored_by`, `poll_interval`, `retention`, `archive_after`,\n`archive_failed_after`, `keep_tasks`, `notify`, `mcp` and `plugin`" + `; a notice names those that have changed. ` + "`max_workers`" + ` counts at once for each mission, and for all together from the next start.
Environment variables and flags are those of the start.

## Centurion's own keys

In ` + "`config.jsonc` and `centurion.jsonc`" + `. An unknown key is an error that names the nearest.

| key | value | default | flag | |
|---|---|---|---|---|
`

const openHead = `
## OpenCode's keys

In ` + "`opencode.json(c)`" + `. *honoured*: it works here. *refused*: a run stops with exit code 2. *ignored*: it has no effect and would have changed
what agents can do, so every run says so. *ignored (doctor)*: it has no effect, and only ` + "`centurion doctor`" + ` says so.

| key | | |
|---|---|---|
`

// ownDocs says of every key of Centurion's own what it is for, its default, and whether a flag of run has its name.
func ownDocs() map[string]struct {
	standard string
	flag     bool
	text     string
} {
	type doc = struct {
		standard string
		flag     bool
		text     string
	}
	return map[string]doc{
		"$schema":                {"", false, "for editors"},
		"model":                  {"the first that is found", true, "provider and model"},
		"agent":                  {"commander or assistant", true, "the agent that a mission starts with; or settings of single agents"},
		"agent.*.acp":            {"", false, "the command of an agent that is another program, or claude, codex, gemini, opencode, goose ([other agents](acp-workers.md))"},
		"agent.*.env":            {"", false, "the variables that such an agent gets"},
		"agent.*.files":          {"", false, "the directories that it may write beside its worktree"},
		"agent.*.hosts":          {"", false, "the hosts that it may connect to; `*` is any"},
		"agent.*.fallback":       {"", false, "models that replace the agent's own when it fails"},
		"agent.*.tool_policy":    {"tool_policy", false, "as `tool_policy`, for this agent"},
		"format":                 {"text", true, "what a run prints: text, or one JSON event a line"},
		"isolation":              {"auto", true, "whether sessions write in worktrees of their own"},
		"max_workers":            {"50", true, "sessions at once"},
		"max_per_agent":          {"10", true, "sessions of one agent at once"},
		"max_cost":               {"10", true, "USD after which a mission pauses"},
		"max_tokens":             {"none; 5 million without a price", true, "tokens after which a mission pauses"},
		"max_duration":           {"none", true, "time after which a mission pauses"},
		"max_rounds":             {"none", true, "requests after which a mission pauses"},
		"max_tool_calls":         {"none", true, "tool calls after which a mission pauses"},
		"task_budget.cost":       {"none", false, "USD that one task may spend"},
		"task_budget.tokens":     {"none", false, "tokens that one task may use"},
		"task_budget.rounds":     {"none", false, "requests that one task may make"},
		"task_budget.tool_calls": {"none", false, "tool calls that one task may make"},
		"task_budget.minutes":    {"none", false, "minutes that one task may work"},
		"ask":                    {"ask on a terminal, else deny", true, "what happens to a request that no permission rule answers"},
		"yes":                    {"false", true, "run a plan without showing it for approval"},
		"dirty":                  {"include", true, "whether a mission starts from your uncommitted work too"},
		"level":                  {"the Commander's assessment", true, "how big the mission is"},
		"profile":                {"mission", true, "four agents with a plan and proof, or one assistant; `solo` is not in this version"},
		"sandbox":                {"auto", true, "how commands are confined: `auto` takes the best way of this machine, `require` refuses less than namespaces, `off` confines nothing"},
		"merge":                  {"false", true, "merge finished work without asking"},
		"detach":                 {"false", true, "run missions in the background"},
		"require_proof":          {"false", true, "an end without evidence is exit code 4"},
		"verify":                 {"", false, "commands that must pass before a mission is complete"},
		"fallback":               {"none", false, "models that replace one that fails, for all models or for one"},
		"concurrency.providers":  {"none", false, "sessions at once, for each provider"},
		"concurrency.models":     {"none", false, "sessions at once, for each provider/model"},
		"concurrency.agents":     {"none", false, "sessions at once, for each agent"},
		"worktree.setup":         {"", false, "commands that prepare a fresh worktree"},
		"worktree.workspaces":    {"auto", false, "how a worktree is made: `overlay` over shared files, `checkout` of all files, `auto` takes the first where it is possible"},
		"search.searxng":         {"`$SEARXNG_URL`", false, "address of a SearXNG instance"},
		"search.brave_key":       {"`$BRAVE_API_KEY`", false, "key for Brave's search"},
		"search.tavily_key":      {"`$TAVILY_API_KEY`", false, "key for Tavily's search"},
		"search.github_token":    {"`$GITHUB_TOKEN`", false, "token for the search in GitHub's code"},
		"compaction.buffer":      {"20,000 of a window above 200,000, else a fifth", false, "tokens of a model's window that stay free"},
		"persist":                {"coalesce", false, "store an answer every 100 ms, or every piece of it"},
		"tool_policy":            {"auto", false, "which tool calls of one answer run at the same time"},
		"co_authored_by":         {"true", false, "add a `Co-Authored-By` line to commits"},
		"notify":                 {"true", false, "show desktop notifications"},
		"session_headers":        {"true", false, "send `x-session-id` and `x-parent-session-id` with requests to models"},
		"poll_interval":          {"1s", false, "time between two looks at running tasks"},
		"stall_timeout":          {"5m", false, "time without any event after which a request counts as stuck"},
		"session_ttl":            {"1h", false, "working time of one attempt"},
		"sub_agent_idle":         {"2m", false, "time without any event after which a sub-agent is stopped"},
		"retention":              {"10m", false, "how long the session of a finished task is kept"},
		"archive_after":          {"30m", false, "how long the record of a completed task stays out of the archive"},
		"archive_failed_after":   {"10m", false, "the same for a task that was not completed"},
		"keep_tasks":             {"1000", false, "task records kept at most"},
		"stable_for":             {"", false, "how long an agent that does not say that its turn has ended must be silent"},
		"wait_timeout":           {"5m", false, "how long a delegation that waits for its result waits"},
		"ask_timeout":            {"none", false, "how long a question or a permission ask waits for you; then the agent decides itself, or is refused"},
		"idle_timeout":           {"2m", false, "time without a byte from a model after which a request counts as stalled"},
		"gate_release":           {"5s", false, "a longer wait for a provider gives the slot to another session"},
		"retry_delay":            {"5s", false, "time between two attempts"},
		"max_attempts":           {"3", false, "recoveries in a row of one session"},
		"max_retries":            {"8", false, "repeats of one request that the provider refuses as too many"},
		"countdown":              {"2s", false, "time before a mission continues by itself"},
		"stuck_rounds":           {"3", false, "rounds without progress before another approach is asked for"},
		"pause_rounds":           {"5", false, "rounds without progress before you are asked"},
		"max_reopened":           {"3", false, "how often a failed check sends work back"},
		"max_commands":           {"one for each processor, at least 2", false, "shell commands at once, without checks"},
		"max_checks":             {"one for each processor, at least 2", false, "checks at once: the merge queue proves work on top of work that is not merged yet; 1 proves one after the other"},
		"max_processes":          {"512", false, "processes of the commands of one checkout together on Linux, of each command on Windows: more, and they are ended"},
		"max_memory":             {"half of the machine's", false, "their memory together, in MiB, likewise"},
	}
}

// readOwn reads a file of Centurion's own with one key.
func readOwn(key, value string) error {
	doc := value
	parts := strings.Split(strings.ReplaceAll(key, "*", "x"), ".")
	for _, p := range slices.Backward(parts) {
		doc = fmt.Sprintf("{%q:%s}", p, doc)
	}
	n, err := parseJSONC(&source{name: "f"}, []byte(doc))
	if err != nil {
		return err
	}
	_, err = decodeOwn(n)
	return err
}

// below lists the keys of the object under a key, as the error for an unknown one names them.
func below(key string) []string {
	_, keys, _ := strings.Cut(centurion.HintOf(readOwn(key+".qqqqqqqqq", "1")), "the keys there are ")
	if keys == "" {
		return nil
	}
	return strings.Split(keys, ", ")
}

// valueOf says what a key takes, as the error for something else does.
func valueOf(key string) string {
	for _, wrong := range []string{"true", "1"} {
		err, ok := errors.AsType[*centurion.Error](readOwn(key, wrong))
		if !ok {
			continue
		}
		if _, want, ok := strings.Cut(err.Msg, "must be "); ok {
			want, _, _ = strings.Cut(want, ", not ")
			return want
		}
	}
	return "anything"
}

// ownKeys lists every key, those of objects with dots.
func ownKeys() (keys []string) {
	for _, top := range keysOf(ownFields()) {
		inner := below(top)
		if len(inner) == 0 || top == "agent" {
			keys = append(keys, top)
		}
		for _, k := range inner {
			keys = append(keys, top+"."+k)
		}
		if top == "agent" {
			for _, k := range below("agent.*") {
				keys = append(keys, "agent.*."+k)
			}
		}
	}
	return keys
}

// Issue "A person's first hour" 17: every key stands in the page, with its type, default and flag, and what becomes of OpenCode's.
func TestConfigurationPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(pageHead)
	docs, keys := ownDocs(), ownKeys()
	for _, k := range keys {
		d, ok := docs[k]
		if !ok || d.text == "" {
			t.Errorf("the key %s has no description: add it to ownDocs", k)
		}
		flag := ""
		if d.flag {
			flag = "`--" + strings.ReplaceAll(k, "_", "-") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.ReplaceAll(k, "*", "<name>"), valueOf(k), d.standard, flag, d.text)
	}
	for k := range docs {
		if !slices.Contains(keys, k) {
			t.Errorf("%s is described and is no key", k)
		}
	}
	b.WriteString(openHead)
	for _, k := range openCodeKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(k.path, "*", "<name>"), k.use, k.note)
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("docs/configuration.md is out of date (%v): go test -run TestConfigurationPage -update ./config", err)
	}
}
