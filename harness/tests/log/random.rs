//! Sessions made up at random, from a seed that is printed when one fails: written and read again they are the same, and
//! cut at any byte they are mended.
//!
//! `SLUICE_TEST_LONG=N` plays N times as many sessions, N times as long, and cuts them at N times as many bytes; without
//! it a run takes about a second.

use std::fs;

use sluice_harness::agent::{Budget, TurnEnd};
use sluice_harness::cancel::CancelCause;
use sluice_harness::content::{Block, Role};
use sluice_harness::ids::Seq;
use sluice_harness::log::{SessionLog, Step, inspect};
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::seam::model::FaultKind;

use crate::fixture::{answer, call_id, create, done, file, folder, id, text_result, tool_use, turn};
use crate::validity::assert_provider_valid;

/// How many times as much is done.
pub(crate) fn long() -> usize {
    std::env::var("SLUICE_TEST_LONG").ok().and_then(|n| n.parse().ok()).unwrap_or(1).max(1)
}

/// Xorshift: a seed gives one sequence for ever.
struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { seed, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Below a bound.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap() % bound
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 12] =
            ["a", " ", "ü", "\n", "\"", "\\", "😀", "\u{2028}", "{}", "\t", "\u{1}", "long word "];
        (0..=self.below(12)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    fn blocks(&mut self) -> Vec<Block> {
        (0..=self.below(2)).map(|_| Block::text(self.text())).collect()
    }

    fn context(&mut self) -> ContextMessage {
        let role = [Role::System, Role::Developer][self.below(2)];
        ContextMessage { source: "random".to_owned(), role, text: self.text() }
    }

    fn end(&mut self) -> TurnEnd {
        match self.below(5) {
            0 => TurnEnd::Cancelled { cause: CancelCause::User },
            1 => TurnEnd::Error { kind: FaultKind::Overloaded, message: self.text() },
            2 => TurnEnd::Budget { which: Budget::MaxSteps, limit: self.next() >> 40 },
            3 => TurnEnd::MaxTokens,
            _ => done(),
        }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the seed of this session is {}", self.seed);
        }
    }
}

/// One exchange and its calls, some of which never get a result, or are never recorded.
fn exchange(random: &mut Random, step: &Step<'_>, calls: &mut usize) {
    let attempts = 1 + u32::try_from(random.below(3)).unwrap();
    for attempt in 1..=attempts {
        step.sent(attempt, random.next() >> 50).unwrap();
        if attempt < attempts {
            step.retry(attempt, "overloaded", random.text(), random.next() >> 50).unwrap();
        }
    }
    let mut content = if random.one_in(3) { vec![] } else { random.blocks() };
    let asked: Vec<String> = (0..random.below(5))
        .map(|_| {
            *calls += 1;
            format!("call-{calls}")
        })
        .collect();
    content.extend(asked.iter().map(|id| tool_use(id)));
    answer(step, content);
    let mut open = Vec::new();
    for id in &asked {
        if random.one_in(8) {
            break;
        }
        open.push(step.call(&call_id(id), "Read", &random.text(), None).unwrap());
        while !open.is_empty() && random.one_in(2) {
            let call = open.remove(random.below(open.len()));
            step.result(call, text_result(&random.text())).unwrap();
        }
    }
    if random.one_in(4) {
        return;
    }
    for call in open {
        step.result(call, text_result(&random.text())).unwrap();
    }
}

/// Writes a whole session; what is dropped on the way closes itself.
async fn session(random: &mut Random, dir: &std::path::Path) {
    let mut log = create(dir);
    let mut calls = 0;
    for _ in 0..=random.below(3 * long()) {
        let mut turn = turn(&mut log);
        let prompt = random.blocks();
        turn.received(prompt.clone()).unwrap();
        if random.one_in(6) {
            turn.blocked(prompt, random.text(), "random").unwrap();
            turn.end(random.end()).unwrap();
            continue;
        }
        turn.user("user", prompt).unwrap();
        for _ in 0..random.below(4) {
            let step = turn.step().unwrap();
            if random.one_in(2) {
                step.context(&random.context()).unwrap();
            }
            if random.one_in(3) {
                step.header("change", "script", "sequence", random.text(), vec![], None).unwrap();
            }
            exchange(random, &step, &mut calls);
            if random.one_in(5) {
                drop(step);
            } else {
                step.end().unwrap();
            }
        }
        if random.one_in(2) {
            turn.context(&random.context()).unwrap();
        }
        if random.one_in(6) {
            drop(turn);
        } else {
            turn.end(random.end()).unwrap();
        }
    }
    let before: Vec<String> = log.handle().since(Seq(0)).iter().map(|e| e.line()).collect();
    let messages = log.handle().messages();
    log.close().await.unwrap();
    assert_provider_valid(&messages);
    assert!(inspect(&file(dir)).unwrap().damage.is_none());
    let written = fs::read(file(dir)).unwrap();
    let (log, report) = SessionLog::open(dir, &id()).unwrap();
    assert!(report.is_clean());
    let after: Vec<String> = log.handle().since(Seq(0)).iter().map(|e| e.line()).collect();
    assert_eq!(after, before);
    assert_eq!(log.handle().messages(), messages);
    log.close().await.unwrap();
    assert_eq!(fs::read(file(dir)).unwrap(), written);
}

#[tokio::test]
async fn r_230_any_session_that_can_be_written_reads_back_the_same() {
    for seed in 0..60 * long() as u64 {
        let dir = folder();
        session(&mut Random::new(seed), dir.path()).await;
    }
}

#[tokio::test]
async fn r_240_any_session_cut_at_any_byte_is_mended_once() {
    for seed in 1000..1000 + 6 * long() as u64 {
        let dir = folder();
        let mut random = Random::new(seed);
        session(&mut random, dir.path()).await;
        let path = file(dir.path());
        let whole = fs::read(&path).unwrap();
        let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
        for _ in 0..30 * long() {
            let cut = header + random.below(whole.len() - header + 1);
            fs::write(&path, &whole[..cut]).unwrap();
            let (log, _) = SessionLog::open(dir.path(), &id()).unwrap();
            assert_provider_valid(&log.handle().messages());
            log.close().await.unwrap();
            let mended = fs::read(&path).unwrap();
            let kept = whole[..cut].iter().rposition(|b| *b == b'\n').unwrap() + 1;
            assert_eq!(&mended[..kept], &whole[..kept], "cut at {cut}");
            let (mut log, again) = SessionLog::open(dir.path(), &id()).unwrap();
            assert!(again.is_clean(), "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap(), mended, "cut at {cut}");
            turn(&mut log).end(done()).unwrap();
            log.close().await.unwrap();
        }
    }
}
