package scripted

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
)

func pixels(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// What a strict provider refuses of images and documents, over every API, and that it says why.
func TestChecksFiles(t *testing.T) {
	ok, wide := pixels(t, 4, 3), pixels(t, maxSide+1, 1)
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1"))
	url := func(mime, data string) string { return `"data:` + mime + `;base64,` + data + `"` }
	img := func(data string) string {
		return `{"type":"image_url","image_url":{"url":` + url("image/png", data) + `}}`
	}
	chat := func(role, parts string) string {
		more := ""
		if role == "tool" {
			more = `{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},`
			role += `","tool_call_id":"a`
		}
		return `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},` + more + `{"role":"` + role + `","content":[` + parts + `]}]}`
	}
	items := func(content, output string) string {
		return `{"model":"m","stream":true,"store":false,"instructions":"s","input":[{"role":"user","content":[` + content + `]},` +
			`{"type":"function_call","call_id":"A","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"A","output":` + output + `}]}`
	}
	block := func(kind, mime, data string) string {
		return `{"type":"` + kind + `","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}`
	}
	blocks := func(user, result string) string {
		return `{"model":"m","max_tokens":9,"stream":true,"system":"s","messages":[{"role":"user","content":[` + user + `]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":[` + result + `]}]}]}`
	}
	const says = `{"type":"input_text","text":"u"}`
	for _, tt := range []struct{ name, path, body, want string }{
		{"chat", "chat/completions", chat("user", img(ok)), ""},
		{"chat, of a tool", "chat/completions", chat("tool", img(ok)), "only the user may send one"},
		{"chat, a lie", "chat/completions", chat("user", img(pdf)), `appears to be of "application/pdf"`},
		{"chat, a document", "chat/completions", chat("user", strings.Replace(img(pdf), "image/png", "application/pdf", 1)), "is sent as an image"},
		{"chat, no data", "chat/completions", chat("user", strings.Replace(img(ok), "data:", "http://x/", 1)), "no data URL"},
		{"chat, broken data", "chat/completions", chat("user", img("%%")), "no base64"},
		{"chat, cut", "chat/completions", chat("user", img(ok[:40])), "Could not process image"},
		{"chat, too wide", "chat/completions", chat("user", img(wide)), "exceeds max allowed size: 8000"},
		{"chat, too many wide ones", "chat/completions", chat("user", img(pixels(t, 2001, 1))+strings.Repeat(","+img(ok), 20)), "many-image requests: 2000"},
		{"chat, too big", "chat/completions", chat("user", img(base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 4<<20)...)))), "exceeds 5 MB maximum"},
		{"chat, a part of nobody's", "chat/completions", chat("user", `{"type":"video"}`), `unknown type "video"`},
		{"responses", "responses", items(`{"type":"input_image","image_url":`+url("image/png", ok)+`},{"type":"input_file","filename":"a.pdf","file_data":`+url("application/pdf", pdf)+`}`, `[`+says+`,{"type":"input_image","image_url":`+url("image/png", ok)+`}]`), ""},
		{"responses, a file without a name", "responses", items(says+`,{"type":"input_file","file_data":`+url("application/pdf", pdf)+`}`, `"x"`), `type "input_file"`},
		{"responses, a document as an image", "responses", items(`{"type":"input_image","image_url":`+url("application/pdf", pdf)+`}`, `"x"`), "in a part of type input_image"},
		{"messages", "messages", blocks(block("image", "image/png", ok)+","+block("document", "application/pdf", pdf), block("image", "image/png", ok)), ""},
		{"messages, a lie in a result", "messages", blocks(`{"type":"text","text":"u"}`, block("image", "image/jpeg", ok)), `appears to be of "image/png"`},
		{"messages, an image as a document", "messages", blocks(block("document", "image/png", ok), ""), "media_type"},
		{"messages, by URL", "messages", blocks(strings.Replace(block("image", "image/png", ok), "base64", "url", 1), ""), "only base64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []File
			m := New(Config{Func: func(r Request) Answer { got = r.Files(); return Answer{Say: "ok"} }})
			t.Cleanup(func() { _ = m.Close() })
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, URL+"/"+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("anthropic-version", "2023-06-01")
			req.Header.Set("x-api-key", "k")
			resp, err := m.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if (resp.StatusCode == http.StatusOK) != (tt.want == "") || !strings.Contains(strings.ReplaceAll(string(b), `\"`, `"`), tt.want) {
				t.Errorf("status %d: %.300s; want %q", resp.StatusCode, b, tt.want)
			}
			if tt.want == "" && (len(got) == 0 || got[0].Width != 4 || got[0].Role != "user" || len(got[0].SHA256) != 64) {
				t.Errorf("read as %v", got)
			}
		})
	}
}
