//! Two shades, so that one sees where a chunk ends and the next begins.

use crate::timeline::Span;

/// One of the two shades of a kind's colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Shade {
    #[default]
    Strong,
    Soft,
}

impl Shade {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Strong => Self::Soft,
            Self::Soft => Self::Strong,
        }
    }
}

/// Shades of spans that are drawn one behind the other.
///
/// Even chunks are strong and odd ones soft, so that a chunk looks the same on each engine; where
/// that would give two neighbours of one kind the same shade, the second one changes.
#[derive(Default)]
pub(crate) struct Shading<'a> {
    last: Option<(&'a Span, Shade)>,
}

impl<'a> Shading<'a> {
    pub(crate) fn next(&mut self, span: &'a Span) -> Shade {
        let own = match span.chunk {
            Some(chunk) if chunk % 2 == 1 => Shade::Soft,
            _ => Shade::Strong,
        };
        let shade = match self.last {
            Some((last, shade)) if last.kind == span.kind => {
                let same_chunk = span.chunk.is_some() && span.chunk == last.chunk;
                if same_chunk {
                    shade
                } else if shade == own {
                    own.other()
                } else {
                    own
                }
            }
            _ => own,
        };
        self.last = Some((span, shade));
        shade
    }
}

#[cfg(test)]
mod tests {
    use super::Shade::{Soft, Strong};
    use super::*;
    use crate::timeline::{SpanKind, Track};

    fn shades(chunks: &[Option<u64>]) -> Vec<Shade> {
        let spans: Vec<Span> = chunks
            .iter()
            .map(|chunk| Span {
                chunk: *chunk,
                ..Span::new(Track::Compute(0), SpanKind::Kernel, 0, 1)
            })
            .collect();
        let mut shading = Shading::default();
        spans.iter().map(|span| shading.next(span)).collect()
    }

    #[test]
    fn neighbours_differ_unless_they_are_of_one_chunk() {
        assert_eq!(shades(&[Some(0), Some(1), Some(2)]), [Strong, Soft, Strong]);
        assert_eq!(shades(&[Some(0), Some(2), Some(4)]), [Strong, Soft, Strong]);
        assert_eq!(shades(&[Some(1), Some(1), Some(2)]), [Soft, Soft, Strong]);
        assert_eq!(shades(&[None, None, None]), [Strong, Soft, Strong]);
    }
}
