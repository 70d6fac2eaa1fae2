//! A sweep as comma-separated values.

use super::Bench;

const HEADER: &str = "origin,device,profile,figure,memory,route,bytes,samples,median_ns,best_ns,\
                      p5_ns,p95_ns,gb_per_s,noisy";

impl Bench {
    /// One line per figure below a header, as in RFC 4180 except for the line ends. The column `figure`
    /// is `bandwidth` or `latency`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let origin = serde_json::json!(self.origin);
        let field = |name: &str| quoted(origin[name].as_str().unwrap_or_default());
        let origin = ["origin", "device", "profile"].map(field).join(",");
        let mut text = format!("{HEADER}\n");
        for (figure, point, stats, noisy) in self.figures() {
            let (memory, route, bytes) = (point.memory.name(), point.route.name(), point.bytes);
            let times = [stats.median_ns, stats.best_ns, stats.p5_ns, stats.p95_ns];
            let times = times.map(|ns| ns.to_string()).join(",");
            let (samples, rate) = (stats.samples, stats.gb_per_s);
            text.push_str(&format!(
                "{origin},{figure},{memory},{route},{bytes},{samples},{times},{rate},{noisy}\n"
            ));
        }
        text
    }
}

/// In quotes if the text would end its field.
fn quoted(text: &str) -> String {
    // Names have no line breaks.
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
