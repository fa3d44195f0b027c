package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zalando/go-keyring"

	"centurion"
	"centurion/guard"
	"centurion/redact"
)

const (
	keyringService = "centurion"
	keyringCap     = 2 * time.Second // a locked or broken Secret Service can hang forever
)

// Secret is a key or a password. Printing, logging or marshalling it only shows that there is one.
type Secret string

// Reveal returns the value, for the only place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String returns "" or "[secret]".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString is the output of %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText writes the result of String, so that no encoder of text or JSON reveals the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Keyring is the person's store of passwords. Get returns an error that wraps [keyring.ErrNotFound] if there is no entry.
type Keyring interface {
	Get(service, user string) (string, error)
	Set(service, user, secret string) error
	Delete(service, user string) error
}

type desktopKeyring struct{}

func (desktopKeyring) Get(service, user string) (string, error) { return keyring.Get(service, user) }
func (desktopKeyring) Set(service, user, key string) error      { return keyring.Set(service, user, key) }
func (desktopKeyring) Delete(service, user string) error        { return keyring.Delete(service, user) }

// KeyringAvailable reports whether it is safe to access the desktop's keyring. On Unix systems other than macOS it needs a running
// session bus: without one the library would start a dbus-daemon that outlives the program.
func (o Options) KeyringAvailable() bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" || o.env("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := o.env("XDG_RUNTIME_DIR")
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return dir != "" && err == nil
}

// Keys stores API keys by provider: in the desktop's keyring if there is one, otherwise in auth.json in the state directory, readable
// only by its owner. That file also lists the entries of the keyring, because a keyring cannot be listed and should not be asked for
// missing ones. OpenCode's own auth.json is read and never written.
type Keys struct {
	opts Options
	ring Keyring // nil if there is none
}

// NewKeys returns the stores selected by the options. Nothing is opened.
func NewKeys(o Options) *Keys {
	k := &Keys{opts: o, ring: o.Keyring}
	if k.ring == nil && o.KeyringAvailable() {
		k.ring = desktopKeyring{}
	}
	return k
}

// KeyInfo tells where a key is, never its value.
type KeyInfo struct {
	Provider string `json:"provider"`
	Source   string `json:"source"` // a variable, "keyring" or a file
}

// authEntry is an entry of auth.json, ours or OpenCode's. Types are api, keyring (ours only), oauth and wellknown (OpenCode's only,
// never used: they belong to a login with that program).
type authEntry struct {
	Type string `json:"type"`
	Key  string `json:"key,omitempty"`

	// What a login of OpenCode's consists of.
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
	Token   string `json:"token,omitempty"`
}

func (k *Keys) ownPath() (string, error) {
	dir, err := k.opts.stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "auth.json"), nil
}

func (k *Keys) openPath() string {
	if dir := k.opts.base("XDG_DATA_HOME", ".local", "share"); dir != "" {
		return filepath.Join(dir, "opencode", "auth.json")
	}
	return ""
}

// readAuth reads an auth.json. It skips entries of unknown form: OpenCode's file may have newer ones.
func readAuth(path string) (map[string]authEntry, error) {
	if path == "" {
		return nil, nil
	}
	text, ok, err := readText(path)
	if err != nil {
		return nil, readError(err)
	}
	if !ok || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		// The cause is omitted: it can quote from the file.
		return nil, configError(path+" is not valid JSON", "repair it, or remove it and run `centurion auth login` again")
	}
	out := make(map[string]authEntry, len(raw))
	for id, r := range raw {
		var e authEntry
		if json.Unmarshal(r, &e) == nil {
			out[id] = e
		}
	}
	return out, nil
}

// Keys returns the keys known without asking the keyring: those of the configuration and of both auth.json, of whatever type. Files
// that cannot be read are left out; they are reported when one of their keys is needed.
func (c *Config) Keys() []redact.Key {
	var out []redact.Key
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[id]
		out = append(out, redact.Key{Name: id, Value: string(p.APIKey)})
		if u, err := url.Parse(p.BaseURL); err == nil && u.User != nil {
			password, _ := u.User.Password()
			out = append(out, redact.Key{Name: id, Value: password})
		}
		for _, header := range slices.Sorted(maps.Keys(p.Headers)) {
			if value := p.Headers[header]; redact.Named(header) || strings.EqualFold(header, "Authorization") {
				out = append(out, redact.Key{Name: id, Value: value[strings.LastIndexByte(value, ' ')+1:]})
			}
		}
	}
	out = append(out, redact.Key{Name: "brave", Value: string(c.Own.Search.Brave)}, redact.Key{Name: "tavily", Value: string(c.Own.Search.Tavily)},
		redact.Key{Name: "github", Value: string(c.Own.Search.GitHub)})
	k := NewKeys(c.opts)
	own, _ := k.ownPath()
	for _, path := range []string{own, k.openPath()} {
		entries, _ := readAuth(path)
		for _, id := range slices.Sorted(maps.Keys(entries)) {
			e := entries[id]
			for _, value := range []string{e.Key, e.Access, e.Refresh, e.Token} {
				out = append(out, redact.Key{Name: id, Value: value})
			}
		}
	}
	return out
}

