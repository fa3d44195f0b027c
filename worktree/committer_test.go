package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// Commits are the user's, as git's configuration has it for this repository; Centurion is named in a trailer.
func TestCommitsAreTheUsers(t *testing.T) {
	tests := map[string]struct {
		config [][2]string
		env    map[string]string
		alone  bool
		want   string // author|committer|trailers
	}{
		"nobody known": {want: "Centurion <centurion@localhost>|Centurion <centurion@localhost>|Centurion <centurion@localhost>"},
		"no address":   {config: [][2]string{{"user.name", "Ada"}}, want: "Centurion <centurion@localhost>|Centurion <centurion@localhost>|Centurion <centurion@localhost>"},
		"user":         {config: [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}}, want: "Ada <ada@example.org>|Ada <ada@example.org>|Centurion <centurion@localhost>"},
		"without trailer": {config: [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}}, alone: true,
			want: "Ada <ada@example.org>|Ada <ada@example.org>|"},
		"author apart": {config: [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}, {"author.name", "A. Lovelace"}},
			want: "A. Lovelace <ada@example.org>|Ada <ada@example.org>|Centurion <centurion@localhost>"},
		"environment": {config: [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}}, env: map[string]string{"GIT_COMMITTER_NAME": "Bot", "GIT_COMMITTER_EMAIL": "bot@example.org"},
			want: "Ada <ada@example.org>|Bot <bot@example.org>|Centurion <centurion@localhost>"},
		"name with brackets": {config: [][2]string{{"user.name", "Ada <the first>"}, {"user.email", "ada@example.org"}},
			want: "Ada the first <ada@example.org>|Ada the first <ada@example.org>|Centurion <centurion@localhost>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			x := newRig(t, map[string]string{"a": "1\n"})
			for _, c := range tt.config {
				x.person("config", c[0], c[1])
			}
			x.Repo.opts.Alone = tt.alone
			base := x.head()
			c := x.take("work/T1", base)
			put(t, filepath.Join(c.dir, "a"), "2\n")
			done, err := c.Commit(t.Context(), "T1 Change a\n\nDone.\n\nMission: msn_1\nAgent: worker\n")
			if err != nil {
				t.Fatal(err)
			}
			format := "--format=%an <%ae>|%cn <%ce>|%(trailers:key=Co-Authored-By,valueonly)"
			if got := x.person("log", "-1", format, done.ID); got != tt.want {
				t.Errorf("a task's commit: %q, want %q", got, tt.want)
			}
			if got := x.person("log", "-1", "--format=%(trailers:key=Mission,valueonly)", done.ID); got != "msn_1" {
				t.Errorf("the trailers of the message were torn apart: mission %q", got)
			}
			// The branch moves on, so that the merge is a commit of its own.
			x.write("b", "1\n")
			x.person("add", "b")
			x.person("commit", "-q", "-m", "second")
			m, err := x.Merge(t.Context(), MergeOptions{Base: centurion.Base{Commit: base, Head: base, Branch: "main"}, Tip: done.ID, Message: "The goal\n\nMission: msn_1"})
			if err != nil || !m.Clear() {
				t.Fatal(m, err)
			}
			if got := x.person("log", "-1", format); got != tt.want {
				t.Errorf("the merge: %q, want %q", got, tt.want)
			}
		})
	}
}

// What reaches the user's branch is signed where they sign their commits: every commit, once, also after work moved on.
func TestSigned(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("this test signs with ssh-keygen: ", err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	pub, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(t.TempDir(), "signers")
	put(t, signers, "ada@example.org "+string(pub))
	start := func(t *testing.T) (*rig, centurion.Base, string) {
		x := newRig(t, map[string]string{"a": "1\n"})
		for _, c := range [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}, {"gpg.format", "ssh"}, {"gpg.ssh.allowedSignersFile", signers},
			{"user.signingKey", key}, {"commit.gpgSign", "true"}} {
			x.person("config", c[0], c[1])
		}
		base := x.head()
		tip := base
		for i, name := range []string{"b", "c"} {
			c := x.take("work/"+name, tip)
			put(t, filepath.Join(c.dir, name), strings.Repeat("1\n", i+1))
			done, err := c.Commit(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			tip = done.ID
			release(t, c, tip)
		}
		return x, centurion.Base{Commit: base, Head: base, Branch: "main"}, tip
	}
	tests := map[string]struct {
		before func(x *rig)
		squash bool
		want   string // %G? of each commit of the merge, newest first
	}{
		"fast forward": {want: "G\nG"},
		"merge": {before: func(x *rig) {
			x.write("d", "1\n")
			x.person("add", "d")
			x.person("-c", "commit.gpgSign=false", "commit", "-q", "-m", "theirs")
		}, want: "G\nG\nG"},
		"squash": {squash: true, want: "G"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x, base, tip := start(t)
			if got := x.person("log", "--format=%G?", base.Commit+".."+tip); got != "N\nN" {
				t.Fatalf("signed before anybody asked for the merge: %q", got)
			}
			if tt.before != nil {
				tt.before(x)
			}
			before := x.head()
			m, err := x.Merge(t.Context(), MergeOptions{Base: base, Tip: tip, Squash: tt.squash, Message: "The goal"})
			if err != nil || !m.Clear() || m.After != x.head() {
				t.Fatal(m, err)
			}
			if got := x.person("log", "--format=%G?", before+"..HEAD"); got != tt.want {
				t.Errorf("signatures %q, want %q", got, tt.want)
			}
			if got := x.person("status", "--porcelain"); got != "" {
				t.Errorf("the working tree is not clean: %q", got)
			}
			x.person("config", "user.signingKey", key+"-gone")
			u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: before, Commit: m.After})
			if err != nil || u.After != before {
				t.Errorf("undo needs no signature: %+v, %v", u, err)
			}
		})
	}
	t.Run("no key", func(t *testing.T) {
		x, base, tip := start(t)
		x.person("config", "user.signingKey", key+"-gone")
		before := x.head()
		_, err := x.Merge(t.Context(), MergeOptions{Base: base, Tip: tip, Message: "The goal"})
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(centurion.HintOf(err), "commit.gpgSign") || x.head() != before {
			t.Errorf("%v, hint %q; the branch moved: %v", err, centurion.HintOf(err), x.head() != before)
		}
	})
	t.Run("a repository names no program", func(t *testing.T) {
		x, base, tip := start(t)
		canary := filepath.Join(t.TempDir(), "ran")
		script := filepath.Join(t.TempDir(), "sign")
		if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+canary+"\nexec ssh-keygen \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		x.person("config", "gpg.ssh.program", script)
		m, err := x.Merge(t.Context(), MergeOptions{Base: base, Tip: tip, Message: "The goal"})
		if err != nil || !m.Clear() {
			t.Fatal(m, err)
		}
		if _, err := os.Stat(canary); err == nil {
			t.Error("the program that the repository's own configuration names was run")
		}
	})
}

// Only a git that signs gets the variables by which the person's agent for keys is found, and only those that are set.
func TestSigningFindsTheKeys(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/run/agent")
	t.Setenv("GNUPGHOME", "/keys")
	os.Unsetenv("GNUPGHOME") // Setenv has it put back
	for _, sign := range []bool{true, false} {
		env := environment(call{Sign: sign}, found{})
		if slices.Contains(env, "SSH_AUTH_SOCK=/run/agent") != sign || slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GNUPGHOME=") }) {
			t.Errorf("signing: %v", sign)
		}
	}
}
