package config

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/permission"
)

// use is the treatment of a key of OpenCode's configuration.
type use string

const (
	honoured use = "honoured"
	refused  use = "refused" // a run stops: without it agents could do what the file forbids
	loud     use = "ignored" // it would change what agents can do, so every run reports it
	quiet    use = "ignored (doctor)"
)

// openKey is a key of OpenCode's configuration, with dots; * stands for a name. It includes all keys below.
type openKey struct {
	path string
	use  use
	note string // its effect here, or why it has none
}

// openCodeKeys classifies every key of OpenCode 1.18's schema; a test compares it with the schema.
func openCodeKeys() []openKey {
	keys := []openKey{
		{"$schema", honoured, "for editors"},
		{"model", honoured, "the mission's model"},
		{"default_agent", honoured, "who owns a mission"},
		{"disabled_providers", honoured, "never picked, and an error when named; a project's file can only add to yours"},
		{"enabled_providers", honoured, "all others are disabled; a project's file can only narrow yours"},
		{"instructions", honoured, "files for every prompt; no URLs, and a project's file names files of the project only"},
		{"tools.*", honoured, "false is `permission` deny, true allow"},
		{"mode", loud, "the older name of `agent`: rename it"},
		{"provider.*.name", honoured, "shown by OpenCode's clients; elsewhere the id is"},
		{"provider.*.api", honoured, "the older place of `options.baseURL`"},
		{"provider.*.env", honoured, "variables that may hold its key"},
		{"provider.*.npm", honoured, "chooses the API: `@ai-sdk/openai`, `@ai-sdk/anthropic`, else chat completions"},
		{"provider.*.whitelist", honoured, "the only models that may be used"},
		{"provider.*.blacklist", honoured, "models that may not be used"},
		{"provider.*.options.baseURL", honoured, "its endpoint"},
		{"provider.*.options.apiKey", honoured, "its key; `{env:NAME}` in a project's file only for a known provider at its own host, with that provider's own variable"},
		{"provider.*.options.headers", honoured, "sent with every request"},
		{"provider.*.options.api", honoured, "chat, responses or anthropic"},
		{"provider.*.options.enterpriseUrl", loud, "set `baseURL`"},
		{"provider.*.options.setCacheKey", quiet, "caching needs no switch"},
		{"provider.*.options.timeout", quiet, "see `stall_timeout`"},
		{"provider.*.options.headerTimeout", quiet, "see `idle_timeout`"},
		{"provider.*.options.chunkTimeout", quiet, "see `idle_timeout`"},
		{"provider.*.options.*", loud, "belongs to a package of OpenCode's"},
		{"provider.*.id", quiet, "the key is the id"},
		{"plugin", honoured, "OpenCode's plugins (docs/plugins.md)"},
		{"formatter", loud, "nothing formats what agents write"},
		{"lsp", loud, "agents have no language servers"},
		{"skills", loud, "skills are found in their usual directories only"},
		{"references", loud, "other repositories are not offered to agents"},
		{"reference", loud, "other repositories are not offered to agents"},
		{"shell", loud, "commands run in `sh`"},
		{"subagent_depth", loud, "how deep agents may nest is fixed"},
		{"compaction", loud, "see `compaction.buffer` in `centurion.jsonc`"},
		{"tool_output", loud, "how much of an output a model is shown is fixed"},
		{"experimental.policies", refused, "use `disabled_providers` or `enabled_providers`"},
		{"experimental.primary_tools", loud, "see `agent.<name>.tools`"},
		{"experimental.continue_loop_on_deny", loud, "a refused call never ends a turn"},
		{"experimental.batch_tool", quiet, "calls of one answer overlap anyway"},
		{"experimental.mcp_timeout", quiet, "see `mcp.<name>.timeout`"},
		{"experimental.disable_paste_summary", quiet, "OpenCode's display"},
		{"experimental.openTelemetry", quiet, "nothing is sent anywhere"},
		{"small_model", quiet, "no request is made for titles; a summary uses the conversation's own model"},
		{"snapshot", quiet, "see `isolation`"},
		{"attachment", quiet, "images are sent as they are"},
		{"watcher", quiet, "only the plan is watched"},
		{"logLevel", quiet, "there is no log"},
		{"server", quiet, "OpenCode's server"},
		{"share", quiet, "nothing is shared"},
		{"autoshare", quiet, "nothing is shared"},
		{"autoupdate", quiet, "nothing updates itself"},
		{"username", quiet, "OpenCode's display"},
		{"layout", quiet, "OpenCode's display"},
		{"enterprise", quiet, "nothing is shared"},
	}
	return slices.Concat(keys, serverKeys(), agentKeys(), modelKeys(), permissionKeys())
}

