package event

// The reasons of a compaction.
const (
	CompactedAuto     = "auto"     // the next request would have come too close to the end of the model's window
	CompactedOverflow = "overflow" // the provider refused a request as too long
	CompactedAsked    = "asked"    // a person asked for it
)

// CompactedData is the data of session.compacted.
type CompactedData struct {
	Message  string `json:"message"`  // the summary's id
	Reason   string `json:"reason"`   // auto, overflow or asked
	Before   int64  `json:"before"`   // estimated tokens of the next request before
	After    int64  `json:"after"`    // estimated tokens of it now
	Messages int    `json:"messages"` // replaced by the summary
	Kept     int    `json:"kept"`     // sent unchanged, not counting the first one
	ByHost   bool   `json:"by_host"`  // the model could not be asked, so the host made the summary from the record
}
