//! Plots as plain SVG: lines over sizes, and horizontal bars.
//!
//! ```text
//!  LinePlot, BarChart        what is drawn
//!    axis                    values to positions, ticks
//!    series_style            colour, marker and dashes of a series
//!    coinciding_lines        moved apart until each can be seen
//!  canvas                    where it is drawn: wide or narrow, in a page or alone
//!  standalone_svg            title, origin and style of a standalone picture
//!  stylesheet                CSS, the same in pictures and pages
//! ```
//!
//! Drawings refer to colours by class only, so that they follow the viewer's light or dark theme.

mod axis;
mod bars;
mod canvas;
mod coinciding_lines;
mod lines;
mod series_style;
pub(crate) mod standalone_svg;
mod stylesheet;

pub(crate) use self::axis::{Axis, Scale, TimeTick, time_ticks};
pub(crate) use self::bars::{BarChart, BarGroup, BarLimit, ChartBar};
pub(crate) use self::canvas::{NARROW, WIDE};
pub(crate) use self::lines::{Line, LinePlot, LinePoint, LineStop};
pub(crate) use self::series_style::SeriesStyle;
pub(crate) use self::stylesheet::{DARK_RULES, RULES, stylesheet};
