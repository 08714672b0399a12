//! Finds loops in a stream of calls while it is read: a sequence that comes three times, each time with arguments that
//! grew by the same steps, is a loop; so are sequences of loops.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Result, bail};

use crate::replay_code::program::{Call, Loop, Node, arguments, join_think, same_shape};

/// Nodes of the longest body that is looked for.
const LONGEST_BODY: usize = 64;
/// So many repetitions make a loop: two sequences can always be taken for one.
const REPETITIONS: usize = 3;

/// The calls so far, with loops instead of what is repeated.
pub struct Folder {
    nodes: Vec<Node>,
    /// Of each node: equal for nodes of the same shape.
    shapes: Vec<u64>,
    limit: usize,
}

impl Folder {
    pub const fn new(limit: usize) -> Self {
        Self { nodes: Vec::new(), shapes: Vec::new(), limit }
    }

    /// # Errors
    /// When there are more calls that are not in loops than the limit allows.
    pub fn push(&mut self, call: Call) -> Result<()> {
        self.add(Node::Call(call));
        while self.extend() || self.create() {}
        if self.nodes.len() > self.limit {
            bail!(
                "a rank has more than {} calls that are in no loop; replay fewer files (--file PATTERN) or a higher \
                 layer (--layer), or raise --limit",
                self.limit
            );
        }
        Ok(())
    }

    pub fn finish(self) -> Vec<Node> {
        self.nodes
    }

    fn add(&mut self, node: Node) {
        let mut hasher = DefaultHasher::new();
        hash(&node, &mut hasher);
        self.shapes.push(hasher.finish());
        self.nodes.push(node);
    }

    fn cut(&mut self, len: usize) -> Vec<Node> {
        self.shapes.truncate(len);
        self.nodes.split_off(len)
    }

    /// Makes the last nodes one more repetition of the loop before them.
    fn extend(&mut self) -> bool {
        let len = self.nodes.len();
        for body in 1..=LONGEST_BODY.min(len.saturating_sub(1)) {
            let at = len - body - 1;
            let (before, last) = self.nodes.split_at(at + 1);
            let Some(Node::Loop(found)) = before.last() else { continue };
            if found.body.len() != body || !same_shape(&found.body, last) {
                continue;
            }
            let next = arguments(&found.body).into_iter().zip(&found.steps);
            if !next.map(|(first, step)| first.wrapping_add(step.wrapping_mul(found.count))).eq(arguments(last)) {
                continue;
            }
            let last = self.cut(at + 1);
            if let Some(Node::Loop(mut found)) = self.cut(at).pop() {
                found.count = found.count.saturating_add(1);
                join_think(&mut found.body, &last);
                self.add(Node::Loop(found));
            }
            return true;
        }
        false
    }

    /// Makes a loop of the last nodes where they are three repetitions.
    fn create(&mut self) -> bool {
        let len = self.nodes.len();
        for body in 1..=LONGEST_BODY.min(len / REPETITIONS) {
            let from = len - REPETITIONS * body;
            let shapes = &self.shapes[from..];
            if shapes[..body] != shapes[body..2 * body] || shapes[..body] != shapes[2 * body..] {
                continue;
            }
            let last = &self.nodes[from..];
            let [first, second, third] = [&last[..body], &last[body..2 * body], &last[2 * body..]];
            if !same_shape(first, second) || !same_shape(first, third) {
                continue;
            }
            let steps = steps(first, second);
            if steps != self::steps(second, third) {
                continue;
            }
            let mut first = self.cut(from);
            let mut second = first.split_off(body);
            let third = second.split_off(body);
            join_think(&mut first, &second);
            join_think(&mut first, &third);
            self.add(Node::Loop(Loop { count: REPETITIONS as i64, body: first, steps }));
            return true;
        }
        false
    }
}

fn steps(from: &[Node], to: &[Node]) -> Vec<i64> {
    arguments(from).into_iter().zip(arguments(to)).map(|(from, to)| to.wrapping_sub(from)).collect()
}

