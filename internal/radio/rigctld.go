package radio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// rigctldReply covers Hamlib's own read, set and read of a slow radio. A
	// silent one behind it takes Hamlib up to half a minute to report.
	rigctldReply   = 2 * time.Second
	rigctldLongest = 4096
	// rigctldStep is how far a radio behind the server may round a frequency:
	// what it is and how it rounds cannot be asked.
	rigctldStep = 10
)

// rigctld is a client of Hamlib's rigctld: a radio behind another program, or
// an SDR that imitates it. Each request is in extended mode, so that each
// answer repeats its command and ends with a verdict. "RPRT 0" alone is not
// believed: what was set is read back. It serves one path; it never sends T
// but for "T 0".
type rigctld struct {
	caps  Caps
	link  Link
	plain bool // the server does not want VFO names
	only  Path
	buf   []byte
}

// allowsRigctld reports whether a line may ever be sent.
func allowsRigctld(line string) bool {
	switch line {
	case `+\chk_vfo`, "+f", "+m", "+t", "+T 0":
		return true
	}
	if hz, ok := strings.CutPrefix(line, "+F "); ok {
		return isDigits(hz)
	}
	if mode, ok := strings.CutPrefix(line, "+M "); ok {
		name, found := strings.CutSuffix(mode, " 0")
		_, known := rigctldModes()[name]
		return found && known
	}
	return false
}

// rigctldModes are Hamlib's names of modes.
func rigctldModes() map[string]Mode {
	return map[string]Mode{"LSB": LSB, "USB": USB, "AM": AM, "CW": CW, "CWR": CWR, "RTTY": RTTY, "RTTYR": RTTYR, "FM": FM, "FMN": FMN,
		"WFM": WFM, "DSTAR": DV, "PKTLSB": LSBD, "PKTUSB": USBD, "PKTFM": FMD}
}

// A hamlibError is a verdict of the server that is not 0.
type hamlibError int

func (e hamlibError) Error() string {
	names := map[hamlibError]string{-1: "invalid parameter", -4: "not implemented", -5: "its radio does not answer", -6: "I/O error to its radio",
		-8: "protocol error", -9: "its radio refused", -11: "not available", -16: "invalid VFO", -17: "out of domain", -20: "its radio is off", -21: "limit exceeded"}
	name := names[e]
	if name == "" {
		name = "unknown error"
	}
	return fmt.Sprintf("rigctld says RPRT %d (%s)", int(e), name)
}

func (e hamlibError) Is(target error) bool {
	return target == ErrRefused && (e == -9 || e == -1 || e == -17 || e == -21)
}

// line reads one line.
func (r *rigctld) line(ctx context.Context) (string, error) {
	for {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			s := string(bytes.TrimRight(r.buf[:i], "\r\x00"))
			r.buf = append(r.buf[:0], r.buf[i+1:]...)
			return s, nil
		}
		if len(r.buf) > rigctldLongest {
			r.buf = r.buf[:0]
		}
		var chunk [512]byte
		n, err := r.link.Read(ctx, chunk[:])
		if err != nil {
			return "", err
		}
		r.buf = append(r.buf, chunk[:n]...)
	}
}

// ask sends a request and returns the answer's values by their keys. header is
// how the answer begins: lines before it belong to an older answer.
func (r *rigctld) ask(ctx context.Context, request, header string) (map[string]string, error) {
	if !allowsRigctld(request) {
		return nil, fmt.Errorf("request %q is not on the list of requests that may be sent", printable(request))
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, r.caps.Reply)
	defer cancel()
	if err := r.link.Write(ctx, []byte(request+"\n")); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	values := map[string]string{}
	begun := false
	for {
		s, err := r.line(ctx)
		if err != nil {
			if outer.Err() != nil {
				return nil, outer.Err()
			}
			if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("read: %w", err)
			}
			return nil, fmt.Errorf("%w to %q within %v: is it a rigctld, and does its radio answer?", ErrSilent, request, r.caps.Reply)
		}
		if !begun {
			if begun = strings.HasPrefix(s, header); !begun || header != "ChkVFO:" {
				continue
			}
		}
		if code, ok := strings.CutPrefix(s, "RPRT "); ok {
			n, err := strconv.Atoi(code)
			if err != nil {
				return nil, fmt.Errorf("answer %q is not a verdict", printable(s))
			}
			if n != 0 {
				return nil, hamlibError(n)
			}
			return values, nil
		}
		if key, value, ok := strings.Cut(s, ":"); ok && len(values) < 16 {
			values[key] = strings.TrimSpace(value)
		}
		if header == "ChkVFO:" { // the one answer without a verdict
			return values, nil
		}
	}
}

// begin makes sure that the server takes commands without VFO names: one that
// does not would swallow the next line as an argument.
func (r *rigctld) begin(ctx context.Context) error {
	if r.plain {
		return nil
	}
	v, err := r.ask(ctx, `+\chk_vfo`, "ChkVFO:")
	if err != nil {
		return err
	}
	if v["ChkVFO"] != "0" {
		return errors.New("this rigctld wants VFO names (it was started with --vfo): start it without")
	}
	r.plain = true
	return nil
}

func (r *rigctld) read(ctx context.Context) (t Tuning, err error) {
	if t.FrequencyHz, err = r.readHz(ctx); err != nil {
		return t, err
	}
	t.Mode, err = r.readMode(ctx)
	return t, err
}

