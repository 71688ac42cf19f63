"""Makes CloudEvents with the SDK for Python, and reads those that stand on standard input."""

import base64
import json
import sys

from cloudevents.conversion import to_binary, to_json, to_structured
from cloudevents.http import CloudEvent, from_http
from cloudevents.kafka import to_binary as to_kafka_binary
from cloudevents.kafka import to_structured as to_kafka_structured

ATTRIBUTES = {
    "type": "order.paid",
    "source": "https://shop.example.com/orders",
    "id": "py-1",
    "subject": "order-7",
    "time": "2026-01-31T12:00:00.123456+00:00",
    "tenant": "acme",
}
DATA = {"id": 9007199254740993, "name": "Zürich"}


def plain(headers):
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in headers.items()
    }


def made():
    event = CloudEvent(ATTRIBUTES, DATA)
    binary_data = CloudEvent(
        {**ATTRIBUTES, "id": "py-2", "datacontenttype": "image/png"}, b"\x89PNG\x00"
    )
    typed = CloudEvent({**ATTRIBUTES, "datacontenttype": "application/json"}, DATA)
    batch = [json.loads(to_json(one)) for one in (event, binary_data)]
    yield "http structured", *to_structured(event)
    yield "http binary", *to_binary(typed)
    yield "http base64", *to_structured(binary_data)
    yield (
        "http batch",
        {"content-type": "application/cloudevents-batch+json"},
        json.dumps(batch).encode(),
    )
    for name, message in (
        ("kafka structured", to_kafka_structured(event)),
        ("kafka binary", to_kafka_binary(typed)),
    ):
        value = message.value
        yield name, message.headers, value if isinstance(value, bytes) else value.encode()


def read(request):
    event = from_http(request["headers"], base64.b64decode(request["base64"]))
    data = event.data
    if isinstance(data, bytes):
        data = {"base64": base64.b64encode(data).decode()}
    return {"attributes": dict(event.get_attributes()), "data": data}


json.dump(
    {
        "made": [
            {
                "name": name,
                "headers": plain(headers),
                "base64": base64.b64encode(body).decode(),
            }
            for name, headers, body in made()
        ],
        "read": [read(request) for request in json.load(sys.stdin)],
    },
    sys.stdout,
)
