//! The figures as a table, for those who do not see the picture.

use std::collections::BTreeSet;
use std::io;

use crate::timeline::layout::markup::escape;
use crate::timeline::layout::words::{duration, percent, times};
use crate::timeline::{Chart, Timeline, Track};

pub(super) fn write(chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
    let tracks: BTreeSet<Track> = chart.timelines.iter().flat_map(Timeline::tracks).collect();
    let tracks: Vec<Track> = tracks.into_iter().collect();
    write!(
        out,
        "<p id=\"figures\" class=\"dim\">Total times, speed-ups against the first run, and how busy each track was</p>\n\
         <div class=\"table\">\n<table aria-labelledby=\"figures\">\n\
         <thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Total</th><th scope=\"col\">Speed-up</th>"
    )?;
    for name in Track::names(&tracks) {
        write!(out, "<th scope=\"col\">{}</th>", escape(&name.long))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for timeline in &chart.timelines {
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>",
            escape(timeline.name()),
            duration(timeline.total_ns()),
            times(chart.speedup(timeline)),
        )?;
        let own = timeline.tracks();
        for track in &tracks {
            let busy = if own.contains(track) {
                percent(timeline.busy_share(*track))
            } else {
                "–".to_owned()
            };
            write!(out, "<td>{busy}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")
}
