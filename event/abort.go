package event

// AbortData is the data of session.aborted.
type AbortData struct {
	Reason string `json:"reason"`
}
