//! An answer as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::answer::{Answer, Part};
use crate::serve::engine::Event;
use crate::serve::error::ApiError;

/// How long a stream may be silent before a comment keeps it alive.
const SILENCE: Duration = Duration::from_secs(15);

struct Stream {
    answer: Answer,
    events: UnboundedReceiver<Event>,
    usage: bool,
    ready: VecDeque<Sent>,
    over: bool,
}

/// The stream; dropping it ends the answer.
pub(super) fn response(answer: Answer, events: UnboundedReceiver<Event>, usage: bool) -> Response {
    let stream = Stream { answer, events, usage, ready: VecDeque::new(), over: false };
    let events = unfold(stream, |mut stream| async move {
        loop {
            if let Some(sent) = stream.ready.pop_front() {
                return Some((Ok::<_, Infallible>(sent), stream));
            }
            if stream.over {
                return None;
            }
            let event = stream.events.recv().await;
            stream.take(event);
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE)).into_response();
    // Proxies must not gather what is to be seen at once.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

impl Stream {
    fn take(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Read { number, cached, scores }) => {
                for chunk in self.answer.read(number, cached, &scores) {
                    self.send(chunk);
                }
            }
            Some(Event::Said(said)) => {
                if let Part::Chunk(chunk) = self.answer.said(said) {
                    self.send(chunk);
                }
            }
            Some(Event::Failed(failure)) => self.fail(&failure.into()),
            None => {
                if let Err(error) = self.answer.check_ended() {
                    return self.fail(&error);
                }
                self.over = true;
                if self.usage {
                    self.ready.push_back(sent(&self.answer.usage_chunk()));
                }
                self.ready.push_back(Sent::default().data("[DONE]"));
            }
        }
    }

    fn send(&mut self, mut chunk: Value) {
        if self.usage {
            // As OpenAI has it: every chunk but the last has none.
            chunk["usage"] = Value::Null;
        }
        self.ready.push_back(sent(&chunk));
    }

    fn fail(&mut self, error: &ApiError) {
        self.over = true;
        self.ready.push_back(sent(&error.body()));
    }
}

fn sent(value: &Value) -> Sent {
    Sent::default().data(value.to_string())
}
