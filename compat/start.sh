# Sourced by run.sh and tui.sh, with $here and $target: starts the model and the server in directories of their own, sets $url, $home,
# $project, $other and $work, and ends all of it when the script ends. Nothing of the person's home is read.
[[ ${target:-} == opencode || $target == centurion ]] || { echo "usage: $0 opencode|centurion [pattern...]" >&2; exit 2; }
"$here/install.sh"
case $target in
opencode) serve=("$here/node_modules/opencode-linux-x64/bin/opencode" serve --hostname 127.0.0.1 --port 0) ;;
centurion)
	program=$(command -v "${CENTURION:-centurion}") || { echo "there is no program ${CENTURION:-centurion}; set CENTURION" >&2; exit 1; }
	serve=("$(realpath "$program")" serve --port 0)
	;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/compat.XXXXXX")
home=$work/home project=$work/project other=$work/other
pids=()
finish() {
	local rc=$?
	for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 -- "${pids[@]/#/-}" 2>/dev/null || break
		sleep 0.3
	done
	for pid in "${pids[@]}"; do kill -KILL -- "-$pid" 2>/dev/null || true; done
	if ((rc)) || [[ ${KEEP:-} ]]; then
		echo "logs: $work" >&2
	else
		rm -rf "$work"
	fi
	exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT TERM

# clean runs a command with a home of its own and without the person's variables, in a process group of its own.
clean() {
	exec setsid env -i PATH="$PATH" HOME="$home" LANG=C.UTF-8 TERM=xterm-256color TMPDIR="$work/tmp" TMUX_TMPDIR="$work/tmp" \
		XDG_CONFIG_HOME="$home/.config" XDG_DATA_HOME="$home/.local/share" XDG_STATE_HOME="$home/.local/state" XDG_CACHE_HOME="$home/.cache" \
		OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_SHARE=1 \
		DIRECTORY="$project" "$@"
}

# line waits until a file has a line that matches, and prints what the first group of the pattern is.
line() {
	local file=$1 pattern=$2 pid=$3 found
	for _ in $(seq 300); do
		found=$(sed -nE "s#$pattern#\\1#p" "$file" | head -1)
		[[ $found ]] && { echo "$found"; return; }
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.2
	done
	echo "no line in $file matches $pattern:" >&2
	tail -n 20 "$file" "${file%.out}.err" >&2
	return 1
}

mkdir -p "$home/.config/opencode" "$project/src" "$other" "$work/tmp"
(clean node "$here/model.mjs") >"$work/model.out" 2>"$work/model.err" & pids+=($!)
model=$(line "$work/model.out" '^(http:.*)$' "${pids[-1]}")

# The configuration is the person's and not the project's: what a project says may need trust first.
# A later rule has priority. Each test of permissions has a command of its own, since "always" lasts.
cat >"$home/.config/opencode/opencode.json" <<JSON
{
  "model": "fake/fake-1",
  "small_model": "fake/fake-1",
  "enabled_providers": ["fake"],
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "fake": {
      "name": "Fake",
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "$model", "apiKey": "x" },
      "models": { "fake-1": { "name": "Fake 1", "tool_call": true, "reasoning": true, "attachment": true, "modalities": { "input": ["text", "image"], "output": ["text"] }, "limit": { "context": 100000, "output": 8000 } },
        "fake-2": { "name": "Fake 2", "tool_call": true, "limit": { "context": 100000, "output": 8000 } } }
    }
  },
  "permission": {
    "bash": { "*": "allow", "ask-*": "ask", "expr *": "ask", "factor *": "ask", "seq *": "ask", "basename *": "ask", "dirname *": "ask" }
  },
  "agent": { "second": { "description": "Looks", "mode": "primary", "prompt": "You are the second agent.", "tools": { "write": false } } },
  "command": { "greet": { "description": "Greets", "template": "say hello \$ARGUMENTS, first \$1, then \$2" } }
}
JSON
printf '# The project\n\nA needle is in this file.\n' >"$project/README.md"
printf 'package src\n\n// Hello greets.\nfunc Hello() string { return "hello" }\n' >"$project/src/hello.go"
for dir in "$project" "$other"; do
	echo "# $dir" >"$dir/NOTES.md"
	git -C "$dir" init -q -b main
	git -C "$dir" add -A
	git -C "$dir" -c user.name=Compat -c user.email=compat@localhost commit -q -m "the beginning"
done

cd "$project"
(clean "${serve[@]}") >"$work/server.out" 2>"$work/server.err" & pids+=($!)
url=$(line "$work/server.out" '^opencode server listening on (http:[^ ]*).*' "${pids[-1]}")
