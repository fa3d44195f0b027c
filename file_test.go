package centurion_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"centurion"
)

// picture makes an image of a type.
func picture(t testing.TB, mime string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, w, h))
	encode := map[string]func() error{
		centurion.MimePNG:  func() error { return png.Encode(&b, m) },
		centurion.MimeJPEG: func() error { return jpeg.Encode(&b, m, nil) },
		centurion.MimeGIF:  func() error { return gif.Encode(&b, m, nil) },
	}[mime]
	if err := encode(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp makes the head of a WebP file of one of its three kinds.
func webp(kind string, body ...byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+kind+"\x00\x00\x00\x00"), body...)
	return append(b, make([]byte, 32)...)
}

// LOOP-77: an attachment knows where it came from, its type and its data, and is stored in OpenCode's shapes: as a part of a
// message, as an attachment of a tool's result, and as what a client sends. It comes back as it was.
func TestFileShapes(t *testing.T) {
	f := centurion.File{Mime: centurion.MimePNG, Name: "größe 1.png", Path: "docs/ein Bild/größe 1.png", Data: picture(t, centurion.MimePNG, 3, 2)}
	part := centurion.Part{ID: prtID, SessionID: sesID, MessageID: msgID, Type: centurion.PartFile, File: &f}
	same(t, "part", part, conforms(t, shape(t, "FilePart"), "part", part))
	conforms(t, shape(t, "Part"), "part", part)
	same(t, "input", f, conforms(t, shape(t, "FilePartInput"), "input", f))

	state := centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{}`), Output: "o", Metadata: map[string]any{}, Attachments: []centurion.Part{part}}
	same(t, "result", state, conforms(t, shape(t, "ToolStateCompleted"), "result", state))

	b, err := json.Marshal(part)
	want := `"mime":"image/png","filename":"größe 1.png","url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(f.Data) +
		`","source":{"text":{"value":"","start":0,"end":0},"type":"file","path":"docs/ein Bild/größe 1.png"}}`
	if err != nil || !strings.HasSuffix(string(b), want) {
		t.Errorf("%s, %v; want it to end in %s", b, err, want)
	}
	elsewhere := centurion.File{Mime: centurion.MimePDF, Name: "a.pdf", URL: "file:///tmp/a.pdf"}
	same(t, "a file that is elsewhere", elsewhere, conforms(t, shape(t, "FilePartInput"), "elsewhere", elsewhere))
	if err := json.Unmarshal([]byte(`{"type":"file","mime":"image/png","url":"data:image/png;base64,%%"}`), new(centurion.File)); err == nil {
		t.Error("broken data was read")
	}
	if b, err := json.Marshal(centurion.Part{ID: prtID, Type: centurion.PartFile}); err == nil {
		t.Errorf("a file part without a file was written as %s", b)
	}
}

