"""Encodes messages with clients that are not ours, and writes a line of JSON for each."""
import base64, datetime, decimal, io, json, sys, uuid

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

registry = SchemaRegistryClient({"url": sys.argv[1]})


def write(name, value):
    print(json.dumps({"name": name, "base64": base64.b64encode(value).decode()}))


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


ORDER = {
    "type": "record", "name": "Order", "namespace": "com.example",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "total", "type": logical("bytes", "decimal", precision=30, scale=2)},
        {"name": "rate", "type": {"type": "fixed", "name": "Rate", "size": 8,
                                  "logicalType": "decimal", "precision": 10, "scale": 4}},
        {"name": "at", "type": logical("long", "timestamp-millis")},
        {"name": "exact_at", "type": logical("long", "timestamp-micros")},
        {"name": "day", "type": logical("int", "date")},
        {"name": "time", "type": logical("int", "time-millis")},
        {"name": "uid", "type": logical("string", "uuid")},
        {"name": "ratio", "type": "float"},
        {"name": "weight", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "blob", "type": "bytes"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "either", "type": ["null", "long", "string"]},
        {"name": "parent", "type": ["null", "Order"]},
    ],
}


def order(parent=None):
    return {
        "id": 9007199254740993, "small": -7,
        "total": decimal.Decimal("-12345678901234567890.05"), "rate": decimal.Decimal("0.1000"),
        "at": datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, datetime.timezone.utc),
        "exact_at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.timezone.utc),
        "day": datetime.date(2024, 2, 29), "time": datetime.time(23, 59, 59, 1000),
        "uid": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
        "ratio": 0.1, "weight": 0.1, "paid": True, "blob": b"\x00\xff", "state": "DONE",
        "tags": ["a", "Zürich"], "counts": {"big": -9223372036854775808}, "note": None,
        "either": "text", "parent": parent,
    }


context = SerializationContext("orders", MessageField.VALUE)
serialize = AvroSerializer(registry, json.dumps(ORDER))
write("avro", serialize(order(order()), context))

# A schema that refers to another, written with fastavro.
registry.register_schema("money", Schema(json.dumps(
    {"type": "record", "name": "Money", "namespace": "com.example",
     "fields": [{"name": "cents", "type": "long"}]}), "AVRO"))
bill = {"type": "record", "name": "Bill", "namespace": "com.example",
        "fields": [{"name": "sum", "type": "com.example.Money"}]}
bill_id = registry.register_schema("bills-value", Schema(
    json.dumps(bill), "AVRO", [SchemaReference("com.example.Money", "money", 1)]))
whole = fastavro.parse_schema({**bill, "fields": [{"name": "sum", "type": {
    "type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}}]})
out = io.BytesIO()
fastavro.schemaless_writer(out, whole, {"sum": {"cents": 5}})
write("avro reference", b"\0" + bill_id.to_bytes(4, "big") + out.getvalue())


def field(name, number, kind, label=1, type_name=None, **more):
    return descriptor_pb2.FieldDescriptorProto(
        name=name, number=number, type=kind, label=label, type_name=type_name, **more)


F = descriptor_pb2.FieldDescriptorProto
file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/duration.proto",
                        "google/protobuf/struct.proto", "google/protobuf/wrappers.proto"])
file.message_type.add(name="Other").field.append(field("x", 1, F.TYPE_INT32))
message = file.message_type.add(name="Order")
line = message.nested_type.add(name="Line")
line.field.extend([field("sku", 1, F.TYPE_STRING), field("amount", 2, F.TYPE_SINT32)])
entry = message.nested_type.add(name="StockEntry")
entry.options.map_entry = True
entry.field.extend([field("key", 1, F.TYPE_INT64), field("value", 2, F.TYPE_STRING)])
state = file.enum_type.add(name="State")
state.value.add(name="NEW", number=0)
state.value.add(name="DONE", number=1)
message.oneof_decl.add(name="who")
message.oneof_decl.add(name="_note")
message.field.extend([
    field("id", 1, F.TYPE_INT64), field("unsigned", 2, F.TYPE_UINT64), field("small", 3, F.TYPE_SINT32),
    field("fixed", 4, F.TYPE_SFIXED64), field("ratio", 5, F.TYPE_FLOAT), field("paid", 6, F.TYPE_BOOL),
    field("blob", 7, F.TYPE_BYTES), field("state", 8, F.TYPE_ENUM, type_name=".shop.State"),
    field("lines", 9, F.TYPE_MESSAGE, 3, ".shop.Order.Line"),
    field("numbers", 10, F.TYPE_INT32, 3),
    field("stock", 11, F.TYPE_MESSAGE, 3, ".shop.Order.StockEntry"),
    field("at", 12, F.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp"),
    field("lasts", 13, F.TYPE_MESSAGE, type_name=".google.protobuf.Duration"),
    field("any", 14, F.TYPE_MESSAGE, type_name=".google.protobuf.Struct"),
    field("wrapped", 15, F.TYPE_MESSAGE, type_name=".google.protobuf.Int64Value"),
    field("email", 16, F.TYPE_STRING, oneof_index=0), field("phone", 17, F.TYPE_STRING, oneof_index=0),
    field("note", 18, F.TYPE_STRING, oneof_index=1, proto3_optional=True),
    field("zero", 19, F.TYPE_INT32),
])
pool = descriptor_pool.DescriptorPool()
for known in (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2):
    pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
pool.Add(file)
Order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
shop = Order(id=-9223372036854775808, unsigned=18446744073709551615, small=-7, fixed=-1, ratio=0.1,
             paid=True, blob=b"\x00\xff", state=1, numbers=[1, -2, 3], email="a@example.com",
             lines=[{"sku": "a", "amount": -1}, {"sku": "Zürich"}], stock={5: "five"})
shop.at.FromJsonString("2024-02-29T12:00:00.000000001Z")
shop.lasts.FromJsonString("-1.500s")
shop.any.update({"list": [1, None, {"deep": True}], "text": "x"})
shop.wrapped.value = 9007199254740993
proto = {"auto.register.schemas": True}
write("protobuf", ProtobufSerializer(Order, registry, proto)(shop, context))
Line = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order.Line"))
write("protobuf nested", ProtobufSerializer(Line, registry, proto)(
    Line(sku="b", amount=2), SerializationContext("lines", MessageField.VALUE)))
