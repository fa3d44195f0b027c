package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// write makes files below a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := "node_modules/"
	write(t, dir, map[string]string{
		m + "server/package.json": `{"name":"server","version":"1.2.3","main":"main.js","exports":{".":"./main.js","./server":{"types":"./x.d.ts","import":"./dist/s.js"}}}`,
		m + "server/main.js":      "", m + "server/dist/s.js": "",
		m + "@a/main/package.json": `{"name":"@a/main","version":"2.0.0","main":"./lib","exports":"./other.js"}`, m + "@a/main/lib/index.js": "",
		m + "index/package.json": `{"version":"1.0.0"}`, m + "index/index.ts": "",
		m + "none/package.json": `{"main":"gone.js"}`, m + "broken/package.json": `{`,
		m + "out/package.json": `{"main":"../index/index.ts"}`,
		"x.js":                 "", "package/package.json": `{"name":"named","main":"p.js"}`, "package/p.js": "",
	})
	for _, c := range []struct{ entry, file, name, wrong string }{
		{`"server"`, m + "server/dist/s.js", "server", ""},
		{`"server@1.2.3"`, m + "server/dist/s.js", "server", ""},
		{`"server@latest"`, m + "server/dist/s.js", "server", ""},
		{`"server@1.2.4"`, "", "server", "is installed as 1.2.3"},
		{`["@a/main@2.0.0",{"x":1}]`, m + "@a/main/lib/index.js", "@a/main", ""},
		{`"index"`, m + "index/index.ts", "index", ""},
		{`"none"`, "", "none", "has no entry file"},
		{`"broken"`, "", "broken", "cannot be read"},
		{`"out"`, "", "out", "outside of its package"},
		{`"gone@1.0.0"`, "", "gone", "is not installed"},
		{`"../server"`, "", "server", "is not there"},
		{`"a/../../x"`, "", "a/../../x", "is no name of a package"},
		{`"file://` + filepath.ToSlash(dir) + `/x.js"`, "x.js", "x", ""},
		{`"./x.js"`, "x.js", "x", ""},
		{`"./package"`, "package/p.js", "named", ""},
		{`"./y.js"`, "", "y", "is not there"},
		{`7`, "", "", "is neither a name"}, {`[]`, "", "", "is neither a name"}, {`["x",{},1]`, "", "", "is neither a name"},
	} {
		s := Find(json.RawMessage(c.entry), dir, dir)
		if c.wrong != "" {
			if s.Err == nil || !strings.Contains(s.Err.Error(), c.wrong) || centurion.KindOf(s.Err) != centurion.KindConfig || centurion.HintOf(s.Err) == "" {
				t.Errorf("%s: %v", c.entry, s.Err)
			}
			continue
		}
		if s.Err != nil || s.File != filepath.Join(dir, filepath.FromSlash(c.file)) || s.Name != c.name || strings.HasPrefix(c.entry, "[") != (string(s.Options) == `{"x":1}`) {
			t.Errorf("%s: %+v", c.entry, s)
		}
	}
}

func TestScan(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"plugins/b.ts": "", "plugins/a.js": "", "plugins/a.d.ts": "", "plugins/readme.md": "", "plugins/sub/x.js": "", "tool/t.ts": "", "tools/u.js": "", "plugin/z.js": ""})
	var got []string
	for _, s := range Scan(dir) {
		got = append(got, fmt.Sprint(s.Kind, " ", s.Name, " ", s.Local))
	}
	if want := "[plugin z true plugin a true plugin b true tool t true tool u true]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	if s := Scan(filepath.Join(dir, "none")); s != nil {
		t.Errorf("%v", s)
	}
}

func TestBunPackage(t *testing.T) {
	for _, c := range []struct {
		goos, goarch string
		musl, avx2   bool
		want         string
	}{
		{"linux", "amd64", false, true, "@oven/bun-linux-x64"}, {"linux", "amd64", true, false, "@oven/bun-linux-x64-musl-baseline"},
		{"linux", "arm64", true, false, "@oven/bun-linux-aarch64-musl"}, {"darwin", "arm64", true, false, "@oven/bun-darwin-aarch64"},
		{"windows", "amd64", false, false, "@oven/bun-windows-x64-baseline"}, {"linux", "riscv64", false, false, ""}, {"plan9", "amd64", false, true, ""},
	} {
		if got := bunPackage(c.goos, c.goarch, c.musl, c.avx2); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// What npm leaves is compared with what this program knows; what was installed is noticed when it changes.
func TestInstall(t *testing.T) {
	bun, err := BunPackage()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	hash := bunPackages[strings.TrimPrefix(bun, "@oven/bun-")]
	var argv string
	npm := func(version, hash string) func(context.Context, string, ...string) (string, error) {
		return func(_ context.Context, dir string, a ...string) (string, error) {
			argv = strings.Join(a, " ")
			write(t, dir, map[string]string{"package-lock.json": fmt.Sprintf(`{"packages":{"node_modules/%s":{"version":%q,"integrity":%q}}}`, bun, version, hash)})
			write(t, filepath.Dir(filepath.Dir(programOf(dir, bun))), map[string]string{"bin/" + filepath.Base(programOf(dir, bun)): "program"})
			return "", nil
		}
	}
	dir := t.TempDir()
	if _, err := Installed(dir); centurion.HintOf(err) != hintAdd {
		t.Error(err)
	}
	r, err := Install(t.Context(), dir, []string{"a@1.0.0", "@b/c"}, npm(bunVersion, hash))
	if err != nil || !strings.HasSuffix(argv, " -- "+bun+"@1.4.5 @opencode-ai/plugin@1.18.33 a@1.0.0 @b/c") || !strings.Contains(argv, "--ignore-scripts") {
		t.Fatalf("%v: %s", err, argv)
	}
	if again, err := Installed(dir); err != nil || again != r || r.SHA256 == "" {
		t.Errorf("%+v, %v", again, err)
	}
	if err := os.WriteFile(r.Path, []byte("another"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Installed(dir); err == nil || !strings.Contains(err.Error(), "is not the program") {
		t.Error(err)
	}
	write(t, dir, map[string]string{"package.json": `{"dependencies":{"@b/c":"1.0.0"}}`})
	if !Has(dir, "@b/c") || Has(dir, "b") || Has(filepath.Join(dir, "none"), "@b/c") {
		t.Error("it is not known what is installed")
	}
	if err := Uninstall(t.Context(), dir, "@b/c", npm(bunVersion, hash)); err != nil || !strings.HasSuffix(argv, " -- @b/c") || !strings.Contains(argv, "npm uninstall --ignore-scripts") {
		t.Errorf("%v: %s", err, argv)
	}
	for name, f := range map[string]func(context.Context, string, ...string) (string, error){
		"npm is missing": func(context.Context, string, ...string) (string, error) {
			return "", fmt.Errorf("npm: %w", os.ErrNotExist)
		},
		"npm could not": func(context.Context, string, ...string) (string, error) {
			return "E404 no such package", errors.New("exit status 1")
		},
		"with the hash": npm(bunVersion, "sha512-other"), "expected 1.4.5": npm("1.4.6", hash),
	} {
		if _, err := Install(t.Context(), t.TempDir(), nil, f); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, spec := range []string{"--global", "../x", "file:///x", "a b"} {
		if _, err := Install(t.Context(), t.TempDir(), []string{spec}, npm(bunVersion, hash)); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
