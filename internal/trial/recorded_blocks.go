package trial

import "encoding/json"

// writtenBlocks is written for Anthropic's messages, whose blocks come one after the other.
func (r *recording) writtenBlocks() (text string, calls []string) {
	called, why := false, "" // whether the block is a call; what is said of a refusal
	for _, line := range r.lines {
		var e struct {
			Type  string
			Block struct{ Type, Name, Text string } `json:"content_block"`
			Delta struct {
				Text    string
				JSON    string                       `json:"partial_json"`
				Details struct{ Explanation string } `json:"stop_details"`
			}
		}
		_ = json.Unmarshal([]byte(line), &e) // fields of other types are those of blocks that are not looked at
		switch e.Type {
		case "content_block_start":
			if called = e.Block.Type == "tool_use"; called {
				calls = append(calls, e.Block.Name+" ")
			} else if e.Block.Type == "text" {
				text += e.Block.Text
			}
		case "content_block_delta":
			text += e.Delta.Text
			if called {
				calls[len(calls)-1] += e.Delta.JSON
			}
		case "message_delta":
			why = e.Delta.Details.Explanation
		}
	}
	if text == "" && len(calls) == 0 {
		text = why
	}
	return text, calls
}
