//! What ranks have in common: ranks with the same loops and calls are one group, in which each number is the same on all,
//! an affine function of the rank, or in a table.

use crate::HashMap;
use crate::replay_code::program::{Node, Think};

/// A number as a function of the rank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    Same(i64),
    /// `base + step * rank`
    Affine {
        base: i64,
        step: i64,
    },
    /// By the position of the rank in its group.
    Table(Vec<i64>),
}

impl Value {
    /// The same with a number added.
    pub fn plus(&self, number: i64) -> Self {
        match self {
            Self::Same(value) => Self::Same(value.wrapping_add(number)),
            Self::Affine { base, step } => Self::Affine { base: base.wrapping_add(number), step: *step },
            Self::Table(values) => Self::Table(values.iter().map(|value| value.wrapping_add(number)).collect()),
        }
    }
}

/// A value that grows with the loops around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    pub base: Value,
    /// Depth of a loop, 0 for the outermost, and what is added with each of its repetitions.
    pub steps: Vec<(usize, Value)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Call { function: usize, args: Vec<Expr>, think_ns: i64 },
    Loop { depth: usize, count: Value, body: Vec<Step> },
}

/// Ranks that make the same calls, with different numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub ranks: Vec<i64>,
    pub steps: Vec<Step>,
}

/// Puts ranks that differ only in numbers together.
pub fn group(ranks: &[Vec<Node>]) -> Vec<Group> {
    let mut by_shape = HashMap::<Vec<usize>, Vec<usize>>::default();
    for (rank, nodes) in ranks.iter().enumerate() {
        let mut shape = Vec::new();
        outline(nodes, &mut shape);
        by_shape.entry(shape).or_default().push(rank);
    }
    let mut groups: Vec<Vec<usize>> = by_shape.into_values().collect();
    groups.sort_unstable();
    groups.into_iter().map(|members| of(&members, ranks)).collect()
}

fn of(members: &[usize], ranks: &[Vec<Node>]) -> Group {
    let numbers: Vec<Vec<i64>> = members.iter().map(|rank| numbers_of(&ranks[*rank])).collect();
    let ids: Vec<i64> = members.iter().map(|rank| *rank as i64).collect();
    let len = numbers.first().map_or(0, Vec::len);
    let column = |at: usize| numbers.iter().map(|of_rank| of_rank[at]).collect::<Vec<i64>>();
    let mut values = (0..len).map(|at| value(&ids, column(at)));
    let mut thinks = Vec::new();
    for rank in members {
        let mut at = 0;
        add_thinks(&ranks[*rank], &mut thinks, &mut at);
    }
    let mut thinks = thinks.into_iter();
    let steps = members.first().map_or_else(Vec::new, |rank| build(&ranks[*rank], 0, &mut values, &mut thinks));
    Group { ranks: ids, steps }
}

/// The rows and loops, without any number.
fn outline(nodes: &[Node], shape: &mut Vec<usize>) {
    for node in nodes {
        match node {
            Node::Call(call) => shape.extend([call.function, call.args.len()]),
            Node::Loop(inner) => {
                shape.push(usize::MAX);
                outline(&inner.body, shape);
                shape.push(usize::MAX - 1);
            }
        }
    }
}

/// All numbers in the order in which [`build`] takes them.
fn numbers_of(nodes: &[Node]) -> Vec<i64> {
    let mut all = Vec::new();
    for node in nodes {
        match node {
            Node::Call(call) => all.extend(&call.args),
            Node::Loop(inner) => {
                all.push(inner.count);
                all.extend(numbers_of(&inner.body));
                all.extend(&inner.steps);
            }
        }
    }
    all
}

fn add_thinks(nodes: &[Node], thinks: &mut Vec<Think>, at: &mut usize) {
    for node in nodes {
        match node {
            Node::Call(call) => {
                if thinks.len() == *at {
                    thinks.push(Think::default());
                }
                thinks[*at].add(call.think);
                *at += 1;
            }
            Node::Loop(inner) => add_thinks(&inner.body, thinks, at),
        }
    }
}

fn value(ranks: &[i64], numbers: Vec<i64>) -> Value {
    let first = numbers.first().copied().unwrap_or(0);
    if numbers.iter().all(|number| *number == first) {
        return Value::Same(first);
    }
    affine(ranks, &numbers).unwrap_or(Value::Table(numbers))
}

fn affine(ranks: &[i64], numbers: &[i64]) -> Option<Value> {
    let ([r0, r1, ..], [n0, n1, ..]) = (ranks, numbers) else { return None };
    let (run, rise) = (r1.checked_sub(*r0)?, n1.checked_sub(*n0)?);
    let step = rise.checked_div(run).filter(|step| step.checked_mul(run) == Some(rise))?;
    let base = n0.checked_sub(step.checked_mul(*r0)?)?;
    let fits = |(rank, number): (&i64, &i64)| step.checked_mul(*rank)?.checked_add(base).map(|is| is == *number);
    ranks.iter().zip(numbers).all(|pair| fits(pair) == Some(true)).then_some(Value::Affine { base, step })
}

