//! Export to SVG, with a layout of our own: classes in columns by their distance from the start, a line of
//! text for each node, and a curve from a node to the class of each argument.

use super::Shown;
use egg::Id;
use indexmap::IndexMap;
use std::fmt::Write;

/// Height of a line of text, in pixels.
const LINE: f64 = 16.0;
/// Width of a character of the fixed-width font at that size.
const CHARACTER: f64 = 7.3;
/// Space inside a box, and between boxes of a column.
const PAD: f64 = 8.0;
/// Space between columns.
const GAP: f64 = 90.0;
/// Longest line, in characters; the tooltip has the whole text.
const LONGEST: usize = 56;

struct Square {
    id: Id,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Returns the picture.
pub fn svg(shown: &Shown) -> String {
    let squares = place(shown);
    let right = squares.values().map(|b| b.x + b.width).fold(0.0, f64::max);
    let bottom = squares.values().map(|b| b.y + b.height).fold(0.0, f64::max);
    let note = shown.note();
    let width = right.max(note.chars().count() as f64 * CHARACTER) + PAD;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" \
         font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{PAD}\" y=\"{LINE}\">{}</text>\n",
        bottom + PAD,
        escaped(&note)
    );
    edges(shown, &squares, &mut out);
    // Writing to a `String` cannot fail.
    for square in squares.values() {
        let Some(class) = shown.classes.get(&square.id) else { continue };
        let Square { x, y, width, height, .. } = square;
        let (stroke, fill) = match (square.id == shown.from, class.nodes.is_empty()) {
            (true, _) => ("black", "#fff3c4"),
            (false, true) => ("#999999", "#eeeeee"),
            (false, false) => ("#555555", "#f7f9fc"),
        };
        let _ = writeln!(
            out,
            "<g id=\"class{}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
            square.id
        );
        for (i, text) in lines(shown, square.id).iter().enumerate() {
            let baseline = y + PAD / 2.0 + LINE * (i as f64 + 0.75);
            let colour = if i == 0 { "#777777" } else { "black" };
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{baseline:.1}\" fill=\"{colour}\">{}<title>{}</title></text>",
                x + PAD,
                escaped(&short(text)),
                escaped(text)
            );
        }
        out.push_str("</g>\n");
    }
    out + "</svg>\n"
}

/// Returns a box for each class.
fn place(shown: &Shown) -> IndexMap<Id, Square> {
    let mut columns: Vec<Vec<Id>> = vec![];
    for class in shown.classes.values() {
        if columns.len() <= class.depth {
            columns.resize(class.depth + 1, vec![]);
        }
        columns[class.depth].push(class.id);
    }
    // Put each class at the average height of the nodes that use it.
    let mut pull: IndexMap<Id, (f64, f64)> = IndexMap::new();
    let mut squares: IndexMap<Id, Square> = IndexMap::new();
    let mut x = PAD;
    for column in &mut columns {
        let wish = |id: &Id| pull.get(id).map_or(0.0, |(sum, count)| sum / count);
        column.sort_by(|a, b| wish(a).total_cmp(&wish(b)));
        let mut top = LINE * 2.0;
        let mut widest: f64 = 0.0;
        let mut pulls = vec![];
        for id in column.iter() {
            let texts = lines(shown, *id);
            let longest = texts.iter().map(|t| short(t).chars().count()).max().unwrap_or(0);
            let (width, height) =
                (longest as f64 * CHARACTER + 2.0 * PAD, texts.len() as f64 * LINE + PAD);
            let y = top.max(wish(id) - height / 2.0);
            top = y + height + PAD;
            widest = widest.max(width);
            squares.insert(*id, Square { id: *id, x, y, width, height });
            for (k, node) in shown.classes[id].nodes.iter().enumerate() {
                for to in shown.children(node) {
                    pulls.push((to, y + LINE * (k as f64 + 1.5)));
                }
            }
        }
        for (to, y) in pulls {
            let entry = pull.entry(to).or_insert((0.0, 0.0));
            *entry = (entry.0 + y, entry.1 + 1.0);
        }
        x += widest + GAP;
    }
    squares
}

fn edges(shown: &Shown, squares: &IndexMap<Id, Square>, out: &mut String) {
    for class in shown.classes.values() {
        let Some(from) = squares.get(&class.id) else { continue };
        for (k, node) in class.nodes.iter().enumerate() {
            let (x, y) = (from.x + from.width, from.y + PAD / 2.0 + LINE * (k as f64 + 1.5));
            for to in shown.children(node).iter().filter_map(|to| squares.get(to)) {
                let (ex, ey) = (to.x, to.y + PAD / 2.0 + LINE / 2.0);
                // A curve back to an earlier column goes round and looks different.
                let (bend, style) = match ex > x {
                    true => ((ex - x) / 2.0, "stroke=\"#8899aa\""),
                    false => (GAP / 2.0, "stroke=\"#cc8866\" stroke-dasharray=\"4 3\""),
                };
                let _ = writeln!(
                    out,
                    "<path d=\"M{x:.1} {y:.1} C{:.1} {y:.1} {:.1} {ey:.1} {ex:.1} {ey:.1}\" \
                     fill=\"none\" {style}/>",
                    x + bend,
                    ex - bend
                );
            }
        }
    }
}

/// Returns the lines of a class's box.
fn lines(shown: &Shown, id: Id) -> Vec<String> {
    let class = &shown.classes[&id];
    if class.nodes.is_empty() {
        return vec![format!("class {id} ...")];
    }
    let nodes = class.nodes.iter().map(|node| {
        let to: Vec<String> = shown.children(node).iter().map(ToString::to_string).collect();
        match to.is_empty() {
            true => shown.label(node),
            false => format!("{} [{}]", shown.label(node), to.join(" ")),
        }
    });
    std::iter::once(shown.title(class)).chain(nodes).collect()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}...", &text[..at]),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
