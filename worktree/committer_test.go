package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Who commits is what git would take: the environment, the role's own name, the user's; half an identity is none. A key without a value is true.
func TestCommitterOf(t *testing.T) {
	user := []setting{{key: "user.name", value: "U"}, {key: "user.email", value: "u@x"}}
	for name, c := range map[string]struct {
		env     map[string]string
		more    []setting
		nobody  bool
		author  string
		mail    string
		commits string
		signed  bool
	}{
		"the user":                {author: "U", mail: "u@x", commits: "U"},
		"nobody":                  {nobody: true, author: ownName, mail: ownMail, commits: ownName},
		"a name without a mail":   {nobody: true, more: []setting{{key: "user.name", value: "U"}}, author: ownName, mail: ownMail, commits: ownName},
		"a mail without a name":   {nobody: true, more: []setting{{key: "user.email", value: "u@x"}}, author: ownName, mail: ownMail, commits: ownName},
		"the author's own name":   {more: []setting{{key: "author.name", value: "A"}}, author: "A", mail: "u@x", commits: "U"},
		"the newest counts":       {more: []setting{{key: "user.name", value: "V"}}, author: "V", mail: "u@x", commits: "V"},
		"the environment":         {env: map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_AUTHOR_EMAIL": "e@x"}, more: []setting{{key: "author.name", value: "A"}}, author: "E", mail: "e@x", commits: "U"},
		"of our own command":      {more: []setting{{scope: "command", key: "user.name", value: "X"}, {scope: "command", key: "commit.gpgsign", value: "true"}}, author: "U", mail: "u@x", commits: "U"},
		"signed":                  {more: []setting{{key: "commit.gpgsign", value: "True"}}, author: "U", mail: "u@x", commits: "U", signed: true},
		"signed, without a value": {more: []setting{{key: "commit.gpgsign"}}, author: "U", mail: "u@x", commits: "U", signed: true},
		"signed by a number":      {more: []setting{{key: "commit.gpgsign", value: "1"}}, author: "U", mail: "u@x", commits: "U", signed: true},
		"not signed":              {more: []setting{{key: "commit.gpgsign", value: "true"}, {key: "commit.gpgsign", value: "false"}}, author: "U", mail: "u@x", commits: "U"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
				t.Setenv(key, c.env[key])
			}
			all := slices.Concat(user, c.more)
			if c.nobody {
				all = c.more
			}
			got := committerOf(all)
			want := []string{"GIT_AUTHOR_NAME=" + c.author, "GIT_AUTHOR_EMAIL=" + c.mail, "GIT_COMMITTER_NAME=" + c.commits}
			if len(got.env) != 4 || !slices.Equal(got.env[:3], want) || got.sign != c.signed {
				t.Errorf("%q, signed %v", got.env, got.sign)
			}
		})
	}
}

// signer signs as gpg does for git, with a signature that nobody could verify.
const signer = "#!/bin/sh\ncat >/dev/null\necho '-----BEGIN PGP SIGNATURE-----'\necho sealed\necho '-----END PGP SIGNATURE-----'\n" +
	"printf '\\n[GNUPG:] SIG_CREATED D\\n' >&2\n"

// Who signs their commits gets the work signed when it reaches their branch: each commit, on signed parents and otherwise as it was. One that is
// signed already is signed again only if its parent had to be. The mission's own commits stay as they are.
func TestWorkIsSignedWhereItLands(t *testing.T) {
	dir := t.TempDir()
	gpg := filepath.Join(dir, "gpg")
	put(t, gpg, signer)
	if err := os.Chmod(gpg, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "gitconfig"))
	for name, signed := range map[string][2]bool{"none is signed": {}, "the later one is": {false, true}, "the earlier one is": {true, false}, "both are": {true, true}} {
		put(t, filepath.Join(dir, "gitconfig"), "[gpg]\n\tprogram = "+gpg+"\n")
		x := newRig(t, map[string]string{"a": "a\n"})
		base := x.begin()
		var work []string
		at := base.Commit
		for i, file := range []string{"one", "two"} {
			if at = x.later(at, map[string]string{file: file + "\n"}); signed[i] {
				at = x.person("commit-tree", "-S", "-p", at+"^", "-m", "others", at+"^{tree}")
			}
			work = append(work, at)
		}
		put(t, filepath.Join(dir, "gitconfig"), "[gpg]\n\tprogram = "+gpg+"\n[commit]\n\tgpgSign = true\n")
		x.merged(MergeOptions{Base: base, Tip: at})
		landed := strings.Fields(x.person("rev-list", "--reverse", base.Head+"..HEAD"))
		if len(landed) != len(work) {
			t.Fatalf("%s: %d commits have landed", name, len(landed))
		}
		for i, id := range landed {
			now, was := x.person("cat-file", "commit", id), x.person("cat-file", "commit", work[i])
			if !strings.Contains(now, "\ngpgsig ") || strings.Contains(was, "\ngpgsig ") != signed[i] {
				t.Errorf("%s: commit %d is\n%s\nand was\n%s", name, i, now, was)
			}
			if (id == work[i]) != (signed[0] && (i == 0 || signed[1])) {
				t.Errorf("%s: commit %d has another id: %v", name, i, id != work[i])
			}
			const told = "--format=%T %an %ae %ad %B"
			if now, was := x.person("log", "-1", told, id), x.person("log", "-1", told, work[i]); now != was {
				t.Errorf("%s: commit %d tells %q, not %q", name, i, now, was)
			}
		}
	}
}
