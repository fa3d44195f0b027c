package confine

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"centurion/guard"
)

// Launcher is a confined thread of this process. What it starts is confined, and the rest of the process is not: Landlock, filters and
// capabilities belong to a thread, and a thread that is locked to its goroutine starts no other.
type Launcher struct {
	jobs  chan func()
	group guard.Group
}

// Launch makes a confined thread, with the network or without. The way is [Full] in a helper process that has called [Enter], else
// [Files]. It lasts as long as this process.
func (p Policy) Launch(way Way, network bool) (*Launcher, error) {
	l := &Launcher{jobs: make(chan func())}
	ready := make(chan error, 1)
	l.group.Go("confined thread", func() error {
		return onOwnThread(func() error {
			err := p.confineThread(way, network)
			ready <- err
			if err != nil {
				return nil
			}
			for job := range l.jobs {
				job()
			}
			return nil
		})
	})
	if err := <-ready; err != nil {
		close(l.jobs)
		return nil, errors.Join(err, l.group.Wait())
	}
	return l, nil
}

// onOwnThread runs f on a thread that ends with it. It is never the first thread of the process: the kernel takes that for the process
// when another one sends it a signal or looks into it.
func onOwnThread(f func() error) error {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		return f() // never unlocked, so that the thread ends with this goroutine
	}
	locked := make(chan struct{})
	var g guard.Group
	g.Go("own thread", func() error {
		runtime.LockOSThread() // another one: the first is taken
		close(locked)
		return f()
	})
	<-locked
	runtime.UnlockOSThread()
	return g.Wait()
}

// Do runs f on the confined thread. Calls run one after the other.
func (l *Launcher) Do(f func() error) error {
	done := make(chan error, 1)
	l.jobs <- func() { done <- f() }
	return <-done
}

// confineThread confines the calling thread for good.
func (p Policy) confineThread(way Way, network bool) error {
	if way == Full && !network {
		if err := leaveNetwork(); err != nil {
			return err
		}
	}
	version := Landlock()
	if version == 0 && way == Files {
		return errors.New("the kernel has no Landlock")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if version > 0 {
		rules, err := p.rules(version, way == Full, network)
		if err != nil {
			return err
		}
		defer rules.close()
		if err := rules.restrict(); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return filterCalls()
}

// leaveNetwork moves the calling thread to a network of its own, with nothing but a loopback device.
func leaveNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("leave network: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	return nil
}

// dropCapabilities takes every capability from the calling thread, also those that a program of root would get back.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// Without the right to drop it, no_new_privs keeps a program from getting it, unless this is root.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) && unix.Geteuid() == 0 {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// SealDescriptors keeps the descriptors that this process inherited beside its three streams from its children.
func SealDescriptors() error {
	return unix.CloseRange(3, ^uint(0)>>1&0x7fffffff, unix.CLOSE_RANGE_CLOEXEC)
}
