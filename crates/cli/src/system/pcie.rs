//! Links of PCI Express, and what they can carry.

/// A PCIe link: how it runs now, and the most that card and slot can do together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) width: u32,
    pub(crate) max_generation: u32,
    pub(crate) max_width: u32,
}

/// The most payload that a PCIe link moves one way, in 1e9 bytes a second; `None` for what is no
/// generation or width of PCIe.
///
/// Each lane carries 2.5, 5, 8, 16, 32, 64 thousand million bits a second from the first generation
/// to the sixth. Of those, data are 8 in 10 up to the second generation and 128 in 130 up to the
/// fifth; in the sixth, 236 of the 256 bytes of a flit (PCI Express Base Specification 6.0, 4.2.2).
/// Data travel in packets of at most 256 bytes on nearly all machines. Around each are 24 bytes:
/// framing and sequence number 4, header with a 64-bit address 16, checksum 4; acknowledgements and
/// flow control take the room of 4 more. A flit has those in the 20 bytes that are counted already,
/// so that only the header is left.
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
    fn payload_is_what_encoding_and_packets_leave() {
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
            let rate = payload_limit_gb_per_s(generation, width).expect("such links are");
            assert!(
                (least..most).contains(&rate),
                "{generation} x{width}: {rate}"
            );
        }
    }

    #[test]
    fn there_are_no_other_links() {
        for (generation, width) in [(0, 16), (7, 16), (5, 0), (5, 3), (u32::MAX, u32::MAX)] {
            assert_eq!(payload_limit_gb_per_s(generation, width), None);
        }
    }
}
