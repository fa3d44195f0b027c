package catalog

import (
	"cmp"
	"slices"
	"strings"

	"centurion"
)

// maxNearest is how many names are offered in place of one that is not known.
const maxNearest = 3

// Nearest returns up to three known models that may have been meant by ref, the likeliest first, as "provider/model". If
// the provider is not known, the models of providers with a similar name are searched too.
func (c *Catalog) Nearest(ref centurion.ModelRef) []string {
	var names []string
	for _, p := range c.Providers() {
		if p.ID != ref.Provider && c.providers[ref.Provider] != nil {
			continue
		}
		for _, m := range p.Models {
			names = append(names, p.ID+"/"+m.ID)
		}
	}
	return nearest(ref.String(), names)
}

// NearestProviders returns up to three known providers that may have been meant by id, the likeliest first.
func (c *Catalog) NearestProviders(id string) []string { return nearest(id, c.order) }

func nearest(name string, names []string) []string {
	type scored struct {
		name string
		d    int
	}
	var found []scored
	for _, n := range names {
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if d <= max(2, len(name)/3) {
			found = append(found, scored{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(a.d, b.d) })
	out := make([]string, 0, maxNearest)
	for _, s := range found[:min(len(found), maxNearest)] {
		out = append(out, s.name)
	}
	return out
}

// distance is the number of bytes to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
