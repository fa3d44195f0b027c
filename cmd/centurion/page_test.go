package main

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// browse asks the server whose printed address is in a file for a page, which has to come with a status and becomes the output. With a
// form it is sent. The link of an ask is asked for without the token.
func browse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: browse STATUS FILE PATH [FORM]")
	}
	printed, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	base := regexp.MustCompile(`http://\S+`).FindString(string(printed))
	server, err := url.Parse(base)
	ts.Check(err)
	path, err := url.Parse(args[2])
	ts.Check(err)
	address := base + path.Path
	if path.Host != "" {
		address = "http://" + server.Host + path.Path
	}
	method, form := http.MethodGet, ""
	if len(args) == 4 {
		method, form = http.MethodPost, args[3]
	}
	req, err := http.NewRequest(method, address, strings.NewReader(form))
	ts.Check(err)
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(cmp.Or(err, os.WriteFile(ts.MkAbs("page.html"), body, 0o600)))
	ts.Check(ts.Exec("cat", "page.html"))
	if resp.StatusCode != number(ts, args[0]) {
		ts.Fatalf("%s answers with %s, not %s", path.Path, strconv.Itoa(resp.StatusCode), args[0])
	}
}
