package config

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
)

// OPAL-25: a model is spoken to as its own options say, then as its provider's, then as the package of OpenCode would; without
// a word OpenAI and Anthropic are spoken to by their own APIs, but another place under their names is not.
func TestResolveAPI(t *testing.T) {
	for name, tt := range map[string]struct {
		file, model, url string
		want             API
	}{
		"Anthropic":                         {model: "anthropic/claude-sonnet-4-5", want: APIAnthropic},
		"its own URL":                       {file: `{"provider":{"anthropic":{"options":{"baseURL":"https://api.anthropic.com/v1/"}}}}`, model: "anthropic/claude-sonnet-4-5", want: APIAnthropic},
		"through a gateway":                 {file: `{"provider":{"anthropic":{"options":{"baseURL":"https://gateway.example/v1"}}}}`, model: "anthropic/claude-sonnet-4-5", want: APIChat},
		"through a gateway that is said to": {file: `{"provider":{"anthropic":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://gateway.example/v1"}}}}`, model: "anthropic/claude-sonnet-4-5", want: APIAnthropic},
		"its compatible endpoint":           {file: `{"provider":{"anthropic":{"npm":"@ai-sdk/openai-compatible"}}}`, model: "anthropic/claude-sonnet-4-5", want: APIChat},
		"another with Anthropic's package":  {file: `{"provider":{"corp":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://corp.example/v1"}}}}`, model: "corp/m", want: APIAnthropic},
		"another with OpenAI's package":     {file: `{"provider":{"corp":{"npm":"@ai-sdk/openai","options":{"baseURL":"https://corp.example/v1"}}}}`, model: "corp/m", want: APIResponses},
		"another, as usual":                 {file: `{"provider":{"corp":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"https://corp.example/v1"}}}}`, model: "corp/m", want: APIChat},
		"a known one":                       {model: "groq/x", want: APIChat},
		"OpenAI":                            {model: "openai/gpt-5", want: APIResponses},
		"OpenAI's name elsewhere":           {model: "openai/gpt-5", url: "http://127.0.0.1:1/v1", want: APIChat},
		"OpenAI, compatible":                {file: `{"provider":{"openai":{"npm":"@ai-sdk/openai-compatible"}}}`, model: "openai/x", want: APIChat},
		"chat for a provider":               {file: `{"provider":{"openai":{"options":{"api":"Chat"}}}}`, model: "openai/gpt-5", want: APIChat},
		"responses for a provider":          {file: `{"provider":{"corp":{"options":{"api":"responses","baseURL":"https://corp.example/v1"}}}}`, model: "corp/x", want: APIResponses},
		"over what the package says":        {file: `{"provider":{"corp":{"npm":"@ai-sdk/openai","options":{"api":"anthropic","baseURL":"https://corp.example/v1"}}}}`, model: "corp/x", want: APIAnthropic},
		"the model's word":                  {file: `{"provider":{"openai":{"options":{"api":"responses"},"models":{"old":{"options":{"api":"chat"}}}}}}`, model: "openai/old", want: APIChat},
		"not for the other model":           {file: `{"provider":{"openai":{"models":{"old":{"options":{"api":"chat"}}}}}}`, model: "openai/new", want: APIResponses},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["ANTHROPIC_API_KEY"], w.env["OPENAI_API_KEY"], w.env["GROQ_API_KEY"] = "sk-ant", "sk", "sk-groq"
			if tt.url != "" {
				w.env["OPENAI_BASE_URL"] = tt.url
			}
			if tt.file != "" {
				w.global("opencode/opencode.json", tt.file)
			}
			if r, err := w.resolve(tt.model); err != nil || r.API != tt.want {
				t.Errorf("spoken to by %q, want %q (%v)", r.API, tt.want, err)
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

// OPAL-25: what speaks the API knows the model's limit where that is known.
func TestWire(t *testing.T) {
	for name, tt := range map[string]struct {
		model Resolved
		want  provider.Wire
	}{
		"chat completions": {Resolved{API: APIChat, Limit: Limit{Output: 9}}, nil},
		"responses":        {Resolved{API: APIResponses, Limit: Limit{Output: 9}}, provider.Responses{}},
		"Anthropic's":      {Resolved{API: APIAnthropic, Limit: Limit{Output: 64000}}, anthropic.Wire{MaxTokens: 64000}},
		"an unknown model": {Resolved{API: APIAnthropic, Unknown: true, Limit: Limit{Output: 16384}}, anthropic.Wire{}},
	} {
		if got := tt.model.Wire(); got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The list of models is asked for with that API's headers and in one page.
func TestListOverItsOwnAPI(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://corp.example/v1","apiKey":"sk-corp"}}}}`)
	net := w.web(map[string]string{"https://corp.example/v1/models?limit=1000": `{"data":[{"type":"model","id":"claude-new"}],"has_more":false}`})
	r, err := w.resolve("")
	if err != nil || r.Model.String() != "corp/claude-new" || r.API != APIAnthropic {
		t.Fatalf("%+v, %v", r, err)
	}
	if h := net.headers[0]; h.Get("x-api-key") != "sk-corp" || h.Get("anthropic-version") == "" || h.Get("Authorization") != "" {
		t.Errorf("sent %v", h)
	}
}
