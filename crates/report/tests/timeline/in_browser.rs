//! The page in a browser, by real mouse, touch and keyboard events.

use std::path::PathBuf;

use pinlane_report::timeline::{Chart, Html};
use serde_json::{Value, json};

use crate::browser::{Browser, DESKTOP, PHONE, Page};
use crate::random_charts::{Random, chart};
use crate::{export, sample, svg};

const RANGE: &str = "document.getElementById('range').textContent";
const WHOLE: &str = "0 – 12.00 µs";
const HOVER: &str = "document.getElementById('hover')";

/// Runs only with `PINLANE_TEST=full`.
#[test]
fn the_page_works_in_a_browser() {
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
    draws_every_span(&mut browser);
    hover_tells_about_the_span(&mut browser);
    mouse_zooms_and_pans(&mut browser);
    keys_and_buttons_zoom_and_pan(&mut browser);
    fits_a_phone(&mut browser);
    survives_any_chart(&mut browser);
}

fn file(name: &str, chart: &Chart) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, export(&Html::default(), chart)).expect("the folder is there");
    path
}

fn spans(chart: &Chart) -> usize {
    chart.timelines.iter().map(|run| run.spans().len()).sum()
}

fn drawn(page: &mut Page<'_>) -> usize {
    let drawn = page.value("document.documentElement.dataset.drawn");
    drawn.as_str().expect("a text").parse().expect("a number")
}

fn draws_every_span(browser: &mut Browser) {
    for (name, chart) in [
        ("five.html", sample::five()),
        ("crowded.html", svg::crowded()),
    ] {
        let path = file(name, &chart);
        let mut page = browser.open(&path, DESKTOP);
        assert_eq!(drawn(&mut page), spans(&chart), "{name}");
        // Something other than one colour is on each canvas.
        let blank = "[...document.querySelectorAll('canvas')].filter((canvas) => { \
             const pixels = new Uint32Array(canvas.getContext('2d') \
                 .getImageData(0, 0, canvas.width, canvas.height).data.buffer); \
             return pixels.every((pixel) => pixel === pixels[0]); }).length";
        assert_eq!(page.value(blank), 0, "{name}");
        assert_eq!(page.complaints(), Vec::<String>::new(), "{name}");
    }
}

fn hover_tells_about_the_span(browser: &mut Browser) {
    let path = file("small.html", &sample::small());
    let mut page = browser.open(&path, DESKTOP);
    assert_eq!(page.value(&format!("{HOVER}.hidden")), true);
    // The first of three rows is the copy to the device, which is the first third of the run.
    let copy = page.place("canvas.run", 0.25, 0.15);
    page.move_to(copy);
    page.until(&format!("!{HOVER}.hidden"));
    let facts = "Object.fromEntries([...document.querySelectorAll('#hover dt')] \
         .map((term) => [term.textContent, term.nextSibling.textContent]))";
    let input = json!({
        "track": "Host to device", "kind": "host to device", "stream": "0", "bytes": "46.9 KiB",
        "start": "0 ns", "duration": "4.00 µs", "rate": "12.0 GB/s",
    });
    assert_eq!(page.value(facts), input);
    assert_eq!(
        page.value("document.querySelector('#hover b').textContent"),
        "input"
    );
    // The box is inside the window.
    let inside = "(() => { const r = document.getElementById('hover').getBoundingClientRect(); \
         return r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })()";
    assert_eq!(page.value(inside), true);

    // The second run's last row: its second chunk.
    let last = page.place("section:last-of-type canvas", 0.6, 0.9);
    page.move_to(last);
    page.until("document.querySelector('#hover b').textContent === 'device to host'");
    let chunk: Value = page.value(facts);
    assert_eq!(chunk["chunk"], "1");
    assert_eq!(chunk["start"], "6.00 µs");

    // Nothing runs on the first row later on.
    let idle = page.place("canvas.run", 0.8, 0.15);
    page.move_to(idle);
    page.until(&format!("{HOVER}.hidden"));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

fn mouse_zooms_and_pans(browser: &mut Browser) {
    let chart = sample::small();
    let path = file("small.html", &chart);
    let mut page = browser.open(&path, DESKTOP);
    assert_eq!(page.value(RANGE), WHOLE);
    let start = page.place("canvas.run", 0.15, 0.5);
    let middle = page.place("canvas.run", 0.5, 0.5);

    for _ in 0..8 {
        page.wheel(start, -200.0);
    }
    page.until(&format!(
        "{RANGE} !== '{WHOLE}' && document.documentElement.dataset.drawn < 10"
    ));
    let zoomed = page.value(RANGE);
    assert!(drawn(&mut page) < spans(&chart));

    page.drag(middle, (middle.0 - 200.0, middle.1));
    page.until(&format!("{RANGE} !== {zoomed}"));
    page.drag(middle, (middle.0 + 200.0, middle.1));
    page.until(&format!("{RANGE} === {zoomed}"));

    page.double_click(middle);
    page.until(&format!("{RANGE} === '{WHOLE}'"));
    page.until(&format!(
        "document.documentElement.dataset.drawn === '{}'",
        spans(&chart)
    ));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

fn keys_and_buttons_zoom_and_pan(browser: &mut Browser) {
    let path = file("small.html", &sample::small());
    let mut page = browser.open(&path, DESKTOP);
    page.value("document.getElementById('charts').focus()");
    page.key("+");
    page.until(&format!("{RANGE} === '2.000 µs – 10.000 µs'"));
    page.key("ArrowRight");
    page.until(&format!("{RANGE} === '2.800 µs – 10.800 µs'"));
    page.key("ArrowLeft");
    page.until(&format!("{RANGE} === '2.000 µs – 10.000 µs'"));
    page.key("-");
    page.until(&format!("{RANGE} === '{WHOLE}'"));

    for (button, range) in [
        ("#in", "2.000 µs – 10.000 µs"),
        ("#out", WHOLE),
        ("#in", "2.000 µs – 10.000 µs"),
        ("#all", WHOLE),
    ] {
        let place = page.place(button, 0.5, 0.5);
        page.drag(place, place);
        page.until(&format!("{RANGE} === '{range}'"));
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
}

fn fits_a_phone(browser: &mut Browser) {
    let path = file("five.html", &sample::five());
    let mut page = browser.open(&path, PHONE);
    assert_eq!(page.value("innerWidth"), PHONE.width);
    assert_eq!(
        page.value("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
    let background = page.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(20, 23, 27)");

    let whole = page.value(RANGE);
    let (left, y) = page.place("canvas.run", 0.4, 0.5);
    let (right, _) = page.place("canvas.run", 0.6, 0.5);
    page.pinch(y, [left, right], [left - 60.0, right + 60.0]);
    page.until(&format!("{RANGE} !== {whole}"));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

fn survives_any_chart(browser: &mut Browser) {
    for seed in 0..25 {
        let chart = chart(&mut Random::new(seed));
        let path = file("random.html", &chart);
        let mut page = browser.open(&path, DESKTOP);
        assert_eq!(page.complaints(), Vec::<String>::new(), "seed {seed}");
        assert_eq!(drawn(&mut page), spans(&chart), "seed {seed}");
        let heads = page.value("[...document.querySelectorAll('script')].length");
        assert_eq!(heads, 2, "seed {seed}: a label became a script");
    }
}
