package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// oobBytes is room for the one descriptor that a message may bring and a few more: those are
// received so that they can be closed and the sender be named a liar. What does not fit, the OS
// kernel closes, and says so.
const oobBytes = 64

// ErrCut is the error of a message whose sender's end came before the message's.
var ErrCut = errdefs.Errorf(errdefs.Corrupt, "connection ended inside a message")

// Conn speaks the attach protocol over a unix stream socket. One goroutine may read while another
// writes. Deadlines are set on the embedded connection.
type Conn struct {
	*net.UnixConn
	in  [abi.MsgMax]byte
	oob [oobBytes]byte
	out []byte
}

// NewConn takes over c.
func NewConn(c *net.UnixConn) *Conn { return &Conn{UnixConn: c} }

// WriteMessage sends m with the descriptors of files, which stay the caller's.
func (c *Conn) WriteMessage(m Message, files ...*os.File) error {
	if least, most := m.files(); len(files) < least || len(files) > most {
		return errdefs.Errorf(errdefs.Invalid, "send %T with %d descriptors", m, len(files))
	}
	c.out = Encode(c.out[:0], m)
	var rights []byte
	if len(files) != 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	// The descriptors go with the first byte; a partial write sends the rest without them.
	n, _, err := c.WriteMsgUnix(c.out, rights, nil)
	if err == nil && n < len(c.out) {
		_, err = c.Write(c.out[n:])
	}
	if err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

// ReadMessage waits for the next message that this version knows and returns it with its
// descriptors, which are then the caller's to close. At the orderly end of the connection the
// error is io.EOF. An error of kind Corrupt means that the peer broke the protocol; no descriptor
// is left open then.
func (c *Conn) ReadMessage() (Message, []*os.File, error) {
	for {
		m, files, err := c.readOne()
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		if m != nil {
			return m, files, nil
		}
		closeAll(files) // of a later version: whatever it brought is not for us
	}
}

// readOne reads exactly one message. It asks for the header alone first: a read that reached into
// the next message could not tell to which of the two a descriptor belongs.
func (c *Conn) readOne() (Message, []*os.File, error) {
	files, err := c.fill(c.in[:abi.SizeofMsgHeader], true)
	if err != nil {
		return nil, files, err
	}
	_, size, err := header(c.in[:abi.SizeofMsgHeader])
	if err != nil {
		return nil, files, err
	}
	more, err := c.fill(c.in[abi.SizeofMsgHeader:size], false)
	files = append(files, more...)
	if err != nil {
		return nil, files, err
	}
	m, err := Decode(c.in[:size])
	if err != nil || m == nil {
		return m, files, err
	}
	if least, most := m.files(); len(files) < least || len(files) > most {
		return nil, files, errdefs.Errorf(errdefs.Corrupt, "%T with %d descriptors", m, len(files))
	}
	return m, files, nil
}

// fill reads until buf is full. The files that it returns beside an error are open as well.
// Descriptors belong to the first byte of a message. Any later one ends the reading at once: a
// sender of many small pieces with some descriptors each must not fill up our table.
func (c *Conn) fill(buf []byte, first bool) ([]*os.File, error) {
	var files []*os.File
	for got := 0; got < len(buf); {
		// The package net asks for close-on-exec descriptors (MSG_CMSG_CLOEXEC).
		n, oobn, flags, _, err := c.ReadMsgUnix(buf[got:], c.oob[:])
		received, rightsErr := rights(c.oob[:oobn])
		files = append(files, received...)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return files, fmt.Errorf("receive: %w", err)
		case rightsErr != nil:
			return files, rightsErr
		case flags&syscall.MSG_CTRUNC != 0:
			return files, errdefs.Errorf(errdefs.Corrupt, "more descriptors in one message than fit")
		case len(received) != 0 && (!first || got != 0):
			return files, errdefs.Errorf(errdefs.Corrupt, "descriptor in the middle of a message")
		case n == 0 && first && got == 0:
			return files, io.EOF
		case n == 0:
			return files, ErrCut
		}
		got += n
	}
	return files, nil
}

// rights takes the descriptors out of the control messages.
func rights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, errdefs.Errorf(errdefs.Corrupt, "control message: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue // credentials and the like: nothing to close, nothing of interest
		}
		for _, fd := range fds {
			f, fdErr := memory(fd)
			if fdErr != nil {
				err = fdErr
				continue
			}
			files = append(files, f)
		}
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// memory takes over a descriptor that is a segment, and closes any other. It looks before os.NewFile
// does anything: that hands non-blocking descriptors to the poller of the whole process, and one
// whose poll never returns (a file of FUSE) would stop every connection of heddled.
func memory(fd int) (*os.File, error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil {
		_ = unix.Close(fd)
		return nil, errdefs.Errorf(errdefs.Corrupt, "descriptor is not a memfd: %w", err)
	}
	return os.NewFile(uintptr(fd), "received"), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
