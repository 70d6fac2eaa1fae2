//! One page: real input, and its visible effects.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Window;
use super::pipe::{PATIENCE, Pipe};

pub struct Page<'a> {
    pipe: &'a mut Pipe,
    session: String,
    target: String,
}

impl<'a> Page<'a> {
    pub(super) fn open(pipe: &'a mut Pipe, path: &Path, window: Window) -> Self {
        let target = pipe
            .call(None, "Target.createTarget", json!({ "url": "about:blank" }))
            .expect("a page");
        let target = text(&target["targetId"]);
        let session = pipe
            .call(
                None,
                "Target.attachToTarget",
                json!({ "targetId": target, "flatten": true }),
            )
            .expect("a session");
        let mut page = Self {
            pipe,
            session: text(&session["sessionId"]),
            target,
        };
        page.pipe.complaints.clear();
        for domain in ["Runtime", "Log", "Page"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.show_on(window);
        let url = format!("file://{}", path.display());
        page.call("Page.navigate", json!({ "url": url }));
        page.until(
            "document.readyState === 'complete' && 'drawn' in document.documentElement.dataset",
        );
        // Until the first frames are out, the pointer may hit nothing, and a late resize hides tooltips.
        page.value(
            "requestAnimationFrame(() => requestAnimationFrame(() => { \
             document.documentElement.dataset.shown = 'yes'; })), 0",
        );
        page.until("'shown' in document.documentElement.dataset");
        page
    }

    fn show_on(&mut self, window: Window) {
        let scheme = if window.dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({
                "width": window.width, "height": window.height,
                "deviceScaleFactor": 1, "mobile": window.touch,
            }),
        );
        let touch = json!({ "enabled": window.touch, "maxTouchPoints": 2 });
        self.call("Emulation.setTouchEmulationEnabled", touch);
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.pipe
            .call(Some(&self.session), method, params)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression holds.
    pub fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            assert!(Instant::now() < deadline, "never came true: {expression}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: &Value) {
        let mut params = json!({ "type": kind, "x": x, "y": y });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.call("Input.dispatchMouseEvent", params);
    }

    pub fn move_to(&mut self, place: (f64, f64)) {
        self.mouse("mouseMoved", place, &json!({}));
    }

    pub fn wheel(&mut self, place: (f64, f64), delta_y: f64) {
        self.mouse(
            "mouseWheel",
            place,
            &json!({ "deltaX": 0, "deltaY": delta_y }),
        );
    }

    /// Presses at the first point and releases at the second.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let left = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
        self.mouse("mousePressed", from, &left);
        self.mouse("mouseMoved", to, &left);
        self.mouse("mouseReleased", to, &left);
    }

    pub fn double_click(&mut self, place: (f64, f64)) {
        for count in [1, 2] {
            let left = json!({ "button": "left", "clickCount": count });
            self.mouse("mousePressed", place, &left);
            self.mouse("mouseReleased", place, &left);
        }
    }

    pub fn key(&mut self, key: &str) {
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyDown", "key": key }),
        );
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyUp", "key": key }),
        );
    }

    /// Two fingers at one height, placed at the first points and moved to the second.
    pub fn pinch(&mut self, y: f64, from: [f64; 2], to: [f64; 2]) {
        let points = |places: [f64; 2]| {
            let [first, second] = places;
            json!([{ "x": first, "y": y, "id": 0 }, { "x": second, "y": y, "id": 1 }])
        };
        for (kind, points) in [
            ("touchStart", points(from)),
            ("touchMove", points(to)),
            ("touchEnd", json!([])),
        ] {
            let params = json!({ "type": kind, "touchPoints": points });
            self.call("Input.dispatchTouchEvent", params);
        }
    }

    /// A place inside an element, by shares of its width and height.
    pub fn place(&mut self, selector: &str, across: f64, down: f64) -> (f64, f64) {
        let selector = json!(selector);
        let edges = self.value(&format!(
            "(() => {{ const r = document.querySelector({selector}).getBoundingClientRect(); \
             return [r.left, r.top, r.width, r.height]; }})()"
        ));
        let [left, top, width, height] =
            [0, 1, 2, 3].map(|index| edges[index].as_f64().expect("a number"));
        (left + across * width, top + down * height)
    }

    /// Exceptions, dialogs and lines of the console since the page was opened.
    pub fn complaints(&mut self) -> Vec<String> {
        // The answer to a later call comes after all earlier events of the page.
        let error = self.value("document.documentElement.dataset.error ?? ''");
        let mut complaints = self.pipe.complaints.clone();
        if error != "" {
            complaints.push(error.to_string());
        }
        complaints
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        let params = json!({ "targetId": self.target });
        let _ = self.pipe.call(None, "Target.closeTarget", params);
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
