//! Handles: an index and a generation, so that a handle that was destroyed is known as such.

/// Names one thing in a [`Slab`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Id {
    index: u32,
    generation: u32,
}

impl Id {
    /// The handle that callers see; never 0.
    pub(crate) fn handle(self) -> u64 {
        (u64::from(self.generation) << 32) | (u64::from(self.index) + 1)
    }

    /// The id behind a handle, if it can be one.
    pub(crate) fn of(handle: u64) -> Option<Self> {
        let index = (handle as u32).checked_sub(1)?;
        let generation = (handle >> 32) as u32;
        Some(Self { index, generation })
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by handle, with O(1) access.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Id {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            let generation = slot.generation;
            return Id { index, generation };
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 handles");
        self.slots.push(Slot {
            generation: 0,
            value: Some(value),
        });
        let generation = 0;
        Id { index, generation }
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let slot = self.slots.get(id.index as usize)?;
        (slot.generation == id.generation)
            .then_some(slot.value.as_ref())
            .flatten()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index as usize)?;
        (slot.generation == id.generation)
            .then_some(slot.value.as_mut())
            .flatten()
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(value)
    }

    /// All values, in the order of their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = Id {
                index: index as u32,
                generation: slot.generation,
            };
            slot.value.as_ref().map(|value| (id, value))
        })
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(index, slot)| {
                let id = Id {
                    index: index as u32,
                    generation: slot.generation,
                };
                slot.value.as_mut().map(|value| (id, value))
            })
    }
}
