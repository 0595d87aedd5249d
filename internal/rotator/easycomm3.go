package rotator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// EasyComm III is EasyComm II with registers for status and errors (source: the
// EasyComm III proposal; Hamlib model 204). Its velocity commands are not used:
// a lost stop would leave them running.
func easycomm3Driver() Driver {
	d := easycomm2Driver()
	d.Name, d.Title, d.Hamlib = "easycomm3", "EasyComm III", 204
	d.Caps.Status = true
	d.Allowed += "G"
	d.New = func(l Link) Rotator { return &easycomm3{easycomm2{easycomm{newWire(d, l), ""}}, proposalErrors} }
	return d
}

// easycomm3 has status registers; what an error number means depends on the
// dialect.
type easycomm3 struct {
	easycomm2
	errorText func(n int) string
}

// proposalErrors reads the error register of the proposal: bits.
func proposalErrors(n int) string {
	var faults []string
	for bit, text := range []string{"sensor", "jam", "homing"} {
		if n>>bit&1 == 1 {
			faults = append(faults, text)
		}
	}
	if rest := n &^ 7; rest != 0 {
		faults = append(faults, fmt.Sprintf("unknown bits %d", rest))
	}
	return strings.Join(faults, ", ")
}

// Status reads the status register (bits: 1 idle, 2 moving, 4 pointing, 8
// error) and the error register, each as one line. What follows the line end in
// Hamlib's own query, a semicolon, makes SatNOGS firmware ignore the next line,
// which may be a stop; it is not sent.
func (e *easycomm3) Status(ctx context.Context) (Status, error) {
	status, err := e.register(ctx, "GS")
	if err != nil {
		return Status{}, fmt.Errorf("%s: read status: %w", e.name, err)
	}
	code, err := e.register(ctx, "GE")
	if err != nil {
		return Status{}, fmt.Errorf("%s: read error register: %w", e.name, err)
	}
	s := Status{Moving: status&(2|4) != 0, Fault: e.errorText(code), Raw: fmt.Sprintf("GS%d GE%d", status, code)}
	if status&8 != 0 && s.Fault == "" {
		s.Fault = "the status says error, the error register does not say which"
	}
	return s, nil
}

// register asks for one numeric register.
func (e *easycomm3) register(ctx context.Context, key string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, e.caps.Reply)
	defer cancel()
	n, err := func() (int, error) {
		if e.unsure {
			if err := e.silence(ctx); err != nil {
				return 0, err
			}
		}
		if err := e.send(ctx, key+"\n"); err != nil {
			return 0, err
		}
		for {
			line, err := e.line(ctx, "\r\n")
			if err != nil {
				return 0, err
			}
			if strings.HasPrefix(line, "AL") {
				continue
			}
			digits, ok := strings.CutPrefix(strings.TrimRight(line, " "), key)
			n, err := strconv.ParseUint(digits, 10, 8)
			if !ok || err != nil {
				return 0, badReply(line, "want "+key+" and a number up to 255")
			}
			return int(n), nil
		}
	}()
	e.count(err)
	if err != nil {
		e.unsure = true
		return 0, e.timedOut(err)
	}
	return n, nil
}
