//! Sample reports of a machine with an H200.

use pinlane_report::{
    Bench, BenchLatency, BenchLine, BenchPoint, Compare, CompareRow, CopyStats, Environment,
    LinkBasis, LinkLimit, MemoryKind, Origin, Route,
};

pub fn environment() -> Environment {
    Environment {
        version: Some("0.1.0".to_owned()),
        date: Some("2026-11-15T10:20:35Z".to_owned()),
        driver: Some("CUDA 13.0 (NVIDIA 580.159.03)".to_owned()),
        gpu: Some("NVIDIA H200".to_owned()),
        cpu: Some("AMD EPYC 9654 96-Core Processor".to_owned()),
        cpus: Some(192),
        system: Some("Debian GNU/Linux 12 (bookworm), Linux 6.1.0-28-amd64".to_owned()),
    }
}

pub fn measured() -> Origin {
    Origin::new("NVIDIA H200", None)
}

pub fn simulated() -> Origin {
    Origin::new("Simulated GPU", Some("pcie3-x16".into()))
}

/// Latency, and bytes per nanosecond, of a kind of memory.
fn cost(memory: MemoryKind, route: Route) -> (f64, f64) {
    let (start_ns, gb_per_s) = match memory {
        MemoryKind::Pageable => (6_500.0, 7.4),
        MemoryKind::Pinned => (8_900.0, 55.4),
        MemoryKind::Registered => (9_000.0, 55.3),
        MemoryKind::WriteCombined => (8_950.0, 55.5),
        MemoryKind::Mapped => (12_000.0, 49.5),
        MemoryKind::Express => (7_000.0, 51.2),
    };
    match route {
        Route::H2d => (start_ns, gb_per_s),
        Route::D2h if memory == MemoryKind::Pageable => (9_500.0, 13.8),
        Route::D2h => (start_ns + 1_500.0, gb_per_s * 0.985),
        Route::Both => (start_ns + 4_000.0, gb_per_s * 1.83),
    }
}

/// Eleven copies around the cost of one; pageable memory has a wider spread.
pub fn figure(memory: MemoryKind, route: Route, bytes: u64) -> CopyStats {
    let (start_ns, gb_per_s) = cost(memory, route);
    let moved = route.moved(bytes);
    let mut middle_ns = start_ns + moved as f64 / gb_per_s;
    if memory == MemoryKind::Express && bytes < 4 << 20 {
        // Below its threshold the express lane is the plain copy.
        let (start_ns, gb_per_s) = cost(MemoryKind::Pageable, route);
        middle_ns = start_ns + moved as f64 / gb_per_s;
    }
    let spread = if memory == MemoryKind::Pageable {
        0.16
    } else {
        0.02
    };
    let times: Vec<u64> = (-5..=5)
        .map(|step| (middle_ns * (1.0 + spread * f64::from(step) / 5.0)) as u64)
        .collect();
    CopyStats::from_times(moved, &times).expect("time passed")
}

/// From 4 KiB to 256 MiB by factors of four.
pub fn sizes() -> Vec<u64> {
    (0..9).map(|step| 4096 << (2 * step)).collect()
}

pub fn bench(origin: Origin) -> Bench {
    let began = matches!(origin, Origin::Measured { .. }).then(|| "2026-11-15 10:20:35 UTC".into());
    let mut bench = Bench::new(origin, began, 7, 200_000_000);
    bench.complete = true;
    for memory in MemoryKind::ALL {
        for route in Route::ALL {
            for bytes in sizes() {
                bench.lines.push(BenchLine {
                    point: BenchPoint {
                        memory,
                        route,
                        bytes,
                    },
                    stats: figure(memory, route, bytes),
                    noisy: memory == MemoryKind::Pageable && bytes == 1 << 20,
                });
            }
            bench.latencies.push(BenchLatency {
                point: BenchPoint {
                    memory,
                    route,
                    bytes: 1,
                },
                stats: figure(memory, route, 1),
            });
        }
    }
    bench.notes = vec!["write-combined: the CPU reads such memory at a crawl".into()];
    bench
}

pub fn compare(origin: Origin) -> Compare {
    const BYTES: u64 = 256 << 20;
    let row = |memory| CompareRow {
        memory,
        get_ns: match memory {
            MemoryKind::Pageable | MemoryKind::Express => 41_000_000,
            MemoryKind::Registered => 52_300_000,
            _ => 148_000_000,
        },
        h2d: figure(memory, Route::H2d, BYTES),
        d2h: figure(memory, Route::D2h, BYTES),
    };
    let limit = LinkLimit {
        gb_per_s: 57.7,
        basis: LinkBasis::Pcie {
            generation: 5,
            width: 16,
        },
    };
    let rows = MemoryKind::ALL.map(row).into();
    Compare::new(origin, BYTES, 20, Some(limit), rows).expect("pageable and pinned")
}
