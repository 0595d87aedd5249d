package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"gsd-mcp/internal/event"
)

// probe finds out whether one record keeps the whole outbox back. A broker
// that takes a small harmless message in its place refuses the record: it is
// put aside, declared, and the rest goes on. One that takes nothing has another
// trouble, and nothing is put aside. The record gets one more chance after the
// first canary that passes: a broker that has just recovered takes both.
func (s *session) probe() error {
	for _, l := range s.p.lanes() {
		if l.fails < poisonAfter {
			continue
		}
		recs, err := l.j.Read(l.j.Cursor(), 1)
		if err != nil {
			return outboxError{err}
		}
		if len(recs) == 0 || recs[0].Seq != l.suspect {
			l.suspect, l.fails, l.accused = 0, 0, false
			continue
		}
		if err := s.say(s.p.topic("events/hub/canary"), false, s.p.canary()); err != nil {
			l.fails++
			l.accused = false
			return fmt.Errorf("%w: %w", errRefusesAll, err)
		}
		if !l.accused {
			l.accused = true
			continue
		}
		if s.p.poisoned >= maxPoisoned {
			s.p.degrade(reasonPayload, fmt.Sprintf("record %d of %s is refused too, after %d that were put aside in a row: nothing more is put aside until one is taken",
				l.suspect, l.name, s.p.poisoned))
			continue
		}
		r := recs[0]
		why := fmt.Sprintf("%d sessions in a row ended with it while the broker took another message", l.fails)
		if err := l.j.Quarantine(r, why); err != nil {
			return outboxError{err}
		}
		var e event.Event
		json.Unmarshal(r.Data, &e) // what cannot be read stays empty; the record itself is kept
		ctx, cancel := context.WithTimeout(context.Background(), s.p.c.AckTimeout)
		_, err = s.p.bus.Emit(ctx, event.About{Subject: "outbox/" + l.name}, event.OutboxQuarantined{
			StreamName: l.name, SourceName: e.Source, EpochName: e.Epoch, Sequence: fmt.Sprintf("%020d", r.Seq),
			EventID: e.ID, EventType: e.Type, Bytes: len(r.Data), Why: why})
		cancel()
		if err != nil {
			return outboxError{fmt.Errorf("declare the record that was put aside: %w", err)}
		}
		if err := l.j.Ack(r.Seq); err != nil {
			return outboxError{err}
		}
		s.p.log.Error("the broker refuses an event; it was put aside", "stream", l.name, "sequence", r.Seq, "bytes", len(r.Data))
		s.p.poisoned++
		l.sent, l.suspect, l.fails, l.accused = r.Seq, 0, 0, false
		s.window = s.p.c.Window
	}
	return nil
}

// canary is an event without a sequence number: it is part of no stream.
func (p *Publisher) canary() []byte {
	id := make([]byte, 16)
	rand.Read(id)
	b, _ := json.Marshal(map[string]any{ // strings and numbers: cannot fail
		"specversion": "1.0", "id": hex.EncodeToString(id), "source": "/gsd/" + p.c.Station + "/hub",
		"type": "gsd.hub.canary.v1", "time": p.now().UTC().Format(time.RFC3339), "simulated": p.bus.Simulated(),
	})
	return b
}
