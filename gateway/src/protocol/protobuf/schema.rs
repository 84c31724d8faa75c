//! `client.proto`, compiled for tests, and its messages as JSON: another reader and writer than ours of the same bytes.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use serde_json::{Map, Value as Json};

static SCHEMA: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["client.proto"], [folder]).unwrap();
    DescriptorPool::from_file_descriptor_set(files).unwrap()
});

/// A message type of the schema.
pub(crate) fn message(name: &str) -> MessageDescriptor {
    SCHEMA.get_message_by_name(&format!("centrifugal.centrifuge.protocol.{name}")).unwrap()
}

/// A message read by the schema, as JSON with the fields that are not left out. Every byte has to be understood.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Json {
    let message = DynamicMessage::decode(message(name), bytes).unwrap();
    json(&message)
}

/// A message of these contents, as bytes. What JSON says in a field of bytes is written as JSON.
pub(crate) fn write(name: &str, contents: &Json) -> Vec<u8> {
    use prost_reflect::prost::Message as _;
    dynamic(message(name), contents).encode_to_vec()
}

fn json(message: &DynamicMessage) -> Json {
    assert_eq!(message.unknown_fields().count(), 0, "{message:?}");
    let fields = message.fields().map(|(field, value)| (field.name().to_owned(), json_of(value)));
    Json::Object(fields.collect())
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::I32(value) => (*value).into(),
        Value::I64(value) => (*value).into(),
        Value::U32(value) => (*value).into(),
        Value::U64(value) => (*value).into(),
        Value::String(value) => value.as_str().into(),
        Value::Bytes(value) => serde_json::from_slice(value).unwrap(),
        Value::Message(value) => json(value),
        Value::List(values) => values.iter().map(json_of).collect(),
        Value::Map(values) => values
            .iter()
            .map(|(key, value)| match key {
                MapKey::String(key) => (key.clone(), json_of(value)),
                other => panic!("{other:?}"),
            })
            .collect::<Map<_, _>>()
            .into(),
        other => panic!("no message of ours holds {other:?}"),
    }
}

fn dynamic(of: MessageDescriptor, contents: &Json) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for (name, value) in contents.as_object().unwrap() {
        let field = of.get_field_by_name(name).unwrap_or_else(|| panic!("{} has no {name}", of.name()));
        message.set_field(&field, value_of(&field, value));
    }
    message
}

fn value_of(field: &FieldDescriptor, value: &Json) -> Value {
    match field.kind() {
        Kind::Bool => Value::Bool(value.as_bool().unwrap()),
        Kind::Int32 => Value::I32(value.as_i64().unwrap().try_into().unwrap()),
        Kind::Int64 => Value::I64(value.as_i64().unwrap()),
        Kind::Uint32 => Value::U32(value.as_u64().unwrap().try_into().unwrap()),
        Kind::Uint64 => Value::U64(value.as_u64().unwrap()),
        Kind::String => Value::String(value.as_str().unwrap().to_owned()),
        Kind::Bytes => Value::Bytes(value.to_string().into()),
        Kind::Message(of) => Value::Message(dynamic(of, value)),
        other => panic!("no command of ours holds {other:?}"),
    }
}
