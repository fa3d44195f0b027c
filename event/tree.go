package event

// RewoundData is the data of session.rewound.
type RewoundData struct {
	From   string `json:"from"`           // the newest message of the line that was left
	To     string `json:"to"`             // the newest message of the line that it goes on with
	Mark   string `json:"mark,omitempty"` // the name under which the line that was left is found again
	Undone int    `json:"undone"`         // messages of the line that was left that are not on the new one
}

// ForkedData is the data of session.forked: what was copied. It belongs to the copy.
type ForkedData struct {
	Mission  string `json:"mission"`  // of the original
	Session  string `json:"session"`  // the original
	Message  string `json:"message"`  // the last one that was copied
	Messages int    `json:"messages"` // that were copied
}
