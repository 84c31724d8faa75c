//! Everything between the log and the device, one step at a time.

use std::collections::VecDeque;

use feedgate_gateway::subscription::{Action, Ask, Deliver, Found, Input, Start, Subscription};

use super::dice::Dice;
use super::phone::{Frame, Phone};
use super::store::{Change, Store};

/// What may go wrong, in percent of its occasions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    wake_lost: usize,
    wake_repeated: usize,
    /// Subscriptions look at the log by themselves now and then.
    ticks: bool,
    cut: usize,
    read_failed: usize,
    trim: usize,
    rebuild: usize,
}

impl Weather {
    pub(crate) const CALM: Self =
        Self { wake_lost: 0, wake_repeated: 0, ticks: false, cut: 0, read_failed: 0, trim: 0, rebuild: 0 };
    pub(crate) const LOSSY: Self = Self { wake_lost: 40, wake_repeated: 30, ticks: true, cut: 2, ..Self::CALM };
    pub(crate) const STORM: Self = Self { cut: 8, read_failed: 10, trim: 5, rebuild: 2, ..Self::LOSSY };
}

/// A read in flight. A store far away may have looked when it was asked, or just now.
struct Reading {
    ask: Ask,
    early: Option<(Found, Vec<Change>)>,
}

struct Link {
    subscription: Subscription,
    /// The wake bit of its slot.
    woken: bool,
    reading: Option<Reading>,
    /// Changes in hand, and where they begin.
    in_hand: (u64, Vec<Change>),
    pipe: VecDeque<Frame>,
    retry: bool,
}

