//! A response as a stream of server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::serve::engine::Event;
use crate::serve::error::ApiError;
use crate::serve::response::ResponseBuilder;

/// After this time without an event, a comment keeps the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

struct Stream {
    builder: ResponseBuilder,
    events: UnboundedReceiver<Event>,
    include_usage: bool,
    ready: VecDeque<SseEvent>,
    ended: bool,
}

/// The stream of a response. When the client disconnects, dropping the stream cancels the request.
pub(super) fn response(
    builder: ResponseBuilder,
    events: UnboundedReceiver<Event>,
    include_usage: bool,
) -> Response {
    let stream = Stream { builder, events, include_usage, ready: VecDeque::new(), ended: false };
    let events = unfold(stream, |mut stream| async move {
        loop {
            if let Some(event) = stream.ready.pop_front() {
                return Some((Ok::<_, Infallible>(event), stream));
            }
            if stream.ended {
                return None;
            }
            let event = stream.events.recv().await;
            stream.receive(event);
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // Keeps nginx from buffering the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Stream {
    /// Handles an event of the engine, or the end of its channel.
    fn receive(&mut self, event: Option<Event>) {
        match event.map(|event| self.builder.apply(event)) {
            Some(Ok(chunks)) => chunks.into_iter().for_each(|chunk| self.send_chunk(chunk)),
            Some(Err(error)) => self.fail(&error),
            None => match self.builder.check_finished() {
                Ok(()) => self.end(),
                Err(error) => self.fail(&error),
            },
        }
    }

    fn send_chunk(&mut self, mut chunk: Value) {
        if self.include_usage {
            // As in OpenAI's API, where every chunk but the last has a null usage.
            chunk["usage"] = Value::Null;
        }
        self.ready.push_back(sse_event(&chunk));
    }

    fn end(&mut self) {
        self.ended = true;
        if self.include_usage {
            self.ready.push_back(sse_event(&self.builder.usage_chunk()));
        }
        self.ready.push_back(SseEvent::default().data("[DONE]"));
    }

    fn fail(&mut self, error: &ApiError) {
        self.ended = true;
        self.ready.push_back(sse_event(&error.body()));
    }
}

fn sse_event(value: &Value) -> SseEvent {
    SseEvent::default().data(value.to_string())
}
