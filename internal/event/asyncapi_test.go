package event

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The document is written from the table of kinds, so it cannot say anything
// else; the test holds the file in docs to it.
func TestAsyncAPIDocumentIsThatOfTheKinds(t *testing.T) {
	golden(t, "asyncapi.yaml", []byte(asyncAPI()))
}

// Every attribute of the envelope in Go is in the document.
func TestAsyncAPINamesEveryAttribute(t *testing.T) {
	doc := asyncAPI()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Event]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(doc, "\n        "+name+":") {
			t.Errorf("attribute %s is not in the envelope's schema", name)
		}
	}
}

func asyncAPI() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	id := func(k Kind) string { return strings.NewReplacer("/", "-", "_", "-").Replace(k.Topic) }
	b.WriteString(asyncHead)
	for _, d := range All() {
		k := d.Kind()
		w("  %s:", id(k))
		w("    address: gsd/v1/{station}/events/%s", k.Topic)
		w("    title: %s", k.Says)
		w("    parameters: {station: {$ref: '#/components/parameters/station'}}")
		w("    messages: {event: {$ref: '#/components/messages/%s'}}", id(k))
	}
	b.WriteString(asyncOperations)
	for _, d := range All() {
		k := d.Kind()
		w("  send-%s:", id(k))
		w("    action: send")
		w("    channel: {$ref: '#/channels/%s'}", id(k))
		w("    tags: [{name: %s}]", k.Stream)
		w("    bindings: {$ref: '#/components/operationBindings/event'}")
	}
	b.WriteString(asyncComponents)
	for _, d := range All() {
		k := d.Kind()
		schema := strings.Split(k.Schema, ":")[3]
		w("    %s:", id(k))
		w("      name: %s", k.Type)
		w("      title: %s", k.Says)
		w("      contentType: application/json")
		w("      payload:")
		w("        allOf:")
		w("          - $ref: '#/components/schemas/envelope'")
		w("          - type: object")
		w("            properties:")
		w("              type: {const: %s}", k.Type)
		w("              dataschema: {const: '%s'}", k.Schema)
		w("              data: {$ref: './schemas/%s.json'}", schema)
	}
	return b.String()
}

const asyncHead = `# Written by go test ./internal/event -update from the table of event kinds.
asyncapi: 3.0.0
id: urn:gsd:station
info:
  title: Events of a gsd-mcp ground station
  version: 1.0.0
  license: {name: MIT}
  description: |
    What a station tells its hub over MQTT 3.1.1, seen from the station. It only publishes; the one thing it may
    subscribe to is the hub's confirmation, which moves a cursor and nothing else. There are no command topics.
    Drop duplicates by (source, id); order by sequence within (source, epoch); what is missing there is declared by
    gsd.outbox.gap.v1 or lost on the way: ask for it through the confirmation. See hub.md.
defaultContentType: application/json
servers:
  hub:
    host: hub.example.org:8883
    protocol: secure-mqtt
    protocolVersion: 3.1.1
    description: any MQTT broker; user name = station id
    security: [{type: userPassword}]
    bindings:
      mqtt:
        clientId: gsd-{station}
        cleanSession: true
        keepAlive: 30
        lastWill:
          topic: gsd/v1/{station}/availability
          qos: 1
          retain: true
          message: '{"state":"offline","session":N,"simulated":false}'
        bindingVersion: 0.2.0
channels:
  availability:
    address: gsd/v1/{station}/availability
    title: online or offline, also the will
    parameters: {station: {$ref: '#/components/parameters/station'}}
    messages: {availability: {$ref: '#/components/messages/availability'}}
  state:
    address: gsd/v1/{station}/state/{thing}
    title: last value of a thing, on change, at most every 5 s
    parameters:
      station: {$ref: '#/components/parameters/station'}
      thing: {description: 'rotator, radio, health, next-pass'}
    messages: {state: {$ref: '#/components/messages/state'}}
  ack:
    address: gsd/v1/{station}/ack
    title: what the hub has (optional)
    parameters: {station: {$ref: '#/components/parameters/station'}}
    messages: {confirmation: {$ref: '#/components/messages/confirmation'}}
  canary:
    address: gsd/v1/{station}/events/hub/canary
    title: asks whether the broker takes anything, when it refuses one event; no sequence, to be ignored
    parameters: {station: {$ref: '#/components/parameters/station'}}
    messages: {canary: {$ref: '#/components/messages/canary'}}
`

