package centurion

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // for their sizes
	_ "image/jpeg" // see above
	_ "image/png"  // see above
	"strconv"
	"strings"
)

// DetectFile returns the type of a file from the first bytes of its content: one of the Mime… constants, or "" for everything else,
// including text. Its name does not matter.
func DetectFile(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return MimePDF
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return MimePNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return MimeJPEG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return MimeGIF
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return MimeWebP
	}
	return ""
}

// Size returns the width and the height of an image, in pixels; zeros if it is not an image, or damaged.
func (f File) Size() (width, height int) {
	if f.Mime == MimeWebP {
		return webpSize(f.Data)
	}
	if !IsImage(f.Mime) {
		return 0, 0
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(f.Data))
	if err != nil {
		return 0, 0
	}
	return c.Width, c.Height
}

// webpSize reads the size from the first chunk of a WebP file: lossy (VP8 ), lossless (VP8L) or extended (VP8X).
func webpSize(b []byte) (width, height int) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0
	}
	le := binary.LittleEndian
	switch d := b[20:]; string(b[12:16]) {
	case "VP8 ":
		if !bytes.Equal(d[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0
		}
		return int(le.Uint16(d[6:]) & 0x3fff), int(le.Uint16(d[8:]) & 0x3fff)
	case "VP8L":
		if d[0] != 0x2f {
			return 0, 0
		}
		v := le.Uint32(d[1:])
		return int(v&0x3fff) + 1, int(v>>14&0x3fff) + 1
	case "VP8X":
		three := func(at int) int { return int(d[at]) | int(d[at+1])<<8 | int(d[at+2])<<16 }
		return three(4) + 1, three(7) + 1
	}
	return 0, 0
}

var pdfPage = Pattern(`/Type\s*/Page\b`)

// pdfPages counts the pages of a PDF; 0 if its objects are compressed.
func pdfPages(b []byte) int { return len(pdfPage().FindAllIndex(b, maxPages)) }

// Bytes formats a size: 512 B, 1.5 KB, 10 MB, 2 GB.
func Bytes(n int64) string {
	units := []string{" B", " KB", " MB", " GB"}
	v := float64(n)
	for v >= 1<<10 && len(units) > 1 {
		v, units = v/(1<<10), units[1:]
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + units[0]
}
