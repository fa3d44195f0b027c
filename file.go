package centurion

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// PartFile is a file beside a message's text: a picture or a document.
const PartFile PartType = "file"

// The limits of attachments: the smallest of the common providers, so that a conversation can continue with another model.
const (
	// MaxFile limits one file, in bytes. Anthropic accepts images of 5 MB in base64, which is a third longer than the data.
	MaxFile = 5 << 20 / 4 * 3
	// MaxFiles limits the files of one message, and of one request. With more than 20 images Anthropic refuses those above 2000 pixels
	// in width or height.
	MaxFiles = 20
	// MaxFilesBytes limits the files of one message, and of one request, in bytes. Anthropic accepts requests of 32 MB; in base64 these
	// are 27.
	MaxFilesBytes = 20 << 20
	// MaxSide limits the width and the height of an image, in pixels: Anthropic refuses more.
	MaxSide = 8000
)

// The file types that models accept. [DetectFile] detects them by content.
const (
	MimePNG  = "image/png"
	MimeJPEG = "image/jpeg"
	MimeGIF  = "image/gif"
	MimeWebP = "image/webp"
	MimePDF  = "application/pdf"
)

// The types of files whose content is in a text part beside them: models get that one.
const (
	MimeText = "text/plain"
	MimeDir  = "application/x-directory"
)

// File is a picture or a document in a conversation. It marshals to OpenCode's FilePartInput, with its content as a data URL.
type File struct {
	Mime string // one of the Mime… constants
	Name string // without directories
	Path string // where it was read: relative to the project with slashes, or absolute; empty if unknown
	Data []byte
	URL  string // of a remote file without Data; such files are not sent to models

	Source json.RawMessage // where the text names it, as OpenCode's client says; nil if it does not
}

// Media says which file types a model accepts besides text. The zero Media accepts none.
type Media struct {
	Image bool // PNG, JPEG, GIF and WebP
	PDF   bool
}

// Takes reports whether a file of this type can be sent.
func (m Media) Takes(mime string) bool {
	if mime == MimePDF {
		return m.PDF
	}
	return m.Image && IsImage(mime)
}

// IsImage reports whether a type is that of an image accepted by models.
func IsImage(mime string) bool {
	return slices.Contains([]string{MimePNG, MimeJPEG, MimeGIF, MimeWebP}, mime)
}

