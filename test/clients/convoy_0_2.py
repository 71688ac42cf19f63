"""Uses convoy-python 0.2 against a gateway: base URL of a project, its key, URL of a receiver, connection of a queue. Prints what it made."""

import json
import sys
import time

from convoy import Convoy

base, project, key, receiver, queue = sys.argv[1:6]
convoy = Convoy({"api_key": key, "uri": f"{base}/v1/projects/{project}"})


def ok(answer, *statuses):
    body, code = answer
    assert code in (statuses or (200,)) and body["status"] is True, (code, body)
    return body["data"]


endpoint = ok(convoy.endpoint.create({}, {
    "url": f"{receiver}/old",
    "description": "Default Endpoint",
    "secret": "endpoint-secret",
    "events": ["*"],
    "owner_id": "shop-1",
}), 201)
changed = ok(convoy.endpoint.update(endpoint["uid"], {}, {"url": f"{receiver}/old", "name": "orders", "description": "changed"}), 202)
assert changed["description"] == "changed"
assert [it["uid"] for it in ok(convoy.endpoint.all({"perPage": 10, "page": 1}))["content"]] == [endpoint["uid"]]

source = ok(convoy.source.create({"skip_check": "true"}, {
    "name": "queue", "type": "pub_sub", "provider": "", "verifier": {"type": "noop"},
    "pub_sub": {"type": "sqs", "workers": 1, "sqs": json.loads(queue)},
}), 201)
assert ok(convoy.source.find(source["uid"], {}))["name"] == "queue"
assert len(ok(convoy.source.all({"perPage": 10, "page": 1}))["content"]) == 1

subscription = ok(convoy.subscription.create({}, {
    "name": "all", "endpoint_id": endpoint["uid"], "source_id": source["uid"],
    "alert_config": {"count": 5, "threshold": "1h"},
    "retry_config": {"type": "linear", "duration": "10s", "retry_count": 3},
    "filter_config": {"event_types": ["old.*"]},
}), 201)
assert ok(convoy.subscription.find(subscription["uid"], {}))["filter_config"]["event_types"] == ["old.*"]
assert len(ok(convoy.subscription.all({"perPage": 10}))["content"]) == 1
ok(convoy.subscription.update(subscription["uid"], {}, {"name": "every"}), 202)

event = ok(convoy.event.create({}, {
    "endpoint_id": endpoint["uid"], "event_type": "old.single", "data": {"event": "old.single", "data": {"n": 1}},
}), 201)
found = ok(convoy.event.find(event["uid"], {}))
assert found["event_type"] == "old.single" and found["status"] in ("Pending", "Success"), found
assert [it["uid"] for it in ok(convoy.event.all({"perPage": 10, "page": 1}))["content"]] == [event["uid"]]

for _ in range(200):
    deliveries = ok(convoy.event_delivery.all({"eventId": event["uid"], "page": 1}))["content"]
    if deliveries and deliveries[0]["status"] == "Success":
        break
    time.sleep(0.05)
[delivery] = deliveries
assert delivery["status"] == "Success", delivery
assert ok(convoy.event_delivery.find(delivery["uid"], {}))["metadata"]["num_trials"] == 1
[attempt] = ok(convoy.delivery_attempt.all(delivery["uid"], {}))
assert attempt["http_status"] == "200 OK", attempt
assert ok(convoy.delivery_attempt.find(delivery["uid"], attempt["uid"], {}))["uid"] == attempt["uid"]
ok(convoy.event_delivery.resend(delivery["uid"], {"force": "true"}))

assert [it["uid"] for it in ok(convoy.group.all({"perPage": 10, "page": 1}))] == [project]
assert ok(convoy.group.find(project, {}))["uid"] == project
group = {"name": "renamed", "logo_url": "", "config": {
    "disable_endpoint": False, "signature": {"hash": "SHA512", "header": "X-Convoy-Signature"},
    "strategy": {"type": "default", "default": {"intervalSeconds": 5, "retryLimit": 2}},
}}
config = ok(convoy.group.update(project, {}, group), 202)["config"]
assert config["strategy"] == {"type": "linear", "duration": 5, "retry_count": 2}, config

ok(convoy.subscription.delete(subscription["uid"], {}, {}))
ok(convoy.source.delete(source["uid"], {}, {}))
print(json.dumps({"endpoint": endpoint["uid"], "secret": endpoint["secrets"][0]["value"], "delivery": delivery["uid"]}))
