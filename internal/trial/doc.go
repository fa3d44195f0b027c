// Package trial attacks the program and measures what is left: processes killed at random and at every named step, cut power, full and
// damaged disks, several hosts in one project, signals. Each trial builds the real binary, gives it its own projects and a scripted
// model in the trial's process, which survives every kill, and checks the same invariants at the end:
//
//	I1  everything reported is in the journal afterwards
//	I2  nothing ends twice and no effect happens twice without being marked as "maybe ran"
//	I3  journal and messages are in order, and each call has one answer
//	I4  the plan is never torn
//	I5  no process is left behind
//	I6  exit codes are correct
//
// Trials that measure short times run alone; otherwise one that computes runs next to one that mostly waits. A trial only fails because
// of a time if that time is under test. Everything else is awaited patiently, so that no trial fails because the machine is slow or
// busy.
//
// Randomness follows from -seed, so that a failure can be repeated; where processes race, the same seed gives the same plan, not the
// same timing. It needs Linux and the go command. It is not part of the program.
package trial
