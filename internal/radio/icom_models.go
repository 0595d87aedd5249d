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

// IC-9100: as the IC-9700, but 25 and 26 are refused, and whether it can say
// which band is selected is not known. Its 1A 07 is a satellite memory and no
// switch. 1C 03 is asked for and done without when refused.
func ic9100() icomSpec {
	return icomSpec{
		addr: 0x7C,
		caps: Caps{
			Readback: true, FullDuplex: true, Satellite: true, StepHz: 1,
			Receive: []Range{{144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}},
			Modes:   []Mode{LSB, USB, AM, CW, CWR, RTTY, RTTYR, FM, DV, LSBD, USBD, FMD},
			Reply:   civDeadline,
		},
		satellite: []byte{civFeature, 0x5A},
		dual:      true, filter: true, data: true, ptt: true, txHz: true,
	}
}

// IC-910H: satellite mode is 1A 07, mode frames carry no filter, and narrow FM
// is filter 2 of FM.
func ic910h() icomSpec {
	return icomSpec{
		addr: 0x60,
		caps: Caps{
			Readback: true, FullDuplex: true, Satellite: true, TuneWhileTX: true, StepHz: 1,
			Receive: []Range{{144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}},
			Modes:   []Mode{LSB, USB, CW, CWR, FM, FMN},
			Reply:   civDeadline,
		},
		satellite: []byte{civMore, 0x07},
		dual:      true, ptt: true, txHz: true,
	}
}

// IC-821H: satellite mode is switched at the front panel and is taken to be on
// for a pass with an uplink; MAIN and SUB then change their numbers. No
// transmit command, frequency data of four or five bytes. 440 MHz is where its
// short frequencies would become ambiguous.
func ic821h() icomSpec {
	return icomSpec{
		addr: 0x4C,
		caps: Caps{
			Readback: true, FullDuplex: true, Satellite: true, TuneWhileTX: true, StepHz: 10,
			Receive: []Range{{144e6, 148e6}, {430e6, 440e6}},
			Modes:   []Mode{LSB, USB, CW, FM},
			Reply:   civDeadline,
		},
		dual: true, swapped: true, short: true,
	}
}

// IC-7100: half duplex, VFO A and B with split; the other VFO is reached by
// selecting it.
func ic7100() icomSpec {
	s := ic705()
	s.addr, s.byVFO = 0x88, false
	return s
}

// IC-705: half duplex, VFO A and B with split, both reached by 25 and 26.
func ic705() icomSpec {
	return icomSpec{
		addr: 0xA4,
		caps: Caps{
			Readback: true, StepHz: 1,
			Receive: []Range{{30e3, 199_999_999}, {400e6, 470e6}},
			Modes:   []Mode{LSB, USB, AM, CW, CWR, RTTY, RTTYR, FM, WFM, DV, LSBD, USBD, FMD},
			Reply:   civDeadline,
		},
		byVFO: true, filter: true, data: true, ptt: true, txHz: true,
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
		row("icom-ic9100", "ic-9100", "Icom IC-9100", 19200, ic9100()),
		row("icom-ic910h", "ic-910h", "Icom IC-910H", 19200, ic910h()),
		row("icom-ic821h", "ic-821h", "Icom IC-821H", 9600, ic821h()),
		row("icom-ic7100", "ic-7100", "Icom IC-7100", 19200, ic7100()),
		row("icom-ic705", "ic-705", "Icom IC-705", 115200, ic705()),
	}
}
