//! Records: their patterns, expressions and updates.

use super::{Parse, Parser};
use crate::lang::ast::{Expr, ExprKind, Name, PatKind};
use crate::lang::lexer::Tok;

impl Parser<'_> {
    /// Parses `{x = p, y}` as a pattern.
    pub(super) fn record_pattern(&mut self) -> Parse<PatKind> {
        let pattern = |this: &mut Self| this.nested(Self::typed_pattern);
        Ok(PatKind::Record(self.fields(pattern)?))
    }

    /// Parses `{x = e, y}`.
    pub(super) fn record(&mut self) -> Parse<Expr> {
        let start = self.span();
        let fields = self.fields(Self::expr)?;
        let depths: Vec<_> =
            fields.iter().map(|(_, e)| e.as_ref().map_or(0, |e| e.depth)).collect();
        self.node(ExprKind::Record(fields), start, &depths)
    }

    /// Parses fields between braces. `= part` may be left out of a field.
    fn fields<T>(&mut self, part: impl Fn(&mut Self) -> Parse<T>) -> Parse<Vec<(Name, Option<T>)>> {
        self.expect("{", "before the fields")?;
        let mut fields = vec![];
        loop {
            let name = self.name("the name of a field")?;
            let part = if self.eat("=") { Some(part(self)?) } else { None };
            fields.push((name, part));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", "after the fields")?;
        Ok(fields)
    }

    /// Parses an update of a field of `whole`, behind `with`.
    pub(super) fn field_update(&mut self, whole: Expr) -> Parse<Expr> {
        let mut path = vec![self.name("the name of the field that changes")?];
        while self.tok() == Tok::Field {
            let span = self.advance().span;
            path.push(Name { text: self.text(span).trim_start_matches('.').to_owned(), span });
        }
        self.expect("=", "and the new value")?;
        let value = self.operators(0)?;
        let (start, depths) = (whole.span, [whole.depth + path.len(), value.depth]);
        self.node(ExprKind::Update(Box::new(whole), path, Box::new(value)), start, &depths)
    }
}