// serverKeys are the keys of MCP servers.
func serverKeys() []openKey {
	return []openKey{
		{"mcp.*.type", honoured, "local or remote"},
		{"mcp.*.command", honoured, "of a local server"},
		{"mcp.*.cwd", honoured, "where it runs; else in the project"},
		{"mcp.*.environment", honoured, "its variables"},
		{"mcp.*.url", honoured, "of a remote server, by streamable HTTP"},
		{"mcp.*.headers", honoured, "sent with each request"},
		{"mcp.*.enabled", honoured, "false switches it off"},
		{"mcp.*.timeout", honoured, "milliseconds to connect; and of a call, if that is longer than ten minutes"},
		{"mcp.*.oauth", loud, "there are no logins: put a token into `headers`"},
	}
}

// agentKeys are the keys of commands and agents.
func agentKeys() []openKey {
	return []openKey{
		{"command.*.template", honoured, "the goal"},
		{"command.*.description", honoured, "for `centurion commands`"},
		{"command.*.agent", honoured, "who owns the mission"},
		{"command.*.model", honoured, "its model"},
		{"command.*.subtask", honoured, "hand it to the agent as one task"},
		{"command.*.variant", loud, "models have no variants here"},
		{"agent.*.description", honoured, "what the Commander reads when it chooses"},
		{"agent.*.mode", honoured, "primary, subagent or all"},
		{"agent.*.model", honoured, "its model"},
		{"agent.*.prompt", honoured, "its system prompt"},
		{"agent.*.temperature", honoured, "of its requests"},
		{"agent.*.steps", honoured, "requests in one turn"},
		{"agent.*.maxSteps", honoured, "the older name of `steps`"},
		{"agent.*.tools.*", honoured, "given or taken away"},
		{"agent.*.disable", honoured, "take the agent away"},
		{"agent.*.top_p", loud, "requests do not set it"},
		{"agent.*.variant", loud, "models have no variants here"},
		{"agent.*.options", loud, "requests do not set them"},
		{"agent.*.*", loud, "requests do not set it"},
		{"agent.*.hidden", quiet, "OpenCode's display"},
		{"agent.*.name", quiet, "the key is the name"},
		{"agent.*.color", quiet, "OpenCode's display"},
	}
}

// modelKeys are the keys of a model of a provider.
func modelKeys() []openKey {
	keys := []openKey{
		{"id", honoured, "what the provider calls it"},
		{"attachment", honoured, "takes files"},
		{"temperature", quiet, "an agent's temperature is left out only for models known to refuse it"},
		{"tool_call", loud, "every model is given tools"},
		{"reasoning", quiet, "what a model thinks is kept anyway"},
		{"interleaved", honoured, "wants its reasoning back"},
		{"cost.input", honoured, "USD for a million tokens"},
		{"cost.output", honoured, "USD for a million tokens"},
		{"cost.cache_read", honoured, "USD for a million tokens"},
		{"cost.cache_write", honoured, "USD for a million tokens"},
		{"cost.context_over_200k", loud, "long requests are counted at the usual price"},
		{"limit.context", honoured, "tokens of its window"},
		{"limit.output", honoured, "tokens of one answer"},
		{"limit.input", quiet, "the window counts"},
		{"modalities.input", honoured, "which files it takes"},
		{"modalities.output", quiet, "text is wanted of every model"},
		{"options.api", honoured, "chat, responses or anthropic"},
		{"options", loud, "requests do not set them"},
		{"headers", loud, "see the provider's `options.headers`"},
		{"provider", loud, "see the model's `options.api`"},
		{"variants", loud, "models have no variants here"},
		{"name", honoured, "shown by OpenCode's clients; elsewhere the key is"},
		{"family", quiet, "OpenCode's display"},
		{"release_date", quiet, "OpenCode's display"},
		{"status", quiet, "OpenCode's display"},
		{"experimental", quiet, "OpenCode's display"},
	}
	for i := range keys {
		keys[i].path = "provider.*.models.*." + keys[i].path
	}
	return keys
}

