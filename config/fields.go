package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
)

// field is a key of an object and the function that reads its value into T.
type field[T any] struct {
	key string
	set func(dst *T, key string, n *node) error
}

// decode reads every known key of an object and passes the others to unknown, which may be nil.
func decode[T any](n *node, what string, dst *T, fields []field[T], unknown func(m member) error) error {
	if n == nil || n.kind == kindNull {
		return nil
	}
	if n.kind != kindObject {
		return n.mismatch(what, kindObject.String())
	}
	for _, m := range n.members {
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.key == m.key })
		switch {
		case i >= 0:
			if m.value.kind == kindNull { // the same as a missing key
				continue
			}
			if err := fields[i].set(dst, m.key, m.value); err != nil {
				return err
			}
		case unknown != nil:
			if err := unknown(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func keysOf[T any](fields []field[T]) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

func text[T any](key string, at func(*T) *string) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) (err error) {
		*at(dst), err = n.str(key)
		return err
	}}
}

// choice is one of a few strings, ignoring case.
func choice[T any](key string, at func(*T) *string, values ...string) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) error {
		if n.kind == kindString && slices.Contains(values, strings.ToLower(n.text)) {
			*at(dst) = strings.ToLower(n.text)
			return nil
		}
		want := "one of " + strings.Join(values, ", ")
		if n.kind != kindString {
			return n.mismatch(key, want)
		}
		hint := "correct the value in " + n.src.name
		if near := centurion.Nearest(n.text, values); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return n.src.fault(n.line, hint, "%q must be %s, not %q", key, want, n.text)
	}}
}

func boolean[T any](key string, at func(*T) *bool) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) (err error) {
		*at(dst), err = n.truth(key)
		return err
	}}
}

func optional[T any](key string, at func(*T) **bool) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) error {
		*at(dst) = &n.yes
		_, err := n.truth(key)
		return err
	}}
}

// integer is a whole number of at least lo and, if hi is not 0, at most hi.
func integer[T any, I int | int64](key string, lo, hi I, at func(*T) *I) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) error {
		v, err := n.integer()
		if err != nil || v < int64(lo) || hi != 0 && v > int64(hi) {
			want := fmt.Sprintf("a whole number of at least %d", lo)
			if hi != 0 {
				want = fmt.Sprintf("a whole number from %d to %d", lo, hi)
			}
			return n.mismatch(key, want)
		}
		*at(dst) = I(v)
		return nil
	}}
}

// integer accepts 5, 5.0 and 5e3, which some JSON writers do not distinguish.
func (n *node) integer() (int64, error) {
	if n.kind != kindNumber {
		return 0, strconv.ErrSyntax
	}
	if v, err := strconv.ParseInt(n.text, 10, 64); err == nil {
		return v, nil
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 {
		return 0, strconv.ErrSyntax
	}
	return int64(f), nil
}

// number is a number of at least 0.
func number[T any](key string, at func(*T) **float64) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) error {
		v, err := n.number(key)
		*at(dst) = &v
		return err
	}}
}

func (n *node) number(key string) (float64, error) {
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != kindNumber || err != nil || v < 0 {
		return 0, n.mismatch(key, "a number of at least 0")
	}
	return v, nil
}

func duration[T any](key string, at func(*T) *time.Duration) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) error {
		const want = `a duration such as "90s", "5m" or "1h30m"`
		if n.kind != kindString {
			return n.mismatch(key, want)
		}
		d, err := time.ParseDuration(n.text)
		if err != nil || d <= 0 {
			return n.src.fault(n.line, "correct the value in "+n.src.name, "%q must be %s, not %q", key, want, n.text)
		}
		*at(dst) = d
		return nil
	}}
}

// list is an array of strings; with one, a single string means an array with that element.
func list[T any](key string, one bool, at func(*T) *[]string) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) (err error) {
		*at(dst), err = n.strs(key, one)
		return err
	}}
}

func (n *node) truth(key string) (bool, error) {
	if n.kind != kindBool {
		return false, n.mismatch(key, kindBool.String())
	}
	return n.yes, nil
}

func (n *node) str(key string) (string, error) {
	if n.kind != kindString {
		return "", n.mismatch(key, kindString.String())
	}
	return n.text, nil
}

func (n *node) strs(key string, one bool) ([]string, error) {
	if one && n.kind == kindString {
		return []string{n.text}, nil
	}
	want := "an array of strings"
	if one {
		want = "a string or an array of strings"
	}
	if n.kind != kindArray {
		return nil, n.mismatch(key, want)
	}
	out := make([]string, 0, len(n.elems))
	for _, e := range n.elems {
		if e.kind != kindString {
			return nil, e.mismatch(key, want)
		}
		out = append(out, e.text)
	}
	return out, nil
}

// mapOf is an object with values read by value.
func mapOf[T, V any](key string, at func(*T) *map[string]V, value func(key string, n *node) (V, error)) field[T] {
	return field[T]{key, func(dst *T, key string, n *node) (err error) {
		if n.kind != kindObject {
			return n.mismatch(key, kindObject.String())
		}
		out := make(map[string]V, len(n.members))
		for _, m := range n.members {
			if out[m.key], err = value(key+"."+m.key, m.value); err != nil {
				return err
			}
		}
		*at(dst) = out
		return nil
	}}
}

// strMap is an object with string values.
func strMap[T any](key string, at func(*T) *map[string]string) field[T] {
	return mapOf(key, at, func(key string, n *node) (string, error) { return n.str(key) })
}

// boolMap is an object with boolean values.
func boolMap[T any](key string, at func(*T) *map[string]bool) field[T] {
	return mapOf(key, at, func(key string, n *node) (bool, error) { return n.truth(key) })
}

// setTaskBudget reads "task_budget", the default budget of tasks.
func setTaskBudget(o *Own, key string, n *node) error {
	amount := func(name string, at func(*centurion.TaskBudget) *float64) field[centurion.TaskBudget] {
		return field[centurion.TaskBudget]{name, func(b *centurion.TaskBudget, key string, n *node) (err error) {
			*at(b), err = n.number(key)
			return err
		}}
	}
	fields := []field[centurion.TaskBudget]{
		amount("cost", func(b *centurion.TaskBudget) *float64 { return &b.Cost }),
		integer("tokens", 1, 0, func(b *centurion.TaskBudget) *int64 { return &b.Tokens }),
		integer("rounds", 1, 0, func(b *centurion.TaskBudget) *int { return &b.Rounds }),
		integer("tool_calls", 1, 0, func(b *centurion.TaskBudget) *int { return &b.ToolCalls }),
		amount("minutes", func(b *centurion.TaskBudget) *float64 { return &b.Minutes }),
	}
	return decodeKnown(n, key, &o.TaskBudget, fields)
}

// looserTask reports whether a project's budget for tasks is higher than the person's in any dimension.
func looserTask(person, project centurion.TaskBudget) bool {
	return person.Cost > 0 && project.Cost > person.Cost || person.Tokens > 0 && project.Tokens > person.Tokens ||
		person.Rounds > 0 && project.Rounds > person.Rounds || person.ToolCalls > 0 && project.ToolCalls > person.ToolCalls ||
		person.Minutes > 0 && project.Minutes > person.Minutes
}

// toolPolicy is the key for parallel tool calls of one answer.
func toolPolicy[T any](at func(*T) *string) field[T] {
	return choice("tool_policy", at, "auto", "sequential", "concurrent")
}
