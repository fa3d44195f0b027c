package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/cpu"

	"centurion"
	"centurion/guard/durable"
)

const (
	bunVersion = "1.4.5"
	// sdkVersion is that of @opencode-ai/plugin, which plugins of a project import without naming it anywhere.
	sdkVersion = "1.18.33"
	// recordFile is beside node_modules.
	recordFile = "bun.json"
)

// bunPackages are the packages with Bun for each system, with the hash that npm's registry has of version 1.4.5.
var bunPackages = map[string]string{
	"linux-x64":               "sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
	"linux-x64-baseline":      "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
	"linux-x64-musl":          "sha512-10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
	"linux-x64-musl-baseline": "sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A==",
	"linux-aarch64":           "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
	"linux-aarch64-musl":      "sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
	"darwin-x64":              "sha512-qkLPMGHZM9NI6CeHTWwVezzmlo6cC4Ta7yUAjYIWXS366qQcOlcp75t2uZyiuVRBMPS0h9qE0tCcvCHGaFqjJg==",
	"darwin-x64-baseline":     "sha512-zqfLA5A4B+hYMh5WYzYSot3uZ06FzhdP0OEwQisEzdirYtXGj5cQFlfy31BGfNsAsk1Gd/w/OxJ/jqqJ3cMclw==",
	"darwin-aarch64":          "sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==",
	"windows-x64":             "sha512-FNvply651vcE/GHgNWz6mZvhmkwBuu8Hw54oNzA+CQog+HW+542rXQmZqNHRkFxazD9L3xi+iTtvO3engAgJfw==",
	"windows-x64-baseline":    "sha512-/U3Dc74uGqE6EUqef7mPtg9KwJs7iJH4JHRMfIZIn18MrJh6Xz4gVvWDXRvzCL2j8wPlTnJVyrO4n7Qq4uM7TQ==",
	"windows-aarch64":         "sha512-MiPFZnBNDnBXgr1oONc5pizC4fOLjnIOfNkYdFEnWzLmoFTg86naZIG3SvS7d/GglpQSAnCKMAzSjI/TAckiRw==",
}

// Runtime is an installed Bun.
type Runtime struct {
	Package string    `json:"package"`
	Version string    `json:"version"`
	SHA256  string    `json:"sha256"` // of the program, in hexadecimal
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"` // of the file then
	Path    string    `json:"-"`       // absolute
}

// bunPackage names the package that runs on a machine: "" if there is none.
func bunPackage(goos, goarch string, musl, avx2 bool) string {
	name := goos + "-" + map[string]string{"amd64": "x64", "arm64": "aarch64"}[goarch]
	if musl && goos == "linux" {
		name += "-musl"
	}
	if goarch == "amd64" && !avx2 {
		name += "-baseline"
	}
	if bunPackages[name] == "" {
		return ""
	}
	return "@oven/bun-" + name
}

// BunPackage names the npm package with Bun for this machine.
func BunPackage() (string, error) {
	musl, _ := filepath.Glob("/lib/ld-musl-*.so.1")
	glibc, _ := filepath.Glob("/lib*/ld-linux-*")
	name := bunPackage(runtime.GOOS, runtime.GOARCH, len(musl) > 0 && len(glibc) == 0, cpu.X86.HasAVX2)
	if name == "" {
		return "", &centurion.Error{Op: "plugins", Kind: centurion.KindConfig, Msg: fmt.Sprintf("Bun does not exist for %s on %s, so that OpenCode's plugins cannot run", runtime.GOOS, runtime.GOARCH),
			Hint: "native plugins and MCP servers work"}
	}
	return name, nil
}

