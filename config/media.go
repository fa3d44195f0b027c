package config

import (
	"cmp"
	"slices"

	"centurion"
	"centurion/provider/catalog"
)

// ModelsTaking lists the models of the configured providers that take files of a type, as "provider/model": those that a file
// names, then those that are known of the same providers. It lists at most so many.
func (c *Config) ModelsTaking(mime string, most int) []string {
	var out []string
	add := func(provider, model string, m centurion.Media) {
		if name := provider + "/" + model; m.Takes(mime) && len(out) < most && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, id := range c.providers {
		p := c.Providers[id]
		api := apiOf(connection{provider: id, custom: p.BaseURL != ""}, p)
		known := func(m Model) centurion.Media {
			entry, _ := c.table().Lookup(centurion.ModelRef{Provider: id, ID: cmp.Or(m.ID, m.Name)})
			return mediaOver(cmp.Or(m.API, api), entry, m)
		}
		for _, m := range p.Models {
			add(id, m.Name, known(m))
		}
		for _, m := range c.known(id).Models {
			if _, configured := p.model(m.ID); !configured {
				add(id, m.ID, known(Model{ID: m.ID}))
			}
		}
	}
	return out
}

// mediaOver returns which files a model takes over an API. Over chat completions only images are written alike everywhere.
func mediaOver(api API, known catalog.Model, m Model) centurion.Media {
	media := catalog.MediaOf(known.Media, m.Attachment, m.Input)
	media.PDF = media.PDF && api != APIChat
	return media
}
