package config

import (
	"path/filepath"

	"centurion/agents/instructions"
)

// Finder returns what finds the instructions and skills of the project and the person.
func (c *Config) Finder() *instructions.Finder {
	dirs := upwards(c.opts.Dir)
	cfg := instructions.Config{Dir: c.opts.Dir, Above: dirs[:len(dirs)-1], Home: c.opts.home(), Entries: c.Instructions}
	if base := c.opts.base("XDG_CONFIG_HOME", ".config"); base != "" {
		cfg.OpenCode = filepath.Join(base, "opencode")
	}
	return instructions.New(cfg)
}