// permissionKeys are the keys of a permission, for all agents and for one.
func permissionKeys() []openKey {
	keys := []openKey{
		{"", honoured, "allow, ask or deny everything, or an object"},
		{".*", honoured, "a tool of an MCP server, by its name"},
		{".read", honoured, "`read`, by path"},
		{".edit", honoured, "`edit` and `write`, by path"},
		{".glob", honoured, "`glob`, by pattern"},
		{".grep", honoured, "`grep`, by pattern"},
		{".list", honoured, "`ls`, by path"},
		{".bash", honoured, "`bash` and `run_background`, by command; also acceptance commands"},
		{".task", honoured, "`delegate_task` and `sub_agent`, by the agent's name"},
		{".external_directory", honoured, "files outside the project, by path"},
		{".todowrite", honoured, "`update_todo`"},
		{".question", honoured, "`ask_user`"},
		{".network", honoured, "connections of confined commands, by host; not known to OpenCode"},
		{".webfetch", honoured, "`webfetch`, by address"},
		{".websearch", honoured, "`websearch`, by query"},
		{".codesearch", honoured, "`codesearch`, by query"},
		{".skill", honoured, "`skill`, by name"},
		{".doom_loop", loud, "a repeated call is answered by the host itself"},
		{".run_background", loud, "`bash` decides"},
		{".lsp", quiet, "agents have no language servers"},
	}
	out := make([]openKey, 0, 2*len(keys))
	for _, at := range []string{"permission", "agent.*.permission"} {
		for _, k := range keys {
			out = append(out, openKey{at + k.path, k.use, k.note})
		}
	}
	return out
}

// permissionAliases are other names for permissions of tools, with the deciding permission.
func permissionAliases() map[string]string {
	return map[string]string{"write": "edit", "patch": "edit", "multiedit": "edit", "apply_patch": "edit", "ls": "list",
		"update_todo": "todowrite", "delegate_task": "task", "sub_agent": "task", "ask_user": "question"}
}

// lookup finds the entry for a key, preferring the one with the most literal letters. Without any it is not a key of OpenCode's.
func lookup(table []openKey, path string) (found openKey, ok bool) {
	literal := -1
	for _, k := range table {
		if n := len(strings.ReplaceAll(k.path, "*", "")); n > literal && (permission.Match(k.path, path) || permission.Match(k.path+".*", path)) {
			found, ok, literal = k, true, n
		}
	}
	return found, ok
}

func isOpenCodeKey(key string) bool {
	return slices.ContainsFunc(openCodeKeys(), func(k openKey) bool {
		top, _, _ := strings.Cut(k.path, ".")
		return top == key
	})
}

// Ignored is a key of OpenCode's configuration without effect here.
type Ignored struct {
	File string
	Key  string
	Why  string
	Loud bool // it would have changed what agents can do
}

