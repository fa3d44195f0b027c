package tools

import (
	_ "embed"

	"centurion/tools/web"
)

//go:embed codesearch.md
var codesearchDoc string

func codesearchTool() Tool {
	return searchTool("codesearch", codesearchDoc, (*web.Client).SearchCode)
}
