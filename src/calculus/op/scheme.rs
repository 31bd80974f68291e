//! Type schemes: the polymorphic type of an operator, as a text that is read at compile time.
//!
//! `k/ m; A; ; [k*m]A -> [m][k]A` has four parts: the sizes, the types and the function arguments of a node,
//! and the node's type. A size or type with a `!` is written out in the text of a term. So is a size with a
//! `/`, which divides a length and hence is not 0. All others are inferred. An argument is `op: (A, A) -> A`.
//! Types are `()`, `bool`, variables, `(A, B)`, `[n]A`, `<w>A` (vectors of `w`, see [`Ty::vector`]), and `*`,
//! the type that the operator itself carries. Sizes are products and quotients of variables, and 1.
//!
//! [`Ty::vector`]: crate::calculus::ty::Ty::vector

/// Most nodes of a scheme, and most variables of a kind.
const NODES: usize = 64;
pub(super) const VARIABLES: usize = 8;
const ARGS: usize = 5;

/// A type in a scheme. The numbers are those of variables and of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum TyNode {
    Unit,
    Bool,
    Carried,
    Var(u8),
    Pair(u8, u8),
    Array(u8, u8),
    Vector(u8, u8),
}

/// A size in a scheme.
#[derive(Clone, Copy, Debug)]
pub(super) enum SizeNode {
    One,
    Var(u8),
    Times(u8, u8),
    Over(u8, u8),
}

/// The letters of variables.
#[derive(Clone, Copy, Debug)]
struct Letters {
    names: [u8; VARIABLES],
    count: usize,
}

impl Letters {
    const NONE: Letters = Letters { names: [0; VARIABLES], count: 0 };

    #[expect(clippy::cast_possible_truncation, reason = "schemes are short")]
    const fn find(&self, name: u8) -> Option<u8> {
        let mut i = 0;
        while i < self.count {
            if self.names[i] == name {
                return Some(i as u8);
            }
            i += 1;
        }
        None
    }

    #[expect(clippy::cast_possible_truncation, reason = "schemes are short")]
    const fn add(&mut self, name: u8) -> u8 {
        self.names[self.count] = name;
        self.count += 1;
        (self.count - 1) as u8
    }
}

/// A function argument: the place of its name in the text, its argument type and its result type.
#[derive(Clone, Copy, Debug)]
struct Arg {
    name: (usize, usize),
    dom: u8,
    cod: u8,
}

/// The type of an operator.
#[derive(Debug)]
pub struct Scheme {
    text: &'static str,
    sizes: Letters,
    /// Bit `i` of `written`: size `i` is written out; of `divides`: size `i` divides a length.
    written: u8,
    divides: u8,
    /// The types of a node first, then the others.
    types: Letters,
    declared: usize,
    written_type: Option<u8>,
    args: [Arg; ARGS],
    arg_count: usize,
    dom: u8,
    cod: u8,
    ty_nodes: [TyNode; NODES],
    size_nodes: [SizeNode; NODES],
}

impl Scheme {
    /// Reads a scheme. A malformed text is a compile error.
    pub(super) const fn new(text: &'static str) -> Scheme {
        let none = Arg { name: (0, 0), dom: 0, cod: 0 };
        let scheme = Scheme {
            text,
            sizes: Letters::NONE,
            written: 0,
            divides: 0,
            types: Letters::NONE,
            declared: 0,
            written_type: None,
            args: [none; ARGS],
            arg_count: 0,
            dom: 0,
            cod: 0,
            ty_nodes: [TyNode::Unit; NODES],
            size_nodes: [SizeNode::One; NODES],
        };
        let mut reader =
            Reader { text: text.as_bytes(), at: 0, scheme, ty_count: 0, size_count: 0 };
        reader.whole();
        reader.scheme
    }

    /// Returns the numbers of sizes, types and function arguments of a node.
    pub fn shape(&self) -> (usize, usize, usize) {
        (self.sizes.count, self.declared, self.arg_count)
    }

    /// Returns the sizes that are written out, by number.
    pub fn written(&self) -> impl Iterator<Item = usize> + use<> {
        let written = self.written;
        (0..VARIABLES).filter(move |i| written >> i & 1 == 1)
    }

    /// Whether that size divides a length.
    pub fn divides(&self, size: usize) -> bool {
        self.divides >> size & 1 == 1
    }

    /// Returns the number of the type that is written out.
    pub fn written_type(&self) -> Option<usize> {
        self.written_type.map(usize::from)
    }

