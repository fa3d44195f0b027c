package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"centurion"
)

// Limits of one search.
const (
	DefaultHits = 8
	MaxHits     = 20
	maxAnswer   = 2 << 20 // bytes of a search engine's answer
	maxSnippet  = 400     // bytes of a hit's text
	maxCode     = 800     // bytes of a hit's code
)

// The public URLs of the search engines.
const (
	braveURL  = "https://api.search.brave.com/res/v1/web/search"
	tavilyURL = "https://api.tavily.com/search"
	githubURL = "https://api.github.com/search/code"
)

// Search is a person's choice of search engines. Empty fields are not used.
type Search struct {
	SearXNG string // the URL of a SearXNG instance
	Brave   string // a key for the Brave Search API
	Tavily  string // a key for Tavily
	GitHub  string // a token for GitHub's code search
	// Endpoints overrides the URL of an engine by name: brave, tavily, github.
	Endpoints map[string]string
}

// Hit is one result.
type Hit struct{ Title, URL, Snippet string }

// engine is a search engine: it builds the request for a query and reads the response.
type engine struct {
	name string
	ask  func(ctx context.Context, query string, n int) (*http.Request, error)
	read func(answer []byte) ([]Hit, error)
	show func(snippet string) string // prepares a hit's text for display; nil means on one line
	hint string                      // what to do when it refuses
}

// web returns the first engine to use, and false if none is configured.
func (s Search) web() (engine, bool) {
	switch {
	case s.SearXNG != "":
		return s.searxng("general"), true
	case s.Brave != "":
		return s.brave(), true
	}
	return s.tavily(), s.Tavily != ""
}

func (s Search) code() (engine, bool) {
	if s.GitHub != "" {
		return s.github(), true
	}
	return s.searxng("it"), s.SearXNG != ""
}

// CanSearch returns nil if there is a search engine, for code if code is set, and otherwise an error of centurion.KindConfig that says
// how to configure one.
func (c *Client) CanSearch(code bool) error {
	if _, ok := c.cfg.Search.code(); code && !ok {
		return unconfigured("for code ", `"github_token": "ghp_…"} or {"searxng": "http://localhost:8080"}`, "GITHUB_TOKEN and SEARXNG_URL")
	}
	if _, ok := c.cfg.Search.web(); !code && !ok {
		return unconfigured("", `"searxng": "http://localhost:8080"}, {"brave_key": "…"} or {"tavily_key": "…"}`,
			"SEARXNG_URL, BRAVE_API_KEY and TAVILY_API_KEY")
	}
	return nil
}

func unconfigured(what, values, names string) error {
	return &centurion.Error{Op: "search", Kind: centurion.KindConfig, Msg: "no search engine " + what + "is configured, so nothing was searched",
		Hint: "do without it. A person configures one with \"search\": {" + values +
			" in ~/.config/centurion/config.jsonc, or with one of the variables " + names}
}

// SearchWeb asks the first configured search engine: SearXNG, Brave, Tavily. It returns the engine's name and at most n hits, 0 meaning
// DefaultHits. Errors are those of [Client.CanSearch] and centurion.KindAuth, KindRateLimit, KindUsage, KindTimeout and KindNetwork.
func (c *Client) SearchWeb(ctx context.Context, query string, n int) (string, []Hit, error) {
	e, ok := c.cfg.Search.web()
	if !ok {
		return "", nil, c.CanSearch(false)
	}
	return c.run(ctx, e, query, n)
}

// SearchCode asks the first configured code search: GitHub, then SearXNG's category for computing. Otherwise it is like
// [Client.SearchWeb].
func (c *Client) SearchCode(ctx context.Context, query string, n int) (string, []Hit, error) {
	e, ok := c.cfg.Search.code()
	if !ok {
		return "", nil, c.CanSearch(true)
	}
	return c.run(ctx, e, query, n)
}

func (s Search) searxng(category string) engine {
	return engine{name: "SearXNG", hint: "SearXNG answers programs only if search.formats in its settings.yml lists json",
		ask: func(ctx context.Context, query string, _ int) (*http.Request, error) {
			u, err := url.Parse(s.SearXNG)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return nil, &centurion.Error{Op: "search", Kind: centurion.KindConfig, Msg: "the address of SearXNG is no http or https URL",
					Hint: "a person sets search.searxng or SEARXNG_URL to an address as http://localhost:8080"}
			}
			if !strings.HasSuffix(u.Path, "/search") {
				u = u.JoinPath("search")
			}
			u.RawQuery = url.Values{"q": {query}, "format": {"json"}, "categories": {category}}.Encode()
			return request(ctx, u.String(), nil)
		},
		read: readResults}
}

// request returns a request with these headers, given as name, value pairs: a GET, or with a body a POST.
func request(ctx context.Context, url string, body []byte, headers ...string) (*http.Request, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	for i := 0; err == nil && i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r, err
}

// readResults reads the format shared by SearXNG and Tavily.
func readResults(answer []byte) ([]Hit, error) {
	var a struct {
		Results []struct{ Title, URL, Content string }
	}
	err := json.Unmarshal(answer, &a)
	var hits []Hit
	for _, r := range a.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Content})
	}
	return hits, err
}

