//! Which machines have a free slot: any of them in constant time.

use crate::dice::Dice;

/// A set of machine numbers.
pub(crate) struct Idle {
    members: Vec<u32>,
    place: Vec<Option<u32>>,
}

impl Idle {
    /// All machines are idle.
    pub(crate) fn new(machines: usize) -> Self {
        let members: Vec<u32> = (0..machines as u32).collect();
        Self {
            place: members.iter().copied().map(Some).collect(),
            members,
        }
    }

    pub(crate) fn set(&mut self, machine: u32, is_idle: bool) {
        match (self.place[machine as usize], is_idle) {
            (None, true) => {
                self.place[machine as usize] = Some(self.members.len() as u32);
                self.members.push(machine);
            }
            (Some(place), false) => {
                self.place[machine as usize] = None;
                self.members.swap_remove(place as usize);
                if let Some(&moved) = self.members.get(place as usize) {
                    self.place[moved as usize] = Some(place);
                }
            }
            _ => {}
        }
    }

    /// One of them, and how many there are.
    pub(crate) fn any(&self, dice: &mut Dice) -> Option<(u32, usize)> {
        if self.members.is_empty() {
            return None;
        }
        let index = dice.below(self.members.len());
        Some((self.members[index], self.members.len()))
    }
}
