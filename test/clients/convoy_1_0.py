"""Uses convoy-python 1.0 against a gateway: base URL, project, key, URL of a receiver, connection of a queue. Prints what it made."""

import json
import sys
import time

from convoy import AuthenticatedClient, models
from convoy.api.delivery_attempts import get_delivery_attempts
from convoy.api.endpoints import activate_endpoint, create_endpoint, expire_secret, get_endpoint, get_endpoints, pause_endpoint, update_endpoint
from convoy.api.event_deliveries import (
    batch_retry_event_delivery, force_resend_event_deliveries, get_event_deliveries_paged, get_event_delivery, resend_event_delivery,
)
from convoy.api.event_types import create_event_type, deprecate_event_type, get_event_types, import_open_api_spec, update_event_type
from convoy.api.events import (
    batch_replay_events, count_affected_events, create_broadcast_event, create_endpoint_event, create_endpoint_fanout_event, get_endpoint_event,
    get_events_paged, replay_endpoint_event,
)
from convoy.api.portal_links import create_portal_link
from convoy.api.sources import create_source, load_sources_paged
from convoy.api.subscriptions import (
    create_subscription, get_subscriptions, post_v_1_projects_project_id_sources_test_function as test_function, test_subscription_filter,
    test_subscription_function, toggle_subscription_status, update_subscription,
)
from convoy.models import DatastoreEventDeliveryStatus as Status

base, project, key, receiver, queue = sys.argv[1:6]
client = AuthenticatedClient(base_url=base, token=key, raise_on_unexpected_status=True)


def call(operation, *parameters, **named):
    answer = operation.sync(project, *parameters, client=client, **named)
    assert answer.status is True, answer
    return answer.data


endpoint = call(create_endpoint, body=models.ModelsCreateEndpoint(
    name="orders", url=f"{receiver}/new", secret="endpoint-secret", owner_id="shop-2", advanced_signatures=True, is_disabled=False,
    support_email="ops@example.com", slack_webhook_url="", content_type="application/json", http_timeout=5, rate_limit=100, rate_limit_duration=1,
    authentication=models.ModelsEndpointAuthentication.from_dict(
        {"type": "basic_auth", "basic_auth": {"username": "ada", "password": "hunter2"}}),
))
assert call(get_endpoint, endpoint.uid).status == models.DatastoreEndpointStatus.ACTIVE
assert call(update_endpoint, endpoint.uid, body=models.ModelsUpdateEndpoint(name="orders", url=f"{receiver}/new", description="changed")).description == "changed"
assert call(pause_endpoint, endpoint.uid).status == "paused"
assert call(activate_endpoint, endpoint.uid).status == "active"
call(expire_secret, endpoint.uid, body=models.ModelsExpireSecret(expiration=1, secret="another-secret"))
assert len(call(get_endpoints, per_page=5, owner_id="shop-2").content) == 1

source = call(create_source, body=models.ModelsCreateSource.from_dict(
    {"name": "queue", "type": "pub_sub", "pub_sub": {"type": "sqs", "workers": 1, "sqs": json.loads(queue)}}))
assert [it.uid for it in call(load_sources_paged, per_page=5).content] == [source.uid]

subscription = call(create_subscription, body=models.ModelsCreateSubscription.from_dict({
    "name": "all", "endpoint_id": endpoint.uid, "function": "", "delivery_mode": "at_least_once",
    "alert_config": {"count": 5, "threshold": "1h"}, "filter_config": {"event_types": ["new.*"], "filter": {"headers": {}, "body": {}}},
}))
assert len(call(get_subscriptions, endpoint_id=[endpoint.uid]).content) == 1

sample = {"body": {"n": 1}, "header": {"x": "1"}, "query": {}, "path": ""}
assert call(test_subscription_filter, body=models.ModelsTestFilter.from_dict({"request": sample, "schema": sample})) is True
assert call(test_subscription_filter, body=models.ModelsTestFilter.from_dict({"request": sample, "schema": {"body": {"n": 2}}})) is False
for _ in range(2):
    call(toggle_subscription_status, subscription.uid)
