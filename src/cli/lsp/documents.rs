//! The texts that an editor holds, and the files behind them.

use super::position::{offset, range};
use crate::diag::{Source, Span};
use crate::session::with_imports_by;
use lsp_types::{Location, TextDocumentContentChangeEvent, Uri};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// A text that is open in the editor.
pub struct Document {
    /// Its address.
    pub uri: Uri,
    /// The editor's number of this state.
    pub version: i32,
    /// The text, as source code. The name is the path of the file, or the address of what is no file.
    pub source: Arc<Source>,
    /// The file without links, if there is one.
    file: Option<PathBuf>,
}

/// All texts that are open, by address.
#[derive(Default)]
pub struct Documents(BTreeMap<String, Document>);

impl Documents {
    /// Opens a text.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) {
        let path = path(&uri);
        let name = path.as_ref().map_or(uri.to_string(), |p| p.display().to_string());
        let file = path.map(|p| p.canonicalize().unwrap_or(p));
        let source = Source::new(name, text);
        self.0.insert(uri.to_string(), Document { uri, version, source, file });
    }

    /// Changes a text. What names a range replaces it; what does not is the whole text.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) {
        let Some(document) = self.0.get_mut(uri.as_str()) else { return };
        let mut text = document.source.text.clone();
        for change in changes {
            match change.range {
                Some(range) => {
                    let start = offset(&text, range.start);
                    let end = offset(&text, range.end).max(start);
                    text.replace_range(start..end, &change.text);
                }
                None => text = change.text,
            }
        }
        document.version = version;
        document.source = Source::new(document.source.name.clone(), text);
    }

    /// Closes a text.
    pub fn close(&mut self, uri: &Uri) {
        self.0.remove(uri.as_str());
    }

    /// Returns an open text.
    pub fn get(&self, uri: &str) -> Option<&Document> {
        self.0.get(uri)
    }

    /// Returns the addresses of the open texts that may import others.
    pub fn importing(&self) -> impl Iterator<Item = String> {
        let importing = self.0.iter().filter(|(_, d)| d.source.text.contains("import"));
        importing.map(|(uri, _)| uri.clone())
    }

    /// Returns the text of a document with those of the files that it imports, as the editor holds them.
    ///
    /// # Errors
    /// Those of [`with_imports_by`].
    pub fn joined(&self, document: &Document) -> crate::diag::Result<Arc<Source>> {
        with_imports_by(&document.source, &|file| self.text(file))
    }

    /// Returns the text of a file without links in its path, as the editor holds it.
    fn text(&self, file: &Path) -> io::Result<String> {
        let open = self.0.values().find(|d| d.file.as_deref() == Some(file));
        open.map_or_else(|| fs::read_to_string(file), |d| Ok(d.source.text.clone()))
    }

    /// Returns a place of a text that may be joined from several, in the file that it belongs to.
    pub fn location(&self, source: &Source, span: Span) -> Option<Location> {
        let (name, part) = source.part(span.start as usize);
        let within = |at: u32| (at as usize).saturating_sub(part.start);
        let span = Span::new(within(span.start), within(span.end));
        if let Some(open) = self.0.values().find(|d| d.source.name == name) {
            return Some(Location { uri: open.uri.clone(), range: range(&open.source.text, span) });
        }
        let file = Path::new(name).canonicalize().ok()?;
        // In the joined text, what a file imports is blank, with other columns behind it.
        let text = self.text(&file).ok()?;
        let open = self.0.values().find(|d| d.file.as_ref() == Some(&file));
        let uri = open.map_or_else(|| address(&file), |d| Some(d.uri.clone()))?;
        Some(Location { uri, range: range(&text, span) })
    }
}

/// Returns the file that an address names.
fn path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // The name of the machine may stand in front.
    let encoded = rest.get(rest.find('/')?..)?;
    let mut bytes = vec![];
    let mut parts = encoded.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.bytes());
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Returns the address of a file.
fn address(file: &Path) -> Option<Uri> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b);
    let encode = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    let path: String = file.to_str()?.bytes().map(encode).collect();
    Uri::from_str(&format!("file://{path}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_addresses() {
        for (file, uri) in [("/a/b.pat", "file:///a/b.pat"), ("/ü %/c", "file:///%C3%BC%20%25/c")]
        {
            let made = address(Path::new(file)).expect("an address");
            assert_eq!((made.as_str(), path(&made)), (uri, Some(PathBuf::from(file))));
        }
        for other in ["untitled:Untitled-1", "file:///a%FF", "file:///%4"] {
            assert_eq!(Uri::from_str(other).ok().and_then(|uri| path(&uri)), None, "{other}");
        }
    }
}
