package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"gsd-mcp/internal/unit"
)

// ErrUnreachable is in the chain of every error that means: no daemon answers.
var ErrUnreachable = errors.New("station not reachable")

// An UnreachableError says which socket does not answer, why, and what to do.
type UnreachableError struct {
	Socket string
	Err    error
}

// Error is one sentence.
func (e *UnreachableError) Error() string {
	why := e.Err.Error()
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		why = "there is no such socket"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		why = "nobody listens there"
	case errors.Is(e.Err, fs.ErrPermission):
		why = "this account may not open it"
	case errors.Is(e.Err, syscall.EAGAIN):
		why = "the daemon accepts nobody"
	}
	return fmt.Sprintf("station not reachable at %s: %s", e.Socket, why)
}

// Is makes errors.Is(err, ErrUnreachable) hold.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

// Unwrap is the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint is the next step for the person who reads the error.
func (e *UnreachableError) Hint() string {
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return "the socket should have mode 0666 and its directory 0755; see: gsd-mcp doctor"
	case errors.Is(e.Err, syscall.EAGAIN):
		return "the daemon hangs: systemctl restart gsd-mcp, and read journalctl -u gsd-mcp"
	}
	return "start the daemon (systemctl start gsd-mcp, or gsd-mcp serve), name its socket (--socket or GSD_SOCKET), or try a simulated station (gsd-mcp --sim)"
}

// A RefusedError means that the door did not let the caller in, or sent it
// away: all sessions are in use, or the first line made no sense.
type RefusedError struct {
	Text string
	kind string
}

// What the door puts into the data of the line by which it sends a caller away.
const (
	doorFull    = "full"    // no place, or none for this caller
	doorHello   = "hello"   // a first line that makes no sense
	doorIdle    = "idle"    // no answer to a ping
	doorClosing = "closing" // the daemon is ending: come back
)

// Error says why.
func (e *RefusedError) Error() string { return "the station refused the connection: " + e.Text }

func dial(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, &UnreachableError{socket, err}
	}
	return c, nil
}

// refusal recognizes the line by which the door sends a caller away.
func (m message) refusal() *RefusedError {
	if string(m.id) != "null" || m.failure == nil {
		return nil
	}
	var e struct {
		Message string `json:"message"`
		Data    struct {
			Door string `json:"door"`
		} `json:"data"`
	}
	if json.Unmarshal(m.failure, &e) != nil || e.Data.Door == "" {
		return nil
	}
	return &RefusedError{unit.Printable(e.Message, 1000), e.Data.Door}
}
