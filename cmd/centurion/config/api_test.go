package config

import (
	"testing"
)

// OPAL-25: Anthropic is spoken to by its own API; another place under its name only if the file says so.
func TestResolveAPI(t *testing.T) {
	for name, tt := range map[string]struct {
		file, model string
		want        string
	}{
		"Anthropic":                         {`{}`, "anthropic/claude-sonnet-4-5", APIAnthropic},
		"its own URL":                       {`{"provider":{"anthropic":{"options":{"baseURL":"https://api.anthropic.com/v1/"}}}}`, "anthropic/claude-sonnet-4-5", APIAnthropic},
		"through a gateway":                 {`{"provider":{"anthropic":{"options":{"baseURL":"https://gateway.example/v1"}}}}`, "anthropic/claude-sonnet-4-5", ""},
		"through a gateway that is said to": {`{"provider":{"anthropic":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://gateway.example/v1"}}}}`, "anthropic/claude-sonnet-4-5", APIAnthropic},
		"its compatible endpoint":           {`{"provider":{"anthropic":{"npm":"@ai-sdk/openai-compatible"}}}`, "anthropic/claude-sonnet-4-5", ""},
		"another provider":                  {`{"provider":{"corp":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://corp.example/v1"}}}}`, "corp/m", APIAnthropic},
		"another provider, as usual":        {`{"provider":{"corp":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"https://corp.example/v1"}}}}`, "corp/m", ""},
		"OpenAI":                            {`{}`, "openai/gpt-5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["ANTHROPIC_API_KEY"], w.env["OPENAI_API_KEY"] = "sk-ant", "sk"
			w.global("opencode/opencode.json", tt.file)
			if r, err := w.resolve(tt.model); err != nil || r.API != tt.want {
				t.Errorf("%q, %v", r.API, err)
			}
		})
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
