//! `patsat lsp`: serves an editor by the Language Server Protocol, on the standard streams.
//!
//! Messages are answered in their order. Documents that have changed are checked when no message waits, so that each is
//! checked once for several changes that come at the same time. A panic ends the answer, not the server.

mod answers;
mod documents;
mod position;
mod problems;
mod wire;

use super::out::{Done, Out, Stop};
use crate::diag::{Code, Diagnostic, Exit, not_started};
use documents::{Document, Documents};
use lsp_server::{ErrorCode, Message, Notification, Request, Response, ResponseError};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{Position, TextDocumentPositionParams};
use problems::Problems;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufReader};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use wire::{Received, receive, send, send_value};

/// The arguments of `patsat lsp`.
#[derive(clap::Args)]
#[command(after_help = "docs/editors.md says how editors start it.")]
pub struct Args {
    /// Use the standard streams, which is the only way; some editors give this option.
    #[arg(long)]
    stdio: bool,
}

/// Messages that may wait. The client waits if there are more.
const WAITING: usize = 1000;

pub fn main(_: &Args, out: &mut Out) -> Done {
    let (sender, receiver) = sync_channel(WAITING);
    let read = move || {
        let mut input = BufReader::new(io::stdin());
        while let Ok(Some(received)) = receive(&mut input) {
            if sender.send(received).is_err() {
                break;
            }
        }
    };
    let reader = thread::Builder::new().name("reader".to_owned()).spawn(read);
    reader.map_err(|e| Stop::Failure(not_started("the reader of messages", &e)))?;
    let server = Server {
        out,
        state: State::New,
        documents: Documents::default(),
        problems: Problems::default(),
        unchecked: BTreeSet::new(),
    };
    server.run(&receiver)
}

/// Where the conversation stands.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Initialized,
    ShutDown,
}

struct Server<'o> {
    out: &'o mut Out,
    state: State,
    documents: Documents,
    problems: Problems,
    /// The addresses of the documents that are still to be checked.
    unchecked: BTreeSet<String>,
}

type Answer = Result<Value, ResponseError>;

fn error(code: ErrorCode, message: impl Into<String>) -> ResponseError {
    ResponseError { code: code as i32, message: message.into(), data: None }
}

/// Returns the parameters of a message.
fn parsed<P: DeserializeOwned>(params: Value) -> Result<P, ResponseError> {
    serde_json::from_value(params).map_err(|e| error(ErrorCode::InvalidParams, e.to_string()))
}

