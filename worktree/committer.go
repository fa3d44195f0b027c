package worktree

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The committer if the person has configured no name or no address.
const (
	ownName = "Centurion"
	ownMail = "centurion@localhost"
)

// committer is the committer of a repository, and whether commits for the person's branch are signed.
type committer struct {
	env  []string // GIT_AUTHOR_NAME and the like
	sign bool     // commit.gpgSign
}

// committerOf evaluates a configuration as git does: environment variables, author and committer, then user.
func committerOf(entries []setting) committer {
	set := map[string]string{}
	for _, e := range entries {
		if e.scope != "command" { // set by this package
			set[e.key] = e.value
		}
	}
	var c committer
	for _, role := range []string{"author", "committer"} {
		upper := "GIT_" + strings.ToUpper(role)
		name := cmp.Or(identity(os.Getenv(upper+"_NAME")), identity(set[role+".name"]), identity(set["user.name"]))
		mail := cmp.Or(identity(os.Getenv(upper+"_EMAIL")), identity(set[role+".email"]), identity(set["user.email"]))
		if name == "" || mail == "" {
			name, mail = ownName, ownMail
		}
		c.env = append(c.env, upper+"_NAME="+name, upper+"_EMAIL="+mail)
	}
	sign, given := set["commit.gpgsign"]
	c.sign = given && isTrue(sign)
	return c
}

// attributed adds a trailer for Centurion to a commit's message, unless the person wants none. The message's other trailers, such as
// "Mission: …", are in its last paragraph.
func (o *objects) attributed(message string) string {
	message = strings.TrimRight(message, "\n")
	if o.opts.Alone {
		return message + "\n"
	}
	gap := "\n\n"
	last := message[strings.LastIndexByte(message, '\n')+1:]
	if key, _, ok := strings.Cut(last, ": "); ok && strings.Contains(message, "\n\n") && !strings.ContainsAny(key, " \t") {
		gap = "\n"
	}
	return message + gap + "Co-Authored-By: " + ownName + " <" + ownMail + ">\n"
}

// commitTree makes a commit that is not signed; a parent that is empty is none.
func (o *objects) commitTree(ctx context.Context, tree, message string, env []string, parents ...string) (string, error) {
	f, err := o.prog.over.of(ctx, o.prog, call{Dir: o.top, GitDir: o.gitDir})
	if err != nil {
		return "", err
	}
	who := map[string]string{}
	for _, set := range slices.Concat(f.who.env, env) {
		name, value, _ := strings.Cut(set, "=")
		who[name] = value
	}
	var b strings.Builder
	b.WriteString("tree " + tree + "\n")
	for _, p := range parents {
		if p != "" {
			b.WriteString("parent " + p + "\n")
		}
	}
	now := time.Now()
	for _, role := range []string{"author", "committer"} {
		upper := "GIT_" + strings.ToUpper(role)
		date := cmp.Or(who[upper+"_DATE"], fmt.Sprintf("%d %s", now.Unix(), now.Format("-0700")))
		fmt.Fprintf(&b, "%s %s <%s> %s\n", role, who[upper+"_NAME"], who[upper+"_EMAIL"], date)
	}
	b.WriteString("\n" + message)
	id, err := o.db.Put(ctx, "commit", []byte(b.String()))
	if err == nil {
		o.cache.made(id, tree)
		if len(parents) > 0 {
			o.cache.learn(itsParent, id, parents[0])
		}
	}
	return id, err
}

// isTrue parses a boolean of git's configuration. A key without a value is true; --list -z prints an empty value for it.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "yes", "on", "1":
		return true
	}
	return false
}

// identity is a name or an address as git takes it into a commit.
func identity(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' {
			return -1
		}
		return r
	}, s)
	return strings.Trim(s, ` .,:;"\'`)
}

// signingEnv are the variables by which gpg and ssh-keygen find the person's keys and ask for their passphrase.
func signingEnv() []string {
	var env []string
	for _, name := range []string{"GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// signed returns tip with all commits since head signed, if the person signs theirs. Signing waits until work reaches their branch,
// because it may ask for a passphrase.
func (u *userSide) signed(ctx context.Context, head, tip string) (string, error) {
	f, err := u.prog.over.of(ctx, u.prog, call{Dir: u.top, GitDir: u.gitDir})
	if err != nil || !f.who.sign || tip == "" {
		return tip, err
	}
	args := []string{"rev-list", "--reverse", "--topo-order", "--parents", tip}
	if head != "" {
		args = append(args, "^"+head)
	}
	out, err := u.git(ctx, call{Args: append(args, "--")})
	if err != nil {
		return "", err
	}
	now := map[string]string{}
	for l := range strings.Lines(string(out)) {
		ids := strings.Fields(l)
		parents := slices.Clone(ids[1:])
		for i, p := range parents {
			parents[i] = cmp.Or(now[p], p)
		}
		if now[ids[0]], err = u.sign(ctx, ids[0], parents, slices.Equal(parents, ids[1:])); err != nil {
			return "", err
		}
	}
	return cmp.Or(now[tip], tip), nil
}

// sign rewrites a commit with these parents, signed. A signed commit with the same parents stays unchanged.
func (u *userSide) sign(ctx context.Context, id string, parents []string, same bool) (string, error) {
	raw, err := u.git(ctx, call{Args: []string{"cat-file", "commit", id}})
	if err != nil {
		return "", err
	}
	header, _, _ := bytes.Cut(raw, []byte("\n\n"))
	if same && bytes.Contains(header, []byte("\ngpgsig")) {
		return id, nil
	}
	c, err := u.commitInfo(ctx, id)
	if err != nil {
		return "", err
	}
	return u.signedCommit(ctx, c.author, c.tree, c.message, parents)
}

// signedCommit makes a signed commit with git, which knows the programs for it.
func (u *userSide) signedCommit(ctx context.Context, author []string, tree, message string, parents []string) (string, error) {
	c := call{Sign: true, Env: author, Args: []string{"commit-tree", "-S"}, Stdin: strings.NewReader(message)}
	for _, p := range parents {
		if p != "" {
			c.Args = append(c.Args, "-p", p)
		}
	}
	c.Args = append(c.Args, "-F", "-", tree)
	out, err := u.git(ctx, c)
	if err == nil {
		u.cache.made(lastLine(out), tree)
	}
	return lastLine(out), err
}