// LOOP-77: what a file is, is told by its content; what no provider takes is refused with the limit that it breaks.
func TestNewFile(t *testing.T) {
	for _, tt := range []struct {
		name, mime string
		data       []byte
		w, h       int
	}{
		{"a.txt", centurion.MimePNG, picture(t, centurion.MimePNG, 640, 480), 640, 480},
		{"b", centurion.MimeJPEG, picture(t, centurion.MimeJPEG, 7, 9), 7, 9},
		{"c", centurion.MimeGIF, picture(t, centurion.MimeGIF, 5, 4), 5, 4},
		{"d", centurion.MimeWebP, webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00), 320, 240},
		{"e", centurion.MimeWebP, webp("VP8L", 0x2f, 0x3f, 0xc1, 0x3b, 0x00), 320, 240},
		{"f", centurion.MimeWebP, webp("VP8X", 0, 0, 0, 0, 0x3f, 0x01, 0x00, 0xef, 0x00, 0x00), 320, 240},
		{"wide", centurion.MimePNG, picture(t, centurion.MimePNG, 8000, 1), 8000, 1},
		{"big", centurion.MimePNG, append(picture(t, centurion.MimePNG, 1, 2), make([]byte, centurion.MaxFile)...)[:centurion.MaxFile], 1, 2},
		{"g.png", centurion.MimePDF, []byte("%PDF-1.7\n<< /Type /Page >> << /Type /Pages >>"), 0, 0},
	} {
		f, err := centurion.NewFile("dir/"+tt.name, tt.data)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if w, h := f.Size(); f.Mime != tt.mime || w != tt.w || h != tt.h || f.Name != tt.name || f.Path != "dir/"+tt.name {
			t.Errorf("%s is %s of %d×%d, %q at %q", tt.name, f.Mime, w, h, f.Name, f.Path)
		}
	}
	whole := picture(t, centurion.MimePNG, 20, 20)
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"text":           {[]byte("hello"), "no type that a model takes"},
		"empty":          {nil, "no type that a model takes"},
		"cut":            {whole[:20], "cannot be read"},
		"too many bytes": {append([]byte("%PDF-1.7\n"), make([]byte, centurion.MaxFile)...), "it has 3.8 MB; at most 3.8 MB"},
		"too wide":       {picture(t, centurion.MimePNG, centurion.MaxSide+1, 1), "8001×1 pixels; a model takes at most 8000"},
	} {
		if _, err := centurion.NewFile("a.png", tt.data); centurion.KindOf(err) != centurion.KindUsage || !strings.HasPrefix(err.Error(), "attach a.png: ") || !strings.Contains(err.Error(), tt.says) || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// LOOP-77: a message takes so many files of so many bytes; what one is said to be has to be what it is.
func TestCheckFiles(t *testing.T) {
	f, err := centurion.NewFile("a.png", picture(t, centurion.MimePNG, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	big := f
	big.Data = append(bytes.Clone(f.Data), make([]byte, 3<<20)...)
	exact := f // eight of these are the most
	exact.Data = append(bytes.Clone(f.Data), make([]byte, centurion.MaxFilesBytes/8-len(f.Data))...)
	lie := f
	lie.Mime = centurion.MimeJPEG
	many := func(f centurion.File, n int) (out []centurion.File) {
		for range n {
			out = append(out, f)
		}
		return out
	}
	for name, tt := range map[string]struct {
		files []centurion.File
		says  string
	}{
		"as big as may be": {many(exact, 8), ""},
		"many":             {many(f, centurion.MaxFiles), ""},
		"damaged":          {[]centurion.File{f, {Mime: f.Mime, Path: "b.png", Data: f.Data[:20]}}, "attach b.png: the image (image/png) cannot be read"},
		"too many":         {many(f, centurion.MaxFiles+1), "attach files: 21 attachments; a message takes at most 20"},
		"too big together": {many(big, 7), "attach files: the files have 21 MB together; a message takes 20 MB"},
		"a lie":            {[]centurion.File{lie}, "attach a.png: it is said to be image/jpeg and is image/png"},
	} {
		err := centurion.CheckFiles(tt.files)
		if (err == nil) != (tt.says == "") || err != nil && (!strings.Contains(err.Error(), tt.says) || centurion.KindOf(err) != centurion.KindUsage) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(tt.says, "attach files") && centurion.HintOf(err) == "" {
			t.Errorf("%s: no hint", name)
		}
	}
}

// What a file costs is never taken for nothing, and never for more than the largest that is looked at.
func TestFileTokens(t *testing.T) {
	of := func(mime string, data []byte) int { return centurion.File{Mime: mime, Data: data}.Tokens() }
	for name, tt := range map[string]struct{ got, want int }{
		"tiny":              {of(centurion.MimePNG, picture(t, centurion.MimePNG, 2, 2)), 85},
		"1000×750":          {of(centurion.MimePNG, picture(t, centurion.MimePNG, 1000, 750)), 1000},
		"huge":              {of(centurion.MimePNG, picture(t, centurion.MimePNG, 4000, 4000)), 4784},
		"damaged":           {of(centurion.MimePNG, []byte("x")), 4784},
		"two pages":         {of(centurion.MimePDF, []byte("%PDF /Type /Page x /Type/Page y /Type /Pages")), 9000},
		"many pages":        {of(centurion.MimePDF, append([]byte("%PDF"), bytes.Repeat([]byte("/Type /Page "), 101)...)), 450_000},
		"100 pixels more":   {of(centurion.MimePNG, picture(t, centurion.MimePNG, 751, 100)), 101},
		"compressed pages":  {of(centurion.MimePDF, append([]byte("%PDF"), make([]byte, 50<<10)...)), 3 * 4500},
		"nothing but a URL": {centurion.File{Mime: centurion.MimePNG, URL: "file:///a"}.Tokens(), 0},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %d tokens, want %d", name, tt.got, tt.want)
		}
	}
}

// Each kind of file goes to the models that take it, and no text pretends to be one.
func TestMediaTakes(t *testing.T) {
	image, pdf := centurion.Media{Image: true}, centurion.Media{PDF: true}
	for mime, is := range map[string]string{centurion.MimePNG: "image", centurion.MimeWebP: "image", centurion.MimePDF: "pdf", "text/plain": ""} {
		if image.Takes(mime) != (is == "image") || pdf.Takes(mime) != (is == "pdf") || (centurion.Media{}).Takes(mime) {
			t.Errorf("%s", mime)
		}
	}
	for head, want := range map[string]string{"RIFF1234WEBP": centurion.MimeWebP, "RIFF1234WEB": "", "RIFX1234WEBP": "", "RIFF1234WAVE": "", "%PDF": "", "GIF88a": "", "GIF87a": centurion.MimeGIF, "GIF89a": centurion.MimeGIF, "\xff\xd8\xff": centurion.MimeJPEG, " %PDF-": "", "%PDF-": centurion.MimePDF} {
		if got := centurion.DetectFile([]byte(head)); got != want {
			t.Errorf("%q is %q", head, got)
		}
	}
	for name, data := range map[string][]byte{"lossy": webp("VP8 ", 0, 0, 0, 1, 2, 3, 9, 0, 9, 0), "lossless": webp("VP8L", 7, 1, 1, 1, 1), "unknown": webp("VP9 ", 1), "cut": webp("VP8X")[:29], "sound": append([]byte("RIFF1234WAVE"), webp("VP8X")[12:]...)} {
		if w, h := (centurion.File{Mime: centurion.MimeWebP, Data: data}).Size(); w != 0 || h != 0 {
			t.Errorf("a damaged %s is %d×%d", name, w, h)
		}
	}
	if w, h := (centurion.File{Mime: centurion.MimeWebP, Data: webp("VP8X")[:30]}).Size(); w != 1 || h != 1 {
		t.Errorf("the shortest is %d×%d", w, h)
	}
	if w, h := (centurion.File{Mime: "image/tiff", Data: picture(t, centurion.MimePNG, 2, 2)}).Size(); w != 0 || h != 0 {
		t.Errorf("an image of another type is %d×%d", w, h)
	}
	for n, want := range map[int64]string{1 << 41: "2048 GB", 1536: "1.5 KB", 1023: "1023 B", 1024: "1 KB", 1<<20 - 1: "1024 KB", 1 << 20: "1 MB", 1 << 30: "1 GB"} {
		if got := centurion.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	p := centurion.FilePart("ses_1", "msg_1", centurion.File{Name: "a.png"})
	if p.Type != centurion.PartFile || p.SessionID != "ses_1" || p.MessageID != "msg_1" || p.File.Name != "a.png" || centurion.CheckID(centurion.PrefixPart, p.ID) != nil {
		t.Errorf("%+v", p)
	}
	for _, url := range []string{"data:image/png,abcd", "file:///a,b;base64", "data:image/png;base64", "x-data:image/png;base64,abcd", "data:image/png;base64;x,abcd"} {
		var f centurion.File
		if err := json.Unmarshal([]byte(`{"mime":"image/png","url":"`+url+`"}`), &f); err != nil || f.URL != url || f.Data != nil {
			t.Errorf("%s: %+v, %v", url, f, err)
		}
	}
}

func TestFileLabel(t *testing.T) {
	f := centurion.File{Mime: centurion.MimePNG, Name: "b.png", Path: "a/b\n c.png", Data: picture(t, centurion.MimePNG, 4, 3)}
	if got := f.Label(); got != "[image a/b c.png, 4×3]" {
		t.Error(got)
	}
	if got := (centurion.File{Mime: centurion.MimePDF, Name: "x.pdf"}).Describe() + "|" + (centurion.File{}).Describe(); got != "PDF x.pdf|file" {
		t.Error(got)
	}
}
