//! The lines of `--json` have the layouts of docs/json-lines.schema.json. Only the words of JSON Schema that stand there are
//! understood here.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;

fn document(name: &str) -> String {
    let path = format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the layouts of lines, by name.
fn layouts() -> Map<String, Value> {
    let schema: Value = serde_json::from_str(&document("json-lines.schema.json")).expect("JSON");
    let layouts = schema["$defs"].as_object().expect("layouts").clone();
    let listed = schema["anyOf"].as_array().expect("the layouts of a line");
    assert!(listed.len() == layouts.len() && listed.iter().all(|l| l["$ref"].is_string()));
    layouts
}

/// Returns why a value does not have the type that a property says.
fn wrong(value: &Value, property: &Value) -> Option<String> {
    let is = |ty: &str| match ty {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("no type: {ty}"),
    };
    let fits = match (&property["const"], &property["type"]) {
        (Value::Null, Value::String(ty)) => is(ty),
        (Value::Null, Value::Array(types)) => types.iter().any(|ty| ty.as_str().is_some_and(is)),
        (constant, _) => value == constant,
    };
    if !fits {
        return Some(format!("{value} is not {property}"));
    }
    let (parts, of): (Vec<&Value>, _) = match value {
        Value::Array(items) => (items.iter().collect(), &property["items"]),
        Value::Object(fields) => (fields.values().collect(), &property["additionalProperties"]),
        _ => return None,
    };
    parts.into_iter().filter(|_| of.is_object()).find_map(|part| wrong(part, of))
}

/// Returns the differences of a line from a layout.
fn differences(line: &Value, layout: &Value) -> Vec<String> {
    let (fields, known) = (line.as_object().expect("an object"), &layout["properties"]);
    let mut found = vec![];
    for (name, value) in fields {
        match known.get(name) {
            Some(property) => found.extend(wrong(value, property).map(|e| format!("{name}: {e}"))),
            None => found.push(format!("{name} is not in the schema")),
        }
    }
    let required = layout["required"].as_array().expect("names").iter().filter_map(Value::as_str);
    found.extend(required.filter(|n| !fields.contains_key(*n)).map(|n| format!("no {n}")));
    found
}

/// Requires that the lines that a command prints with `--json` are in the schema.
pub fn check(command: &str, stdout: &str) {
    let layouts = layouts();
    // What is asked for is printed as it is, also with `--json`.
    for line in stdout.lines().filter(|line| line.starts_with(r#"{"v":1,"#)) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let kind = |layout: &&Value| layout["properties"]["type"]["const"] == line["type"];
        let all = layouts.values().filter(kind).map(|layout| differences(&line, layout));
        let nearest = all.min_by_key(Vec::len);
        let nearest = nearest.unwrap_or_else(|| panic!("{command}: no layout of {line}"));
        assert!(nearest.is_empty(), "{command}: {nearest:#?}\nin {line}");
    }
}

#[test]
fn every_type_of_line_is_in_the_reference() {
    let page = document("json-lines.md");
    let rows = page.lines().filter_map(|l| l.strip_prefix("| `")?.split(" | ").next());
    let said = rows.flat_map(|cell| cell.split('`').step_by(2));
    let said: BTreeSet<&str> = said.filter(|name| *name != "type").collect();
    let layouts = layouts();
    let types = layouts.values().filter_map(|l| l["properties"]["type"]["const"].as_str());
    let types: BTreeSet<&str> = types.collect();
    assert_eq!(said, types);
}