// NewFile makes a file from its content. where is its path as shown to agents. The error has KindUsage for unsupported files: another
// type than an image or a PDF, a damaged image, and files above [MaxFile] or [MaxSide].
func NewFile(where string, data []byte) (File, error) {
	f := File{Name: path.Base(filepath.ToSlash(where)), Path: filepath.ToSlash(where), Data: data, Mime: DetectFile(data)}
	refuse := func(hint, format string, args ...any) (File, error) {
		return File{}, &Error{Op: "attach " + where, Kind: KindUsage, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case f.Mime == "":
		return refuse("attach a PNG, JPEG, GIF or WebP image, a PDF or a text", "it is of no type that a model takes")
	case len(data) > MaxFile:
		return refuse("make it smaller", "it has %s; at most %s can be sent to a model", Bytes(int64(len(data))), Bytes(MaxFile))
	}
	if w, h := f.Size(); f.Mime != MimePDF && w*h == 0 {
		return refuse("look whether it is whole", "the image (%s) cannot be read", f.Mime)
	} else if max(w, h) > MaxSide {
		return refuse("scale it down", "it is %d×%d pixels; a model takes at most %d on each side", w, h, MaxSide)
	}
	return f, nil
}

// CheckFiles refuses files that a message cannot have, with an error of KindUsage.
func CheckFiles(files []File) error {
	sum := 0
	for _, f := range files {
		if _, err := NewFile(f.Path, f.Data); err != nil {
			return err
		}
		if is := DetectFile(f.Data); is != f.Mime {
			return &Error{Op: "attach " + f.Path, Kind: KindUsage, Msg: fmt.Sprintf("it is said to be %s and is %s", f.Mime, is)}
		}
		sum += len(f.Data)
	}
	switch {
	case len(files) > MaxFiles:
		return &Error{Op: "attach files", Kind: KindUsage, Msg: fmt.Sprintf("%d attachments; a message takes at most %d", len(files), MaxFiles), Hint: "send the others in another message"}
	case sum > MaxFilesBytes:
		return &Error{Op: "attach files", Kind: KindUsage, Msg: fmt.Sprintf("the files have %s together; a message takes %s", Bytes(int64(sum)), Bytes(MaxFilesBytes)),
			Hint: "send some of them in another message"}
	}
	return nil
}

// Label names the file in a text: [image docs/a b.png, 640×480].
func (f File) Label() string { return "[" + f.Describe() + "]" }

// Describe describes the file: image docs/a b.png, 640×480.
func (f File) Describe() string {
	what, name := "file", f.Path
	switch {
	case IsImage(f.Mime):
		what = "image"
	case f.Mime == MimePDF:
		what = "PDF"
	}
	text := strings.TrimSpace(what + " " + strings.Join(strings.Fields(cmp.Or(name, f.Name)), " "))
	if w, h := f.Size(); w > 0 {
		text += fmt.Sprintf(", %d×%d", w, h)
	}
	return text
}

// The cost of a file in tokens.
const (
	pixelsPerToken = 750  // Anthropic: width × height / 750
	maxImageTokens = 4784 // for the largest images of Anthropic's newest models; OpenAI's gpt-4o takes 1445 at most
	minImageTokens = 85   // OpenAI's minimum
	pageTokens     = 4500 // Anthropic: up to 3,000 for a page's text, and the page as an image
	pageBytes      = 20 << 10
	maxPages       = 100 // Anthropic's maximum
)

// Tokens estimates, on the safe side, a model's tokens for the file: Anthropic's published formula for images, limited by the size to
// which its newest models scale them down, and 4,500 tokens for each page of a PDF. If pages cannot be counted, one per 20 KB is
// assumed.
func (f File) Tokens() int {
	if len(f.Data) == 0 {
		return 0
	}
	if f.Mime == MimePDF {
		return min(cmp.Or(pdfPages(f.Data), 1+len(f.Data)/pageBytes), maxPages) * pageTokens
	}
	w, h := f.Size()
	if w*h == 0 {
		return maxImageTokens
	}
	return min(max((w*h+pixelsPerToken-1)/pixelsPerToken, minImageTokens), maxImageTokens)
}

// DataURL returns the content in the form of providers and OpenCode: data:image/png;base64,….
func (f File) DataURL() string {
	return "data:" + f.Mime + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

type fileJSON struct {
	Type   PartType        `json:"type"`
	Mime   string          `json:"mime"`
	Name   string          `json:"filename,omitempty"`
	URL    string          `json:"url"`
	Source json.RawMessage `json:"source,omitempty"`
}

type fileSource struct {
	Text struct {
		Value string `json:"value"`
		Start int    `json:"start"`
		End   int    `json:"end"`
	} `json:"text"`
	Type string `json:"type"`
	Path string `json:"path"`
}

func (f File) wire() fileJSON {
	v := fileJSON{Type: PartFile, Mime: f.Mime, Name: f.Name, URL: f.URL, Source: f.Source}
	if v.URL == "" {
		v.URL = f.DataURL()
	}
	if f.Path != "" && f.Source == nil {
		v.Source, _ = json.Marshal(fileSource{Type: "file", Path: f.Path}) // it always marshals
	}
	return v
}

// file converts the JSON format. A URL without data is kept unchanged.
func (v fileJSON) file() (File, error) {
	f := File{Mime: v.Mime, Name: v.Name}
	var at fileSource
	if v.Source != nil && json.Unmarshal(v.Source, &at) == nil {
		if f.Path = at.Path; at.Text.Value != "" {
			f.Source = v.Source
		}
	}
	head, data, ok := strings.Cut(v.URL, ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		f.URL = v.URL
		return f, nil
	}
	var err error
	if f.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		return f, fmt.Errorf("the data of file %s: %w", f.Name, err)
	}
	return f, nil
}

// MarshalJSON writes OpenCode's FilePartInput.
func (f File) MarshalJSON() ([]byte, error) { return json.Marshal(f.wire()) }

// UnmarshalJSON reads OpenCode's FilePartInput.
func (f *File) UnmarshalJSON(b []byte) (err error) {
	var v fileJSON
	if err = json.Unmarshal(b, &v); err == nil {
		*f, err = v.file()
	}
	return err
}

// FilesOf returns the files among parts that models get as such.
func FilesOf(parts []Part) (out []File) {
	for _, p := range parts {
		if p.Shows() {
			out = append(out, *p.File)
		}
	}
	return out
}

// Shows reports whether the part is a file that models get as such.
func (p Part) Shows() bool {
	return p.Type == PartFile && p.File != nil && p.File.Mime != MimeText && p.File.Mime != MimeDir
}

// FilePart makes a part of a file.
func FilePart(session, message string, f File) Part {
	return Part{ID: NewID(PrefixPart), SessionID: session, MessageID: message, Type: PartFile, File: &f}
}

func (p Part) marshalFile(head partHead) ([]byte, error) {
	if p.File == nil {
		return nil, fmt.Errorf("part %s is a file without one", p.ID)
	}
	v := p.File.wire()
	return json.Marshal(struct {
		partHead
		Mime   string          `json:"mime"`
		Name   string          `json:"filename,omitempty"`
		URL    string          `json:"url"`
		Source json.RawMessage `json:"source,omitempty"`
	}{head, v.Mime, v.Name, v.URL, v.Source})
}
