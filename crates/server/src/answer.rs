//! What is sent back.

use event::{Error, ErrorKind};
use serde::Serialize;
use serde_json::json;

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// As in HTTP.
    pub status: u16,
    /// As in HTTP.
    pub content_type: &'static str,
    /// What is sent.
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(value: &impl Serialize) -> Answer {
        Answer {
            status: 200,
            content_type: "application/json",
            // Fails for maps whose keys are no texts alone, which no answer has.
            body: serde_json::to_vec(value).unwrap_or_default(),
        }
    }

    pub(crate) fn binary(body: Vec<u8>) -> Answer {
        Answer {
            status: 200,
            content_type: "application/octet-stream",
            body,
        }
    }

    /// A refusal in three parts.
    pub(crate) fn refusal(status: u16, error: &Error) -> Answer {
        let error = json!({
            "what": error.what(),
            "found": error.value_found(),
            "fix": error.fixed_by(),
        });
        let body = json!({ "error": error }).to_string();
        Answer {
            status,
            content_type: "application/json",
            body: body.into_bytes(),
        }
    }
}

impl From<event::Result<Answer>> for Answer {
    fn from(result: event::Result<Answer>) -> Answer {
        result.unwrap_or_else(|error| {
            let status = match error.kind() {
                ErrorKind::NotFound => 404,
                ErrorKind::InvalidInput => 400,
                ErrorKind::Unsupported => 422,
                _ => 500,
            };
            Answer::refusal(status, &error)
        })
    }
}