pub(crate) struct World {
    dice: Dice,
    weather: Weather,
    deliver: Deliver,
    pub(crate) store: Store,
    pub(crate) phone: Phone,
    link: Option<Link>,
    /// How many wakes are under way.
    wakes: usize,
    pub(crate) transcript: Vec<String>,
    pub(crate) frames: u64,
    pub(crate) resets: u64,
    pub(crate) recoveries: u64,
    pub(crate) failures: u64,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather, deliver: Deliver) -> Self {
        Self {
            dice: Dice::new(seed),
            weather,
            deliver,
            store: Store::new(),
            phone: Phone::new(deliver),
            link: None,
            wakes: 0,
            transcript: vec![],
            frames: 0,
            resets: 0,
            recoveries: 0,
            failures: 0,
        }
    }

    /// Some steps of everything.
    pub(crate) fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.dice.roll(10) {
                0 | 1 => self.change(),
                3 if self.link.is_none() => self.connect(),
                3 if self.dice.chance(self.weather.cut) => self.link = None,
                4 if self.weather.ticks && self.dice.chance(20) => self.tick(),
                _ => {
                    self.step();
                }
            }
        }
    }

    /// No more changes: everything under way arrives. Where wakes may be lost, one tick comes.
    pub(crate) fn settle(&mut self) {
        let read_failed = std::mem::take(&mut self.weather.read_failed);
        self.run_out();
        if self.weather.ticks {
            self.tick();
            self.run_out();
        }
        self.weather.read_failed = read_failed;
    }

    fn run_out(&mut self) {
        for _ in 0..100_000 {
            if self.link.is_none() {
                self.connect();
            } else if !self.step() {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    fn change(&mut self) {
        match self.dice.roll(4) {
            0 => {
                let nth = self.dice.roll(64);
                self.store.delete(nth);
            }
            _ => self.store.add(),
        }
        if self.dice.chance(self.weather.trim) {
            self.store.trim();
        }
        if self.dice.chance(self.weather.rebuild) {
            self.store.rebuild();
        }
        if !self.dice.chance(self.weather.wake_lost) {
            self.wakes += 1;
        }
        if self.dice.chance(self.weather.wake_repeated) {
            self.wakes += 1;
        }
    }

    fn connect(&mut self) {
        let start = self.phone.applied.map_or(Start::Head, Start::At);
        let (subscription, first) = Subscription::open(self.deliver, start, false);
        self.link = Some(Link {
            subscription,
            woken: false,
            reading: None,
            in_hand: (0, vec![]),
            pipe: VecDeque::new(),
            retry: false,
        });
        self.act(first);
    }

    fn tick(&mut self) {
        if self.link.is_some() {
            self.drive(Input::Wake);
        }
    }

    /// One thing that is under way happens; false if nothing is.
    fn step(&mut self) -> bool {
        let Some(link) = &self.link else { return self.wakes > 0 && self.wake() };
        let under_way = [
            self.wakes > 0,
            link.woken,
            link.reading.is_some(),
            !link.pipe.is_empty(),
            link.pipe.is_empty() && link.subscription.awaits_writable(),
            link.retry,
        ];
        let chosen: Vec<usize> = (0..under_way.len()).filter(|n| under_way[*n]).collect();
        if chosen.is_empty() {
            return false;
        }
        match chosen[self.dice.roll(chosen.len())] {
            0 => return self.wake(),
            1 => {
                self.link.as_mut().unwrap().woken = false;
                self.drive(Input::Wake);
            }
            2 => self.finish_read(),
            3 => self.arrive(),
            4 => self.drive(Input::Writable),
            _ => {
                self.link.as_mut().unwrap().retry = false;
                self.drive(Input::Wake);
            }
        }
        true
    }

    fn wake(&mut self) -> bool {
        self.wakes -= 1;
        if let Some(link) = &mut self.link {
            link.woken = true;
        }
        true
    }

    fn finish_read(&mut self) {
        let reading = self.link.as_mut().unwrap().reading.take().unwrap();
        if self.dice.chance(self.weather.read_failed) {
            self.failures += 1;
            return self.drive(Input::Failed);
        }
        let limit = 1 + self.dice.roll(4);
        let (found, changes) = reading.early.unwrap_or_else(|| self.store.answer(reading.ask, limit));
        if let Found::Changes { first, .. } = found {
            self.link.as_mut().unwrap().in_hand = (first, changes);
        }
        self.drive(Input::Found(found));
    }

    fn arrive(&mut self) {
        let frame = self.link.as_mut().unwrap().pipe.pop_front().unwrap();
        self.transcript.push(format!("{frame:?}"));
        self.frames += 1;
        self.recoveries += u64::from(matches!(&frame, Frame::Opened(opened) if opened.recovered));
        self.resets += u64::from(self.phone.take(frame, &self.store));
        self.check_bounds();
    }

    /// I12: acknowledged is at most what was sent, which is at most the head.
    fn check_bounds(&self) {
        let (Some(link), Some(acked)) = (&self.link, self.phone.applied) else { return };
        let (sent, head) = (link.subscription.position(), self.store.head());
        if sent.epoch == head.epoch {
            assert!(sent.offset <= head.offset, "I12: sent {sent:?}, head {head:?}");
        }
        if self.deliver == Deliver::Items && acked.epoch == sent.epoch {
            assert!(acked.offset <= sent.offset, "I12: acknowledged {acked:?}, sent {sent:?}");
        }
    }

    fn drive(&mut self, input: Input) {
        let actions: Vec<Action> = self.link.as_mut().unwrap().subscription.on(input).into_iter().collect();
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        let link = self.link.as_mut().expect("actions come from a subscription");
        match action {
            Action::Read(ask) => {
                assert!(link.reading.is_none(), "one read at a time");
                let limit = 1 + self.dice.roll(4);
                let early = self.dice.chance(50).then(|| self.store.answer(ask, limit));
                link.reading = Some(Reading { ask, early });
            }
            Action::Opened(opened) => link.pipe.push_back(Frame::Opened(opened)),
            Action::Push => {
                let (first, changes) = std::mem::take(&mut link.in_hand);
                link.pipe.push_back(Frame::Changes(first, changes));
            }
            Action::Behind(head) => link.pipe.push_back(Frame::Behind(head)),
            Action::Retry => link.retry = true,
            Action::RefuseUnrecovered | Action::RefuseFailed | Action::Close(_) => self.link = None,
        }
        assert!(self.link.as_ref().is_none_or(|link| link.pipe.len() <= 2), "I18: at most a reply and one batch wait");
    }
}
