//go:build race

package orchestrator

// manyTasks is small where the detector makes SQLite ten times slower.
const manyTasks = 200
