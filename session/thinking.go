package session

import (
	"centurion"
	"centurion/provider"
	"centurion/recovery"
)

// forget removes thoughts from a history if the provider has refused them, according to m; it would refuse them again. Later thoughts
// are sent as usual.
func forget(history []provider.Message, m *centurion.Message) {
	if m.Error == nil {
		return
	}
	_, fault := recovery.Classify(&centurion.Error{Kind: centurion.KindInvalidRequest, Status: m.Error.Data.StatusCode, Msg: m.Error.Data.Message})
	if fault != recovery.FaultThinkingOrder {
		return
	}
	for i := range history {
		history[i].Thoughts = nil
	}
}
