package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Subscribe tells of changes of a resource: each value means "read it again",
// and changes that come faster than they are looked at are one. The channel is
// closed when ctx, the subscription or the connection ends.
func (c *Client) Subscribe(ctx context.Context, uri string) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	c.mu.Lock()
	if c.dead != nil {
		defer c.mu.Unlock()
		return nil, c.dead
	}
	c.updates[uri] = append(c.updates[uri], changed) // first, so that no change is missed
	c.mu.Unlock()
	over, end, err := c.listen(ctx, uri)
	if err != nil {
		c.drop(uri, changed)
		return nil, err
	}
	go func() {
		select {
		case <-ctx.Done():
			end(c.drop(uri, changed))
		case <-over:
			c.drop(uri, changed)
		case <-c.done:
		}
	}()
	return changed, nil
}

// listen asks for the changes of a resource, in the way of the daemon's
// version. over gets a value when the daemon ends the subscription; end ends it
// from here, with last saying that nobody else listens to the resource.
func (c *Client) listen(ctx context.Context, uri string) (over <-chan answer, end func(last bool), err error) {
	c.mu.Lock()
	legacy := c.legacy
	c.mu.Unlock()
	if !legacy {
		var e *RPCError
		over, end, err = c.listenModern(ctx, uri)
		if !errors.As(err, &e) || e.Code != codeBadVersion {
			return over, end, err
		}
		if err := c.handshake(ctx, e); err != nil {
			return nil, nil, err
		}
	}
	params := map[string]any{"uri": uri}
	if _, err := c.ask(ctx, "resources/subscribe", params, false); err != nil {
		return nil, nil, err
	}
	return nil, func(last bool) {
		if !last {
			return
		}
		if _, id, err := c.send("resources/unsubscribe", params, false); err == nil {
			c.mu.Lock()
			delete(c.waiting, id) // the answer tells nothing
			c.mu.Unlock()
		}
	}, nil
}

// listenModern opens a request that stays open and returns once the daemon has
// acknowledged it.
func (c *Client) listenModern(ctx context.Context, uri string) (<-chan answer, func(bool), error) {
	ack := make(chan []string, 1)
	over, id, err := c.send("subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{uri}}}, true, ack)
	if err != nil {
		return nil, nil, err
	}
	select {
	case honoured := <-ack:
		if !slices.Contains(honoured, uri) {
			c.forget(id)
			return nil, nil, fmt.Errorf("the station has no resource %s to subscribe to", uri)
		}
		return over, func(bool) { c.forget(id) }, nil
	case a, ok := <-over:
		switch {
		case !ok:
			return nil, nil, c.why()
		case a.err != nil:
			return nil, nil, a.err
		}
		return nil, nil, errors.New("the station ended the subscription at once")
	case <-ctx.Done():
		c.forget(id)
		return nil, nil, fmt.Errorf("subscribe to %s: %w", uri, ctx.Err())
	}
}

// acknowledged hands a listen request what the daemon honours of it.
func (c *Client) acknowledged(params []byte) {
	var p struct {
		Meta struct {
			ID json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
		Notifications struct {
			URIs []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ack := c.acks[string(p.Meta.ID)]; ack != nil {
		delete(c.acks, string(p.Meta.ID))
		ack <- p.Notifications.URIs // has room for it
	}
}

func (c *Client) updated(uri string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.updates[uri] {
		select {
		case u <- struct{}{}:
		default: // told already and not yet looked
		}
	}
}

// drop closes a subscription's channel; last is true when the resource has no
// other. A connection that has ended has closed the channel already.
func (c *Client) drop(uri string, changed chan struct{}) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.updates[uri])
	if before == 0 {
		return false
	}
	c.updates[uri] = slices.DeleteFunc(c.updates[uri], func(u chan struct{}) bool { return u == changed })
	if len(c.updates[uri]) < before {
		close(changed)
	}
	return len(c.updates[uri]) == 0
}
