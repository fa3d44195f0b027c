package tools

import (
	"context"
	"fmt"
	"strings"

	"centurion"
	"centurion/tools/web"
)

type searchInput struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

func websearchTool() Tool {
	return searchTool("websearch", (*web.Client).SearchWeb)
}

// searchTool makes a tool that queries a search engine.
func searchTool(name string, find func(c *web.Client, ctx context.Context, query string, n int) (string, []web.Hit, error)) Tool {
	return define(name, object(
		need("query", nonEmpty("The search terms")),
		may("limit", integer(fmt.Sprintf("How many results (default %d)", web.DefaultHits), 1, web.MaxHits)),
	), func(searchInput) Effect { return Effect{ReadOnly: true} },
		func(ctx context.Context, c *Call, in searchInput) (Result, error) {
			if c.Web == nil {
				return noWeb(name)
			}
			query := strings.Join(strings.Fields(in.Query), " ")
			if query == "" {
				return Result{}, usage(name, "say what to look for", "the query is empty")
			}
			if err := c.Web.CanSearch(name == "codesearch"); err != nil { // no permission is asked for the impossible
				return Result{}, err
			}
			err := c.Gate.Ask(ctx, c, Access{Permission: name, Patterns: []string{query}, Always: []string{"*"}, Metadata: map[string]any{"query": query}})
			if err != nil {
				return Result{}, err
			}
			c.Progress("searching for " + query)
			engine, hits, err := find(c.Web, ctx, query, in.Limit)
			if err != nil {
				return Result{}, err
			}
			return Result{Output: hitList(engine, query, hits), Title: query, Metadata: map[string]any{"engine": engine, "results": len(hits)}}, nil
		})
}

func hitList(engine, query string, hits []web.Hit) string {
	if len(hits) == 0 {
		return fmt.Sprintf("%s found nothing for %q; try fewer or other words", engine, query)
	}
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, h.Title, h.URL)
		if h.Snippet != "" {
			fmt.Fprintf(&b, "   %s\n", strings.ReplaceAll(h.Snippet, "\n", "\n   "))
		}
	}
	return centurion.Count(len(hits), "result") + "\n" + fromWeb(engine, valid(b.String()))
}

func codesearchTool() Tool {
	return searchTool("codesearch", (*web.Client).SearchCode)
}
