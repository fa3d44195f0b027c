// Package trial attacks the program and measures what is left: processes killed at random and at every named step, cut
// power, full and damaged disks, several hosts in one project, signals. Each trial builds the real binary, gives it
// projects of their own and a scripted model that lives in the trial's process and so survives every kill, and checks the
// same invariants at the end:
//
//	I1  what was told is in the journal afterwards
//	I2  nothing ends twice and no effect happens twice without being marked as «maybe ran»
//	I3  journal and messages are in order, and each call has one answer
//	I4  the plan is never torn
//	I5  no process is left behind
//	I6  exit codes tell the truth
//
// Trials whose figures are short times run by themselves; of the others one that computes runs beside one that mostly waits.
// A time decides whether a trial has failed only where it is what is tried. Everything else is waited for with patience, so
// that no trial fails because the machine is slow or busy.
//
// What is random follows from -seed, so that a failure can be tried again; where processes race, the same seed gives the
// same plan and not the same instant. It needs Linux and the go command. It owns no part of the program.
package trial