// Install puts packages, and with them Bun and what plugins import, into an install directory, and records Bun's version and hash. It
// returns the installed Bun. npm does the work, so that the person's registry and its login count; no script of a package runs. run runs a
// program in a directory and returns its output; it gives an error that wraps [os.ErrNotExist] where the program is missing.
func Install(ctx context.Context, dir string, specs []string, run func(ctx context.Context, dir string, argv ...string) (string, error)) (Runtime, error) {
	fail := func(kind centurion.Kind, hint string, format string, args ...any) (Runtime, error) {
		return Runtime{}, &centurion.Error{Op: "plugin add", Kind: kind, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	bun, err := BunPackage()
	if err != nil {
		return Runtime{}, err
	}
	for _, spec := range specs {
		if _, _, ok := Package(spec); !ok {
			return fail(centurion.KindUsage, "write NAME or NAME@VERSION", "%q is no package of npm", spec)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(centurion.KindDisk, "", "%v", err)
	}
	if file := filepath.Join(dir, "package.json"); !exists(file) {
		if err := durable.Replace(file, []byte("{\n  \"name\": \"centurion-plugins\",\n  \"private\": true\n}\n"), 0o600); err != nil {
			return fail(centurion.KindDisk, "", "%v", err)
		}
	}
	argv := append([]string{"install", "--save-exact", "--", bun + "@" + bunVersion, "@opencode-ai/plugin@" + sdkVersion}, specs...)
	if err := npmIn(ctx, "plugin add", dir, run, argv...); err != nil {
		return Runtime{}, err
	}
	return record(dir, bun)
}

// Has reports whether a package was installed by its name, and not because another one needs it.
func Has(dir, name string) bool {
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	return err == nil && json.Unmarshal(b, &p) == nil && p.Dependencies[name] != ""
}

// Uninstall removes a package and what only it needs from an install directory. run is as in [Install].
func Uninstall(ctx context.Context, dir, name string, run func(ctx context.Context, dir string, argv ...string) (string, error)) error {
	return npmIn(ctx, "plugin remove", dir, run, "uninstall", "--", name)
}

// npmIn runs a command of npm's in an install directory.
func npmIn(ctx context.Context, op, dir string, run func(ctx context.Context, dir string, argv ...string) (string, error), argv ...string) error {
	out, err := run(ctx, dir, slices.Concat([]string{"npm", argv[0], "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}, argv[1:])...)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &centurion.Error{Op: op, Kind: centurion.KindConfig, Msg: "npm is missing", Hint: "install Node 20 or later, which brings npm; it is needed to install and remove plugins only"}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &centurion.Error{Op: op, Kind: centurion.KindNetwork, Msg: fmt.Sprintf("npm could not %s it: %v\n%s", argv[0], err, strings.TrimSpace(out)), Hint: "see the output of npm above"}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// record compares what npm has installed with the hash that this program knows, and writes down the program's own.
func record(dir, bun string) (Runtime, error) {
	wrong := func(format string, args ...any) (Runtime, error) {
		return Runtime{}, &centurion.Error{Op: "plugin add", Kind: centurion.KindPermission, Msg: fmt.Sprintf(format, args...), Hint: "do not use it; see which registry npm is configured for"}
	}
	var lock struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
		} `json:"packages"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(b, &lock)
	}
	if err != nil {
		return wrong("npm left no usable package-lock.json: %v", err)
	}
	got, want := lock.Packages["node_modules/"+bun], bunPackages[strings.TrimPrefix(bun, "@oven/bun-")]
	if got.Version != bunVersion || got.Integrity != want {
		return wrong("%s is %s with the hash %s; expected %s with %s", bun, got.Version, got.Integrity, bunVersion, want)
	}
	r := Runtime{Package: bun, Version: bunVersion, Path: programOf(dir, bun)}
	if err := r.measure(); err != nil {
		return wrong("%v", err)
	}
	b, err = json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = durable.Replace(filepath.Join(dir, recordFile), b, 0o600)
	}
	return r, err
}

func programOf(dir, bun string) string {
	path := filepath.Join(dir, "node_modules", filepath.FromSlash(bun), "bin", "bun")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path
}

func (r *Runtime) measure() error {
	f, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	r.SHA256, r.Bytes, r.Changed = hex.EncodeToString(h.Sum(nil)), info.Size(), info.ModTime().UTC()
	return nil
}

// Installed returns the Bun of an install directory, if it is what was recorded. Its content is read only when the file is not as it was left:
// that takes about a quarter of a second.
func Installed(dir string) (Runtime, error) {
	fail := func(format string, args ...any) (Runtime, error) {
		return Runtime{}, &centurion.Error{Op: "plugins", Kind: centurion.KindConfig, Msg: fmt.Sprintf(format, args...), Hint: hintAdd}
	}
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return fail("Bun, which runs OpenCode's plugins, is not installed")
	}
	var r Runtime
	if err := json.Unmarshal(b, &r); err != nil || !strings.HasPrefix(r.Package, "@oven/bun-") || bunPackages[strings.TrimPrefix(r.Package, "@oven/bun-")] == "" {
		return fail("the record of Bun cannot be read: %s", filepath.Join(dir, recordFile))
	}
	r.Path = programOf(dir, r.Package)
	info, err := os.Stat(r.Path)
	if err != nil {
		return fail("Bun is gone: %s", r.Path)
	}
	if info.Size() == r.Bytes && info.ModTime().Equal(r.Changed) {
		return r, nil
	}
	now := r
	if err := now.measure(); err != nil || now.SHA256 != r.SHA256 {
		return fail("%s is not the program that was installed", r.Path)
	}
	return now, nil
}
