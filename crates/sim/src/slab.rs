//! Tables of handles: an index and a generation, so that stale handles are detected.

/// The key of a value in a [`Slab`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Id {
    index: u32,
    generation: u32,
}

impl Id {
    /// The caller's handle; never 0.
    pub(crate) fn handle(self) -> u64 {
        (u64::from(self.generation) << 32) | (u64::from(self.index) + 1)
    }

    /// The id of a caller's handle.
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

impl<T> Slot<T> {
    fn id(&self, index: usize) -> Id {
        Id {
            index: index as u32,
            generation: self.generation,
        }
    }
}

/// Values by handle, with constant-time access.
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
        let slot = self.slots.get(id.index as usize);
        slot.filter(|it| it.generation == id.generation)?
            .value
            .as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index as usize);
        slot.filter(|it| it.generation == id.generation)?
            .value
            .as_mut()
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id.index as usize);
        let slot = slot.filter(|it| it.generation == id.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(value)
    }

    /// All values, in order of index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = slot.id(index);
            slot.value.as_ref().map(|value| (id, value))
        })
    }

    /// All values, in order of index.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(index, slot)| {
            let id = slot.id(index);
            slot.value.as_mut().map(|value| (id, value))
        })
    }
}
