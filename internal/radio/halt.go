package radio

import (
	"context"
	"errors"
	"fmt"
)

// haltTries is how often a radio that transmits is told to receive.
const haltTries = 3

// untilReceiving is Halt: it asks whether the radio transmits, and tells one
// that does, or that does not say, to receive until it says that it does.
func untilReceiving(ctx context.Context, keyed func(context.Context) (bool, error), receive func(context.Context) error) error {
	on, err := keyed(ctx)
	for range haltTries {
		if err == nil && !on {
			return nil
		}
		sendErr := receive(ctx)
		if on, err = keyed(ctx); err != nil {
			err = errors.Join(sendErr, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err == nil && on {
		err = errors.New("it still transmits: is somebody holding the microphone's key? switch it off by hand")
	}
	return err
}

// onlyOne picks the one path of a pass for a radio that serves one at a time.
func onlyOne(down, up Tuning) (Tuning, Path, error) {
	switch {
	case up == (Tuning{}):
		return down, Downlink, nil
	case down == (Tuning{}):
		return up, Uplink, nil
	}
	return Tuning{}, "", fmt.Errorf("this radio serves one path at a time: prepare the downlink or the uplink, and use a second radio for the other: %w", ErrUnsupported)
}

// onePath holds a radio with one usable path to the one it began with.
func onePath(only *Path, p Path) error {
	if *only == "" {
		*only = p
	}
	if *only != p {
		return fmt.Errorf("this radio serves one path at a time and has the %s: use a second radio for the %s: %w", *only, p, ErrUnsupported)
	}
	return nil
}