    /// Returns the name of a function argument.
    pub fn arg_name(&self, i: usize) -> &'static str {
        let (from, to) = self.args[i].name;
        &self.text[from..to]
    }

    /// Returns the argument and the result of the operator.
    pub(super) fn sides(&self) -> [u8; 2] {
        [self.dom, self.cod]
    }

    /// Returns the argument and the result of a function argument.
    pub(super) fn arg(&self, i: usize) -> [u8; 2] {
        [self.args[i].dom, self.args[i].cod]
    }

    pub(super) fn ty(&self, node: u8) -> TyNode {
        self.ty_nodes[usize::from(node)]
    }

    pub(super) fn size(&self, node: u8) -> SizeNode {
        self.size_nodes[usize::from(node)]
    }

    /// Returns the letter of a size variable.
    pub(super) fn size_letter(&self, variable: usize) -> String {
        char::from(self.sizes.names[variable]).to_string()
    }

    /// Returns the letter of a type variable.
    pub(super) fn type_letter(&self, variable: usize) -> String {
        char::from(self.types.names[variable]).to_string()
    }
}

struct Reader {
    text: &'static [u8],
    at: usize,
    scheme: Scheme,
    ty_count: usize,
    size_count: usize,
}

impl Reader {
    const fn peek(&self) -> u8 {
        if self.at < self.text.len() { self.text[self.at] } else { 0 }
    }

    const fn next(&mut self) -> u8 {
        let c = self.peek();
        self.at += 1;
        c
    }

    const fn spaces(&mut self) {
        while self.peek() == b' ' {
            self.at += 1;
        }
    }

    const fn eat(&mut self, c: u8) -> bool {
        self.spaces();
        let hit = self.peek() == c;
        if hit {
            self.at += 1;
        }
        hit
    }

    const fn expect(&mut self, c: u8) {
        assert!(self.eat(c), "a scheme lacks a sign");
    }

    const fn whole(&mut self) {
        while !self.eat(b';') {
            let name = self.next();
            assert!(name.is_ascii_lowercase(), "a size is a small letter");
            let i = self.scheme.sizes.add(name);
            let divides = self.eat(b'/');
            if divides {
                self.scheme.divides |= 1 << i;
            }
            if divides || self.eat(b'!') {
                self.scheme.written |= 1 << i;
            }
        }
        while !self.eat(b';') {
            let name = self.next();
            assert!(name.is_ascii_uppercase(), "a type is a capital letter");
            let i = self.scheme.types.add(name);
            self.scheme.declared += 1;
            if self.eat(b'!') {
                self.scheme.written_type = Some(i);
            }
        }
        while !self.eat(b';') {
            if self.scheme.arg_count > 0 {
                self.expect(b',');
                self.spaces();
            }
            let from = self.at;
            while self.peek().is_ascii_lowercase() {
                self.at += 1;
            }
            let name = (from, self.at);
            self.expect(b':');
            let (dom, cod) = self.function();
            self.scheme.args[self.scheme.arg_count] = Arg { name, dom, cod };
            self.scheme.arg_count += 1;
        }
        (self.scheme.dom, self.scheme.cod) = self.function();
        assert!(self.at == self.text.len(), "a scheme goes on after its end");
    }

    const fn function(&mut self) -> (u8, u8) {
        let dom = self.ty();
        self.expect(b'-');
        self.expect(b'>');
        (dom, self.ty())
    }

    #[expect(clippy::cast_possible_truncation, reason = "schemes are short")]
    const fn ty(&mut self) -> u8 {
        self.spaces();
        let node = match self.next() {
            b'*' => TyNode::Carried,
            b'b' => {
                self.at += "ool".len();
                TyNode::Bool
            }
            b'(' if self.eat(b')') => TyNode::Unit,
            b'(' => {
                let a = self.ty();
                self.expect(b',');
                let b = self.ty();
                self.expect(b')');
                TyNode::Pair(a, b)
            }
            b'[' => {
                let n = self.size();
                self.expect(b']');
                TyNode::Array(n, self.ty())
            }
            b'<' => {
                let w = self.size();
                self.expect(b'>');
                TyNode::Vector(w, self.ty())
            }
            name => {
                assert!(name.is_ascii_uppercase(), "a type was expected");
                TyNode::Var(match self.scheme.types.find(name) {
                    Some(i) => i,
                    None => self.scheme.types.add(name),
                })
            }
        };
        self.scheme.ty_nodes[self.ty_count] = node;
        self.ty_count += 1;
        (self.ty_count - 1) as u8
    }

    const fn size(&mut self) -> u8 {
        let mut left = self.factor();
        loop {
            let node = if self.eat(b'*') {
                SizeNode::Times(left, self.factor())
            } else if self.eat(b'/') {
                SizeNode::Over(left, self.factor())
            } else {
                return left;
            };
            left = self.size_node(node);
        }
    }

    const fn factor(&mut self) -> u8 {
        self.spaces();
        let node = match self.next() {
            b'1' => SizeNode::One,
            name => match self.scheme.sizes.find(name) {
                Some(i) => SizeNode::Var(i),
                None => panic!("a size that the scheme does not declare"),
            },
        };
        self.size_node(node)
    }

    #[expect(clippy::cast_possible_truncation, reason = "schemes are short")]
    const fn size_node(&mut self, node: SizeNode) -> u8 {
        self.scheme.size_nodes[self.size_count] = node;
        self.size_count += 1;
        (self.size_count - 1) as u8
    }
}
