package session

import (
	"centurion"
	"centurion/provider"
	"centurion/recovery"
)

// forget takes the thinking out of a history whose thinking the provider has refused, as m tells: sent again, it would be
// refused again. What is thought from then on goes back as ever.
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
