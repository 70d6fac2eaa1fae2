//! Messages of the DevTools protocol, each terminated by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::complaint;

/// Without an answer for this long, the browser counts as stuck.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Pipe {
    input: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    /// Failures in pages so far.
    pub complaints: Vec<String>,
}

impl Pipe {
    pub fn new(input: ChildStdin, output: ChildStdout) -> Self {
        let (sender, messages) = channel();
        // Ends with the browser, which closes its end.
        thread::spawn(move || read(output, &sender));
        Self {
            input,
            messages,
            last_id: 0,
            complaints: Vec::new(),
        }
    }

    /// Calls a method and gives its result.
    pub fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let sent = self
            .input
            .write_all(&bytes)
            .and_then(|()| self.input.flush());
        sent.map_err(|error| format!("{method}: {error}"))?;
        self.answer(method)
    }

    fn answer(&mut self, method: &str) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self
                .messages
                .recv_timeout(left)
                .map_err(|error| match error {
                    RecvTimeoutError::Timeout => format!("{method}: no answer"),
                    RecvTimeoutError::Disconnected => format!("{method}: the browser has ended"),
                })?;
            self.complaints.extend(complaint(&message));
            if message["id"] == self.last_id {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }
}

fn read(output: ChildStdout, sender: &Sender<Value>) {
    for message in BufReader::new(output).split(0) {
        let Ok(message) = message else { return };
        let message = serde_json::from_slice(&message).expect("the browser sends JSON");
        if sender.send(message).is_err() {
            return;
        }
    }
}
