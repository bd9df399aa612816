//! Running a pattern over a key without ever running away: both searches visit each pair of instruction and position
//! once (Thompson, 1968; Cox, "Regular expression matching: the virtual machine approach", 2009).

use super::Part;

/// The most pairs of instruction and position that a search for captures may have to remember (32 MB of bits).
const MAX_VISITS: usize = 1 << 28;

/// A pattern as instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    code: Vec<Step>,
    stars: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// This character, then the next instruction.
    Sign(char),
    /// Any character.
    Any,
    /// A character of a class.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// Here the capture of a `*` begins (even) or ends (odd).
    Save(usize),
    /// Go on at either place, the first preferred.
    Split(usize, usize),
    /// Go on there.
    Jump(usize),
    /// The key must end here.
    End,
}

impl Program {
    pub(super) fn compile(parts: &[Part]) -> Self {
        let mut program = Self { code: Vec::new(), stars: 0 };
        program.sequence(parts);
        program.code.push(Step::End);
        program
    }

    fn sequence(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Literal(sign) => self.code.push(Step::Sign(*sign)),
                Part::One => self.code.push(Step::Any),
                Part::Class { negated, ranges } => {
                    self.code.push(Step::Class { negated: *negated, ranges: ranges.clone() });
                }
                Part::Star => self.star(),
                Part::Either(alternatives) => self.either(alternatives),
            }
        }
    }

    /// Leave the star as early as possible: `save, split(out, any), any, back, save`.
    fn star(&mut self) {
        let slot = 2 * self.stars;
        self.stars += 1;
        self.code.push(Step::Save(slot));
        let split = self.code.len();
        self.code.push(Step::Split(split + 3, split + 1));
        self.code.push(Step::Any);
        self.code.push(Step::Jump(split));
        self.code.push(Step::Save(slot + 1));
    }

    fn either(&mut self, alternatives: &[Vec<Part>]) {
        let mut exits = Vec::new();
        for (at, alternative) in alternatives.iter().enumerate() {
            let split = self.code.len();
            let last = at + 1 == alternatives.len();
            if !last {
                self.code.push(Step::Split(split + 1, 0));
            }
            self.sequence(alternative);
            if !last {
                exits.push(self.code.len());
                self.code.push(Step::Jump(0));
                self.code[split] = Step::Split(split + 1, self.code.len());
            }
        }
        let end = self.code.len();
        for exit in exits {
            self.code[exit] = Step::Jump(end);
        }
    }

    /// Whether the whole key matches: all threads side by side, one character at a time.
    pub(super) fn matches(&self, key: &str) -> bool {
        let (mut now, mut next) = (Threads::new(self.code.len()), Threads::new(self.code.len()));
        self.spawn(&mut now, 0);
        for sign in key.chars() {
            next.clear();
            for &pc in &now.list {
                if self.code[pc].accepts(sign) {
                    self.spawn(&mut next, pc + 1);
                }
            }
            if next.list.is_empty() {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.list.iter().any(|&pc| self.code[pc] == Step::End)
    }

    /// Adds every instruction that waits for a character and is reached from `pc` without one.
    fn spawn(&self, threads: &mut Threads, pc: usize) {
        let mut open = vec![pc];
        while let Some(pc) = open.pop() {
            if std::mem::replace(&mut threads.seen[pc], true) {
                continue;
            }
            match self.code[pc] {
                Step::Jump(to) => open.push(to),
                Step::Split(first, second) => open.extend([second, first]),
                Step::Save(_) => open.push(pc + 1),
                _ => threads.list.push(pc),
            }
            threads.touched.push(pc);
        }
    }

    /// What each star takes; depth first, in order of preference, never twice through the same place.
    pub(super) fn captures<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let width = key.len() + 1;
        let visits = self.code.len().checked_mul(width).filter(|visits| *visits <= MAX_VISITS)?;
        let mut visited = vec![0_u64; visits.div_ceil(64)];
        let mut slots = vec![0; 2 * self.stars];
        let mut open = vec![Branch::Go(0, 0)];
        while let Some(branch) = open.pop() {
            let (mut pc, mut at) = match branch {
                Branch::Go(pc, at) => (pc, at),
                Branch::Restore(slot, value) => {
                    slots[slot] = value;
                    continue;
                }
            };
            loop {
                let (word, bit) = ((pc * width + at) / 64, (pc * width + at) % 64);
                if visited[word] >> bit & 1 == 1 {
                    break;
                }
                visited[word] |= 1 << bit;
                match &self.code[pc] {
                    Step::Jump(to) => pc = *to,
                    Step::Split(first, second) => {
                        open.push(Branch::Go(*second, at));
                        pc = *first;
                    }
                    Step::Save(slot) => {
                        open.push(Branch::Restore(*slot, slots[*slot]));
                        slots[*slot] = at;
                        pc += 1;
                    }
                    Step::End if at == key.len() => {
                        return slots.chunks(2).map(|pair| key.get(pair[0]..pair[1])).collect();
                    }
                    step => match key[at..].chars().next() {
                        Some(sign) if step.accepts(sign) => {
                            at += sign.len_utf8();
                            pc += 1;
                        }
                        _ => break,
                    },
                }
            }
        }
        None
    }
}

impl Step {
    fn accepts(&self, sign: char) -> bool {
        match self {
            Step::Sign(wanted) => sign == *wanted,
            Step::Any => true,
            Step::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&sign)) != *negated
            }
            _ => false,
        }
    }
}

enum Branch {
    Go(usize, usize),
    Restore(usize, usize),
}

struct Threads {
    list: Vec<usize>,
    touched: Vec<usize>,
    seen: Vec<bool>,
}

impl Threads {
    fn new(size: usize) -> Self {
        Self { list: Vec::new(), touched: Vec::new(), seen: vec![false; size] }
    }

    fn clear(&mut self) {
        for pc in self.touched.drain(..) {
            self.seen[pc] = false;
        }
        self.list.clear();
    }
}
