//! The parts of the sandbox by name: which hold, which are missing, which an order requires.

use serde::{Deserialize, Serialize};

/// One part of the sandbox. Orders name parts by their place here: a new one comes last, and with a new version of the
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A user of its own, where the service runs as root.
    #[serde(rename = "own user")]
    OwnUser,
    /// It dies with its parent.
    #[serde(rename = "death signal")]
    DeathSignal,
    /// No program gives it privileges.
    #[serde(rename = "no_new_privs")]
    NoNewPrivileges,
    /// No file can be opened.
    #[serde(rename = "landlock")]
    Files,
    /// No TCP port can be bound or connected to, Linux 6.7.
    #[serde(rename = "landlock network")]
    Network,
    /// No process outside can be signalled, Linux 6.12.
    #[serde(rename = "landlock scopes")]
    Scopes,
    /// No system call but those of `calls.rs`.
    #[serde(rename = "seccomp")]
    SystemCalls,
    /// When memory is out it goes before the service.
    #[serde(rename = "oom score")]
    MemoryLast,
}

impl Part {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 8] = [
        Self::OwnUser,
        Self::DeathSignal,
        Self::NoNewPrivileges,
        Self::Files,
        Self::Network,
        Self::Scopes,
        Self::SystemCalls,
        Self::MemoryLast,
    ];

    /// As doctor, logs and metrics name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OwnUser => "own user",
            Self::DeathSignal => "death signal",
            Self::NoNewPrivileges => "no_new_privs",
            Self::Files => "landlock",
            Self::Network => "landlock network",
            Self::Scopes => "landlock scopes",
            Self::SystemCalls => "seccomp",
            Self::MemoryLast => "oom score",
        }
    }
}

/// A set of parts, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts(u16);

impl Parts {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Those without which no picture is decoded, unless the operator says otherwise. Landlock's younger rules double what
    /// seccomp forbids, so that Linux 5.13 is enough.
    pub const REQUIRED: Self = Self::NONE
        .with(Part::DeathSignal)
        .with(Part::NoNewPrivileges)
        .with(Part::Files)
        .with(Part::SystemCalls);

    /// This set and one part more.
    #[must_use]
    pub const fn with(self, part: Part) -> Self {
        Self(self.0 | 1 << part as u16)
    }

    /// Whether it is among them.
    #[must_use]
    pub const fn contains(self, part: Part) -> bool {
        self.0 & 1 << part as u16 != 0
    }
}

/// A part that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The part of the sandbox that is missing.
    pub part: Part,
    /// Why, in the kernel's words.
    pub reason: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} ({})", self.part.name(), self.reason)
    }
}

/// What came of entering the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Parts that this machine has.
    pub holds: Vec<Part>,
    /// Parts that do not.
    pub missing: Vec<Missing>,
}

impl Report {
    pub(super) fn add(&mut self, part: Part, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.holds.push(part),
            Err(reason) => self.missing.push(Missing { part, reason }),
        }
    }

    /// The parts of these that do not hold, in words; nothing when all do. One that was never tried does not hold.
    #[must_use]
    pub fn lacks(&self, required: Parts) -> Option<String> {
        let lacking: Vec<String> = Part::ALL
            .into_iter()
            .filter(|&part| required.contains(part) && !self.holds.contains(&part))
            .map(|part| {
                let missing = self.missing.iter().find(|missing| missing.part == part);
                missing.map_or_else(
                    || format!("{} (not tried)", part.name()),
                    Missing::to_string,
                )
            })
            .collect();
        (!lacking.is_empty()).then(|| lacking.join(", "))
    }

    /// Names of the parts that hold.
    #[must_use]
    pub fn holding(&self) -> Vec<&'static str> {
        self.holds.iter().map(|part| part.name()).collect()
    }

    /// Names of the parts that do not.
    #[must_use]
    pub fn missing_names(&self) -> Vec<&'static str> {
        self.missing
            .iter()
            .map(|missing| missing.part.name())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_bit_of_its_own() {
        for part in Part::ALL {
            let alone = Parts::NONE.with(part);
            let others = Part::ALL.into_iter().filter(|&other| other != part);
            assert!(alone.contains(part) && others.into_iter().all(|other| !alone.contains(other)));
            assert!(part as u16 <= 15);
        }
    }

    #[test]
    fn what_is_required_and_does_not_hold_is_named_with_its_reason() {
        let mut report = Report::default();
        report.add(Part::DeathSignal, Ok(()));
        report.add(Part::Files, Err("the kernel does not have it".to_owned()));
        report.add(Part::Network, Err("too old".to_owned()));
        let required = Parts::NONE.with(Part::DeathSignal);
        assert_eq!(report.lacks(required), None);
        assert_eq!(
            report.lacks(required.with(Part::Files).with(Part::OwnUser)),
            Some("own user (not tried), landlock (the kernel does not have it)".to_owned())
        );
        assert_eq!(report.lacks(Parts::NONE), None);
    }
}