fn build(
    nodes: &[Node],
    depth: usize,
    values: &mut dyn Iterator<Item = Value>,
    thinks: &mut dyn Iterator<Item = Think>,
) -> Vec<Step> {
    let next = |values: &mut dyn Iterator<Item = Value>| values.next().unwrap_or(Value::Same(0));
    let mut steps = Vec::new();
    for node in nodes {
        match node {
            Node::Call(call) => {
                let args = call.args.iter().map(|_| Expr { base: next(values), steps: Vec::new() }).collect();
                let think_ns = thinks.next().unwrap_or_default().mean_ns();
                steps.push(Step::Call { function: call.function, args, think_ns });
            }
            Node::Loop(inner) => {
                let count = next(values);
                let mut body = build(&inner.body, depth + 1, values, thinks);
                grow(&mut body, depth, &mut || next(values));
                steps.push(Step::Loop { depth, count, body });
            }
        }
    }
    steps
}

/// Adds what each argument grows by in the loop at this depth.
fn grow(steps: &mut [Step], depth: usize, next: &mut dyn FnMut() -> Value) {
    for step in steps {
        match step {
            Step::Call { args, .. } => {
                for arg in args {
                    let step = next();
                    if step != Value::Same(0) {
                        arg.steps.insert(0, (depth, step));
                    }
                }
            }
            Step::Loop { body, .. } => grow(body, depth, next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay_code::loops::Folder;
    use crate::replay_code::program::Call;
    use proptest::prelude::*;

    impl Value {
        fn on(&self, rank: i64, member: usize) -> i64 {
            match self {
                Self::Same(value) => *value,
                Self::Affine { base, step } => base + step * rank,
                Self::Table(values) => values[member],
            }
        }
    }

    /// The calls that a rank of a group makes.
    fn run(steps: &[Step], rank: i64, member: usize, at: &mut Vec<i64>, calls: &mut Vec<(usize, Vec<i64>)>) {
        for step in steps {
            match step {
                Step::Call { function, args, .. } => {
                    let of = |arg: &Expr| {
                        let grown = arg.steps.iter().map(|(depth, by)| by.on(rank, member).wrapping_mul(at[*depth]));
                        grown.fold(arg.base.on(rank, member), i64::wrapping_add)
                    };
                    calls.push((*function, args.iter().map(of).collect()));
                }
                Step::Loop { depth, count, body } => {
                    assert_eq!(*depth, at.len());
                    for i in 0..count.on(rank, member) {
                        at.push(i);
                        run(body, rank, member, at, calls);
                        at.pop();
                    }
                }
            }
        }
    }

    fn folded(calls: &[(usize, Vec<i64>)]) -> Vec<Node> {
        let mut folder = Folder::new(usize::MAX);
        for (row, args) in calls {
            folder.push(Call { function: *row, args: args.clone(), think: Think::of(5) }).unwrap();
        }
        folder.finish()
    }

    #[test]
    fn offsets_by_rank_are_affine() {
        let of = |rank: i64| (0..100).map(|i| (1, vec![rank * 1000 + i * 4000, 1000])).collect::<Vec<_>>();
        let groups = group(&(0..4).map(|rank| folded(&of(rank))).collect::<Vec<_>>());
        let [Group { ranks, steps }] = groups.as_slice() else { panic!("{groups:?}") };
        assert_eq!(ranks, &[0, 1, 2, 3]);
        let [Step::Loop { count: Value::Same(100), body, .. }] = steps.as_slice() else { panic!("{steps:?}") };
        let offset = Expr { base: Value::Affine { base: 0, step: 1000 }, steps: vec![(0, Value::Same(4000))] };
        let size = Expr { base: Value::Same(1000), steps: Vec::new() };
        assert_eq!(body, &[Step::Call { function: 1, args: vec![offset, size], think_ns: 5 }]);
    }

    proptest! {
        #[test]
        fn each_rank_makes_its_calls(ranks in prop::collection::vec(
            prop::collection::vec((0..2_usize, prop::collection::vec(0..3_i64, 2)), 0..40), 1..5)) {
            let groups = group(&ranks.iter().map(|calls| folded(calls)).collect::<Vec<_>>());
            for group in groups {
                for (member, rank) in group.ranks.iter().enumerate() {
                    let mut calls = Vec::new();
                    run(&group.steps, *rank, member, &mut Vec::new(), &mut calls);
                    prop_assert_eq!(&calls, &ranks[*rank as usize]);
                }
            }
        }
    }
}
