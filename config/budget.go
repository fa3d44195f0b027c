package config

import "centurion"

// setTaskBudget reads "task_budget", what a task may spend that is given no budget of its own.
func setTaskBudget(o *Own, key string, n *node) error {
	amount := func(name string, at func(*centurion.TaskBudget) *float64) field[centurion.TaskBudget] {
		f := number(name, 0, func(b *boxed) **float64 { return &b.value })
		return field[centurion.TaskBudget]{name, func(b *centurion.TaskBudget, key string, n *node) error {
			var x boxed
			err := f.set(&x, key, n)
			if err == nil && x.value != nil {
				*at(b) = *x.value
			}
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
	return decode(n, key, &o.TaskBudget, fields, func(u member) error { return unknownKey(u, key+".", keysOf(fields)) })
}

// boxed holds a number that may be missing.
type boxed struct{ value *float64 }

// looserTask reports whether a project's budget for a task is higher in anything than the person's.
func looserTask(person, project centurion.TaskBudget) bool {
	return person.Cost > 0 && project.Cost > person.Cost || person.Tokens > 0 && project.Tokens > person.Tokens ||
		person.Rounds > 0 && project.Rounds > person.Rounds || person.ToolCalls > 0 && project.ToolCalls > person.ToolCalls ||
		person.Minutes > 0 && project.Minutes > person.Minutes
}
