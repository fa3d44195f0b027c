package worktree

import (
	"slices"
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
