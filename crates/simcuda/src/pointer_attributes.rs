//! Attributes of addresses.

use crate::allocations::{Block, Kind};
use crate::c_pointers::{In, Opaque, Out, put_untyped};
use crate::context::current;
use crate::error::{INVALID_VALUE, Outcome, ensure};
use crate::export_macros::exports;
use crate::machine::machine;

/// The driver API's numbers of attributes.
mod attribute {
    pub const CONTEXT: u32 = 1;
    pub const MEMORY_TYPE: u32 = 2;
    pub const DEVICE_POINTER: u32 = 3;
    pub const HOST_POINTER: u32 = 4;
    pub const SYNC_MEMOPS: u32 = 6;
    pub const BUFFER_ID: u32 = 7;
    pub const IS_MANAGED: u32 = 8;
    pub const DEVICE_ORDINAL: u32 = 9;
    pub const IS_LEGACY_IPC_CAPABLE: u32 = 10;
    pub const RANGE_START: u32 = 11;
    pub const RANGE_BYTES: u32 = 12;
    pub const MAPPED: u32 = 13;
    pub const ALLOWED_HANDLE_TYPES: u32 = 14;
    pub const IS_RDMA_CAPABLE: u32 = 15;
    pub const ACCESS_FLAGS: u32 = 16;
    pub const MEMPOOL_HANDLE: u32 = 17;
}

const TYPE_HOST: u32 = 1;
const TYPE_DEVICE: u32 = 2;
const ACCESS_READ_WRITE: u32 = 3;

/// An attribute's value, in the width that the program expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Byte(u8),
    Word(u32),
    Long(u64),
}

impl Value {
    fn put(self, target: Opaque) -> Outcome<()> {
        match self {
            Self::Byte(value) => put_untyped(target, value),
            Self::Word(value) => put_untyped(target, value),
            Self::Long(value) => put_untyped(target, value),
        }
    }

    /// The value for an unknown address, in the same width.
    fn unknown(self, which: u32) -> Self {
        match self {
            Self::Word(_) if which == attribute::DEVICE_ORDINAL => Self::Word(u32::MAX - 1), // -2
            Self::Byte(_) => Self::Byte(0),
            Self::Word(_) => Self::Word(0),
            Self::Long(_) => Self::Long(0),
        }
    }
}

/// The value of an attribute of an address in a block.
fn value(block: &Block, address: u64, which: u32) -> Outcome<Value> {
    use attribute::*;
    let on_device = block.kind.is_device();
    Ok(match which {
        CONTEXT => Value::Long(block.context as u64),
        MEMORY_TYPE => Value::Word(if on_device { TYPE_DEVICE } else { TYPE_HOST }),
        DEVICE_POINTER => Value::Long(address),
        HOST_POINTER => Value::Long(if on_device { 0 } else { address }),
        SYNC_MEMOPS | IS_MANAGED => Value::Word(0),
        BUFFER_ID => Value::Long(block.base),
        IS_LEGACY_IPC_CAPABLE | IS_RDMA_CAPABLE => Value::Byte(0),
        DEVICE_ORDINAL => Value::Word(block.ordinal as u32),
        RANGE_START => Value::Long(block.base),
        RANGE_BYTES => Value::Long(block.bytes as u64),
        MAPPED => Value::Byte(1),
        ALLOWED_HANDLE_TYPES => Value::Long(0),
        ACCESS_FLAGS => Value::Word(ACCESS_READ_WRITE),
        MEMPOOL_HANDLE => Value::Long(pool_of(block)?),
        _ => return Err(INVALID_VALUE),
    })
}

/// The pool of a block, or 0.
fn pool_of(block: &Block) -> Outcome<u64> {
    match block.kind {
        Kind::DeviceAsync => Ok(machine()?.device(block.ordinal)?.pool.handle as u64),
        _ => Ok(0),
    }
}

/// Stands for an unknown block, to determine the width of an attribute.
const NOWHERE: Block = Block {
    base: 0,
    bytes: 0,
    kind: Kind::Device,
    ordinal: 0,
    context: 0,
};

/// The block that contains an address.
fn known(address: u64) -> Outcome<Block> {
    current()?;
    machine()?.allocations.find(address).ok_or(INVALID_VALUE)
}

exports! { through guard;
    /// An attribute of an address; an unknown address is an error.
    fn cuPointerGetAttribute(target: Opaque, which: u32, address: u64) {
        let block = known(address)?;
        let found = value(&block, address, which)?;
        ensure(which != attribute::HOST_POINTER || !block.kind.is_device(), INVALID_VALUE)?;
        found.put(target)
    }

    /// Several attributes of an address; zero for an unknown address.
    fn cuPointerGetAttributes(count: u32, which: In<u32>, targets: In<Opaque>, address: u64) {
        current()?;
        let block = machine()?.allocations.find(address);
        for index in 0..count as usize {
            let which = which.read_at(index)?;
            let found = match &block {
                Some(block) => value(block, address, which)?,
                None => value(&NOWHERE, address, which)?.unknown(which),
            };
            found.put(targets.read_at(index)?)?;
        }
        Ok(())
    }

    /// Sets whether synchronous copies of a block always synchronise. They always do.
    fn cuPointerSetAttribute(_source: In<u32>, which: u32, address: u64) {
        let block = known(address)?;
        ensure(which == attribute::SYNC_MEMOPS && block.kind.is_device(), INVALID_VALUE)
    }

    /// The block that contains an address.
    fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, address: u64) {
        let block = known(address)?;
        base.set_optional(block.base);
        bytes.set_optional(block.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_as_wide_for_an_unknown_address() {
        let mapped = value(&NOWHERE, 0, attribute::MAPPED).unwrap();
        assert_eq!(mapped.unknown(attribute::MAPPED), Value::Byte(0));
        let ordinal = value(&NOWHERE, 0, attribute::DEVICE_ORDINAL).unwrap();
        assert_eq!(
            ordinal.unknown(attribute::DEVICE_ORDINAL),
            Value::Word(-2i32 as u32)
        );
        assert_eq!(value(&NOWHERE, 0, 5), Err(INVALID_VALUE));
    }
}