// Get returns the stored key of a provider and its place; an empty key if there is none. It ignores environment variables. Errors are
// KindConfig (a file cannot be read) and KindAuth (the keyring does not answer, or others can read our file).
func (k *Keys) Get(ctx context.Context, provider string) (Secret, string, error) {
	path, err := k.ownPath()
	if err != nil {
		return "", "", err
	}
	own, err := readAuth(path)
	if err != nil {
		return "", "", err
	}
	switch e := own[provider]; e.Type {
	case "api":
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			return "", "", &centurion.Error{Op: "read key", Kind: centurion.KindAuth, Msg: path + " can be read by others", Hint: "run: chmod 600 " + path}
		}
		return Secret(e.Key), path, nil
	case "keyring":
		key, err := k.ask(ctx, func(r Keyring) (string, error) { return r.Get(keyringService, provider) })
		if err != nil {
			return "", "", &centurion.Error{Op: "read key", Kind: centurion.KindAuth, Err: err,
				Msg:  fmt.Sprintf("the key of %s is in the keyring, which does not give it", provider),
				Hint: "unlock the keyring, or run `centurion auth login " + provider + "` again"}
		}
		return Secret(key), "keyring", nil
	}
	path = k.openPath()
	open, err := readAuth(path)
	if err != nil {
		return "", "", err
	}
	if e := open[provider]; e.Type == "api" && e.Key != "" {
		return Secret(e.Key), path, nil
	}
	return "", "", nil
}

// List lists the providers with a stored key and its place, ordered by provider. It includes keys hidden by one with higher priority.
func (k *Keys) List() ([]KeyInfo, error) {
	path, err := k.ownPath()
	if err != nil {
		return nil, err
	}
	var out []KeyInfo
	for i, p := range []string{path, k.openPath()} {
		entries, err := readAuth(p)
		if err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(entries)) {
			switch e := entries[id]; {
			case e.Type == "api" && e.Key != "":
				out = append(out, KeyInfo{id, p})
			case e.Type == "keyring" && i == 0:
				out = append(out, KeyInfo{id, "keyring"})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b KeyInfo) int { return strings.Compare(a.Provider, b.Provider) })
	return out, nil
}

// Login stores a key and returns its place: "keyring" or the file. Surrounding white space is removed. Errors are KindUsage (not a
// valid key) and KindConfig (the file cannot be written).
func (k *Keys) Login(ctx context.Context, provider string, key Secret) (string, error) {
	value := strings.TrimSpace(string(key))
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if value == "" || strings.ContainsFunc(value, bad) {
		return "", &centurion.Error{Op: "store key", Kind: centurion.KindUsage,
			Msg: "a key must be one line without spaces", Hint: "copy it again from the provider's page"}
	}
	if provider == "" || strings.ContainsFunc(provider, bad) || strings.Contains(provider, "/") {
		return "", &centurion.Error{Op: "store key", Kind: centurion.KindUsage,
			Msg: fmt.Sprintf("%q is not a provider's id", provider), Hint: "use an id such as openai or anthropic"}
	}
	entry, where := authEntry{Type: "api", Key: value}, ""
	if k.ring != nil {
		_, err := k.ask(ctx, func(r Keyring) (string, error) { return "", r.Set(keyringService, provider, value) })
		if err == nil {
			entry, where = authEntry{Type: "keyring"}, "keyring"
		}
	}
	path, err := k.change(func(m map[string]json.RawMessage) (err error) {
		m[provider], err = json.Marshal(entry)
		return err
	})
	if err != nil {
		return "", err
	}
	return cmp.Or(where, path), nil
}

// Logout deletes a key stored by Login and reports whether there was one. Keys of other programs stay.
func (k *Keys) Logout(ctx context.Context, provider string) (bool, error) {
	path, err := k.ownPath()
	if err != nil {
		return false, err
	}
	own, err := readAuth(path)
	if err != nil {
		return false, err
	}
	e, ok := own[provider]
	if !ok {
		return false, nil
	}
	if e.Type == "keyring" {
		_, err := k.ask(ctx, func(r Keyring) (string, error) { return "", r.Delete(keyringService, provider) })
		if err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return false, &centurion.Error{Op: "forget key", Kind: centurion.KindAuth, Err: err,
				Msg: "the keyring does not let go of the key of " + provider, Hint: "unlock the keyring and try again"}
		}
	}
	_, err = k.change(func(m map[string]json.RawMessage) error { delete(m, provider); return nil })
	return err == nil, err
}

// change edits our auth.json and keeps unknown entries.
func (k *Keys) change(edit func(map[string]json.RawMessage) error) (string, error) {
	path, err := k.ownPath()
	if err != nil {
		return "", err
	}
	m := map[string]json.RawMessage{}
	if text, ok, err := readText(path); err != nil {
		return "", readError(err)
	} else if ok && strings.TrimSpace(text) != "" {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return "", configError(path+" is not valid JSON", "repair or remove it, then try again")
		}
	}
	if m == nil { // the file contained null
		m = map[string]json.RawMessage{}
	}
	if err := edit(m); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = writePrivate(path, append(data, '\n'))
	}
	if err != nil {
		return "", &centurion.Error{Op: "store key", Kind: centurion.KindConfig, Err: err,
			Hint: "make " + filepath.Dir(path) + " writable or set CENTURION_HOME"}
	}
	return path, nil
}

// ask calls the keyring with a timeout of two seconds. The library's calls cannot be stopped: one that hangs keeps its goroutine until
// the process ends.
func (k *Keys) ask(ctx context.Context, f func(Keyring) (string, error)) (string, error) {
	if k.ring == nil {
		return "", errors.New("no keyring is running")
	}
	ctx, cancel := context.WithTimeout(ctx, keyringCap)
	defer cancel()
	type answer struct {
		v   string
		err error
	}
	done := make(chan answer, 1)
	var g guard.Group
	g.Go("keyring", func() error {
		var a answer
		a.err = guard.Call("keyring", func() (err error) { a.v, err = f(k.ring); return err })
		done <- a
		return nil
	})
	select {
	case a := <-done:
		_ = g.Wait()
		return a.v, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("no answer from the keyring: %w", ctx.Err())
	}
}
