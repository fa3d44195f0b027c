package report

import "centurion/event"

// PlanItem is an item of the plan; its status is open, running, done, cancelled or blocked.
type PlanItem = event.PlanItem