function = {"function": "function transform(it) { console.log('seen'); return it; }", "payload": {"event_type": "x", "data": {"n": 1}}, "type": "body"}
tested = call(test_function, body=models.ModelsFunctionRequest.from_dict(function))
assert (tested.payload["data"], tested.log) == ({"n": 1}, ["seen"]), tested
masks = "function transform({ n }) { console.log('seen'); return { masked: n }; }"
changed = call(update_subscription, subscription.uid, body=models.ModelsUpdateSubscription.from_dict({"name": "all", "function": masks}))
assert changed.function == masks, changed
tested = call(test_subscription_function, body=models.ModelsFunctionRequest.from_dict({"function": masks, "payload": {"n": 1}, "type": "body"}))
assert (tested.payload["masked"], tested.log) == (1, ["seen"]), tested
call(update_subscription, subscription.uid, body=models.ModelsUpdateSubscription.from_dict({"function": "const transform = (it) => it;"}))

kind = {"name": "new.single", "description": "first", "category": "billing", "json_schema": {"type": "object"}}
event_type = call(create_event_type, body=models.ModelsCreateEventType.from_dict(kind))
assert call(update_event_type, event_type.uid, body=models.ModelsUpdateEventType(description="second", category="x")).description == "second"
spec = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "webhooks": {"new.fanout": {"post": {"requestBody": {"content": {
    "application/json": {"schema": {"type": "object"}}}}}}}}
imported = call(import_open_api_spec, body=models.ModelsImportOpenAPISpec(spec=json.dumps(spec)))
assert [it.name for it in imported] == ["new.fanout"], imported
assert sorted(it.name for it in call(get_event_types)) == ["new.fanout", "new.single"]
assert call(deprecate_event_type, event_type.uid).deprecated_at

link = {"name": "shop", "owner_id": "shop-2", "can_manage_endpoint": False, "auth_type": "refresh_token", "endpoints": []}
assert call(create_portal_link, body=models.DatastoreCreatePortalLinkRequest.from_dict(link)).owner_id == "shop-2"

single = call(create_endpoint_event, body=models.ModelsCreateEvent(
    endpoint_id=endpoint.uid, event_type="new.single", idempotency_key="once", custom_headers=models.ModelsCreateEventCustomHeadersType0.from_dict({"X-Shop": "2"}),
    data=models.ModelsCreateEventDataType0.from_dict({"n": 1})))
again = call(create_endpoint_event, body=models.ModelsCreateEvent(
    endpoint_id=endpoint.uid, event_type="new.single", idempotency_key="once", data=models.ModelsCreateEventDataType0.from_dict({"n": 1})))
assert again["uid"] == single["uid"] and again["is_duplicate_event"] is True
fanout = call(create_endpoint_fanout_event, body=models.ModelsFanoutEvent.from_dict({"owner_id": "shop-2", "event_type": "new.fanout", "data": {"n": 2}}))
broadcast = call(create_broadcast_event, body=models.ModelsBroadcastEvent.from_dict({"event_type": "new.broadcast", "data": {"n": 3}}))


def delivered(event):
    for _ in range(200):
        page = call(get_event_deliveries_paged, endpoint_id=[endpoint.uid], status=["Success"], event_id=event["uid"])
        if page.content:
            return page.content[0]
        time.sleep(0.05)
    raise AssertionError(event)


first = delivered(single)
assert (first.status, first.event_metadata.event_type) == (Status.SUCCESS, "new.single"), first
delivered(fanout)
delivered({"uid": broadcast.uid})
assert call(get_endpoint_event, single["uid"]).status == "Success"
assert [it.uid for it in call(get_events_paged, idempotency_key="once", per_page=5).content] == [single["uid"]]
assert [it.http_status for it in call(get_delivery_attempts, first.uid)] == ["200 OK"]
assert call(get_event_delivery, first.uid).metadata.num_trials == 1
call(force_resend_event_deliveries, body=models.ModelsIDs(ids=[first.uid]))
call(batch_retry_event_delivery, status=["Failure"], endpoint_id=[endpoint.uid])
delivered(single)
call(replay_endpoint_event, single["uid"])
assert call(count_affected_events, start_date="2020-01-01T00:00:00").num >= 3
assert batch_replay_events.sync_detailed(project, client=client, start_date="2020-01-01T00:00:00", end_date="2020-02-01T00:00:00").status_code == 200
try:
    resend_event_delivery.sync(project, first.uid, client=client)
except Exception as error:  # Delivered already, which the client does not describe.
    assert "409" in str(error), error
print(json.dumps({"endpoint": endpoint.uid, "delivery": first.uid}))
