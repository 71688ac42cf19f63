// Makes CloudEvents with the SDK for Go, and reads those that stand on standard input.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

type message struct {
	Name    string            `json:"name"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"base64"`
}

type seen struct {
	Attributes map[string]any `json:"attributes"`
	Data       any            `json:"data"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func sample(id, contentType string, data any) event.Event {
	e := event.New()
	e.SetType("order.paid")
	e.SetSource("https://shop.example.com/orders")
	e.SetID(id)
	e.SetSubject("order-7")
	e.SetTime(time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC))
	e.SetExtension("tenant", "acme")
	must(e.SetData(contentType, data))
	return e
}

func requested(name string, write func(*http.Request) error) message {
	request, err := http.NewRequest("POST", "http://127.0.0.1/", nil)
	must(err)
	must(write(request))
	body, err := io.ReadAll(request.Body)
	must(err)
	headers := map[string]string{}
	for header := range request.Header {
		headers[header] = request.Header.Get(header)
	}
	return message{name, headers, body}
}

func one(name string, e event.Event, encoding func(context.Context) context.Context) message {
	return requested(name, func(request *http.Request) error {
		return cehttp.WriteRequest(encoding(context.Background()), binding.ToMessage(&e), request)
	})
}

func read(given message) seen {
	request, err := http.NewRequest("POST", "http://127.0.0.1/", bytes.NewReader(given.Body))
	must(err)
	for name, value := range given.Headers {
		request.Header.Set(name, value)
	}
	e, err := cehttp.NewEventFromHTTPRequest(request)
	must(err)
	must(e.Validate())
	attributes := map[string]any{
		"id": e.ID(), "source": e.Source(), "type": e.Type(), "specversion": e.SpecVersion(),
		"subject": e.Subject(), "time": e.Time().Format(time.RFC3339Nano),
		"datacontenttype": e.DataContentType(),
	}
	for name, value := range e.Extensions() {
		attributes[name] = value
	}
	var data any = json.RawMessage(e.Data())
	if !json.Valid(e.Data()) {
		data = map[string][]byte{"base64": e.Data()}
	}
	return seen{attributes, data}
}

func main() {
	var given []message
	must(json.NewDecoder(os.Stdin).Decode(&given))
	plain := sample("go-1", event.ApplicationJSON, json.RawMessage(`{"id":9007199254740993,"name":"Zürich"}`))
	image := sample("go-2", "image/png", []byte("\x89PNG\x00"))
	made := []message{
		one("http structured", plain, binding.WithForceStructured),
		one("http binary", plain, binding.WithForceBinary),
		one("http base64", image, binding.WithForceStructured),
		one("http bytes", image, binding.WithForceBinary),
		requested("http batch", func(request *http.Request) error {
			batch, err := cehttp.NewHTTPRequestFromEvents(context.Background(), request.URL.String(), []event.Event{plain, image})
			*request = *batch
			return err
		}),
	}
	all := []seen{}
	for _, it := range given {
		all = append(all, read(it))
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"made": made, "read": all}))
}