// unread records an unused key. If some keys below it are known, it checks each of them.
func (l *loader) unread(path string, m member) {
	n := m.value
	k, ok := lookup(l.table, path)
	switch {
	case n.kind == kindNull, n.kind == kindObject && len(n.members) == 0, n.kind == kindArray && len(n.elems) == 0,
		(path == "lsp" || path == "formatter") && n.kind == kindBool && !n.yes: // it requests nothing
	case ok && k.use == refused:
		if l.c.refused == nil {
			l.c.refused = n.src.fault(m.line, strings.ReplaceAll(k.note, "`", `"`)+" instead",
				"%q is not enforced here, and a run without it could do what it forbids", path)
		}
	case ok && k.use != honoured:
		l.ignore(n.src, path, k.note, k.use == loud)
	case !ok && n.kind == kindObject && slices.ContainsFunc(l.table, func(k openKey) bool { return strings.HasPrefix(k.path, path+".") }):
		for _, below := range n.members {
			l.unread(path+"."+below.key, below)
		}
	case !ok:
		l.ignore(n.src, path, l.unknown(path), !slices.Contains([]string{"theme", "keybinds", "tui"}, path)) // moved elsewhere by OpenCode
	}
}

// unknown suggests a meaning for a key that is not OpenCode's.
func (l *loader) unknown(path string) string {
	if slices.Contains(keysOf(ownFields()), path) {
		return "belongs in .opencode/centurion.jsonc"
	}
	var known []string
	for _, k := range l.table {
		top, _, _ := strings.Cut(k.path, ".")
		known = append(known, top)
	}
	if near := centurion.Nearest(path, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "not a key of OpenCode's"
}

func (l *loader) ignore(src *source, key, why string, loud bool) {
	i := Ignored{File: src.name, Key: key, Why: why, Loud: loud}
	if !slices.Contains(l.c.Ignored, i) {
		l.c.Ignored = append(l.c.Ignored, i)
	}
}

// maxNamed limits the names in a terminal line; `centurion doctor` shows the rest.
const maxNamed = 3

// ignoredNotices has one line for each file with keys that would have changed what agents can do.
func (c *Config) ignoredNotices() (lines []string) {
	var files []string
	keys := map[string][]string{}
	for _, i := range c.Ignored {
		if !i.Loud {
			continue
		}
		if !slices.Contains(files, i.File) {
			files = append(files, i.File)
		}
		key := i.Key
		if strings.HasPrefix(i.Why, "belongs in") || strings.HasPrefix(i.Why, "did you mean") {
			key += " (" + i.Why + ")"
		}
		keys[i.File] = append(keys[i.File], key)
	}
	for _, f := range files {
		names, more := keys[f], ""
		if n := len(names) - maxNamed; n > 0 {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", n)
		}
		lines = append(lines, fmt.Sprintf("%s: ignored: %s%s (see: centurion doctor)", f, strings.Join(names, ", "), more))
	}
	return lines
}

// ruled returns the value of a permission with its keys renamed to the deciding ones, and records those without effect.
func (l *loader) ruled(path string, n *node) *node {
	if n.kind != kindObject {
		return n
	}
	out := *n
	out.members = nil
	for _, m := range n.members {
		if to := permissionAliases()[m.key]; to != "" {
			if n.get(to) != nil && m.value.text != "deny" { // of two names for the same permission the stricter counts
				l.ignore(n.src, path+"."+m.key, fmt.Sprintf("%q decides", to), true)
				continue
			}
			m.key = to
		}
		if had := out.get(m.key); had == nil || had.text != "deny" {
			out.set(m)
		}
		if strings.ContainsAny(m.key, "*?") {
			continue
		}
		if near := l.nearPermission(m.key); near != "" {
			l.ignore(n.src, path+"."+m.key, fmt.Sprintf("did you mean %q?", near), true)
		} else if k, _ := lookup(l.table, path+"."+m.key); k.use != honoured {
			l.ignore(n.src, path+"."+m.key, k.note, k.use == loud)
		}
	}
	return &out
}

// nearPermission returns the permission most similar to a misspelt one, or "".
func (l *loader) nearPermission(key string) string {
	var known []string
	for _, k := range permissionKeys() {
		if name, ok := strings.CutPrefix(k.path, "permission."); ok && name != "*" {
			known = append(known, name)
		}
	}
	if slices.Contains(known, key) {
		return ""
	}
	return centurion.Nearest(key, known)
}
