//! The groups of a program as functions: loops and calls with values by rank, as every language has them.

use crate::replay_code::calls::{Arg, Row, parts};
use crate::replay_code::program::Program;
use crate::replay_code::ranks::{Expr, Group, Step, Value};

/// Think time that is worth a call.
const SHORTEST_THINK_NS: i64 = 1000;

/// How a language writes what programs are made of.
pub trait Syntax {
    /// The statements of a call, one on each line, with names in braces: `{0}` is the first argument, `{op}` the name
    /// in the trace.
    fn statements(&self, row: &Row, op: &str) -> &'static str;
    /// What another name in braces is.
    fn word(&self, name: &str, op: &str, args: &[Expr]) -> String;
    /// An argument whose text is `text`.
    fn argument(&self, kind: Arg, arg: &Expr, text: String) -> String;
    /// Start or count of a selection.
    fn list(&self, values: Vec<String>) -> String;
    /// What starts count from.
    fn first(&self) -> i64;
    fn number(&self, value: i64) -> String;
    /// The value of this rank in a table.
    fn table(&self, number: usize) -> String;
    /// What is before and behind the body of a function; `loops` are inside of each other.
    fn function(&self, name: &str, ranks: &str, loops: usize) -> [String; 2];
    fn repeated(&self, variable: &str, count: &str) -> [String; 2];
    fn think(&self, ns: i64) -> String;
    /// A line of a function's body.
    fn line(&self, text: &str, indent: usize) -> String;
}

pub struct Writer<'a, S> {
    syntax: S,
    keep_time: bool,
    program: &'a Program,
    /// Values by position of the rank.
    pub tables: Vec<Vec<i64>>,
    pub text: String,
}

impl<'a, S: Syntax> Writer<'a, S> {
    pub const fn new(syntax: S, program: &'a Program, keep_time: bool) -> Self {
        Self { syntax, keep_time, program, tables: Vec::new(), text: String::new() }
    }

    pub fn function(&mut self, group: &Group) {
        let ranks: Vec<String> = group.ranks.iter().map(i64::to_string).collect();
        let comment = if ranks.len() > 16 { format!("{} ranks", ranks.len()) } else { ranks.join(", ") };
        let [begin, end] = self.syntax.function(&name(group), &comment, loops(&group.steps));
        self.text.push_str(&begin);
        self.steps(&group.steps, 1);
        self.text.push_str(&end);
    }

    fn steps(&mut self, steps: &[Step], indent: usize) {
        for step in steps {
            match step {
                Step::Call { function, args, think_ns } => {
                    if self.keep_time && *think_ns >= SHORTEST_THINK_NS {
                        self.line(&self.syntax.think(*think_ns), indent);
                    }
                    for statement in self.statements(*function, args).lines() {
                        self.line(statement, indent);
                    }
                }
                Step::Loop { depth, count, body } => {
                    let count = self.value(count);
                    let [begin, end] = self.syntax.repeated(&variable(*depth), &count);
                    self.line(&begin, indent);
                    self.steps(body, indent + 1);
                    self.line(&end, indent);
                }
            }
        }
    }

    fn line(&mut self, text: &str, indent: usize) {
        self.text.push_str(&self.syntax.line(text, indent));
    }

    fn statements(&mut self, function: usize, args: &[Expr]) -> String {
        let Some((row, op)) = parts(function) else { return String::new() };
        let op = self.program.ops.get(op).map_or("", String::as_str);
        let mut out = String::new();
        let mut rest = self.syntax.statements(row, op);
        // `{` is also in C: a name in braces is one of ours.
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(before);
            out.push_str(&self.value_of(name, op, row.args, args));
            rest = behind;
        }
        out + rest
    }

    /// What a name in braces is.
    fn value_of(&mut self, name: &str, op: &str, kinds: &[Arg], args: &[Expr]) -> String {
        let selection = args.get(kinds.len().saturating_sub(1)..).unwrap_or_default();
        let (start, count) = selection.split_at(selection.len() / 2);
        match name {
            "op" => op.to_owned(),
            "start" => self.list(start, self.syntax.first()),
            "count" => self.list(count, 0),
            _ => {
                let Ok(at) = name.parse::<usize>() else { return self.syntax.word(name, op, args) };
                let (Some(kind), Some(arg)) = (kinds.get(at), args.get(at)) else { return String::new() };
                let text = self.expr(arg, 0);
                self.syntax.argument(*kind, arg, text)
            }
        }
    }

    fn list(&mut self, values: &[Expr], first: i64) -> String {
        let values = values.iter().map(|value| self.expr(value, first)).collect();
        self.syntax.list(values)
    }

    /// A value, with a number added.
    fn expr(&mut self, expr: &Expr, added: i64) -> String {
        let base = expr.base.plus(added);
        let mut parts = Vec::new();
        if base != Value::Same(0) || expr.steps.is_empty() {
            parts.push(self.value(&base));
        }
        for (depth, step) in &expr.steps {
            let i = variable(*depth);
            parts.push(match step {
                Value::Same(1) => i,
                Value::Affine { .. } => format!("({}) * {i}", self.value(step)),
                _ => format!("{} * {i}", self.value(step)),
            });
        }
        parts.join(" + ").replace("+ -", "- ")
    }

    fn value(&mut self, value: &Value) -> String {
        let number = |value: i64| self.syntax.number(value);
        match value {
            Value::Same(value) => number(*value),
            Value::Affine { base: 0, step: 1 } => "rank".into(),
            Value::Affine { base: 0, step } => format!("{} * rank", number(*step)),
            Value::Affine { base, step: 1 } => format!("{} + rank", number(*base)),
            Value::Affine { base, step } => {
                format!("{} + {} * rank", number(*base), number(*step)).replace("+ -", "- ")
            }
            Value::Table(values) => {
                let at = self.tables.iter().position(|table| table == values).unwrap_or_else(|| {
                    self.tables.push(values.clone());
                    self.tables.len() - 1
                });
                self.syntax.table(at)
            }
        }
    }
}

/// The function of a group.
pub fn name(group: &Group) -> String {
    let first = group.ranks.first().copied().unwrap_or(0);
    if group.ranks.len() == 1 { format!("rank_{first}") } else { format!("ranks_from_{first}") }
}

/// How many loops are inside of each other.
fn loops(steps: &[Step]) -> usize {
    let inside = |step: &Step| match step {
        Step::Loop { body, .. } => 1 + loops(body),
        Step::Call { .. } => 0,
    };
    steps.iter().map(inside).max().unwrap_or(0)
}

/// The variable of the loop at a depth.
pub fn variable(depth: usize) -> String {
    ["i", "j", "k", "l", "m", "n"].get(depth).map_or_else(|| format!("i{depth}"), |name| (*name).into())
}
