package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"gsd-mcp/internal/door"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/rotctl"
)

// rotctlRetry is how long to wait before a busy port is tried again.
const rotctlRetry = 10 * time.Second

// serveRotctl answers programs that speak Hamlib's rotctld protocol until ctx
// ends, where [rotctl] says so. A port that another program has is no reason
// not to run the station: health tells, and it is tried again.
func (h *house) serveRotctl(ctx context.Context) {
	c := h.cfg.Rotctl
	if c.Listen == "" {
		return
	}
	o := rotctl.Options{Station: h.station, Info: "gsd-mcp " + version, Identify: h.rotctlWho, Log: func(msg string, kv ...any) { h.log.Warn(msg, kv...) }}
	if d, err := rotator.Lookup(h.cfg.Rotator.Driver); err == nil {
		o.Info += ", " + d.Title
		o.AzimuthOnly = d.Caps.AzimuthOnly
	}
	s := rotctl.New(o)
	for ctx.Err() == nil {
		err := h.serveRotctlOnce(ctx, s)
		if ctx.Err() != nil {
			return
		}
		h.mu.Lock()
		was := h.rotctlErr
		h.rotctlErr = err
		h.mu.Unlock()
		if was == nil || was.Error() != err.Error() {
			h.log.Error("rotctl", "listen", c.Listen, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rotctlRetry):
		}
	}
}

func (h *house) serveRotctlOnce(ctx context.Context, s *rotctl.Server) error {
	c := h.cfg.Rotctl
	var l net.Listener
	var err error
	if c.Unix() {
		l, err = door.Listen(c.Listen)
	} else {
		if _, err = door.PeerNamed(c.Principal); err != nil {
			return fmt.Errorf("[rotctl] principal: %w", err)
		}
		l, err = net.Listen("tcp", c.Listen)
	}
	if err != nil {
		return fmt.Errorf("[rotctl] listen: %w", err)
	}
	h.mu.Lock()
	h.rotctlErr = nil
	h.mu.Unlock()
	h.log.Info("rotctl", "listen", c.Listen, "principal", c.Principal)
	return s.Serve(ctx, l)
}

// rotctlWho is who is at the other end: what the kernel says of a Unix socket,
// and the configured account over TCP.
func (h *house) rotctlWho(c net.Conn) (rotctl.Who, error) {
	var peer door.Peer
	var err error
	if u, ok := c.(*net.UnixConn); ok {
		peer, err = door.PeerOf(u)
	} else {
		peer, err = door.PeerNamed(h.cfg.Rotctl.Principal)
	}
	if err != nil {
		return nil, err
	}
	return func() rotctl.Peer {
		p := h.rights.Load()
		if p == nil { // nobody has opened the door
			return rotctl.Peer{}
		}
		return rotctl.Peer{Caller: p.Caller(peer), MayStop: p.MayStop(peer)}
	}, nil
}

// rotctlFindings tells that nobody can reach the server.
func (h *house) rotctlFindings() []health.Finding {
	h.mu.Lock()
	err := h.rotctlErr
	h.mu.Unlock()
	if err == nil {
		return nil
	}
	return []health.Finding{{Code: "ROTCTL_NOT_LISTENING", Severity: health.Warning, Title: "rotctl clients cannot connect", Cause: err.Error(),
		NextStep: "end what listens there (a rotctld of Hamlib must not run beside the station), or correct [rotctl] in station.toml"}}
}
