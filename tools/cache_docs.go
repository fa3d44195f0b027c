package tools

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"centurion"
	"centurion/tools/web"
)

type cacheDocsInput struct {
	Action  string `json:"action"`
	URL     string `json:"url"`
	Expired bool   `json:"expired"`
}

func cacheDocsTool() Tool {
	return define("cache_docs", object(
		need("action", oneOf("What to do", "get", "list", "clear")),
		may("url", str("The page's address, for get, or to clear only that one")),
		may("expired", boolean("clear: only expired pages (default: false)")),
	), func(in cacheDocsInput) Effect {
		if in.Action == "clear" {
			return Effect{Hosted: true}
		}
		return Effect{ReadOnly: true}
	}, runCacheDocs)
}

func runCacheDocs(_ context.Context, c *Call, in cacheDocsInput) (Result, error) {
	const op = "cache_docs"
	if c.Web == nil || c.Web.Docs() == nil {
		return denied(op, "no pages are kept here", "do without them")
	}
	docs := c.Web.Docs()
	var page *url.URL
	if in.Action == "get" || in.URL != "" {
		var err error
		if page, err = web.ParseURL(in.URL); err != nil {
			return Result{}, err
		}
	}
	switch in.Action {
	case "get":
		doc, text, err := docs.Get(page)
		if err != nil {
			return Result{}, err
		}
		return docResult(doc, text, "kept"), nil
	case "list":
		all, err := docs.List()
		if err != nil {
			return Result{}, err
		}
		return Result{Output: docList(all), Title: centurion.Count(len(all), "page"), Metadata: map[string]any{"pages": len(all)}}, nil
	}
	n, err := docs.Clear(func(d web.Doc) bool { return (page == nil || d.URL == page.String()) && (!in.Expired || d.Expired()) })
	if err != nil {
		return Result{}, err
	}
	what := centurion.Count(n, "page") + " cleared"
	return Result{Output: what, Title: what, Metadata: map[string]any{"pages": n}}, nil
}

func docList(all []web.Doc) string {
	if len(all) == 0 {
		return "no page is kept"
	}
	var b strings.Builder
	for _, d := range all {
		state := "until " + d.Expires.Format(time.DateTime) + " UTC"
		if d.Expired() {
			state = "expired"
		}
		fmt.Fprintf(&b, "%s\n  %s, %s, %s, %s\n", d.URL, firstLine(d.Title), centurion.Bytes(int64(d.Bytes)), state, d.Path())
	}
	return centurion.Count(len(all), "page") + "\n" + fromWeb(web.DocsMetadata, valid(b.String()))
}
