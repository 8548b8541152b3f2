//! Windows that may be faces, and which of them are the same face.

/// A square of the picture, in its pixels; it may stick out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Left edge.
    pub left: i32,
    /// Upper edge.
    pub top: i32,
    /// Width and height.
    pub side: i32,
    /// How sure the cascade is; the sum over all windows that were merged into this one.
    pub score: f64,
}

impl Window {
    /// Pixels that both cover, as a share of what either covers.
    fn shared(&self, other: &Self) -> f32 {
        let along = |one: i32, two: i32| (one + self.side).min(two + other.side) - one.max(two);
        let (width, height) = (along(self.left, other.left), along(self.top, other.top));
        if width <= 0 || height <= 0 {
            return 0.0;
        }
        let area = |window: &Self| (i64::from(window.side) * i64::from(window.side)) as f32;
        let both = (i64::from(width) * i64::from(height)) as f32;
        both / (area(self) + area(other) - both)
    }
}

/// The surest window of each heap of windows that share more than `same`, the surest first, with the scores of all of its
/// heap (non-maximum suppression).
pub(super) fn merged(mut windows: Vec<Window>, same: f32) -> Vec<Window> {
    windows.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut kept = Vec::new();
    while let Some((&surest, rest)) = windows.split_first() {
        let others = rest.iter().copied();
        let (heap, apart): (Vec<Window>, Vec<Window>) =
            others.partition(|window| surest.shared(window) > same);
        let scores = heap.iter().map(|window| window.score);
        let score = scores.fold(surest.score, |sum, score| sum + score);
        kept.push(Window { score, ..surest });
        windows = apart;
    }
    kept
}
