package config

// toolPolicy is the key that says which tool calls of one answer may run at the same time.
func toolPolicy[T any](at func(*T) *string) field[T] {
	return choice("tool_policy", at, "auto", "sequential", "concurrent")
}
