package orchestrator

import (
	"context"

	"centurion"
)

func noModel(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil }
