//! Values of command-line flags.

pub(crate) mod dtype;
pub(crate) mod duration;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod rate;
pub(crate) mod size;

/// Splits a number from its unit. `None` without a known unit.
///
/// A unit that ends another one (`s` and `ms`) must come later in `units`.
fn split_unit<'t, U: Copy>(text: &'t str, units: &[(&str, U)]) -> Option<(&'t str, U)> {
    let text = text.trim();
    let found = |(name, unit): &(&str, U)| Some((text.strip_suffix(name)?.trim_end(), *unit));
    units.iter().find_map(found)
}
