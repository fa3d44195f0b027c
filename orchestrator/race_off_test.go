//go:build !race

package orchestrator

// manyTasks is how many tasks [TestNothingIsKept] has: as many as a host keeps.
const manyTasks = 1000
