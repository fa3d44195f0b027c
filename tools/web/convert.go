package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"centurion"
	"centurion/guard"
)

// maxTitle is how many bytes of a page's title are kept.
const maxTitle = 200

// Markdown converts a page of HTML to Markdown and makes its links absolute. It leaves out what readers do not see, such as scripts and
// hidden form fields, and images embedded in the page itself.
func Markdown(ctx context.Context, page string, at *url.URL) (title, text string, err error) {
	err = guard.Call("convert page", func() error {
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return err
		}
		c := cleaner{at: at}
		c.node(doc)
		title = centurion.Clip(strings.Join(strings.Fields(c.title), " "), maxTitle)
		conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
		out, err := conv.ConvertNode(doc, converter.WithContext(ctx))
		if len(out) > 2*MaxBody {
			return errors.New("it becomes too long")
		}
		text = string(bytes.TrimSpace(out))
		return err
	})
	if err != nil {
		return "", "", &centurion.Error{Op: "fetch", Kind: centurion.KindUsage, Msg: "the page " + at.String() + " cannot be turned into text", Err: err,
			Hint: "look for the same thing on another page"}
	}
	return title, text, nil
}

// cleaner removes everything from a page that is not shown.
type cleaner struct {
	at    *url.URL
	title string
	depth int // of surrounding indenting elements
}

// unseen are elements without text for a reader.
var unseen = []string{"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "input", "button", "select", "dialog"}

func (c *cleaner) node(n *html.Node) {
	if indents(n) {
		if c.depth++; c.depth > maxDepth {
			n.Data, n.DataAtom = "div", atom.Div
		}
		defer func() { c.depth-- }()
	}
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.CommentNode || child.Type == html.ElementNode && (slices.Contains(unseen, child.Data) || hidden(child)) {
			n.RemoveChild(child)
		} else {
			c.node(child)
		}
		child = next
	}
	if n.Type != html.ElementNode {
		return
	}
	if n.Data == "table" && cells(n) > maxCells {
		flatten(n)
	}
	if n.Data == "title" && c.title == "" && n.FirstChild != nil {
		c.title = n.FirstChild.Data
	}
	for i, a := range n.Attr {
		switch {
		case a.Key == "rowspan", a.Key == "colspan":
			n.Attr[i].Val = "1" // the converter makes this many cells, and it could be any number
		case a.Key == "href" && n.Data == "base":
			if u, err := c.at.Parse(a.Val); err == nil {
				c.at = u
			}
		case a.Key == "href" || a.Key == "src":
			n.Attr[i].Val = c.absolute(a.Val)
		}
	}
}

// maxDepth limits nested lists, items and quotations that keep their form: each adds something to the start of every line in it.
const maxDepth = 12

func indents(n *html.Node) bool {
	return n.Type == html.ElementNode && (n.Data == "blockquote" || n.Data == "ul" || n.Data == "ol" || n.Data == "li")
}

// maxCells is the largest table that remains one. The converter pads all its rows to the longest.
const maxCells = 50_000

// cells returns the size of a table with all rows padded to the longest, including nested tables.
func cells(n *html.Node) int {
	rows, most := 0, 0
	for d := range n.Descendants() {
		if d.Data != "tr" || d.Type != html.ElementNode {
			continue
		}
		rows++
		here := 0
		for range d.ChildNodes() {
			here++
		}
		most = max(most, here)
	}
	return rows * most
}

// flatten turns a table's rows into paragraphs.
func flatten(n *html.Node) {
	n.Data, n.DataAtom = "div", atom.Div
	for d := range n.Descendants() {
		switch d.Data {
		case "table", "thead", "tbody", "tfoot", "tr":
			d.Data, d.DataAtom = "div", atom.Div
		case "td", "th":
			d.Data, d.DataAtom = "span", atom.Span
		}
	}
}

// absolute returns a fetchable link, or "" if it leads nowhere.
func (c *cleaner) absolute(link string) string {
	u, err := c.at.Parse(strings.TrimSpace(link))
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto", "ftp":
		return u.String()
	}
	return "" // data:, javascript:
}

// hidden reports whether an element is marked as hidden.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			s := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// utf16Text decodes text that starts with a byte order mark.
func utf16Text(b []byte) string {
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0xfe {
		order = binary.BigEndian
	}
	units := make([]uint16, 0, len(b)/2)
	for b = b[2:]; len(b) > 1; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return string(utf16.Decode(units))
}
