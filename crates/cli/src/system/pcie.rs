//! PCI Express links and their limits.

/// The current speed of a PCIe link, and the maximum that card and slot have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) width: u32,
    pub(crate) max_generation: u32,
    pub(crate) max_width: u32,
}

/// The maximum payload rate of a PCIe link in one direction, in 1e9 bytes per second. `None` for an unknown
/// generation or width.
///
/// A lane carries 2.5, 5, 8, 16, 32 or 64 Gbit/s in generations 1 to 6. Of these bits, 8 in 10 are data up to
/// generation 2, and 128 in 130 up to generation 5. In generation 6, 236 of the 256 bytes of a flit are data
/// (PCI Express Base Specification 6.0, 4.2.2). Nearly all machines use packets of at most 256 bytes of payload.
/// Each packet adds 24 bytes: framing and sequence number 4, header with a 64-bit address 16, checksum 4.
/// Acknowledgements and flow control cost about 4 more. In a flit these are part of the 20 bytes already
/// subtracted, so only the header is left.
pub(crate) fn payload_limit_gb_per_s(generation: u32, width: u32) -> Option<f64> {
    const PAYLOAD_BYTES: f64 = 256.0;
    let (gbit_per_s, data_share, packet_bytes) = match generation {
        1 => (2.5, 8.0 / 10.0, 28.0),
        2 => (5.0, 8.0 / 10.0, 28.0),
        3 => (8.0, 128.0 / 130.0, 28.0),
        4 => (16.0, 128.0 / 130.0, 28.0),
        5 => (32.0, 128.0 / 130.0, 28.0),
        6 => (64.0, 236.0 / 256.0, 16.0),
        _ => return None,
    };
    if !matches!(width, 1 | 2 | 4 | 8 | 12 | 16 | 32) {
        return None;
    }
    let bytes = gbit_per_s / 8.0 * f64::from(width) * data_share;
    Some(bytes * PAYLOAD_BYTES / (PAYLOAD_BYTES + packet_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_rates_are_plausible() {
        for (generation, width, least, most) in [
            (1, 16, 2.8, 3.7),
            (2, 16, 7.0, 7.4),
            (3, 16, 14.0, 14.5),
            (4, 16, 28.0, 29.0),
            (5, 16, 56.0, 58.0),
            (6, 16, 110.0, 112.0),
            (4, 8, 14.0, 14.5),
            (5, 1, 3.5, 3.6),
        ] {
            let rate = payload_limit_gb_per_s(generation, width).expect("a valid link");
            assert!(
                (least..most).contains(&rate),
                "{generation} x{width}: {rate}"
            );
        }
    }

    #[test]
    fn other_links_do_not_exist() {
        for (generation, width) in [(0, 16), (7, 16), (5, 0), (5, 3), (u32::MAX, u32::MAX)] {
            assert_eq!(payload_limit_gb_per_s(generation, width), None);
        }
    }
}
