//! The pages in a browser, by real mouse, touch and keyboard events.

use std::path::PathBuf;

use crate::browser::{Browser, DESKTOP, PHONE, Page, Window};
use crate::feed::feed;
use crate::program_trace::program_trace;
use crate::sample::{bench, compare, environment, measured, simulated};

const HOVER: &str = "document.getElementById('hover')";
const TITLE: &str = "document.querySelector('#hover b').textContent";
const SHOWN: &str = "[...document.querySelectorAll('figure svg')] \
     .filter((svg) => svg.getClientRects().length > 0)";

/// Runs only with `PINLANE_TEST=full`.
#[test]
fn the_pages_work_in_a_browser() {
    if pinlane_testing::skip_slow_test() {
        return;
    }
    let mut browser = match Browser::start() {
        Ok(browser) => browser,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    fit_every_window(&mut browser);
    pointing_shows_exact_figures(&mut browser);
    keys_go_through_the_figures(&mut browser);
    the_scale_can_be_chosen(&mut browser);
    bars_tell_about_themselves(&mut browser);
}

fn file(name: &str, html: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, html).expect("the folder is there");
    path
}

fn sound(page: &mut Page<'_>, which: &str) {
    assert_eq!(page.complaints(), Vec::<String>::new(), "{which}");
}

/// Each figure shows one drawing, of the kind for this width, with nothing beyond the window.
fn fit_every_window(browser: &mut Browser) {
    let pages = [
        ("bench.html", bench(simulated()).to_html(&environment()), 4),
        (
            "compare.html",
            compare(measured()).to_html(&environment()),
            1,
        ),
        (
            "feed.html",
            feed(simulated(), "images.npy", 1_000_000_000).to_html(&environment()),
            4,
        ),
        (
            "feed-measured.html",
            feed(measured(), "images.npy", 40_000_000).to_html(&environment()),
            4,
        ),
        (
            "trace.html",
            program_trace(
                simulated(),
                "/home/user/a/project/train.py:12 in main",
                3_000_000,
            )
            .to_html(&environment()),
            1,
        ),
    ];
    for (name, html, figures) in pages {
        let path = file(name, &html);
        for window in [DESKTOP, PHONE] {
            for dark in [false, true] {
                let window = Window { dark, ..window };
                let which = format!("{name} {} {dark}", window.width);
                let mut page = browser.open(&path, window);
                assert_eq!(page.value(&format!("{SHOWN}.length")), figures, "{which}");
                let class = if window.width < 720 { "narrow" } else { "wide" };
                let kind = format!("{SHOWN}.every((svg) => svg.classList.contains('{class}'))");
                assert_eq!(page.value(&kind), true, "{which}");
                let fits = "document.documentElement.scrollWidth <= innerWidth";
                assert_eq!(page.value(fits), true, "{which}");
                // Lines and bars have the colours of the theme.
                let blue = if dark {
                    "rgb(74, 163, 232)"
                } else {
                    "rgb(0, 114, 178)"
                };
                let fill = "getComputedStyle(document.querySelector('.h1')).fill";
                assert_eq!(page.value(fill), blue, "{which}");
                assert_eq!(page.value(&overlapping()), 0, "{which}");
                assert_eq!(page.value(&covered()), 0, "{which}");
                let made = "document.querySelector('footer').textContent.includes('Pinlane 0.1.0')";
                assert_eq!(page.value(made), true, "{which}");
                sound(&mut page, &which);
            }
        }
    }
}

/// Pairs of texts of one drawing that cover each other, and texts that leave the window.
fn overlapping() -> String {
    format!(
        "{SHOWN}.map((svg) => {{ \
           const boxes = [...svg.querySelectorAll('text')].filter((text) => text.textContent.trim()) \
             .map((text) => text.getBoundingClientRect()); \
           const outside = boxes.filter((a) => a.left < 0 || a.right > innerWidth).length; \
           const pairs = boxes.flatMap((a, i) => boxes.slice(0, i).filter((b) => \
             a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)); \
           return outside + pairs.length; }}).reduce((sum, count) => sum + count, 0)"
    )
}

