package rotator_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// Whatever the wire does, a position that is returned is where the mount is.
func TestNoFaultOfTheWireMakesAWrongPosition(t *testing.T) {
	faults := []sim.RotatorFault{
		sim.RotatorMute, sim.RotatorGarbage, sim.RotatorNoiseLine, sim.RotatorStrayByte, sim.RotatorFrameGap,
		sim.RotatorStaleBurst, sim.RotatorReject, sim.RotatorBootDeaf,
	}
	for _, d := range rotator.Drivers() {
		if !d.Caps.Feedback {
			continue
		}
		for _, fault := range faults {
			withSim(t, d.Name, func(ctx context.Context, b *bench) {
				b.ctl.Mount().SetTarget(123.4, 45.6)
				time.Sleep(time.Minute)
				b.ctl.SetFault(fault)
				good := 0
				for range 12 {
					at, err := b.Position(ctx)
					switch {
					case err == nil:
						good++
						if math.Abs(at.AzDeg-123.4) > d.Caps.ResolutionDeg+0.01 || !d.Caps.AzimuthOnly && math.Abs(at.ElDeg-45.6) > d.Caps.ResolutionDeg+0.01 {
							t.Errorf("%s, %s: read %v, the mount is at 123.4/45.6", d.Name, fault, at)
						}
					case !errors.Is(err, rotator.ErrBadReply) && !errors.Is(err, rotator.ErrNoReply) && !errors.Is(err, rotator.ErrRejected):
						t.Errorf("%s, %s: error %v is none of the package's", d.Name, fault, err)
					}
				}
				if slices.Contains([]sim.RotatorFault{sim.RotatorMute, sim.RotatorGarbage}, fault) && good > 0 {
					t.Errorf("%s, %s: %d positions out of nothing", d.Name, fault, good)
				}
				b.ctl.SetFault(sim.RotatorHealthy)
				time.Sleep(time.Minute) // what is still under way arrives
				if _, err := b.Position(ctx); err != nil {
					t.Errorf("%s, %s: not well again after the fault: %v", d.Name, fault, err)
				}
			})
		}
	}
}

func TestDamagedAnswersNeverLeaveTheRange(t *testing.T) {
	for _, d := range rotator.Drivers() {
		if !d.Caps.Feedback {
			continue
		}
		withSim(t, d.Name, func(ctx context.Context, b *bench) {
			b.ctl.SetFault(sim.RotatorBitFlip)
			for range 200 {
				if at, err := b.Position(ctx); err == nil && !(-360 <= at.AzDeg && at.AzDeg <= 540 && -20 <= at.ElDeg && at.ElDeg <= 210) {
					t.Errorf("%s: read %v", d.Name, at)
				}
			}
		})
	}
}

// What goes out means what was asked for, to half of the wire's resolution.
func TestASetMeansWhatWasAsked(t *testing.T) {
	for _, d := range rotator.Drivers() {
		t.Run(d.Name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				to := unit.AzEl{
					AzDeg: rapid.Float64Range(max(0, d.Caps.AzMinDeg), min(450, d.Caps.AzMaxDeg)).Draw(rt, "az"),
					ElDeg: rapid.Float64Range(0, 180).Draw(rt, "el"),
				}
				var got unit.AzEl
				var err error
				synctest.Test(t, func(t *testing.T) {
					ctl, simErr := sim.NewController(d.Name, sim.NewMount(clock.System(), sim.DefaultMount()))
					if simErr != nil {
						t.Fatal(simErr)
					}
					link, device := sim.Wire()
					ended := make(chan error, 1)
					go func() { ended <- ctl.Run(context.Background(), device) }()
					err = d.New(link).Point(t.Context(), to)
					synctest.Wait()
					got = ctl.Mount().Target()
					link.Unplug()
					<-ended
				})
				if err != nil {
					rt.Fatal(err)
				}
				want := to
				switch {
				case d.Caps.AzimuthOnly && d.Caps.AzMaxDeg == 360: // 360 goes out as 000
					got.AzDeg = unit.Nearest(got.AzDeg, want.AzDeg)
					fallthrough
				case d.Caps.AzimuthOnly:
					want.ElDeg = got.ElDeg
				}
				if half := d.Caps.ResolutionDeg/2 + 1e-6; math.Abs(got.AzDeg-want.AzDeg) > half || math.Abs(got.ElDeg-want.ElDeg) > half {
					rt.Fatalf("asked for %v/%v, the controller goes to %v/%v", to.AzDeg, to.ElDeg, got.AzDeg, got.ElDeg)
				}
			})
		})
	}
}

func TestARefusedMoveIsAnError(t *testing.T) {
	for _, name := range []string{"gs232a", "gs232b", "gs232az", "k3ng", "rc2800", "rc2800early", "rotctld"} {
		withSim(t, name, func(ctx context.Context, b *bench) {
			b.ctl.SetFault(sim.RotatorReject)
			if err := b.Point(ctx, unit.AzEl{AzDeg: 100, ElDeg: 40}); !errors.Is(err, rotator.ErrRejected) {
				t.Errorf("%s: %v, want ErrRejected", name, err)
			}
		})
	}
}

func TestAMoveThatK3NGDoesNotAcknowledgeIsAnError(t *testing.T) {
	withSim(t, "k3ng", func(ctx context.Context, b *bench) {
		b.ctl.SetFault(sim.RotatorMute)
		if err := b.Point(ctx, unit.AzEl{AzDeg: 100, ElDeg: 40}); !errors.Is(err, rotator.ErrNoReply) {
			t.Errorf("%v, want ErrNoReply", err)
		}
	})
}

