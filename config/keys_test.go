package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"
	"go.uber.org/goleak"

	"centurion"
	"centurion/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ring is a keyring in memory; err makes every call fail, and hang makes it wait for the channel.
type ring struct {
	mu   sync.Mutex
	m    map[string]string
	err  error
	hang chan struct{}
	asks int
}

func (r *ring) call() error {
	if r.hang != nil {
		<-r.hang
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks++
	return r.err
}

func (r *ring) Get(service, user string) (string, error) {
	if err := r.call(); err != nil {
		return "", err
	}
	v, ok := r.m[service+"/"+user]
	if !ok {
		return "", keyring.ErrNotFound
	}
	return v, nil
}

func (r *ring) Set(service, user, key string) error {
	if err := r.call(); err != nil {
		return err
	}
	r.m[service+"/"+user] = key
	return nil
}

func (r *ring) Delete(service, user string) error {
	if err := r.call(); err != nil {
		return err
	}
	delete(r.m, service+"/"+user)
	return nil
}

func TestKeysInFile(t *testing.T) {
	for name, r := range map[string]Keyring{"no keyring": nil, "a keyring that fails": &ring{err: errors.New("no such name")}} {
		t.Run(name, func(t *testing.T) {
			if r == nil && (runtime.GOOS == "darwin" || runtime.GOOS == "windows") {
				t.Skip("there is always a keyring here")
			}
			w := newWorld(t)
			w.opts.Keyring = r
			k := NewKeys(w.opts)
			path := filepath.Join(w.home, ".local", "share", "centurion", "auth.json")
			where, err := k.Login(t.Context(), "openai", " sk-one\n")
			if err != nil || where != path {
				t.Fatalf("stored in %q, %v", where, err)
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if _, err := k.Login(t.Context(), "groq", "gsk"); err != nil {
				t.Fatal(err)
			}
			key, source, err := k.Get(t.Context(), "openai")
			if err != nil || key.Reveal() != "sk-one" || source != path {
				t.Errorf("got %q from %q, %v", key.Reveal(), source, err)
			}
			list, err := k.List()
			if diff := cmp.Diff([]KeyInfo{{"groq", path}, {"openai", path}}, list); err != nil || diff != "" {
				t.Error(err, diff)
			}
			for _, want := range []bool{true, false} {
				if had, err := k.Logout(t.Context(), "openai"); had != want || err != nil {
					t.Errorf("logout: %v, %v", had, err)
				}
			}
			if key, _, err := k.Get(t.Context(), "openai"); key != "" || err != nil {
				t.Errorf("still there: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestKeysInKeyring(t *testing.T) {
	w := newWorld(t)
	r := &ring{m: map[string]string{}}
	w.opts.Keyring = r
	k := NewKeys(w.opts)
	where, err := k.Login(t.Context(), "openai", "sk-one")
	if err != nil || where != "keyring" || r.m["centurion/openai"] != "sk-one" {
		t.Fatalf("stored in %q, %v: %v", where, err, r.m)
	}
	file, err := os.ReadFile(filepath.Join(w.home, ".local", "share", "centurion", "auth.json"))
	if err != nil || strings.Contains(string(file), "sk-one") {
		t.Errorf("the file tells the key: %s, %v", file, err)
	}
	if key, source, err := k.Get(t.Context(), "openai"); key != "sk-one" || source != "keyring" || err != nil {
		t.Errorf("got %q from %q, %v", key.Reveal(), source, err)
	}
	asked := r.asks
	if key, _, err := k.Get(t.Context(), "groq"); key != "" || err != nil || r.asks != asked {
		t.Errorf("the keyring was asked for a key that it does not hold (%v)", err)
	}
	r.err = errors.New("locked")
	_, _, err = k.Get(t.Context(), "openai")
	fails(t, err, centurion.KindAuth, "openai", "locked", "centurion auth login openai")
	r.err = nil
	if had, err := k.Logout(t.Context(), "openai"); !had || err != nil || len(r.m) != 0 {
		t.Errorf("logout: %v, %v, %v", had, err, r.m)
	}
}

func TestKeyringThatHangs(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		r := &ring{m: map[string]string{}, hang: make(chan struct{})}
		o := w.opts
		o.Keyring = r
		start := time.Now()
		where, err := NewKeys(o).Login(t.Context(), "openai", "sk-one")
		if err != nil || !strings.HasSuffix(where, "auth.json") || time.Since(start) != 2*time.Second {
			t.Errorf("stored in %q after %v, %v", where, time.Since(start), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.Keyring = &ring{hang: r.hang}
		if _, err := NewKeys(o).ask(ctx, func(r Keyring) (string, error) { return r.Get("a", "b") }); !errors.Is(err, context.Canceled) {
			t.Errorf("err %v", err)
		}
		close(r.hang)
	})
}

func TestKeyringNeedsABus(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("there is always a keyring here")
	}
	dir := t.TempDir()
	env := map[string]string{}
	o := Options{Env: func(n string) string { return env[n] }}
	if o.KeyringAvailable() {
		t.Error("available without a session bus")
	}
	env["XDG_RUNTIME_DIR"] = dir
	if o.KeyringAvailable() {
		t.Error("available without a bus in the runtime directory")
	}
	if err := os.WriteFile(filepath.Join(dir, "bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !o.KeyringAvailable() {
		t.Error("not available with a bus")
	}
}

func TestKeysOfOpenCode(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.home, ".local", "share", "opencode", "auth.json")
	w.write(path, `{"openai":{"type":"oauth","access":"tok","refresh":"r","expires":1},"groq":{"type":"api","key":"gsk"},
		"anthropic":{"type":"wellknown","key":"K","token":"t"},"mistral":{"type":"keyring"},"new":["?"]}`)
	k := NewKeys(w.opts)
	for id, want := range map[string]Secret{"openai": "", "groq": "gsk", "anthropic": "", "mistral": "", "new": ""} {
		if key, _, err := k.Get(t.Context(), id); key != want || err != nil {
			t.Errorf("%s: %q, %v", id, key.Reveal(), err)
		}
	}
	list, err := k.List()
	if diff := cmp.Diff([]KeyInfo{{"groq", path}}, list); err != nil || diff != "" {
		t.Error(err, diff)
	}
	w.write(path, `{"groq":{"type":"api","key":"gsk-secret}`)
	_, _, err = k.Get(t.Context(), "groq")
	fails(t, err, centurion.KindConfig, path, "not valid JSON")
	if strings.Contains(err.Error(), "gsk-secret") {
		t.Error("the error tells the key")
	}
}

// S7: a file of ours that others can read is refused, and the keys of all files are known for what must not be shown.
func TestKeysToHide(t *testing.T) {
	w := newWorld(t)
	own, open := filepath.Join(w.home, ".local", "share", "centurion", "auth.json"), filepath.Join(w.home, ".local", "share", "opencode", "auth.json")
	w.write(own, `{"groq":{"type":"api","key":"own-groq-1"}}`)
	w.write(open, `{"openai":{"type":"oauth","access":"access-1","refresh":"refresh-1"}}`)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"apiKey":"corp-key-1","headers":{"Authorization":"Bearer bearer-1","X-Team":"team-1234"}}},"proxy":{"options":{"baseURL":"https://me:pass-word-1@example.com/v1"}}}}`)
	text := "own-groq-1 access-1 refresh-1 corp-key-1 bearer-1 team-1234 pass-word-1"
	if got := redact.New(w.load().Keys()...).Text(text); got != "[key groq] [key openai] [key openai] [key corp] [key corp] team-1234 [key proxy]" {
		t.Error(got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for mode, good := range map[os.FileMode]bool{0o640: false, 0o604: false, 0o600: true, 0o400: true} {
		if err := os.Chmod(own, mode); err != nil {
			t.Fatal(err)
		}
		key, _, err := NewKeys(w.opts).Get(t.Context(), "groq")
		if good && (key != "own-groq-1" || err != nil) {
			t.Errorf("%o: %q, %v", mode, key.Reveal(), err)
		}
		if !good {
			fails(t, err, centurion.KindAuth, "can be read by others", "chmod 600")
		}
	}
}

// An entry of ours without a key hides nothing and is not listed; a file that is empty holds nothing, and one that is damaged is kept.
func TestKeysOfOddFiles(t *testing.T) {
	w := newWorld(t)
	k := NewKeys(w.opts)
	own, open := filepath.Join(w.home, ".local", "share", "centurion", "auth.json"), filepath.Join(w.home, ".local", "share", "opencode", "auth.json")
	w.write(own, `{"openai":{"type":"api"},"new":{"type":"api","key":"n","more":1},"later":{"type":"passkey"}}`)
	w.write(open, `{"groq":{"type":"api","key":""}}`)
	list, err := k.List()
	if diff := cmp.Diff([]KeyInfo{{"new", own}}, list); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if key, source, err := k.Get(t.Context(), "groq"); key != "" || source != "" || err != nil {
		t.Errorf("%q from %q, %v", key.Reveal(), source, err)
	}
	if _, err := k.Login(t.Context(), "xai", "x"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(own); err != nil || !strings.Contains(string(b), `"passkey"`) || !strings.Contains(string(b), `"more": 1`) {
		t.Errorf("what is not known is lost: %s, %v", b, err)
	}
	for text, damaged := range map[string]bool{"": false, " \n": false, "null": false, "{": true, "[]": true} {
		w.write(own, text)
		_, err := k.Login(t.Context(), "xai", "x")
		if (err != nil) != damaged {
			t.Errorf("%q: %v", text, err)
		}
		if damaged {
			fails(t, err, centurion.KindConfig, "auth.json is not valid JSON", "repair or remove it")
			if b, _ := os.ReadFile(own); string(b) != text {
				t.Errorf("%q became %q", text, b)
			}
			_, err = k.Logout(t.Context(), "xai")
			fails(t, err, centurion.KindConfig, "not valid JSON")
			_, err = k.List()
			fails(t, err, centurion.KindConfig, "not valid JSON")
		}
	}
}

func TestLoginRefuses(t *testing.T) {
	w := newWorld(t)
	k := NewKeys(w.opts)
	for _, key := range []Secret{"", " ", "two words", "two\nlines", "\x1b[31m"} {
		_, err := k.Login(t.Context(), "openai", key)
		fails(t, err, centurion.KindUsage, "one line")
	}
	for _, id := range []string{"", "a/b", "a b"} {
		_, err := k.Login(t.Context(), id, "k")
		fails(t, err, centurion.KindUsage, "provider's id", "use an id such as openai")
	}
	if runtime.GOOS != "windows" {
		w.write(filepath.Join(w.home, "file"), "")
		w.env["CENTURION_HOME"] = filepath.Join(w.home, "file", "below")
		_, err := k.Login(t.Context(), "openai", "k")
		fails(t, err, centurion.KindConfig, "CENTURION_HOME")
	}
}

func TestSecretIsNotTold(t *testing.T) {
	r := Resolved{APIKey: "sk-canary", Model: centurion.ModelRef{Provider: "a", ID: "b"}}
	c := &Config{Providers: map[string]Provider{"a": {APIKey: "sk-canary"}}}
	j, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(r), fmt.Sprintf("%v %+v %#v %q %x", r, r, r, r.APIKey, r.APIKey),
		fmt.Sprintf("%v %+v %#v", c, *c, *c), string(j)} {
		if strings.Contains(s, "sk-canary") || strings.Contains(s, fmt.Sprintf("%x", "sk-canary")) {
			t.Errorf("told: %s", s)
		}
	}
}