impl Server<'_> {
    fn run(mut self, receiver: &Receiver<Received>) -> Done {
        loop {
            let next = match receiver.try_recv() {
                Ok(next) => next,
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => match self.unchecked.pop_first() {
                    Some(uri) => {
                        self.check(&uri)?;
                        continue;
                    }
                    None => match receiver.recv() {
                        Ok(next) => next,
                        // The client has gone.
                        Err(_) => return Ok(()),
                    },
                },
            };
            match next {
                Received::Broken(answer) => send_value(self.out, &answer)?,
                Received::Message(Message::Request(request)) => {
                    let id = request.id.clone();
                    let answer = panic::catch_unwind(AssertUnwindSafe(|| self.answer(request)));
                    let broken = |_| Err(error(ErrorCode::InternalError, "a bug in patsat"));
                    let response_result = answer.unwrap_or_else(broken);
                    send(self.out, Response { id, response_result })?;
                }
                Received::Message(Message::Notification(told))
                    if told.method == notification::Exit::METHOD =>
                {
                    let orderly = self.state == State::ShutDown;
                    return if orderly { Ok(()) } else { Err(Stop::Exit(Exit::Check)) };
                }
                Received::Message(Message::Notification(told)) => {
                    if self.state == State::Initialized {
                        self.told(told)?;
                    }
                }
                // Nothing was asked.
                Received::Message(Message::Response(_)) => {}
            }
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        let Request { method, params, .. } = request;
        match (self.state, method.as_str()) {
            (State::New, request::Initialize::METHOD) => {
                self.state = State::Initialized;
                return Ok(capabilities());
            }
            (State::New, _) => {
                return Err(error(ErrorCode::ServerNotInitialized, "`initialize` comes first"));
            }
            (State::ShutDown, _) | (State::Initialized, request::Initialize::METHOD) => {
                return Err(error(ErrorCode::InvalidRequest, format!("`{method}` comes too late")));
            }
            (State::Initialized, _) => {}
        }
        match method.as_str() {
            request::Shutdown::METHOD => {
                self.state = State::ShutDown;
                Ok(Value::Null)
            }
            request::HoverRequest::METHOD => self.at(params, answers::hover),
            request::GotoDefinition::METHOD => self.at(params, answers::definition),
            request::Completion::METHOD => self.at(params, answers::completions),
            request::Formatting::METHOD => self.of(params, answers::formatted),
            request::DocumentSymbolRequest::METHOD => self.of(params, answers::symbols),
            _ => Err(error(ErrorCode::MethodNotFound, format!("there is no `{method}` here"))),
        }
    }

    /// Answers about a place of a document.
    fn at(&self, params: Value, answer: fn(&Document, &Documents, Position) -> Value) -> Answer {
        let TextDocumentPositionParams { text_document, position } = parsed(params)?;
        let document = self.documents.get(text_document.uri.as_str());
        Ok(document.map_or(Value::Null, |d| answer(d, &self.documents, position)))
    }

    /// Answers about a document.
    fn of(&self, params: Value, answer: fn(&Document) -> Value) -> Answer {
        let params: lsp_types::DocumentSymbolParams = parsed(params)?;
        let document = self.documents.get(params.text_document.uri.as_str());
        Ok(document.map_or(Value::Null, answer))
    }

    /// Does what a client tells. What has wrong parameters has no effect.
    fn told(&mut self, told: Notification) -> Done {
        let Notification { method, params } = told;
        let uri = match method.as_str() {
            notification::DidOpenTextDocument::METHOD => {
                let Ok(params) = parsed::<lsp_types::DidOpenTextDocumentParams>(params) else {
                    return Ok(());
                };
                let document = params.text_document;
                let uri = document.uri.to_string();
                self.documents.open(document.uri, document.version, document.text);
                Some(uri)
            }
            notification::DidChangeTextDocument::METHOD => {
                let Ok(params) = parsed::<lsp_types::DidChangeTextDocumentParams>(params) else {
                    return Ok(());
                };
                let document = params.text_document;
                self.documents.change(&document.uri, document.version, params.content_changes);
                Some(document.uri.to_string())
            }
            notification::DidCloseTextDocument::METHOD => {
                let Ok(params) = parsed::<lsp_types::DidCloseTextDocumentParams>(params) else {
                    return Ok(());
                };
                let uri = params.text_document.uri;
                self.documents.close(&uri);
                let shown = self.problems.replace(uri.as_str(), [].into(), &self.documents);
                self.publish(shown)?;
                None
            }
            // A file that is imported may have changed.
            notification::DidSaveTextDocument::METHOD
            | notification::DidChangeWatchedFiles::METHOD => None,
            _ => return Ok(()),
        };
        self.unchecked.extend(uri);
        self.unchecked.extend(self.documents.importing());
        Ok(())
    }

    /// Checks a document, and shows what is wrong.
    fn check(&mut self, uri: &str) -> Done {
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let check = || problems::check(document, &self.documents);
        let found = panic::catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| {
            let bug =
                Diagnostic::error(Code::Internal, "a bug in patsat: this text cannot be checked");
            problems::found(&[bug], document, &self.documents)
        });
        let shown = self.problems.replace(uri, found, &self.documents);
        self.publish(shown)
    }

    fn publish(&mut self, shown: Vec<lsp_types::PublishDiagnosticsParams>) -> Done {
        shown.into_iter().try_for_each(|params| {
            let method = notification::PublishDiagnostics::METHOD.to_owned();
            send(self.out, Notification { method, params: json!(params) })
        })
    }
}

/// Returns what the server can do.
fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            // The whole text comes with each change.
            "textDocumentSync": {"openClose": true, "change": 1, "save": true},
            "hoverProvider": true,
            "definitionProvider": true,
            "documentFormattingProvider": true,
            "documentSymbolProvider": true,
            "completionProvider": {"triggerCharacters": ["."]},
        },
        "serverInfo": {"name": "patsat", "version": env!("CARGO_PKG_VERSION")},
    })
}
