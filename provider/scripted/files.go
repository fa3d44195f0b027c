package scripted

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// File is a received picture or document.
type File struct {
	Role   string `json:"role,omitempty"` // of its message: user or tool
	Mime   string `json:"mime"`
	Name   string `json:"name,omitempty"` // if the API has one
	Bytes  int    `json:"bytes"`
	Width  int    `json:"width,omitempty"` // of an image, in pixels
	Height int    `json:"height,omitempty"`
	SHA256 string `json:"sha256"`
	Wire   int    `json:"wire"` // bytes in the request
}

// String describes the file in one line, the text that a scenario's file: is matched with:
// tool image/png 640x480 1234 bytes sha256:0a1b… name.
func (f File) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %dx%d %d bytes sha256:%s %s", f.Role, f.Mime, f.Width, f.Height, f.Bytes, f.SHA256, f.Name))
}

// The limits of a strict provider: Anthropic's, the tightest.
const (
	maxImage  = 5 << 20 // bytes of one image in base64
	maxSide   = 8000    // pixels
	manyFiles = 20      // with more images in a request than this, none may have more than manySide pixels on a side
	manySide  = 2000
)

// newFile checks a file sent in base64 with a media type.
func newFile(mime, name, data string) (File, string) {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return File{}, fmt.Sprintf("the data of a file is no base64: %v", err)
	}
	is := centurion.DetectFile(b)
	switch {
	case len(b) == 0:
		return File{}, "a file is empty"
	case is != mime:
		return File{}, fmt.Sprintf("a file was specified using the media type %q, but it appears to be of %q", mime, is)
	case centurion.IsImage(mime) && len(data) > maxImage:
		return File{}, fmt.Sprintf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(data), maxImage)
	}
	sum := sha256.Sum256(b)
	f := File{Mime: mime, Name: name, Bytes: len(b), SHA256: hex.EncodeToString(sum[:]), Wire: len(data)}
	if centurion.IsImage(mime) {
		f.Width, f.Height = centurion.File{Mime: mime, Data: b}.Size()
		switch {
		case f.Width*f.Height == 0:
			return f, "Could not process image"
		case max(f.Width, f.Height) > maxSide:
			return f, fmt.Sprintf("at least one of the image dimensions exceeds max allowed size: %d pixels", maxSide)
		}
	}
	return f, ""
}

// fromURL checks a file sent as a data URL. Others cannot be inspected.
func fromURL(url, name string) (File, string) {
	rest, ok := strings.CutPrefix(url, "data:")
	mime, data, more := strings.Cut(rest, ";base64,")
	if !ok || !more {
		return File{}, fmt.Sprintf("a file is no data URL in base64: %.40q", url)
	}
	return newFile(mime, name, data)
}

// chatPart is a part of a chat message's content.
type chatPart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// readParts reads content given as a list. Only user messages may have images.
func readParts(role string, b json.RawMessage) (text string, files []File, fault string) {
	var parts []chatPart
	if err := json.Unmarshal(b, &parts); err != nil {
		return "", nil, "its content is neither a text nor a list of parts"
	}
	var texts []string
	for i, p := range parts {
		switch {
		case p.Type == "text" && p.Text == "":
			return "", nil, fmt.Sprintf("part %d is an empty text", i)
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type != "image_url" || p.Image == nil:
			return "", nil, fmt.Sprintf("part %d has the unknown type %q", i, p.Type)
		case role != "user":
			return "", nil, "a message of role " + role + " has an image; only the user may send one"
		default:
			f, fault := fromURL(p.Image.URL, "")
			if fault == "" && !centurion.IsImage(f.Mime) {
				fault = "a file of type " + f.Mime + " is sent as an image"
			}
			if fault != "" {
				return "", nil, fmt.Sprintf("part %d: %s", i, fault)
			}
			files = append(files, f)
		}
	}
	return strings.Join(texts, ""), files, ""
}

// checkFiles checks the images of all messages together.
func checkFiles(msgs []Message) string {
	n, side := 0, 0
	for _, m := range msgs {
		for _, f := range m.Files {
			if n++; f.Width > 0 {
				side = max(side, f.Width, f.Height)
			}
		}
	}
	if n > manyFiles && side > manySide {
		return fmt.Sprintf("at least one of the image dimensions exceeds max allowed size for many-image requests: %d pixels", manySide)
	}
	return ""
}

// Files returns the files of the messages, in order.
func (r Request) Files() (out []File) {
	for _, m := range r.Messages() {
		out = append(out, m.Files...)
	}
	return out
}

// filesOf describes the files, for matchers.
func filesOf(r *Request) (out []string) {
	for _, f := range r.Files() {
		out = append(out, f.String())
	}
	return out
}

// fileTokens corrects an estimate based on a request's bytes: files do not count by size, but a thousand tokens each.
func (r *Request) fileTokens() (n int) {
	if r.Header == nil { // requests are not looked at
		return 0
	}
	for _, f := range r.Files() {
		n += 1000 - f.Wire/4
	}
	return n
}

// itemContent is the content or the output of an item: a text, or a list of parts.
type itemContent []itemPart

type itemPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

// UnmarshalJSON accepts both forms.
func (c *itemContent) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*c = itemContent{{Type: "input_text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]itemPart)(c))
}

// read returns the text of a content's parts of one type, and its files.
func (c itemContent) read(textType string, mayHaveFiles bool) (text string, files []File, err error) {
	for _, p := range c {
		var f File
		fault := ""
		switch {
		case p.Type == textType:
			text += p.Text
			continue
		case p.Type == "input_image" && mayHaveFiles:
			f, fault = fromURL(p.ImageURL, "")
		case p.Type == "input_file" && mayHaveFiles && p.Filename != "":
			f, fault = fromURL(p.FileData, p.Filename)
		default:
			fault = fmt.Sprintf("content of type %q", p.Type)
		}
		if fault == "" && (p.Type == "input_image") != centurion.IsImage(f.Mime) {
			fault = "a file of type " + f.Mime + " in a part of type " + p.Type
		}
		if fault != "" {
			return "", nil, fmt.Errorf("%s", fault)
		}
		files = append(files, f)
	}
	return text, files, nil
}

// messagesSource is the source of an image or a document.
type messagesSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// file reads a block; ok says whether it is an image or a document.
func (b messagesBlock) file() (f File, fault string, ok bool) {
	if b.Type != "image" && b.Type != "document" {
		return File{}, "", false
	}
	switch {
	case b.Source == nil || b.Source.Type != "base64":
		return File{}, b.Type + ".source.type: only base64 is served here", true
	case (b.Type == "image") != centurion.IsImage(b.Source.MediaType):
		return File{}, fmt.Sprintf("%s.source.base64.media_type: unexpected %q", b.Type, b.Source.MediaType), true
	}
	f, fault = newFile(b.Source.MediaType, b.Title, b.Source.Data)
	return f, fault, true
}

// files returns the files among blocks; their faults were found before.
func (c messagesContent) files() (out []File) {
	for _, b := range c {
		if f, fault, ok := b.file(); ok && fault == "" {
			out = append(out, f)
		}
	}
	return out
}

// checkResult checks the content of a result.
func (c messagesContent) checkResult() string {
	for _, b := range c {
		if _, fault, ok := b.file(); ok && fault != "" {
			return fault
		} else if !ok && b.Type != "text" {
			return fmt.Sprintf("tool_result.content: unexpected type %q", b.Type)
		}
	}
	return ""
}

// withRole sets the role of the files' message.
func withRole(files []File, role string) []File {
	files = slices.Clone(files)
	for i := range files {
		files[i].Role = role
	}
	return files
}
