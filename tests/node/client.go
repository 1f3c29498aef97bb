package node

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Hints are what a client's environment asks for.
type Hints struct {
	Priority string
	Name     string
	Bare     bool     // without the interposer
	Env      []string // added last
	Wrapper  []string // a command that runs the client, such as unshare
}

// Client is a scripted GPU program; see tests/integration/client for its
// commands.
type Client struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	done    chan struct{}
}

// Client starts a scripted client. It is killed when the test ends.
func (n *Node) Client(h Hints) *Client {
	n.t.Helper()
	args := append(append([]string{}, h.Wrapper...), n.client())
	c := &Client{t: n.t, cmd: exec.Command(args[0], args[1:]...), answers: make(chan string, 16), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), n.ClientEnv(h)...)
	c.cmd.Stderr = os.Stderr
	// A group of its own, so that what the client forked goes with it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		n.t.Fatalf("start client: %v", err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.answers <- lines.Text()
		}
		close(c.answers)
	}()
	n.t.Cleanup(c.Kill)
	return c
}

// ClientEnv is the environment of a program on this node, as heddle run would
// set it.
func (n *Node) ClientEnv(h Hints) []string {
	env := append(n.DeviceEnv(), "HEDDLE_SOCKET="+n.attachDir()+"/attach.sock",
		"HEDDLE_PRIORITY="+h.Priority, "HEDDLE_NAME="+h.Name)
	if h.Bare {
		env = append(env, "LD_LIBRARY_PATH="+n.opts.Driver)
	} else {
		lib := n.Interposer()
		dir := lib[:strings.LastIndexByte(lib, '/')]
		env = append(env, "LD_LIBRARY_PATH="+dir+":"+n.opts.Driver, "LD_PRELOAD="+lib)
	}
	return append(env, h.Env...)
}

// PID is the client's process.
func (c *Client) PID() int { return c.cmd.Process.Pid }

// Signal sends a signal to the client.
func (c *Client) Signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatalf("signal client %d: %v", c.PID(), err)
	}
}

// Send gives a command without waiting for its answer.
func (c *Client) Send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatalf("command %q: %v", fmt.Sprintf(format, args...), err)
	}
}

// Answer waits for the next answer line, at most Bound.
func (c *Client) Answer() string {
	c.t.Helper()
	answer, ok := c.AnswerWithin(Bound)
	if !ok {
		c.t.Fatalf("client %d gave no answer within %v", c.PID(), Bound)
	}
	return answer
}

// AnswerWithin waits for the next answer line; false if none came in time or
// the client ended.
func (c *Client) AnswerWithin(bound time.Duration) (string, bool) {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case answer, ok := <-c.answers:
		return answer, ok
	case <-timer.C:
		return "", false
	}
}

// Do gives a command that must be answered with ok, and returns the words
// behind it.
func (c *Client) Do(format string, args ...any) []string {
	c.t.Helper()
	c.Send(format, args...)
	answer := c.Answer()
	words := strings.Fields(answer)
	if len(words) == 0 || words[0] != "ok" {
		c.t.Fatalf("client %d: %s: %s", c.PID(), fmt.Sprintf(format, args...), answer)
	}
	return words[1:]
}

// Number is Do for a command that answers one number.
func (c *Client) Number(format string, args ...any) uint64 {
	c.t.Helper()
	words := c.Do(format, args...)
	if len(words) == 0 {
		c.t.Fatalf("client %d: %s: no number", c.PID(), fmt.Sprintf(format, args...))
	}
	n, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// Open does what every program does first: cuInit and a primary context.
func (c *Client) Open(device int) *Client {
	c.t.Helper()
	c.Do("init")
	c.Do("device %d", device)
	return c
}

// Kill ends the client without warning and waits for its end; twice is fine.
func (c *Client) Kill() {
	select {
	case <-c.done:
		return
	default:
	}
	_ = syscall.Kill(-c.PID(), syscall.SIGKILL) // it may have ended by itself
	c.wait()
}

// Exit ends the client by its own exit and returns the exit code.
func (c *Client) Exit(code int) int {
	c.t.Helper()
	c.Send("exit %d", code)
	c.wait()
	return c.cmd.ProcessState.ExitCode()
}

func (c *Client) wait() {
	for range c.answers { // Wait closes the pipe only after it was read
	}
	_ = c.cmd.Wait() // killed: the state says so
	close(c.done)
}
