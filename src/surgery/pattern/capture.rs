//! What each `*` of a pattern captures, where parts other than text require a search. The search visits each pair of
//! instruction and position at most once (Cox, "Regular expression matching: the virtual machine approach", 2009).

use super::part::Part;

/// Pairs of instruction and position that a search may remember (32 MB of bits).
const MAX_VISITS: usize = 1 << 28;

/// A pattern as instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    code: Vec<Step>,
    stars: usize,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// This character, then the next instruction.
    Sign(char),
    /// A character that this part accepts.
    Of(Part),
    /// The capture of a `*` begins (even) or ends (odd) here.
    Save(usize),
    /// Continue at either place, preferring the first.
    Split(usize, usize),
    /// Continue there.
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
                Part::Text(text) => self.code.extend(text.chars().map(Step::Sign)),
                Part::One | Part::Class { .. } => self.code.push(Step::Of(part.clone())),
                Part::Star => self.star(),
                Part::Either(alternatives) => {
                    self.either(alternatives.len(), |program, at| program.sequence(&alternatives[at]));
                }
                Part::Numbers(numbers) => {
                    // A pattern has at most 4,096 of them.
                    let texts: Vec<String> = numbers.clone().map(|number| number.to_string()).collect();
                    self.either(texts.len(), |program, at| {
                        program.code.extend(texts[at].chars().map(Step::Sign));
                    });
                }
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
        self.code.push(Step::Of(Part::One));
        self.code.push(Step::Jump(split));
        self.code.push(Step::Save(slot + 1));
    }

    /// One of `count` alternatives; `alternative` writes each.
    fn either(&mut self, count: usize, alternative: impl Fn(&mut Self, usize)) {
        let mut exits = Vec::new();
        for at in 0..count {
            let split = self.code.len();
            let last = at + 1 == count;
            if !last {
                self.code.push(Step::Split(split + 1, 0));
            }
            alternative(self, at);
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

    /// What each star captures; depth first, in order of preference, through no place twice.
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
            Step::Of(part) => part.accepts(sign),
            Step::Save(_) | Step::Split(..) | Step::Jump(_) | Step::End => false,
        }
    }
}

/// What to try when the current path fails.
enum Branch {
    /// This instruction at this position.
    Go(usize, usize),
    /// Give a slot its earlier value back.
    Restore(usize, usize),
}
