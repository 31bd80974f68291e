//! Messages on the standard streams, each behind a header with its length. What is no message is passed over, and reading
//! goes on with the next header.

use crate::cli::out::{Done, Out};
use lsp_server::{ErrorCode, Message};
use serde_json::{Value, json};
use std::io::{self, BufRead, Read};

/// The most bytes of a message that is read: many times the largest program.
const MESSAGE_BYTES: u64 = 64 << 20;

/// The most bytes of a header's line.
const LINE_BYTES: u64 = 64 << 10;

/// What a client has sent.
pub enum Received {
    /// A message.
    Message(Message),
    /// Something else, with the answer to it.
    Broken(Value),
}

/// Returns the answer to what is no message. `id` is that of the request, if it has one.
fn broken(id: &Value, code: ErrorCode, why: &str) -> Received {
    let error = json!({"code": code as i32, "message": why});
    Received::Broken(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// Reads the next message; none at the end of the input.
pub fn receive(input: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut length = None;
    loop {
        let mut line = vec![];
        if input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).to_ascii_lowercase();
        match line.rsplit_once("content-length:") {
            Some((_, bytes)) => length = bytes.trim().parse::<u64>().ok(),
            None if line.trim().is_empty() && length.is_some() => break,
            None => {}
        }
    }
    let length = length.unwrap_or_default();
    let mut body = input.by_ref().take(length);
    if length > MESSAGE_BYTES {
        io::copy(&mut body, &mut io::sink())?;
        return Ok(Some(broken(
            &Value::Null,
            ErrorCode::InvalidRequest,
            "the message is too long",
        )));
    }
    let mut bytes = vec![];
    body.read_to_end(&mut bytes)?;
    let value: Value = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(e) => return Ok(Some(broken(&Value::Null, ErrorCode::ParseError, &e.to_string()))),
    };
    let id = value.get("id").cloned().unwrap_or_default();
    // Another number would be taken for none.
    let names = id.is_null() || id.is_string() || id.is_i64();
    Ok(Some(match serde_json::from_value(value) {
        Ok(message) if names => Received::Message(message),
        _ => broken(&id, ErrorCode::InvalidRequest, "this is no message of the protocol"),
    }))
}

/// Sends a message.
pub fn send(out: &mut Out, message: impl Into<Message>) -> Done {
    let message = message.into();
    out.raw_with(|mut to| message.write(&mut to))?;
    out.flush()
}

/// Sends a value that is no message of the protocol: an answer to something that has no number.
pub fn send_value(out: &mut Out, value: &Value) -> Done {
    let text = value.to_string();
    out.raw_with(|to| write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_passed_over() {
        let message = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
        let good = message(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        let long = format!("Content-Length: {}\r\n\r\n{{}}", u64::MAX);
        for (text, expected) in [
            (good.clone(), vec!["exit"]),
            (String::new(), vec![]),
            ("Content-Length: 9".into(), vec![]),
            (format!("Content-Length: many\r\n\r\n{{}}{good}"), vec!["exit"]),
            (format!("x\n\n\u{7f}:{good}"), vec!["exit"]),
            (format!("content-length:2\n\n[]{good}"), vec!["-32600", "exit"]),
            (message(r#"{"id":1.5,"method":"a"}"#) + &good, vec!["-32600", "exit"]),
            (message("{") + &good, vec!["-32700", "exit"]),
            (message("\u{fffd}") + &good, vec!["-32700", "exit"]),
            (message(&"[".repeat(100_000)) + &good, vec!["-32700", "exit"]),
            (long, vec!["-32600"]),
        ] {
            let mut input = text.as_bytes();
            let mut found = vec![];
            while let Some(received) = receive(&mut input).expect("bytes can be read") {
                found.push(match received {
                    Received::Message(Message::Notification(n)) => n.method,
                    Received::Message(other) => panic!("{other:?}"),
                    Received::Broken(answer) => answer["error"]["code"].to_string(),
                });
            }
            assert_eq!(found, expected, "{text:.60}");
        }
    }
}