const asyncOperations = `operations:
  send-availability:
    action: send
    channel: {$ref: '#/channels/availability'}
    bindings: {$ref: '#/components/operationBindings/last-value'}
  send-state:
    action: send
    channel: {$ref: '#/channels/state'}
    bindings: {$ref: '#/components/operationBindings/last-value'}
  receive-ack:
    action: receive
    channel: {$ref: '#/channels/ack'}
    bindings: {$ref: '#/components/operationBindings/last-value'}
  send-canary:
    action: send
    channel: {$ref: '#/channels/canary'}
    bindings: {$ref: '#/components/operationBindings/event'}
`

const asyncComponents = `components:
  parameters:
    station: {description: 'station id, 1 to 32 of a-z, 0-9 and -'}
  operationBindings:
    event: {mqtt: {qos: 1, retain: false, bindingVersion: 0.2.0}}
    last-value: {mqtt: {qos: 1, retain: true, bindingVersion: 0.2.0}}
  schemas:
    envelope:
      type: object
      description: CloudEvents 1.0, structured JSON, with the extensions of hub.md
      required: [specversion, id, source, type, time, recordedtime, datacontenttype, dataschema, sequence, epoch, bootid, uptimems, timequality, severitytext, severitynumber, simulated, data]
      properties:
        specversion: {const: '1.0'}
        id: {type: string, description: 'UUIDv7, the same on every resend'}
        source: {type: string, pattern: '^/gsd/[a-z0-9-]{1,32}/(crit|info)$'}
        type: {type: string}
        subject: {type: string}
        time: {type: string, format: date-time, description: when it happened}
        recordedtime: {type: string, format: date-time, description: when it was put into the journal}
        datacontenttype: {const: application/json}
        dataschema: {type: string, description: 'urn:gsd:schema:NAME:MAJOR.MINOR'}
        sequence: {type: string, pattern: '^[0-9]{20}$', description: contiguous per source and epoch}
        epoch: {type: string, pattern: '^[0-9a-f]{8}$', description: name of the journal's numbering}
        bootid: {type: string}
        uptimems: {type: string, description: 'ms since boot; with bootid it orders what an untrusted clock dated'}
        timequality: {enum: [synced, holdover, unsynced, simulated]}
        severitytext: {enum: [DEBUG, INFO, WARN, ERROR, FATAL]}
        severitynumber: {type: integer, minimum: 1, maximum: 24}
        simulated: {type: boolean, description: true = nothing of this happened}
        correlationid: {type: string, description: the same for all events of one pass or command}
        traceparent: {type: string, description: W3C trace context}
        data: {type: object}
  messages:
    availability:
      payload:
        type: object
        required: [state, session]
        properties:
          state: {enum: [online, offline]}
          session: {type: integer, description: ignore an offline whose session is less than that of the last online}
          reason: {type: string, description: shutdown, after a good end}
          simulated: {type: boolean}
    state:
      payload:
        type: object
        required: [station, thing, time, simulated, state]
        properties:
          station: {type: string}
          thing: {type: string}
          time: {type: string, format: date-time}
          simulated: {type: boolean}
          state: {type: object}
    confirmation:
      payload:
        type: object
        additionalProperties:
          type: object
          required: [epoch, upto]
          properties:
            epoch: {type: string}
            upto: {type: string, description: everything up to this sequence is in the hub's data base}
            missing: {type: array, items: {type: string, pattern: '^[0-9]+(-[0-9]+)?$'}, maxItems: 32}
    canary:
      payload: {type: object}
`
