package todo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// writable cleans the values of a new item and refuses those that could not be parsed again.
func (d *Doc) writable(it *Item) error {
	if it.Mark == 0 {
		it.Mark = Open
	}
	it.Agent = strings.TrimPrefix(it.Agent, "@")
	if it.Title = oneLine(it.Title); it.Title == "" {
		return usage("a new item needs a title")
	}
	switch {
	case it.ID != "" && !isID(it.ID):
		return usage("%q cannot be an id: an id starts with a letter and holds a digit, as T1 or M2-a", it.ID)
	case d.byID[it.ID] != nil:
		return &centurion.Error{Op: opEdit, Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s exists already", it.ID),
			Hint: "change that one, or leave the id out to have one assigned"}
	case it.Mark.String() == "unknown":
		return usage("%q is no mark", string(rune(it.Mark)))
	case it.Agent != "" && !isAgent(it.Agent):
		return usage("%q is no name of an agent", it.Agent)
	}
	for _, id := range it.After {
		if !isID(id) {
			return usage("after: %q is no id", id)
		}
	}
	for _, a := range it.Race {
		if !isAgent(strings.TrimPrefix(a, "@")) {
			return usage("race: %q is no name of an agent", a)
		}
	}
	for key, values := range map[string][]string{"files": it.Files, "verify": it.Verify, "note": it.Notes} {
		for _, v := range values {
			if v == "" || v != oneLine(v) {
				return usage("%s: %q must be one line, not empty, without spaces around it", key, v)
			}
		}
	}
	for _, v := range it.Files {
		if strings.Contains(v, "`") {
			return usage("files: %q must be without backticks", v)
		}
	}
	if !proofs(it.Proof) {
		return usage("proof: %q is not known: the only value is %s", it.Proof, ProofRegression)
	}
	return nil
}

// nextNumber returns the number after the highest of T1, T2, …, including reserved ids and those in after: lists, so that no item is
// waited for by accident.
func (d *Doc) nextNumber() int {
	highest := 0
	see := func(id string) {
		if digits, ok := strings.CutPrefix(id, "T"); ok && len(digits) <= 9 {
			if n, err := strconv.Atoi(digits); err == nil && n > highest {
				highest = n
			}
		}
	}
	for _, id := range d.taken {
		see(id)
	}
	for i := range d.lines { // an item without its box keeps its id
		if d.lines[i].kind == kindText {
			see(d.begins(i))
		}
	}
	for _, n := range d.nodes {
		see(n.ID)
		for _, id := range n.After {
			see(id)
		}
	}
	return highest + 1
}

// addUnder appends a sub-item.
func (d *Doc) addUnder(it Item) error {
	parent, err := d.target(it.Parent)
	if err != nil {
		return err
	}
	lead, bullet := d.inner(d.lead(parent.at), parent.bullet), plainBullet(parent.bullet)
	if len(parent.children) > 0 {
		last := parent.children[len(parent.children)-1]
		lead, bullet = d.lead(last.at), nextBullet(last.bullet)
	}
	return d.insert(d.subtreeEnd(parent), d.format(it, lead, bullet)...)
}

// addTo appends an item to a section.
func (d *Doc) addTo(section string, it Item) error {
	section = oneLine(strings.TrimLeft(oneLine(section), "#"))
	from, to, found := d.sectionRange(section)
	var lines []string
	if !found {
		lines = append(lines, "## "+section)
		if _, text := headingOf(lines[0]); text != section {
			return usage("%q cannot be the heading of a section", section)
		}
	}
	lead, bullet, own := "", "-", false
	for _, n := range d.nodes {
		if n.parent != nil || own && n.at >= to {
			continue
		}
		if bullet = plainBullet(n.bullet); n.at >= from && n.at < to && found {
			lead, bullet, own = d.lead(n.at), nextBullet(n.bullet), true
		}
	}
	for to > 0 && d.lines[to-1].kind == kindBlank {
		to--
	}
	if to > 0 && (!found || d.needsGap(to-1)) {
		lines = slices.Insert(lines, 0, "")
	}
	return d.insert(to, append(lines, d.format(it, lead, bullet)...)...)
}

// needsGap reports whether a blank line is needed between line i and a list that begins below it.
func (d *Doc) needsGap(i int) bool {
	l := d.lines[i]
	switch l.kind {
	case kindHeading:
		level, _ := headingOf(l.text)
		return level == 1
	case kindAttr:
		return l.owner == nil
	case kindText, kindFence:
		return l.indent == 0
	}
	return false
}

// sectionRange returns the lines of a section: from after its heading to before the next one.
func (d *Doc) sectionRange(section string) (from, to int, found bool) {
	at := -1
	if section == "" {
		if at = len(d.headings) - 1; at < 0 {
			return 0, len(d.lines), true
		}
	} else {
		at = d.heading(section)
	}
	if at < 0 {
		return 0, len(d.lines), false
	}
	to = len(d.lines)
	if at+1 < len(d.headings) {
		to = d.headings[at+1].line
	}
	return d.headings[at].line + 1, to, true
}

// heading returns the index of the heading with a section's name, or -1.
func (d *Doc) heading(section string) int {
	for _, same := range []func(text string) bool{
		func(text string) bool { return text == section },
		func(text string) bool { return strings.EqualFold(text, section) },
	} {
		if i := slices.IndexFunc(d.headings, func(h heading) bool { return h.level > 1 && same(h.text) }); i >= 0 {
			return i
		}
	}
	at := -1
	for i, h := range d.headings {
		if h.level > 1 && strings.EqualFold(strings.TrimSuffix(firstWord(h.text), ":"), section) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// nextBullet returns the bullet after this one in a list.
func nextBullet(bullet string) string {
	digits := bullet[:len(bullet)-1]
	n, err := strconv.Atoi(digits)
	if err != nil || n >= 999_999_999 { // Markdown's limit is nine digits
		return bullet
	}
	return strconv.Itoa(n+1) + bullet[len(bullet)-1:]
}

// format formats an item with its attributes.
func (d *Doc) format(it Item, lead, bullet string) []string {
	head := lead + bullet + " [" + string(rune(it.Mark)) + "] " + it.ID + " " + it.Title
	if it.Agent != "" {
		head += " @" + it.Agent
	}
	lines := []string{head}
	prefix := d.inner(lead, bullet) + plainBullet(bullet) + " "
	attr := func(key, value string) {
		if value != "" {
			lines = append(lines, prefix+key+": "+value)
		}
	}
	attr("after", strings.Join(it.After, ", "))
	attr("files", joinList(it.Files))
	for _, v := range it.Verify {
		attr("verify", quote(v))
	}
	attr("race", strings.Join(it.Race, ", "))
	if it.Proof != "" {
		attr("proof", it.Proof)
	}
	for _, note := range it.Notes {
		attr("note", note)
	}
	return lines
}
