//! Plots as plain SVG: lines over sizes, and horizontal bars.
//!
//! ```text
//!  LinePlot, BarChart   what is drawn
//!    axis               values -> places, marks
//!    hue                colour, shape and dashes of a series
//!    labels, legend     names that do not cover each other
//!  figures              rates and times in words
//!  Canvas               where it is drawn: a wide picture, or one for a phone
//!  picture              title, origin and style of a picture that stands alone
//!  style                the style sheet, the same in pictures and in pages
//! ```
//!
//! A drawing names its colours by classes only, so that it follows the viewer's choice of a light or a
//! dark look wherever the sheet is.

mod axis;
mod bars;
mod canvas;
pub(crate) mod figures;
mod hue;
mod labels;
mod legend;
mod lines;
pub(crate) mod picture;
pub(crate) mod style;

pub(crate) use self::axis::{Axis, Scale};
pub(crate) use self::bars::{Bar, BarChart, BarGroup, Limit, Part};
pub(crate) use self::canvas::{NARROW, WIDE};
pub(crate) use self::hue::Hue;
pub(crate) use self::lines::{Line, LinePlot, Point, Stop};
