package workspace

// What the program keeps inside a project, relative to it. Everything else of .opencode/ is the person's own.
const (
	DocsPath         = Directory + "/docs"               // fetched pages
	ArchivePath      = Directory + "/archive"            // what was replaced: plans, contexts, summaries
	TodoPath         = Directory + "/todo.md"            // the plan of the newest mission
	ContextPath      = Directory + "/context.md"         // what the sessions of a project know together
	SummaryPath      = Directory + "/summary.md"         // what was done last, in short
	DocsMetadataPath = DocsPath + "/" + docsMetadataName // which pages there are, and until when
	docsMetadataName = "_metadata.json"
)