// K3NG completes a cut W with the digits of the one before, and moves. The stop
// that follows must be a command of its own.
func TestStopAfterACutMoveStopsAnyController(t *testing.T) {
	for _, d := range rotator.Drivers() {
		for keep := range 13 {
			synctest.Test(t, func(t *testing.T) {
				ctl, err := sim.NewController(d.Name, sim.NewMount(clock.System(), sim.DefaultMount()))
				if err != nil {
					t.Fatal(err)
				}
				link, device := sim.Wire()
				ended := make(chan error, 1)
				go func() { ended <- ctl.Run(context.Background(), device) }()
				cut := &cutLink{link, -1}
				r := d.New(cut)
				if err := r.Point(t.Context(), unit.AzEl{AzDeg: 222, ElDeg: 77}); err != nil {
					t.Fatalf("%s: %v", d.Name, err)
				}
				time.Sleep(time.Second)
				cut.keep = keep
				if err := r.Point(t.Context(), unit.AzEl{AzDeg: 111, ElDeg: 66}); err == nil {
					t.Errorf("%s: a write cut after %d bytes is no error", d.Name, keep)
				}
				if err := r.Halt(t.Context()); err != nil {
					t.Errorf("%s: %v", d.Name, err)
				}
				time.Sleep(2 * time.Second)
				if ctl.Mount().Moving() {
					t.Errorf("%s: a stop after a move cut after %d bytes did not stop it: % x", d.Name, keep, link.SentBytes())
				}
				link.Unplug()
				<-ended
			})
		}
	}
}

func TestPollingMovesNoController(t *testing.T) {
	for _, d := range rotator.Drivers() {
		withSim(t, d.Name, func(ctx context.Context, b *bench) {
			b.ctl.Mount().SetTarget(8, 6)
			time.Sleep(time.Minute)
			for range 10 {
				b.Position(ctx)
			}
			time.Sleep(time.Minute)
			if at := b.truth(); at.AzDeg != 8 || at.ElDeg != 6 {
				t.Errorf("%s: ten queries moved the mount from 8/6 to %v", d.Name, at)
			}
		})
	}
}

func TestStatusRegistersSayWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		driver string
		fault  sim.RotatorFault
		move   bool
		want   string
		moving bool
	}{
		{"easycomm3", sim.RotatorHealthy, false, "", false},
		{"easycomm3", sim.RotatorHealthy, true, "", true},
		{"easycomm3", sim.RotatorJam, true, "jam", false},
		{"satnogs", sim.RotatorHealthy, true, "", true},
		{"satnogs", sim.RotatorJam, false, "motor", false},
	} {
		withSim(t, tt.driver, func(ctx context.Context, b *bench) {
			b.ctl.SetFault(tt.fault)
			if tt.move {
				b.ctl.Mount().SetTarget(90, 40)
			}
			s, err := b.Rotator.(rotator.StatusReader).Status(ctx)
			if err != nil || s.Fault != tt.want || s.Moving != tt.moving || !strings.HasPrefix(s.Raw, "GS") {
				t.Errorf("%s, fault %q, moving %v: %+v, %v; want fault %q", tt.driver, tt.fault, tt.move, s, err, tt.want)
			}
		})
	}
	d := lookup(t, "satnogs")
	for code, want := range map[string]string{"12": "over temperature", "16": "watchdog", "99": "unknown error 99"} {
		on(t, d, func(request string) string { return strings.TrimSpace(request) + code + "\n" }, func(ctx context.Context, r rotator.Rotator) {
			if s, err := r.(rotator.StatusReader).Status(ctx); err != nil || s.Fault != want {
				t.Errorf("error register %s: %+v, %v; want %q", code, s, err, want)
			}
		})
	}
}

// The scale of a reply follows from its first byte, and a unit whose hundredths
// do not look as described is not moved.
func TestMD01FineMovesOnlyAUnitWhoseScaleItHasSeen(t *testing.T) {
	for name, reply := range map[string]string{
		"tenths":              "W\x04\x08\x03\x04\n\x04\x00\x05\x06\n ",
		"four decimal digits": "X\x04\x08\x03\x04\x64\x04\x00\x05\x06\x64 ",
	} {
		sent := on(t, lookup(t, "md01fine"), func(string) string { return reply }, func(ctx context.Context, r rotator.Rotator) {
			if err := r.Point(ctx, unit.AzEl{AzDeg: 10, ElDeg: 20}); !errors.Is(err, rotator.ErrBadReply) {
				t.Errorf("%s: %v, want ErrBadReply", name, err)
			}
		})
		if strings.Contains(sent, "\x5f") {
			t.Errorf("%s: moved: % x", name, sent)
		}
	}
}

func TestSetOnlyControllersSaySo(t *testing.T) {
	for _, name := range []string{"easycomm1", "dcu1"} {
		sent := on(t, lookup(t, name), silent, func(ctx context.Context, r rotator.Rotator) {
			if _, err := r.Position(ctx); !errors.Is(err, rotator.ErrNoFeedback) || !strings.Contains(err.Error(), "estimate") {
				t.Errorf("%s: %v, want ErrNoFeedback", name, err)
			}
		})
		if sent != "" {
			t.Errorf("%s: asked %q of a controller that cannot answer", name, sent)
		}
	}
}
