package event

// The reasons of a compaction.
const (
	CompactedAuto     = "auto"     // the next request would have come too near to the end of the model's window
	CompactedOverflow = "overflow" // the provider had refused a request as too long
	CompactedAsked    = "asked"    // a person wanted it
)

// CompactedData is the data of session.compacted.
type CompactedData struct {
	Message  string `json:"message"`  // the summary's id
	Reason   string `json:"reason"`   // auto, overflow or asked
	Before   int64  `json:"before"`   // tokens of the next request as it would have been, estimated
	After    int64  `json:"after"`    // tokens as it is now, estimated
	Messages int    `json:"messages"` // that the summary stands for
	Kept     int    `json:"kept"`     // that are sent as they are, the first one not counted
	ByHost   bool   `json:"by_host"`  // the model could not be asked: the host made the summary from the record
}