func (r *rigctld) readHz(ctx context.Context) (int64, error) {
	v, err := r.ask(ctx, "+f", "get_freq:")
	if err != nil {
		return 0, err
	}
	whole, _, _ := strings.Cut(v["Frequency"], ".")
	if !isDigits(whole) || len(whole) > 12 {
		return 0, fmt.Errorf("frequency %q is no number", printable(v["Frequency"]))
	}
	return strconv.ParseInt(whole, 10, 64)
}

func (r *rigctld) readMode(ctx context.Context) (Mode, error) {
	v, err := r.ask(ctx, "+m", "get_mode:")
	return rigctldModes()[v["Mode"]], err
}

// transmitting asks whether the radio is keyed. A server that has no way to
// key its radio says that the question is not available.
func (r *rigctld) transmitting(ctx context.Context) (bool, error) {
	v, err := r.ask(ctx, "+t", "get_ptt:")
	var verdict hamlibError
	if errors.As(err, &verdict) && verdict == -11 {
		return false, nil
	}
	return v["PTT"] != "0", err
}

// Status reads the server's current VFO, which is the path that was prepared
// or tuned.
func (r *rigctld) Status(ctx context.Context) (st Status, err error) {
	defer func() { err = failure("rigctld", "read status", err) }()
	if err := r.begin(ctx); err != nil {
		return st, err
	}
	if st.Transmitting, err = r.transmitting(ctx); err != nil {
		return st, err
	}
	t, err := r.read(ctx)
	if r.only == Uplink {
		st.Uplink = t
	} else {
		st.Downlink = t
	}
	return st, err
}

// Tune sets the frequency and reads it back.
func (r *rigctld) Tune(ctx context.Context, p Path, hz int64) (int64, error) {
	got, err := r.tune(ctx, p, hz)
	return got, failure("rigctld", fmt.Sprintf("tune %s to %s", printable(string(p)), formatHz(hz)), err)
}

func (r *rigctld) tune(ctx context.Context, p Path, hz int64) (int64, error) {
	if _, err := vfoOf(p); err != nil {
		return 0, err
	}
	if err := r.caps.checkFrequency(hz); err != nil {
		return 0, err
	}
	if err := onePath(&r.only, p); err != nil {
		return 0, err
	}
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	if _, err := r.ask(ctx, "+F "+strconv.FormatInt(hz, 10), "set_freq:"); err != nil {
		return 0, err
	}
	got, err := r.readHz(ctx)
	if err == nil && !(got > hz-rigctldStep && got < hz+rigctldStep) {
		err = fmt.Errorf("reads %s: %w", formatHz(got), ErrMismatch)
	}
	return got, err
}

// SetMode sets the mode and reads it back.
func (r *rigctld) SetMode(ctx context.Context, p Path, m Mode) error {
	return failure("rigctld", fmt.Sprintf("set %s mode %s", printable(string(p)), printable(string(m))), r.setMode(ctx, p, m))
}

func (r *rigctld) setMode(ctx context.Context, p Path, m Mode) error {
	if _, err := vfoOf(p); err != nil {
		return err
	}
	if err := r.caps.checkMode(m); err != nil {
		return err
	}
	if err := onePath(&r.only, p); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for name, mode := range rigctldModes() {
		if mode != m {
			continue
		}
		if _, err := r.ask(ctx, "+M "+name+" 0", "set_mode:"); err != nil {
			return err
		}
	}
	got, err := r.readMode(ctx)
	if err == nil && got != m {
		err = fmt.Errorf("reads %q: %w", got, ErrMismatch)
	}
	return err
}

// Prepare sets the one path that is not zero.
func (r *rigctld) Prepare(ctx context.Context, down, up Tuning) error {
	return failure("rigctld", "prepare", r.prepare(ctx, down, up))
}

func (r *rigctld) prepare(ctx context.Context, down, up Tuning) error {
	if err := checkPair(r.caps, down, up); err != nil {
		return err
	}
	t, p, err := onlyOne(down, up)
	if err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	keyed, err := r.transmitting(ctx)
	if err != nil {
		return err
	}
	if keyed {
		return ErrTransmitting
	}
	r.only = p
	if t == (Tuning{}) {
		return nil
	}
	if _, err := r.tune(ctx, p, t.FrequencyHz); err != nil {
		return err
	}
	if t.Mode == "" {
		return nil
	}
	return r.setMode(ctx, p, t.Mode)
}

// Halt makes sure that the radio behind the server receives.
func (r *rigctld) Halt(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return failure("rigctld", "stop transmitting", err)
	}
	receive := func(ctx context.Context) error {
		_, err := r.ask(ctx, "+T 0", "set_ptt:")
		return err
	}
	return failure("rigctld", "stop transmitting", untilReceiving(ctx, r.transmitting, receive))
}

func rigctldModels() []Model {
	caps := Caps{
		Readback: true, StepHz: 1, Reply: rigctldReply,
		Receive: []Range{{10e3, 30e9}},
		Modes:   []Mode{LSB, USB, AM, CW, CWR, RTTY, RTTYR, FM, FMN, WFM, DV, LSBD, USBD, FMD},
	}
	return []Model{{
		Name: "hamlib-rigctld", Aliases: []string{"rigctld"}, Title: "A radio behind Hamlib's rigctld", Caps: caps,
		New: func(l Link) Radio { return &rigctld{caps: caps, link: l} },
	}}
}
