package tools

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
	"centurion/workspace"
)

func pngOf(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// LOOP-77: read shows an image to a model that takes images, by its content and not by its name; to another it says what it is.
func TestReadImage(t *testing.T) {
	b := newBench(t)
	pic, pdf := pngOf(t, 64, 48), "%PDF-1.7\n/Type /Page\n"
	b.put("ein Bild/größe.txt", pic)
	b.put("doc", pdf)

	r := b.must("read", args{"filePath": "doc", "offset": 3})
	says(t, r.Output, "[PDF doc] (application/pdf, 21 B)", "takes no PDF", "pdftotext")
	r = b.must("read", args{"filePath": "ein Bild/größe.txt"})
	says(t, r.Output, "[image ein Bild/größe.txt, 64×48] (image/png, ", "this model takes no pictures")
	want(t, "attachments", len(r.Attachments), 0)

	b.Media = centurion.Media{Image: true}
	r = b.must("read", args{"filePath": "ein Bild/größe.txt"})
	says(t, r.Output, "[image ein Bild/größe.txt, 64×48] (image/png, ", "the image is attached to this result")
	silent(t, r.Output, "takes no")
	if len(r.Attachments) != 1 || r.Attachments[0].Mime != centurion.MimePNG || string(r.Attachments[0].Data) != pic || r.Attachments[0].Path != "ein Bild/größe.txt" {
		t.Fatalf("attached %+v", r.Attachments)
	}
	want(t, "of a PDF", len(b.must("read", args{"filePath": "doc"}).Attachments), 0)
	b.Media.PDF = true
	r = b.must("read", args{"filePath": "doc"})
	want(t, "of a PDF, to a model that takes them", len(r.Attachments), 1)
	says(t, r.Output, "the PDF is attached")
	b.put("full.pdf", "%PDF-1.7\n"+strings.Repeat("x", centurion.MaxFile-9))
	want(t, "of the largest", len(b.must("read", args{"filePath": "full.pdf"}).Attachments), 1)
	if err := b.Seen.Check("doc", workspace.VersionOf([]byte(pdf))); err != nil {
		t.Errorf("what was read may not be overwritten: %v", err)
	}
}

// LOOP-77: what is too large for a model is refused with the bound, a damaged image as the data that it is, and the rules for
// reading hold for images, too.
func TestReadImageRefuses(t *testing.T) {
	b := newBench(t)
	b.Media = centurion.Media{Image: true, PDF: true}
	b.put("big.pdf", "%PDF-1.7\n"+strings.Repeat("x", centurion.MaxFile))
	b.put("wide.png", pngOf(t, centurion.MaxSide+1, 1))
	b.put("cut.png", pngOf(t, 9, 9)[:20])
	b.put("secret.png", pngOf(t, 9, 9))
	b.refused("read", args{"filePath": "big.pdf"}, centurion.KindUsage, "application/pdf of 3.8 MB", "at most 3.8 MB", "smaller copy")
	b.refused("read", args{"filePath": "wide.png"}, centurion.KindUsage, "8001×1 pixels", "at most 8000")
	b.refused("read", args{"filePath": "cut.png"}, centurion.KindUsage, "cut.png is binary", "image/png")
	b.gate.rules = []permission.Rule{{Permission: "read", Pattern: "secret.png", Action: permission.Deny}}
	b.refused("read", args{"filePath": "secret.png"}, centurion.KindPermission)
}