/// Badges that cover a line or a bar.
fn covered() -> String {
    format!(
        "{SHOWN}.map((svg) => {{ \
           const badge = svg.querySelector('.flag')?.getBoundingClientRect(); \
           const shapes = [...svg.querySelectorAll('.line, .bar, .mark')]; \
           return shapes.filter((shape) => {{ \
             const box = shape.getBoundingClientRect(); \
             return badge && box.left < badge.right && badge.left < box.right \
               && box.top < badge.bottom && badge.top < box.bottom; }}).length; \
         }}).reduce((sum, count) => sum + count, 0)"
    )
}

fn pointing_shows_exact_figures(browser: &mut Browser) {
    let path = file("bench.html", &bench(measured()).to_html(&environment()));
    for window in [DESKTOP, PHONE] {
        let mut page = browser.open(&path, window);
        assert_eq!(page.value(&format!("{HOVER}.hidden")), true);
        page.value(&format!("{SHOWN}[0].id = 'first'"));
        let last = page.place("#first .stop:last-of-type .hit", 0.5, 0.5);
        page.move_to(last);
        page.until(&format!(
            "!{HOVER}.hidden && {TITLE} === '256 MiB, host to device'"
        ));
        let row = "document.querySelectorAll('#hover tr')[1].textContent";
        assert_eq!(page.value(row), "pinned55.3 GB/s54.3–56.34.85 ms");
        let inside = "(() => { const r = document.getElementById('hover').getBoundingClientRect(); \
             return r.left >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })()";
        assert_eq!(page.value(inside), true);
        let cursor = "getComputedStyle(document.querySelector('#first .on .cursor')).visibility";
        assert_eq!(page.value(cursor), "visible");

        page.move_to((2.0, 2.0));
        page.until(&format!("{HOVER}.hidden"));
        sound(&mut page, "pointing");
    }
}

fn keys_go_through_the_figures(browser: &mut Browser) {
    let path = file("bench.html", &bench(measured()).to_html(&environment()));
    let mut page = browser.open(&path, DESKTOP);
    page.value("document.querySelectorAll('figure')[1].focus()");
    for (key, title) in [
        ("ArrowRight", "4 KiB, device to host"),
        ("ArrowRight", "16 KiB, device to host"),
        ("End", "256 MiB, device to host"),
        ("ArrowRight", "256 MiB, device to host"),
        ("ArrowLeft", "64 MiB, device to host"),
        ("Home", "4 KiB, device to host"),
    ] {
        page.key(key);
        page.until(&format!("{TITLE} === '{title}'"));
    }
    page.key("Escape");
    page.until(&format!("{HOVER}.hidden"));
    sound(&mut page, "keys");
}

fn the_scale_can_be_chosen(browser: &mut Browser) {
    let path = file("bench.html", &bench(measured()).to_html(&environment()));
    for window in [DESKTOP, PHONE] {
        let mut page = browser.open(&path, window);
        let logs = format!("{SHOWN}.filter((svg) => svg.classList.contains('log')).length");
        assert_eq!(page.value(&logs), 0);
        let place = page.place("#log", 0.5, 0.5);
        page.drag(place, place);
        page.until(&format!("{logs} === 3"));
        assert_eq!(page.value(&format!("{SHOWN}.length")), 4);
        assert_eq!(page.value(&overlapping()), 0);
        sound(&mut page, "scale");
    }
}

fn bars_tell_about_themselves(browser: &mut Browser) {
    let path = file("compare.html", &compare(measured()).to_html(&environment()));
    let mut page = browser.open(&path, DESKTOP);
    let bar = page.place("figure svg .bar", 0.5, 0.5);
    page.move_to(bar);
    page.until(&format!("{TITLE} === 'pageable, host to device'"));
    let limit = "[...document.querySelectorAll('#hover tr')] \
         .find((row) => row.cells[0].textContent === 'of limit').cells[1].textContent";
    assert_eq!(page.value(limit), "13%");
    sound(&mut page, "bars");
}