fn hash(node: &Node, hasher: &mut DefaultHasher) {
    match node {
        Node::Call(call) => (call.function, call.args.len()).hash(hasher),
        Node::Loop(inner) => {
            (usize::MAX, inner.count, &inner.steps).hash(hasher);
            inner.body.iter().for_each(|node| hash(node, hasher));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay_code::program::Think;
    use proptest::prelude::*;

    /// The calls that a program makes.
    pub fn expand(nodes: &[Node]) -> Vec<(usize, Vec<i64>)> {
        let mut calls = Vec::new();
        for node in nodes {
            match node {
                Node::Call(call) => calls.push((call.function, call.args.clone())),
                Node::Loop(inner) => {
                    for i in 0..inner.count {
                        let mut body = inner.body.clone();
                        let mut steps = inner.steps.iter().map(|step| step.wrapping_mul(i));
                        advance(&mut body, &mut steps);
                        calls.extend(expand(&body));
                    }
                }
            }
        }
        calls
    }

    fn advance(nodes: &mut [Node], by: &mut dyn Iterator<Item = i64>) {
        for node in nodes {
            match node {
                Node::Call(call) => {
                    call.args.iter_mut().for_each(|arg| *arg = arg.wrapping_add(by.next().unwrap()));
                }
                Node::Loop(inner) => advance(&mut inner.body, by),
            }
        }
    }

    fn folded(calls: &[(usize, Vec<i64>)]) -> Vec<Node> {
        let mut folder = Folder::new(usize::MAX);
        for (row, args) in calls {
            folder.push(Call { function: *row, args: args.clone(), think: Think::of(1) }).unwrap();
        }
        folder.finish()
    }

    fn count(nodes: &[Node]) -> usize {
        nodes.iter().map(|node| if let Node::Loop(inner) = node { 1 + count(&inner.body) } else { 1 }).sum()
    }

    #[test]
    fn ten_thousand_strided_writes_are_one_loop() {
        let calls: Vec<_> = (0..10_000).map(|i| (1, vec![0, i * 4096, 512])).collect();
        let nodes = folded(&calls);
        let [Node::Loop(found)] = nodes.as_slice() else { panic!("{nodes:?}") };
        assert_eq!((found.count, found.steps.as_slice()), (10_000, [0, 4096, 0].as_slice()));
        let [Node::Call(call)] = found.body.as_slice() else { panic!("{nodes:?}") };
        assert_eq!(call.think, Think { sum_ns: 10_000, calls: 10_000 });
    }

    #[test]
    fn loops_in_loops_are_found() {
        let mut calls = Vec::new();
        for file in 0..20 {
            calls.push((0, vec![file]));
            for block in 0..50 {
                calls.push((1, vec![block * 8192 + file * 1024]));
                calls.push((2, vec![block * 8192]));
            }
            calls.push((3, vec![]));
        }
        let nodes = folded(&calls);
        assert_eq!(count(&nodes), 6, "{nodes:?}");
        assert_eq!(expand(&nodes), calls);
    }

    #[test]
    fn calls_without_a_pattern_end_at_the_limit() {
        let mut folder = Folder::new(10);
        let push = |i: i64| folder.push(Call { function: 1, args: vec![i * i * i], think: Think::default() });
        let failed = (0..20).map(push).find_map(Result::err).unwrap();
        assert!(failed.to_string().contains("--limit"), "{failed}");
    }

    proptest! {
        #[test]
        fn expanding_gives_the_calls(calls in prop::collection::vec((0..3_usize, prop::collection::vec(0..3_i64, 2)), 0..300)) {
            prop_assert_eq!(expand(&folded(&calls)), calls);
        }

        #[test]
        fn so_it_does_of_repeated_parts(
            part in prop::collection::vec((0..3_usize, prop::collection::vec(any::<i64>(), 1)), 1..6),
            (repeats, step, outer) in (1..9_i64, any::<i64>(), 1..5_i64),
        ) {
            let mut calls = Vec::new();
            for o in 0..outer {
                for r in 0..repeats {
                    for (row, args) in &part {
                        let args = args.iter().map(|arg| arg.wrapping_add(step.wrapping_mul(r)).wrapping_sub(o)).collect();
                        calls.push((*row, args));
                    }
                }
            }
            prop_assert_eq!(expand(&folded(&calls)), calls);
        }
    }
}
