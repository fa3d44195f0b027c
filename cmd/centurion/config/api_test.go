package config

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
)

// A model is asked as its own options say, then as its provider's, then as OpenCode would: its package for OpenAI, and OpenAI's
// own endpoint without any word, mean responses; everything else is chat completions.
func TestAPI(t *testing.T) {
	for name, tt := range map[string]struct {
		flag, file, url string
		want            provider.API
	}{
		"OpenAI's own":            {flag: "openai/gpt-5", want: provider.Responses},
		"OpenAI's name elsewhere": {flag: "openai/gpt-5", url: "http://127.0.0.1:1/v1"},
		"another provider":        {flag: "groq/x"},
		"the package":             {flag: "corp/x", file: `{"provider":{"corp":{"npm":"@ai-sdk/openai","options":{"baseURL":"https://corp.example/v1"}}}}`, want: provider.Responses},
		"a compatible one":        {flag: "openai/x", file: `{"provider":{"openai":{"npm":"@ai-sdk/openai-compatible"}}}`},
		"chat for a provider":     {flag: "openai/gpt-5", file: `{"provider":{"openai":{"options":{"api":"Chat"}}}}`, want: provider.Chat},
		"responses for one":       {flag: "corp/x", file: `{"provider":{"corp":{"options":{"api":"responses","baseURL":"https://corp.example/v1"}}}}`, want: provider.Responses},
		"the model's word":        {flag: "openai/old", file: `{"provider":{"openai":{"options":{"api":"responses"},"models":{"old":{"options":{"api":"chat"}}}}}}`, want: provider.Chat},
		"for the other model":     {flag: "openai/new", file: `{"provider":{"openai":{"models":{"old":{"options":{"api":"chat"}}}}}}`, want: provider.Responses},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["OPENAI_API_KEY"], w.env["GROQ_API_KEY"] = "sk-env", "sk-groq"
			if tt.url != "" {
				w.env["OPENAI_BASE_URL"] = tt.url
			}
			if tt.file != "" {
				w.global("opencode/opencode.json", tt.file)
			}
			if r, err := w.resolve(tt.flag); err != nil || r.API != tt.want {
				t.Errorf("asked by %q, want %q (%v)", r.API, tt.want, err)
			}
		})
	}
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"openai":{"options":{"api":"response"}}}}`)
	_, err := Load(w.opts)
	if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(centurion.HintOf(err), `did you mean "responses"?`) {
		t.Errorf("%v (%s)", err, centurion.HintOf(err))
	}
}
