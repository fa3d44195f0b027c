package workspace

// The program's own files inside a project, relative to it. Everything else in .opencode/ is the person's.
const (
	DocsPath         = Directory + "/docs"               // fetched pages
	ArchivePath      = Directory + "/archive"            // replaced plans, contexts and summaries
	TodoPath         = Directory + "/todo.md"            // the plan of the newest mission
	ContextPath      = Directory + "/context.md"         // shared knowledge of the project's sessions
	SummaryPath      = Directory + "/summary.md"         // a summary of the last work
	DocsMetadataPath = DocsPath + "/" + docsMetadataName // the fetched pages and their expiry
	docsMetadataName = "_metadata.json"
)
