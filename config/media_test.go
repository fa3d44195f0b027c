package config

import (
	"slices"
	"testing"

	"centurion"
)

// LOOP-13: which files a model takes is what its figures in the configuration say, else what is known of it, else nothing.
func TestMedia(t *testing.T) {
	both, image := centurion.Media{Image: true, PDF: true}, centurion.Media{Image: true}
	corp := func(model string) string {
		return `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1","api":"responses"},"models":{"m":` + model + `}}}}`
	}
	for name, tt := range map[string]struct {
		file, model string
		want        centurion.Media
	}{
		"known, by its own API":      {model: "openai/gpt-5", want: both},
		"a dated one":                {model: "anthropic/claude-sonnet-4-5-20250929", want: both},
		"known, by chat completions": {file: `{"provider":{"openai":{"options":{"api":"chat"}}}}`, model: "openai/gpt-5", want: image},
		"known to take none":         {model: "groq/llama-3.3-70b-versatile"},
		"unknown":                    {file: corp(`{}`), model: "corp/m"},
		"attachment":                 {file: corp(`{"attachment":true}`), model: "corp/m", want: image},
		"modalities":                 {file: corp(`{"attachment":false,"modalities":{"input":["text","image","pdf"],"output":["text"]}}`), model: "corp/m", want: both},
		"modalities by chat":         {file: corp(`{"options":{"api":"chat"},"modalities":{"input":["text","pdf"]}}`), model: "corp/m"},
		"turned off":                 {file: `{"provider":{"openai":{"models":{"gpt-5":{"attachment":false}}}}}`, model: "openai/gpt-5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["ANTHROPIC_API_KEY"], w.env["OPENAI_API_KEY"], w.env["GROQ_API_KEY"] = "sk-ant", "sk", "sk-groq"
			if tt.file != "" {
				w.global("opencode/opencode.json", tt.file)
			}
			if r, err := w.resolve(tt.model); err != nil || r.Media != tt.want {
				t.Errorf("takes %+v, want %+v (%v)", r.Media, tt.want, err)
			}
		})
	}
}

func TestModelsTaking(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"},"models":{"eye":{"attachment":true},"blind":{}}},
		"mistral":{"models":{"mistral-small-latest":{"attachment":false}}}}}`)
	c, err := Load(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ModelsTaking(centurion.MimePNG, 9); !slices.Equal(got, []string{"corp/eye", "mistral/mistral-large-latest", "mistral/mistral-medium-latest"}) {
		t.Error(got)
	}
	if got := c.ModelsTaking(centurion.MimePNG, 1); len(got) != 1 {
		t.Error(got)
	}
	if got := c.ModelsTaking(centurion.MimePDF, 9); len(got) != 0 {
		t.Error(got)
	}
}
