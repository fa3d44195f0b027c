package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"centurion"
	"centurion/text"
)

// Page is a page as text.
type Page struct {
	URL   string // the last one, after redirects
	Title string
	Type  string // the media type sent by the server
	Text  string // Markdown for HTML, otherwise unchanged, in UTF-8
	Size  int64  // received bytes, after decompression
}

// Fetch gets a page. It calls check with the URL before every request, including redirects, and an error of check ends the fetch; the
// time check takes does not count. Errors are centurion.KindPermission (an address that is not public), KindUsage (not text, or more
// than MaxBody bytes), KindNotFound, KindRateLimit, KindTimeout and KindNetwork.
func (c *Client) Fetch(ctx context.Context, u *url.URL, check func(u *url.URL) error) (Page, error) {
	for range MaxRedirects + 1 {
		if err := check(u); err != nil {
			return Page{}, err
		}
		page, next, err := c.get(ctx, u)
		if err != nil || next == nil {
			return page, err
		}
		u = next
	}
	return Page{}, fault(centurion.KindNetwork, "use the address that it should redirect to", "%s redirects more than %s", u, centurion.Count(MaxRedirects, "time"))
}

func fault(kind centurion.Kind, hint, format string, args ...any) *centurion.Error {
	return &centurion.Error{Op: "fetch", Kind: kind, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// get makes one request. For a redirect it returns the target.
func (c *Client) get(ctx context.Context, u *url.URL) (Page, *url.URL, error) {
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, u.String(), nil)
	if err != nil {
		return Page{}, nil, fault(centurion.KindUsage, "", "%v", bare(err))
	}
	req.Header.Set("User-Agent", "Centurion")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1")
	resp, err := c.pages.Do(req)
	if err != nil {
		return Page{}, nil, c.failed(ctx, u, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "":
		next, err := u.Parse(resp.Header.Get("Location"))
		if err == nil {
			next, err = ParseURL(next.String())
		}
		if err != nil {
			return Page{}, nil, fault(centurion.KindNetwork, centurion.HintOf(err), "%s leads to something that cannot be fetched: %v", u, bare(err))
		}
		return Page{}, next, nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return Page{}, nil, status(u, resp)
	}
	page, err := read(u, resp)
	if _, ours := errors.AsType[*centurion.Error](err); err != nil && !ours {
		err = c.failed(ctx, u, err)
	}
	if err == nil && isHTML(page.Type) {
		page.Title, page.Text, err = Markdown(limited, page.Text, u)
	}
	return page, nil, err
}

// failed gives a network error its kind.
func (c *Client) failed(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil { // package http passes the cause on, which is not ours to change
		cause := context.Cause(ctx)
		return &centurion.Error{Op: "fetch", Kind: centurion.KindOf(cause), Err: cause}
	}
	if e, ok := errors.AsType[*centurion.Error](err); ok { // of the dialler
		e.Hint = fmt.Sprintf(`a person can open this host with a permission rule that names it: "webfetch": {"%s://%s/*": "allow"}`, u.Scheme, u.Host)
		return e
	}
	if centurion.KindOf(err) == centurion.KindTimeout {
		return fault(centurion.KindTimeout, "try it once more, or another source", "%s did not answer in full within %s", u, text.Took(c.cfg.Timeout))
	}
	return &centurion.Error{Op: "fetch", Kind: centurion.KindNetwork, Msg: u.String(), Err: bare(err),
		Hint: "check the address; if it is right, the server or the network cannot be reached now"}
}

// status returns the error for an unsuccessful response.
func status(u *url.URL, resp *http.Response) error {
	e := fault(centurion.KindNetwork, "try another source", "%s answered %d %s", u, resp.StatusCode, http.StatusText(resp.StatusCode))
	e.Status = resp.StatusCode
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.Kind, e.Hint = centurion.KindNotFound, "check the address, or search for the page"
	case http.StatusTooManyRequests:
		e.Kind, e.Hint = centurion.KindRateLimit, "wait before you try again, or use another source"
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s < 1e6 {
			e.RetryAfter = time.Duration(s) * time.Second
			e.Hint = fmt.Sprintf("it asks to wait %s; or use another source", e.RetryAfter)
		}
	}
	return e
}

// read reads the response's body if it is text.
func read(u *url.URL, resp *http.Response) (Page, error) {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind != "" && kind != "application/octet-stream" && !isText(kind) {
		return Page{}, noText(u, kind, resp.ContentLength)
	}
	if resp.ContentLength > MaxBody {
		return Page{}, tooLarge(u, fmt.Sprintf("%.1f MB", float64(resp.ContentLength)/(1<<20)))
	}
	// Never hold more than this, whatever the header says and however well it was compressed.
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return Page{}, err
	}
	if len(body) > MaxBody {
		return Page{}, tooLarge(u, "more")
	}
	found, _, _ := strings.Cut(http.DetectContentType(body), ";")
	if kind == "" || kind == "application/octet-stream" {
		kind = found
	}
	text, ok := decode(body, params["charset"])
	if !ok || !isText(kind) {
		return Page{}, noText(u, kind, int64(len(body)))
	}
	return Page{URL: u.String(), Title: path.Base(u.Path), Type: kind, Text: text, Size: int64(len(body))}, nil
}

func noText(u *url.URL, kind string, n int64) error {
	size := "of unknown size"
	if n >= 0 {
		size = fmt.Sprintf("with %d bytes", n)
	}
	return fault(centurion.KindUsage, "only text can be read; look for the same thing as a web page", "%s is no text but %s %s", u, kind, size)
}

func tooLarge(u *url.URL, size string) error {
	return fault(centurion.KindUsage, "look for a smaller page", "%s has %s; at most %s are read", u, size, centurion.Bytes(MaxBody))
}

// isText reports whether a media type is text.
func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml") {
		return kind != "image/svg+xml" // a drawing, which says little as text
	}
	switch strings.TrimPrefix(strings.TrimPrefix(kind, "application/"), "x-") {
	case "json", "jsonl", "ndjson", "xml", "yaml", "toml", "javascript", "ecmascript", "typescript", "sh", "sql", "graphql", "httpd-php", "tex", "latex":
		return true
	}
	return false
}

func isHTML(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }

// decode converts a body to UTF-8, and reports whether it is text at all. The only known non-Unicode charsets are Latin-1 and its
// Windows form; others lose everything but ASCII.
func decode(b []byte, charset string) (string, bool) {
	if rest, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		b = rest
	}
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return utf16Text(b), true
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return "", false
	}
	if utf8.Valid(b) {
		return string(b), true
	}
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "windows-1252", "us-ascii", "ascii":
		var s strings.Builder
		for _, c := range b {
			if c >= 0x80 && c < 0xa0 {
				s.WriteRune(windows1252[c-0x80])
			} else {
				s.WriteRune(rune(c))
			}
		}
		return s.String(), true
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), true
}

// windows1252 are the characters of Windows for Latin-1's control codes.
var windows1252 = [32]rune{'€', 0xfffd, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0xfffd, 'Ž', 0xfffd,
	0xfffd, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0xfffd, 'ž', 'Ÿ'}
