package event

// CallData names a tool call in the tool_calls of a message.updated, in the order the model made them.
type CallData struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
}
