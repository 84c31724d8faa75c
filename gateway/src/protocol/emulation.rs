//! A message of a device that has no connection to write to. The message comes by a request of its own.
//!
//! ```text
//!   {"session":"…","node":"…","data":"{\"id\":2,…}"}     JSON: `data` is a text of one or more lines
//!   EmulationRequest { node, session, data }              Protobuf: `data` is bytes of one or more messages
//! ```

use prost::Message;
use serde::{Deserialize, Deserializer};

/// `EmulationRequest` of the schema.
#[derive(Clone, PartialEq, Message, Deserialize)]
pub(crate) struct Emulated {
    /// The node that the reply to `connect` has named.
    #[prost(string, tag = "1")]
    pub(crate) node: String,
    /// The session that the reply to `connect` has named: a credential.
    #[prost(string, tag = "2")]
    pub(crate) session: String,
    /// What the device would write to its connection.
    #[prost(bytes = "vec", tag = "3")]
    #[serde(deserialize_with = "text")]
    pub(crate) data: Vec<u8>,
}

impl Emulated {
    /// Reads a request of JSON.
    pub(crate) fn of_json(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// Reads a request of Protobuf.
    pub(crate) fn of_protobuf(body: &[u8]) -> Result<Self, prost::DecodeError> {
        Self::decode(body)
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(deserializer).map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::protobuf::schema;
    use super::*;

    #[test]
    fn a_request_means_the_same_in_both_formats() {
        // The schema's writer puts JSON into a field of bytes: the text {} is two bytes there.
        let protobuf = schema::write("EmulationRequest", &json!({"node": "n", "session": "s", "data": {}}));
        let asked = Emulated { node: "n".into(), session: "s".into(), data: b"{}".to_vec() };
        assert_eq!(Emulated::of_protobuf(&protobuf), Ok(asked.clone()));
        let json = json!({"session": "s", "node": "n", "data": "{}", "more": 1}).to_string();
        assert_eq!(Emulated::of_json(json.as_bytes()).unwrap(), asked);
    }
}
