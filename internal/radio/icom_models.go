package radio

import (
	"fmt"
	"time"
)

// icomModes pairs Icom's mode numbers with names.
func icomModeTable() []struct {
	code byte
	mode Mode
	data Mode // with data mode on; "" where there is none
} {
	return []struct {
		code byte
		mode Mode
		data Mode
	}{
		{0x00, LSB, LSBD}, {0x01, USB, USBD}, {0x02, AM, ""}, {0x03, CW, ""}, {0x04, RTTY, ""},
		{0x05, FM, FMD}, {0x06, WFM, ""}, {0x07, CWR, ""}, {0x08, RTTYR, ""}, {0x17, DV, ""}, {0x22, DD, ""},
	}
}

// icomMode names a mode number.
func icomMode(code byte, data bool) (Mode, bool) {
	for _, e := range icomModeTable() {
		if e.code == code {
			if data && e.data != "" {
				return e.data, true
			}
			return e.mode, true
		}
	}
	return "", false
}

// icomModeCode gives the mode number and the data-mode switch.
func icomModeCode(m Mode) (code, data byte, err error) {
	if m == FMN { // FM with the narrow filter
		return 0x05, off, nil
	}
	for _, e := range icomModeTable() {
		switch {
		case m == "":
		case e.mode == m:
			return e.code, off, nil
		case e.data == m:
			return e.code, on, nil
		}
	}
	return 0, 0, fmt.Errorf("mode %q has no CI-V number", printable(string(m)))
}

// IC-9700: satellite mode puts the downlink on MAIN and the uplink on SUB; the
// two never share a band; 25 and 26 act inside the selected band, and 26 is
// refused in satellite mode. USB port at 115200 baud.
func ic9700() icomSpec {
	return icomSpec{
		addr: 0xA2,
		caps: Caps{
			Readback: true, FullDuplex: true, Satellite: true, TuneWhileTX: true, StepHz: 1,
			Receive: []Range{{144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}},
			Modes:   []Mode{LSB, USB, AM, CW, CWR, RTTY, RTTYR, FM, DV, DD, LSBD, USBD, FMD},
			Reply:   civDeadline,
		},
		satellite: []byte{civFeature, 0x5A},
		dual:      true, whichBand: true, byVFO: true, filter: true, data: true, ptt: true, txHz: true,
	}
}

func icomModels() []Model {
	row := func(name, short, title string, baud int, s icomSpec) Model {
		if s.caps.MinInterval == 0 && baud <= 19200 {
			s.caps.MinInterval = 50 * time.Millisecond
		}
		return Model{
			Name: name, Aliases: []string{short}, Title: title, Baud: baud, Caps: s.caps,
			New: func(l Link) Radio { return newIcom(short, s, l) },
		}
	}
	return []Model{
		row("icom-ic9700", "ic-9700", "Icom IC-9700", 115200, ic9700()),
	}
}
