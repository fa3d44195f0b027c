package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// job is a command in a job object of its own, with everything that the command starts: no process can leave it. Windows ends it with its
// last handle, which only this process has: also when this process is killed.
//
// Its fields are on the heap, where nothing moves while Windows reads or writes them.
type job struct {
	cmd    *exec.Cmd
	most   confine.Limits
	limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	route  struct{ key, port uintptr } // where its messages go: JOBOBJECT_ASSOCIATE_COMPLETION_PORT
	group  guard.Group

	mu     sync.Mutex     // protects the fields below
	object windows.Handle // 0 after release
	over   string         // the limit for which it was killed
	counts struct {       // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		times                             [4]int64
		faults, total, active, terminated uint32
	}
}

// The messages of a job object, by their names in winnt.h, and one of ours that ends the list.
const (
	msgProcesses = 3  // JOB_OBJECT_MSG_ACTIVE_PROCESS_LIMIT
	msgMemory    = 10 // JOB_OBJECT_MSG_JOB_MEMORY_LIMIT
	msgReleased  = 1 << 16
)

// jobKilled is the exit code of processes that were killed with their job.
const jobKilled = ^uint32(0)

var ntResumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// startJob starts a command in a job object with limits. It runs nothing before it is in there.
func startJob(c centurion.Command, args, env []string, s streams, most confine.Limits) (*job, error) {
	j := &job{most: most, cmd: &exec.Cmd{Path: args[0], Args: args, Dir: c.Cwd(), Env: env, SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}}}
	s.set(j.cmd)
	err := j.open()
	if err == nil {
		if err = j.cmd.Start(); err == nil {
			if err = j.enter(); err != nil {
				_ = j.cmd.Process.Kill()
				_ = j.cmd.Wait()
			}
		}
	}
	if err != nil {
		j.release()
		return nil, err
	}
	return j, nil
}

// open makes the job object.
func (j *job) open() (err error) {
	if j.object, err = windows.CreateJobObject(nil, nil); err != nil {
		return fmt.Errorf("make job object: %w", err)
	}
	basic := &j.limits.BasicLimitInformation
	basic.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if j.most.Processes > 0 {
		basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		basic.ActiveProcessLimit = uint32(j.most.Processes)
	}
	if j.most.Memory > 0 {
		basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_JOB_MEMORY
		j.limits.JobMemoryLimit = uintptr(j.most.Memory)
	}
	if err := j.set(windows.JobObjectExtendedLimitInformation, unsafe.Pointer(&j.limits), unsafe.Sizeof(j.limits)); err != nil {
		return err
	}
	if j.most == (confine.Limits{}) {
		return nil // there is nothing to hear
	}
	port, err := windows.CreateIoCompletionPort(windows.InvalidHandle, 0, 0, 1)
	if err != nil {
		return fmt.Errorf("make port of job object: %w", err)
	}
	j.route.port = uintptr(port)
	j.group.Go("watch job object", j.watch)
	return j.set(windows.JobObjectAssociateCompletionPortInformation, unsafe.Pointer(&j.route), unsafe.Sizeof(j.route))
}

func (j *job) set(class uint32, value unsafe.Pointer, size uintptr) error {
	if _, err := windows.SetInformationJobObject(j.object, class, uintptr(value), uint32(size)); err != nil {
		return fmt.Errorf("set up job object: %w", err)
	}
	return nil
}

// enter puts the suspended command into the job object and lets it run.
func (j *job) enter() (err error) {
	herr := j.cmd.Process.WithHandle(func(process uintptr) {
		if err = windows.AssignProcessToJobObject(j.object, windows.Handle(process)); err != nil {
			err = fmt.Errorf("enter job object: %w", err)
			return
		}
		if status, _, _ := ntResumeProcess.Call(process); status != 0 {
			err = fmt.Errorf("resume process: status %#x", uint32(status))
		}
	})
	return errors.Join(herr, err)
}

// watch ends the command at the first message that it has reached a limit.
func (j *job) watch() error {
	for {
		var message uint32
		var key, process uintptr // the process number comes where a pointer usually is
		if err := windows.GetQueuedCompletionStatus(windows.Handle(j.route.port), &message, &key, (**windows.Overlapped)(unsafe.Pointer(&process)), windows.INFINITE); err != nil {
			return err
		}
		switch message {
		case msgProcesses:
			j.exceed(fmt.Sprintf("%d processes", j.most.Processes))
		case msgMemory:
			j.exceed(centurion.Bytes(j.most.Memory) + " of memory")
		case msgReleased:
			return nil
		}
	}
}

func (j *job) exceed(limit string) {
	j.mu.Lock()
	j.over = limit
	j.mu.Unlock()
	j.kill()
}

// kill ends all processes of the job.
func (j *job) kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.object != 0 {
		_ = windows.TerminateJobObject(j.object, jobKilled) // it fails for none only
	}
}

// running reports whether the job has a process.
func (j *job) running() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := windows.QueryInformationJobObject(j.object, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&j.counts)), uint32(unsafe.Sizeof(j.counts)), nil)
	return err == nil && j.counts.active > 0
}

func (j *job) pid() int { return j.cmd.Process.Pid }

func (j *job) wait() int {
	_ = j.cmd.Wait() // the result is read from its state
	if code := j.cmd.ProcessState.ExitCode(); uint32(code) != jobKilled {
		return code
	}
	return -1
}

func (j *job) exceeded() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.over
}

// release ends what is left of the job.
func (j *job) release() {
	j.mu.Lock()
	_ = windows.CloseHandle(j.object)
	j.object = 0
	j.mu.Unlock()
	if port := windows.Handle(j.route.port); port != 0 {
		_ = windows.PostQueuedCompletionStatus(port, msgReleased, 0, nil)
		_ = j.group.Wait() // it ends with the message
		_ = windows.CloseHandle(port)
	}
}
