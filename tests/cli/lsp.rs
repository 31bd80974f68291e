//! The language server, with a scripted client.

use super::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// A client, and the server that it has started.
struct Client {
    server: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    requests: i64,
}

impl Client {
    fn start() -> Client {
        let mut server = Command::new(env!("CARGO_BIN_EXE_patsat"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("patsat starts");
        let (to, from) = (server.stdin.take(), server.stdout.take());
        let (to, from) = (to.expect("its input"), BufReader::new(from.expect("its output")));
        Client { server, to, from, requests: 0 }
    }

    /// Starts a server and says hello.
    fn ready() -> Client {
        let mut client = Client::start();
        let answer = client.ask("initialize", &json!({"capabilities": {}}));
        assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true);
        client.tell("initialized", &json!({}));
        client
    }

    fn raw(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).expect("the server reads");
        self.to.flush().expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.raw(&format!("Content-Length: {}\r\n\r\n{text}", text.len()));
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Returns the next message.
    fn next(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("text") > 0, "the server has ended");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(bytes) => length = bytes.parse().expect("a number"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut text = vec![0; length];
        self.from.read_exact(&mut text).expect("a message");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Asks, and returns the answer. Notifications in between are passed over.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let answer = self.next();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Asks about a place: behind `before` in the text of a document.
    fn ask_at(&mut self, what: &str, uri: &str, text: &str, before: &str) -> Value {
        let at = text.find(before).expect("the text has it") + before.len();
        let line = text[..at].matches('\n').count();
        let column = text[..at].rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        let position = json!({"line": line, "character": column});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        self.ask(&format!("textDocument/{what}"), &params)["result"].clone()
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "patsat", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    fn change(&mut self, uri: &str, version: i32, text: &str) {
        let document = json!({"uri": uri, "version": version});
        let changes = json!([{"text": text}]);
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.tell("textDocument/didChange", &params);
    }

    /// Returns the next diagnostics of a document, of this version if one is given.
    fn problems(&mut self, uri: &str, version: Option<i32>) -> Vec<Value> {
        loop {
            let told = self.next();
            let params = &told["params"];
            let newest = version.is_none_or(|v| params["version"] == v);
            if told["method"] == "textDocument/publishDiagnostics" && params["uri"] == uri && newest
            {
                return params["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Waits until the server has ended.
    fn ended(mut self) -> ExitStatus {
        drop(self.to);
        self.server.wait().expect("it ends")
    }

    fn end(mut self) {
        assert_eq!(self.ask("shutdown", &Value::Null)["result"], Value::Null);
        self.tell("exit", &Value::Null);
        assert_eq!(self.ended().code(), Some(0));
    }
}

const URI: &str = "untitled:Untitled-1";

#[test]
fn a_program_is_mended() {
    let mut client = Client::ready();
    let wrong = "-- Größe 𝄞\nentry f [n] (xs: [n]f32) : f32 = reduce (+) 0 (map abs xz)\n";
    client.open(URI, wrong);
    let found = client.problems(URI, Some(1));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("E0201"), &json!(1)));
    let message = found[0]["message"].as_str().expect("a text");
    assert!(
        message.starts_with("nothing is called `xz`") && message.contains("help: did you mean")
    );
    let column = wrong.lines().nth(1).and_then(|l| l.find("xz")).expect("the place");
    assert_eq!(found[0]["range"]["start"], json!({"line": 1, "character": column}));

    let right = wrong.replace("xz", "xs");
    client.change(URI, 2, &right);
    assert_eq!(client.problems(URI, Some(2)), Vec::<Value>::new());

    let hover = client.ask_at("hover", URI, &right, "map abs ");
    assert_eq!(hover["contents"]["value"], "```patsat\nxs: [n]f32\n```");
    let hover = client.ask_at("hover", URI, &right, "= red");
    let text = hover["contents"]["value"].as_str().expect("a text");
    assert!(text.contains("reduce : (a -> a -> a) -> a -> [n]a -> a") && text.contains("Cost"));
    let bound = client.ask_at("definition", URI, &right, "map abs ");
    assert_eq!((&bound["uri"], &bound["range"]["start"]["line"]), (&json!(URI), &json!(1)));
    assert_eq!(bound["range"]["start"]["character"], 13);
    assert_eq!(client.ask_at("definition", URI, &right, "= red"), Value::Null);

    let symbols = client.ask("textDocument/documentSymbol", &json!({"textDocument": {"uri": URI}}));
    assert_eq!(symbols["result"][0]["name"], "f");
    let names = client.ask_at("completion", URI, &right, "= red");
    let labels = names.as_array().expect("a list").iter().map(|c| &c["label"]);
    let labels: Vec<_> = labels.filter_map(Value::as_str).collect();
    assert!(["reduce", "xs", "f", "let"].iter().all(|name| labels.contains(name)), "{labels:?}");
    client.end();
}

#[test]
fn columns_behind_other_characters_are_units_of_utf16() {
    let mut client = Client::ready();
    // The character takes four bytes and two units.
    client.open(URI, "-- a\nentry f (x: f32) : f32 = x + \"𝄞\" + y\n");
    let found = client.problems(URI, Some(1));
    let (start, end) = (&found[0]["range"]["start"], &found[0]["range"]["end"]);
    assert_eq!((&start["character"], &end["character"]), (&json!(29), &json!(33)), "{found:?}");
    client.end();
}

#[test]
fn definitions_stand_in_other_files() {
    let p = Place::new();
    let lib = "-- Twice é.\ndef twice (x: f32) = x + x\n";
    p.file("lib.pat", lib);
    let main = "import \"lib\" -- é\nentry f [n] (xs: [n]f32) : [n]f32 = map twice xs\n";
    let folder = p.path("").canonicalize().expect("a folder").display().to_string();
    p.file("main.pat", main);
    let address = |name: &str| format!("file://{}/{name}", folder.trim_end_matches('/'));
    let (uri, other) = (address("main.pat"), address("lib.pat"));
    let mut client = Client::ready();
    client.open(&uri, main);
    assert_eq!(client.problems(&uri, Some(1)), Vec::<Value>::new());
    let bound = client.ask_at("definition", &uri, main, "map tw");
    assert_eq!(
        (&bound["uri"], &bound["range"]["start"]),
        (&json!(other), &json!({"line": 1, "character": 4}))
    );
    let hover = client.ask_at("hover", &uri, main, "map tw");
    assert_eq!(hover["contents"]["value"], "```patsat\ndef twice (x: f32) : f32\n```\n\nTwice é.");

    // What the editor holds counts, not what is stored. The error stands in the file that is imported.
    client.open(&other, &lib.replace("x + x", "x + y"));
    let found = client.problems(&other, Some(1));
    assert_eq!((found.len(), &found[0]["code"]), (1, &json!("E0201")), "{found:?}");
    client.change(&other, 2, &lib.replace("= x", "= ("));
    let found = client.problems(&other, Some(2));
    assert_eq!(found[0]["code"], "E0102", "{found:?}");
    let found = client.problems(&uri, None);
    assert!(found[0]["message"].as_str().is_some_and(|m| m.contains("has errors")), "{found:?}");
    assert_eq!(found[0]["range"]["start"], json!({"line": 0, "character": 7}));
    // Closed, the stored text counts again.
    client.tell("textDocument/didClose", &json!({"textDocument": {"uri": other}}));
    while !client.problems(&uri, None).is_empty() {}
    client.end();
}

#[test]
fn documents_are_formatted() {
    let mut client = Client::ready();
    let format = |client: &mut Client| {
        let options = json!({"tabSize": 2, "insertSpaces": true});
        let params = json!({"textDocument": {"uri": URI}, "options": options});
        client.ask("textDocument/formatting", &params)["result"].clone()
    };
    assert_eq!(format(&mut client), Value::Null, "no such document");
    client.open(URI, "-- é\nentry f (x:f32) : f32=x+1\n\n-- 𝄞\n");
    let edits = format(&mut client);
    assert_eq!(edits.as_array().map(Vec::len), Some(1));
    assert_eq!(edits[0]["newText"], "entry f (x: f32) : f32 =\n  x + 1\n");
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}});
    assert_eq!(edits[0]["range"], range);
    client.change(URI, 2, "-- é\nentry f (x: f32) : f32 =\n  x + 1\n");
    assert_eq!(format(&mut client), json!([]));
    client.change(URI, 3, "entry f (");
    assert_eq!(format(&mut client), Value::Null);
    client.end();
}

#[test]
fn broken_documents_have_answers() {
    let mut client = Client::ready();
    for (version, text) in
        ["", "entry", "def f x = f x", "𝄞", "import \"\"", "entry f (x: ((((", "\r\n\r\n--"]
            .into_iter()
            .enumerate()
    {
        let version = i32::try_from(version).expect("a few");
        match version {
            0 => client.open(URI, text),
            _ => client.change(URI, version, text),
        }
        for what in ["hover", "definition", "completion"] {
            for (line, character) in [(0, 0), (0, 7), (9, u32::MAX)] {
                let position = json!({"line": line, "character": character});
                let params = json!({"textDocument": {"uri": URI}, "position": position});
                let answer = client.ask(&format!("textDocument/{what}"), &params);
                assert!(answer["error"].is_null(), "{text} {answer}");
            }
        }
    }
    client.change(URI, 8, "entry f (");
    assert!(!client.problems(URI, Some(8)).is_empty());
    // A change of a part, which the server has not asked for, is made all the same.
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let changes = json!([{"range": range, "text": "entry f = 1"}]);
    let document = json!({"uri": URI, "version": 9});
    client.tell(
        "textDocument/didChange",
        &json!({"textDocument": document, "contentChanges": changes}),
    );
    assert_eq!(client.problems(URI, Some(9)), Vec::<Value>::new());
    client.end();
}

#[test]
fn broken_messages_have_answers() {
    let mut client = Client::start();
    let early = client.ask("textDocument/hover", &json!({}));
    assert_eq!(early["error"]["code"], -32002);
    client.ask("initialize", &json!({"capabilities": {}}));
    client.raw("Content-Length: 3\r\n\r\n{\"a");
    assert_eq!(client.next()["error"]["code"], -32700);
    client.raw("no header\r\n\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(client.next()["error"]["code"], -32600);
    assert_eq!(client.ask("textDocument/hover", &json!({"position": 3}))["error"]["code"], -32602);
    assert_eq!(client.ask("textDocument/strange", &json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask("initialize", &json!({"capabilities": {}}))["error"]["code"], -32600);
    for params in [json!(7), json!({"textDocument": {"uri": "%"}}), Value::Null] {
        client.tell("textDocument/didOpen", &params);
        client.tell("textDocument/didChange", &params);
        client.tell("textDocument/didClose", &params);
    }
    client.tell("$/strange", &json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "result": null}));
    client.ask("shutdown", &Value::Null);
    assert_eq!(client.ask("textDocument/hover", &json!({}))["error"]["code"], -32600);
    client.tell("exit", &Value::Null);
    assert_eq!(client.ended().code(), Some(0));
    // The client ends without `shutdown`, or goes away.
    let mut client = Client::ready();
    client.tell("exit", &Value::Null);
    assert_eq!(client.ended().code(), Some(1));
    assert_eq!(Client::ready().ended().code(), Some(0));
}
