package sandbox

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Each variable that commands get, none that is like one of them, and never one that may hold a secret.
func TestWhichVariablesCommandsGet(t *testing.T) {
	t.Parallel()
	given := strings.Fields("PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_ALL LC_ TMPDIR TZ COLORTERM NO_COLOR CI XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME " +
		"GOPATH GOROOT GOCACHE GOMODCACHE GOFLAGS GOPROXY GONOSUMDB GONOPROXY GONOSUMCHECK GOPRIVATE GOSUMDB GOTOOLCHAIN GOBIN GOTMPDIR GOWORK GOEXPERIMENT GOINSECURE GOMAXPROCS GOMEMLIMIT " +
		"CGO_ENABLED CC CXX PKG_CONFIG_PATH NODE_ENV npm_config_x NPM_CONFIG_X NVM_DIR PNPM_HOME BUN_INSTALL DENO_DIR JAVA_HOME MAVEN_HOME GRADLE_USER_HOME " +
		"CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN VIRTUAL_ENV PYTHONPATH PYENV_ROOT PIP_X UV_X GEM_HOME GEM_PATH RBENV_ROOT DOTNET_ROOT SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE " +
		"http_proxy https_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY OWN OWN_X")
	withheld := strings.Fields("OTHER OWNX XPATH LC GOX DISPLAY SSH_CLIENT DBUS_SESSION_BUS_ADDRESS EDITOR TERM GIT_DIR MY_TOOL BASH_ENV " +
		"NODE_AUTH PIP_PASSWORD UV_TOKEN NPM_CONFIG_SECRET npm_config_key PYTHON_PASSWD CGO_CREDENTIALS NODE_TOKENS")
	var all, want []string
	for _, name := range given {
		all, want = append(all, name+"=v"), append(want, name+"=v")
	}
	for _, name := range withheld {
		all = append(all, name+"=v")
	}
	for value, ok := range map[string]bool{"http://proxy:3128": true, "http://user@proxy:3128/a:b": true, "http://proxy/x@y:z": true, "user:pass@proxy": true, "": true, "a=b": true,
		"http://user:pass@proxy": false, "https://u:@h/x": false, "socks5://u:p@h": false} {
		if all = append(all, "http_proxy="+value); ok {
			want = append(want, "http_proxy="+value)
		}
	}
	want = append(want, "TERM=dumb", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "PAGER=cat")
	got := environment(all, []string{"OWN", "OWN_*"})
	if runtime.GOOS == "windows" {
		t.Skip("names in any case, and more of them")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
