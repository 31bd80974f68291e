//! Renders a derivation as a self-contained HTML page, light or dark according to the reader's system.

use super::explain::{bindings, holding, law, round};
use super::report::sizes;
use crate::calculus::text::marked;
use crate::saturate::explain::{Derivation, Part, Step, StepLaw};
use crate::session::{Explained, Replay, StepCheck};

/// The style sheet that all pages share.
pub(super) const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1c2024; --faint: #5b6570; --page: #ffffff; --card: #f5f6f8;
  --line: #d9dde2; --old: #ffd9d6; --new: #cdf0d3; --good: #1a7f37; --bad: #c62828; --link: #1858b8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ed; --faint: #9aa4af; --page: #14171a; --card: #1d2126; --line: #343a42;
    --old: #5c2522; --new: #1d4a29; --good: #56d364; --bad: #ff7b72; --link: #79b0ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
a { color: var(--link); }
code { font: .875rem/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { margin: .25rem 0; padding: .5rem .75rem; white-space: pre-wrap; background: var(--card); border-radius: 6px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 0 1rem; }
dt, .faint { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0; padding: 0 .75rem; }
details > *:last-child { margin-bottom: .75rem; }
summary { cursor: pointer; padding: .5rem 0; }
summary b { font-family: ui-monospace, monospace; }
del, ins { text-decoration: none; border-radius: 3px; padding: .05rem .1rem; }
del { background: var(--old); }
ins { background: var(--new); }
.good { color: var(--good); }
.bad { color: var(--bad); font-weight: 600; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
";

/// Renders the page.
pub fn page(e: &Explained, replayed: Option<&Replay>) -> String {
    let d = &e.derivation;
    let title = format!("{} {}", e.entry, sizes(&e.sizes));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - patsat explain</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{}</h1>\n<dl>\n",
        escaped(&title),
        escaped(&title)
    );
    let mut row = |what: &str, text: &str| {
        out.push_str(&format!("<dt>{what}</dt><dd>{}</dd>\n", escaped(text)));
    };
    row("program", &e.file);
    row("device", &e.device.label());
    row("rules", &format!("{}, float {}", e.rules, e.float.name()));
    let graph = &e.report;
    let text = format!("{} nodes in {} classes, {}", graph.nodes, graph.classes, graph.stop_reason);
    row("e-graph", &text);
    row("derivation", &format!("{} steps, {}", d.steps.len(), holding(e)));
    if let Some(r) = replayed {
        row("checked at", &r.rounds.iter().map(round).collect::<Vec<_>>().join("; "));
    }
    out.push_str(
        "</dl>\n<p class=\"faint\">Each step shows the term before it, the replaced part in ",
    );
    out.push_str(
        "<del>this colour</del>, and the term after it, the new part in <ins>this</ins>.</p>\n",
    );
    let start = escaped(&d.start.to_string());
    out.push_str(&format!("<h2>Program</h2>\n<pre><code>{start}</code></pre>\n<h2>Steps</h2>\n"));
    out.push_str(&steps("step", d, replayed));
    let goal = escaped(&d.goal().to_string());
    out.push_str(&format!("<h2>Result</h2>\n<pre><code>{goal}</code></pre>\n"));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Renders the steps of a derivation, which the reader can fold. Their ids on the page begin with `id`.
pub(super) fn steps(id: &str, d: &Derivation, replayed: Option<&Replay>) -> String {
    let check = |i| replayed.and_then(|r| r.steps.get(i));
    d.steps.iter().enumerate().map(|(i, s)| step(id, i, s, check(i))).collect()
}

fn step(id: &str, i: usize, s: &Step, check: Option<&StepCheck>) -> String {
    let ok = s.holds() && check.is_none_or(|c| c.ok);
    let (class, verdict) = if ok { ("good", "holds") } else { ("bad", "fails") };
    let mut out = format!(
        "<details id=\"{id}-{n}\" open>\n<summary>{n}. <b>{}</b> <span class=\"faint\">{}</span> {} \
         <span class=\"{class}\">{verdict}</span></summary>\n",
        escaped(&s.rule),
        escaped(&law(s)),
        escaped(&s.says),
        n = i + 1,
    );
    if !s.statement.is_empty() {
        let statement = escaped(&s.statement);
        out.push_str(&format!("<pre><code>{statement}</code></pre>\n"));
    }
    out.push_str("<ul>\n");
    let mut item = |class: &str, text: &str| {
        out.push_str(&format!("<li class=\"{class}\">{}</li>\n", escaped(text)));
    };
    if s.law != StepLaw::Choice {
        item("", &format!("Where: {}", s.place));
    }
    let bound = bindings(s);
    if !bound.is_empty() {
        item("", &bound.join(", "));
    }
    if !s.matched {
        item("bad", "The rule does not match there.");
    }
    for c in &s.conditions {
        let (class, verdict) = if c.holds { ("good", "holds") } else { ("bad", "fails") };
        item(class, &format!("{} {verdict}: {}", c.condition, c.values));
    }
    if let Some(c) = check {
        item(if c.ok { "good" } else { "bad" }, &format!("In the interpreter: {}.", c.says));
    }
    out.push_str("</ul>\n");
    if s.law != StepLaw::Choice {
        out.push_str(&term(&s.before, "del"));
    }
    out.push_str(&term(&s.after, "ins"));
    out.push_str("</details>\n");
    out
}

/// Renders a term, with the changed part inside an element.
fn term(part: &Part, element: &str) -> String {
    let (text, at) = marked(&part.term, &part.at);
    if part.is_whole() {
        return format!("<pre><code>{}</code></pre>\n", escaped(&text));
    }
    format!(
        "<pre><code>{}<{element}>{}</{element}>{}</code></pre>\n",
        escaped(&text[..at.start]),
        escaped(&text[at.clone()]),
        escaped(&text[at.end..])
    )
}

/// Escapes text for HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
