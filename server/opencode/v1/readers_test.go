package v1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// R14; issue "Real OpenCode clients", hangs: readers that never read hold no one up and take no memory; every other reader gets all facts.
func TestReadersThatNeverRead(t *testing.T) {
	const deaf, reading, rounds, apart, limit = 20, 20, 1000, 50, 64 << 20
	x := newRig(t)
	srv := httptest.NewServer(x.project.Handler()) // the rig's looks at each event
	defer srv.Close()
	for range deaf {
		c, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096) // what the kernel keeps for it is no part of this
		if _, err := io.WriteString(c, "GET /event HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	var ready, done sync.WaitGroup
	caught, left := make(chan struct{}, reading*rounds/apart), make(chan struct{}, reading)
	for range reading {
		resp, err := http.Get(srv.URL + "/event")
		if err != nil {
			t.Fatal(err)
		}
		ready.Add(1)
		done.Go(func() {
			defer func() { left <- struct{}{} }()
			defer resp.Body.Close()
			facts, lines := 0, bufio.NewReader(resp.Body)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Errorf("a stream ended after %d facts: %v", facts, err)
					return
				}
				switch {
				case strings.Contains(line, `"server.connected"`):
					ready.Done()
				case !strings.Contains(line, `"tui.prompt.append"`):
				case !strings.Contains(line, fmt.Sprintf(`"text":"%d"`, facts)):
					t.Errorf("fact %d is told as %s", facts, line)
					return
				default:
					if facts++; facts%apart == 0 {
						caught <- struct{}{}
					}
					if facts == rounds {
						return
					}
				}
			}
		})
	}
	ready.Wait()
	before, most := heap(), uint64(0)
	delta := deltaEvent{x.root.ID, "msg_1", "prt_1", "text", strings.Repeat("x", 8<<10)}
	for i := range rounds {
		x.project.send("message.part.delta", delta)
		x.project.send("tui.prompt.append", map[string]string{"text": fmt.Sprint(i)})
		for n := 0; i%apart == apart-1 && n < reading; n++ { // what waits for those that read is no part of this
			select {
			case <-caught:
			case <-left:
			}
		}
		if i%250 == 249 {
			most = max(most, heap())
		}
	}
	done.Wait()
	if most > before+limit {
		t.Errorf("%d MB more are in use", (most-before)>>20)
	}
}

// heap is the memory that is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
