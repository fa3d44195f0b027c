package centurion

import (
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

// What may be attached. The smallest limit of the common providers counts for all, so that a conversation can go on with
// another model.
const (
	// MaxFile bounds one file, in bytes. Anthropic takes an image of 5 MB, counted in base64, which is a third longer.
	MaxFile = 5 << 20 / 4 * 3
	// MaxFiles bounds how many files one message has, and one request. Above 20 images Anthropic refuses those that are more
	// than 2000 pixels wide or high.
	MaxFiles = 20
	// MaxFilesBytes bounds the files of one message, and of one request, in bytes. Anthropic takes requests of 32 MB; in base64
	// these are 27.
	MaxFilesBytes = 20 << 20
	// MaxSide bounds the width and the height of an image, in pixels: Anthropic refuses more.
	MaxSide = 8000
)

// The types of file that models take. [DetectFile] tells them by their content.
const (
	MimePNG  = "image/png"
	MimeJPEG = "image/jpeg"
	MimeGIF  = "image/gif"
	MimeWebP = "image/webp"
	MimePDF  = "application/pdf"
)

// File is a picture or a document in a conversation. It marshals to OpenCode's FilePartInput, its data as a data URL.
type File struct {
	Mime string // one of the Mime… constants
	Name string // without directories
	Path string // where it was read: relative to the project with slashes, or absolute; empty if it is not known
	Data []byte
	URL  string // of a file that is somewhere else and has no Data here; models are not sent such a one
}

// Media says which files a model takes beside text. The zero Media takes none.
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

// IsImage reports whether a type is that of an image that models take.
func IsImage(mime string) bool {
	return slices.Contains([]string{MimePNG, MimeJPEG, MimeGIF, MimeWebP}, mime)
}

// NewFile makes a file of its content. Where is its path, as agents are told it. The error has KindUsage for what nobody
// takes: another type than an image or a PDF, an image that cannot be read, and whatever is larger than [MaxFile] or
// [MaxSide].
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

// CheckFiles refuses files that no message can have, with an error of KindUsage.
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

// Describe says what the file is: image docs/a b.png, 640×480.
func (f File) Describe() string {
	what, name := "file", f.Path
	switch {
	case IsImage(f.Mime):
		what = "image"
	case f.Mime == MimePDF:
		what = "PDF"
	}
	if name == "" {
		name = f.Name
	}
	text := strings.TrimSpace(what + " " + strings.Join(strings.Fields(name), " "))
	if w, h := f.Size(); w > 0 {
		text += fmt.Sprintf(", %d×%d", w, h)
	}
	return text
}

// What a file costs in tokens.
const (
	pixelsPerToken = 750  // Anthropic: width × height / 750
	maxImageTokens = 4784 // of the largest that Anthropic's newest models look at; OpenAI's gpt-4o takes 1445 at most
	minImageTokens = 85   // what OpenAI takes at least
	pageTokens     = 4500 // Anthropic: up to 3,000 of a page's text, and the page as an image
	pageBytes      = 20 << 10
	maxPages       = 100 // Anthropic takes no more
)

// Tokens estimates what a model that takes the file counts for it, to the safe side: Anthropic's published formula for
// images, bounded by what its newest models scale one down to, and 4,500 tokens for each page of a PDF. Where pages cannot be
// counted one is assumed for every 20 KB.
func (f File) Tokens() int {
	if len(f.Data) == 0 {
		return 0
	}
	if f.Mime == MimePDF {
		n := pdfPages(f.Data)
		if n == 0 {
			n = 1 + len(f.Data)/pageBytes
		}
		return min(n, maxPages) * pageTokens
	}
	w, h := f.Size()
	if w*h == 0 {
		return maxImageTokens
	}
	return min(max((w*h+pixelsPerToken-1)/pixelsPerToken, minImageTokens), maxImageTokens)
}

// DataURL returns the content as providers and OpenCode want it: data:image/png;base64,….
func (f File) DataURL() string {
	return "data:" + f.Mime + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

type fileJSON struct {
	Type   PartType    `json:"type"`
	Mime   string      `json:"mime"`
	Name   string      `json:"filename,omitempty"`
	URL    string      `json:"url"`
	Source *fileSource `json:"source,omitempty"`
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
	v := fileJSON{Type: PartFile, Mime: f.Mime, Name: f.Name, URL: f.URL}
	if v.URL == "" {
		v.URL = f.DataURL()
	}
	if f.Path != "" {
		v.Source = &fileSource{Type: "file", Path: f.Path}
	}
	return v
}

// file reads the shape. A URL that holds no data stays as it is.
func (v fileJSON) file() (File, error) {
	f := File{Mime: v.Mime, Name: v.Name}
	if v.Source != nil {
		f.Path = v.Source.Path
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

// UnmarshalJSON reads it.
func (f *File) UnmarshalJSON(b []byte) (err error) {
	var v fileJSON
	if err = json.Unmarshal(b, &v); err == nil {
		*f, err = v.file()
	}
	return err
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
		Mime   string      `json:"mime"`
		Name   string      `json:"filename,omitempty"`
		URL    string      `json:"url"`
		Source *fileSource `json:"source,omitempty"`
	}{head, v.Mime, v.Name, v.URL, v.Source})
}