func (s Search) brave() engine {
	return engine{name: "Brave", show: withoutTags, hint: "a person checks BRAVE_API_KEY or search.brave_key",
		ask: func(ctx context.Context, query string, n int) (*http.Request, error) {
			q := url.Values{"q": {query}, "count": {strconv.Itoa(n)}, "text_decorations": {"false"}}
			return request(ctx, cmp.Or(s.Endpoints["brave"], braveURL)+"?"+q.Encode(), nil, "X-Subscription-Token", s.Brave)
		},
		read: func(answer []byte) ([]Hit, error) {
			var a struct {
				Web struct {
					Results []struct{ Title, URL, Description string }
				}
			}
			err := json.Unmarshal(answer, &a)
			var hits []Hit
			for _, r := range a.Web.Results {
				hits = append(hits, Hit{r.Title, r.URL, r.Description})
			}
			return hits, err
		}}
}

func (s Search) tavily() engine {
	return engine{name: "Tavily", hint: "a person checks TAVILY_API_KEY or search.tavily_key",
		ask: func(ctx context.Context, query string, n int) (*http.Request, error) {
			body, err := json.Marshal(map[string]any{"query": query, "max_results": n, "search_depth": "basic"})
			if err != nil {
				return nil, err
			}
			return request(ctx, cmp.Or(s.Endpoints["tavily"], tavilyURL), body, "Authorization", "Bearer "+s.Tavily, "Content-Type", "application/json")
		},
		read: readResults}
}

func (s Search) github() engine {
	return engine{name: "GitHub", show: func(code string) string { return centurion.Clip(strings.TrimSpace(code), maxCode) }, hint: "a person checks GITHUB_TOKEN or search.github_token",
		ask: func(ctx context.Context, query string, n int) (*http.Request, error) {
			q := url.Values{"q": {query}, "per_page": {strconv.Itoa(n)}}
			return request(ctx, cmp.Or(s.Endpoints["github"], githubURL)+"?"+q.Encode(), nil, "Authorization", "Bearer "+s.GitHub,
				"Accept", "application/vnd.github.text-match+json")
		},
		read: func(answer []byte) ([]Hit, error) {
			var a struct {
				Items []struct {
					Path       string
					HTMLURL    string `json:"html_url"`
					Repository struct {
						FullName string `json:"full_name"`
					}
					TextMatches []struct{ Fragment string } `json:"text_matches"`
				}
			}
			err := json.Unmarshal(answer, &a)
			var hits []Hit
			for _, r := range a.Items {
				h := Hit{Title: r.Repository.FullName + ": " + r.Path, URL: r.HTMLURL}
				for _, m := range r.TextMatches {
					h.Snippet += m.Fragment + "\n"
				}
				hits = append(hits, h)
			}
			return hits, err
		}}
}

// run queries one engine and cleans its results.
func (c *Client) run(ctx context.Context, e engine, query string, n int) (string, []Hit, error) {
	n = min(cmp.Or(max(n, 0), DefaultHits), MaxHits)
	req, err := e.ask(ctx, query, n)
	if err != nil {
		return e.name, nil, e.failed(ctx, err)
	}
	req.Header.Set("User-Agent", "Centurion")
	resp, err := c.search.Do(req)
	if err != nil {
		return e.name, nil, e.failed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return e.name, nil, e.status(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return e.name, nil, e.failed(ctx, err)
	}
	if len(answer) > maxAnswer {
		return e.name, nil, e.failed(ctx, errors.New("its answer is larger than 2 MB"))
	}
	hits, err := e.read(answer)
	if err != nil {
		return e.name, nil, &centurion.Error{Op: "search", Kind: centurion.KindNetwork, Msg: e.name + " answered something that is no list of results",
			Err: err, Hint: e.hint}
	}
	show := e.show
	if show == nil {
		show = oneLine
	}
	out := make([]Hit, 0, n)
	for _, h := range hits {
		u, err := ParseURL(h.URL)
		if err != nil || len(out) == n {
			continue // useless if it cannot be fetched
		}
		out = append(out, Hit{Title: centurion.Clip(oneLine(h.Title), maxTitle), URL: u.String(), Snippet: strings.ToValidUTF8(show(h.Snippet), "\uFFFD")})
	}
	return e.name, out, nil
}

func (e engine) failed(ctx context.Context, err error) error {
	if ours, ok := errors.AsType[*centurion.Error](err); ok {
		return ours
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		return &centurion.Error{Op: "search", Kind: centurion.KindOf(cause), Err: cause}
	}
	kind := centurion.KindNetwork
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		kind = centurion.KindTimeout
	}
	return &centurion.Error{Op: "search", Kind: kind, Msg: e.name + " cannot be reached", Err: bare(err), Hint: "try it once more, or do without"}
}

func (e engine) status(resp *http.Response) error {
	err := &centurion.Error{Op: "search", Kind: centurion.KindNetwork, Status: resp.StatusCode, Hint: "try it once more, or do without",
		Msg: e.name + " answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		err.Kind, err.Hint = centurion.KindAuth, "do without; "+e.hint
	case http.StatusTooManyRequests:
		err.Kind, err.Hint = centurion.KindRateLimit, "wait before you search again, or do without"
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		err.Kind, err.Hint = centurion.KindUsage, "make the query simpler"
	}
	return err
}

func oneLine(s string) string {
	return centurion.Clip(strings.Join(strings.Fields(s), " "), maxSnippet)
}

// withoutTags turns HTML into one line of text.
func withoutTags(s string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	for t := z.Next(); t != html.ErrorToken; t = z.Next() {
		if t == html.TextToken {
			b.Write(z.Text())
		}
	}
	return oneLine(html.UnescapeString(b.String()))
}
