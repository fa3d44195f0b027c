package sandbox

import (
	"runtime"
	"slices"
	"strings"
)

// allowed lists variables by which programs find themselves, their caches and the network. A trailing star matches any rest.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TMPDIR", "TZ", "COLORTERM", "NO_COLOR", "CI",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOSUMDB", "GONOPROXY", "GONOSUMCHECK", "GOPRIVATE", "GOSUMDB", "GOTOOLCHAIN",
	"GOBIN", "GOTMPDIR", "GOWORK", "GOEXPERIMENT", "GOINSECURE", "GOMAXPROCS", "GOMEMLIMIT", "CGO_*", "CC", "CXX", "PKG_CONFIG_PATH",
	"NODE_*", "npm_config_*", "NPM_CONFIG_*", "NVM_DIR", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "JAVA_HOME", "MAVEN_HOME", "GRADLE_USER_HOME",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "VIRTUAL_ENV", "PYTHON*", "PYENV_ROOT", "PIP_*", "UV_*", "GEM_HOME", "GEM_PATH", "RBENV_ROOT",
	"DOTNET_ROOT", "SSL_CERT_*", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
}

// allowedWindows lists variables without which programs on Windows do not start.
var allowedWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "NUMBER_OF_PROCESSORS",
	"PROCESSOR_ARCHITECTURE", "OS", "MSYSTEM",
}

// environment returns a child's part of all: the allowed names and those of extra, without likely secrets. It adds that there is no
// terminal and no user to ask.
func environment(all, extra []string) []string {
	names := slices.Concat(allowed, extra)
	if runtime.GOOS == "windows" {
		names = append(names, allowedWindows...)
	}
	out := make([]string, 0, len(all)+3)
	for _, kv := range all {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || secret(name) || credentials(value) || !listed(names, name) {
			continue
		}
		out = append(out, kv)
	}
	return append(out, "TERM=dumb", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "PAGER=cat")
}

func listed(names []string, name string) bool {
	return slices.ContainsFunc(names, func(pattern string) bool {
		if head, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, head)
		}
		return name == pattern || runtime.GOOS == "windows" && strings.EqualFold(name, pattern)
	})
}

// secret reports whether a variable's name suggests a secret.
func secret(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// credentials reports whether a value is an address with a password, as of a proxy or a package index.
func credentials(value string) bool {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	user, _, ok := strings.Cut(host, "@")
	return ok && strings.Contains(user, ":")
}
