package event

// RewoundData is the data of session.rewound.
type RewoundData struct {
	From   string `json:"from"`           // the newest message of the line that was left
	To     string `json:"to"`             // the newest message of the line it continues on
	Mark   string `json:"mark,omitempty"` // the name of the line that was left
	Undone int    `json:"undone"`         // messages of the old line that are not on the new one
}

// ForkedData is the data of session.forked: what was copied. It belongs to the copy.
type ForkedData struct {
	Mission  string `json:"mission"`  // of the original
	Session  string `json:"session"`  // the original
	Message  string `json:"message"`  // the last copied one
	Messages int    `json:"messages"` // copied
}
