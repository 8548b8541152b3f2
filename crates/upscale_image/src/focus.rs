//! Where a result differs most from its source enlarged smoothly: what a reader should see first. Every source row is
//! compared once, in its brightest-weighted channel alone, with the mean of its neighbours as a smooth enlargement would
//! have it; a hundredth of what the networks cost.

use upscale_core::Pixels;

/// Cells a side that the picture is divided into, at most.
const CELLS: usize = 24;

/// Change by cell, while rows of result arrive.
pub(crate) struct Focus {
    columns: usize,
    rows: usize,
    /// Sum of absolute differences and samples compared, of each cell.
    cells: Vec<(f32, f32)>,
}

impl Focus {
    pub(crate) fn new(source: &Pixels) -> Self {
        let (columns, rows) = (source.width().min(CELLS), source.height().min(CELLS));
        Self {
            columns,
            rows,
            cells: vec![(0.0, 0.0); columns * rows],
        }
    }

    /// Takes the result rows of source row `y`: the first of them lies between this row and the one above.
    pub(crate) fn take(&mut self, source: &Pixels, y: usize, scale: usize, group: &[f32]) {
        let (width, channels) = (source.width(), source.channels());
        // Green of colour, gray of gray.
        let channel = channels / 2;
        let (above, own) = (source.row(y.saturating_sub(1)), source.row(y));
        let sample = |row: &[f32], x: usize| row[x * channels + channel];
        // Centres of the first result row lie this far above the centre of the source row.
        let up = (scale - 1) as f32 / (2 * scale) as f32;
        let at = |x: usize| sample(own, x) * (1.0 - up) + sample(above, x) * up;
        let change = |x: usize| -> f32 {
            let (left, right) = (at(x.saturating_sub(1)), at((x + 1).min(width - 1)));
            let middle = at(x);
            let steps = (0..scale).map(|step| {
                let across = (step as f32 + 0.5) / scale as f32 - 0.5;
                let beside = if across < 0.0 { left } else { right };
                let smooth = middle + (beside - middle) * across.abs();
                (group[(x * scale + step) * channels + channel] - smooth).abs()
            });
            steps.sum()
        };
        let cells = y * self.rows / source.height() * self.columns;
        let row = &mut self.cells[cells..cells + self.columns];
        for (column, cell) in row.iter_mut().enumerate() {
            let start = |column: usize| (column * width).div_ceil(self.columns);
            let pixels = start(column)..start(column + 1);
            cell.1 += (pixels.len() * scale) as f32;
            cell.0 += pixels.map(change).sum::<f32>();
        }
    }

    /// Columns and rows of the middle of the neighbourhood with the most change, in thousandths of the sides; of an even
    /// picture, the middle.
    pub(crate) fn permille(&self) -> [u16; 2] {
        let best = (0..self.rows)
            .flat_map(|row| (0..self.columns).map(move |column| (column, row)))
            .map(|cell| (cell, self.around(cell)))
            .fold(
                None,
                |best: Option<((usize, usize), f32)>, next| match best {
                    Some(best) if best.1 >= next.1 => Some(best),
                    _ => Some(next),
                },
            );
        match best {
            Some(((column, row), change)) if change > 0.0 => {
                let middle = |cell: usize, cells: usize| ((2 * cell + 1) * 500 / cells) as u16;
                [middle(column, self.columns), middle(row, self.rows)]
            }
            _ => [500; 2],
        }
    }

    /// Mean change of a cell and those round it, for a reader sees more than one cell.
    fn around(&self, (column, row): (usize, usize)) -> f32 {
        let near = |at: usize, cells: usize| at.saturating_sub(1)..(at + 2).min(cells);
        let (mut change, mut samples) = (0.0, 0.0);
        for row in near(row, self.rows) {
            for column in near(column, self.columns) {
                let (sum, count) = self.cells[row * self.columns + column];
                change += sum;
                samples += count;
            }
        }
        change / f32::max(samples, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gray ramp, and a result that is its smooth enlargement but for a checkerboard round one point.
    fn changed_at(
        width: usize,
        height: usize,
        scale: usize,
        spot: Option<(usize, usize)>,
    ) -> [u16; 2] {
        let source = Pixels::new(width, height, 1, vec![0.5; width * height]).unwrap();
        let mut focus = Focus::new(&source);
        for y in 0..height {
            let rows = (0..scale * width * scale).map(|at| {
                let x = at % (width * scale) / scale;
                let is_near = spot.is_some_and(|(sx, sy)| x.abs_diff(sx) < 4 && y.abs_diff(sy) < 4);
                if is_near { (at % 2) as f32 } else { 0.5 }
            });
            let group: Vec<f32> = rows.collect();
            focus.take(&source, y, scale, &group);
        }
        focus.permille()
    }

    #[test]
    fn the_focus_lies_where_the_change_is() {
        for scale in [2, 4] {
            let [x, y] = changed_at(240, 96, scale, Some((180, 24)));
            assert!(x.abs_diff(750) < 60 && y.abs_diff(250) < 60, "{x} {y}");
        }
    }

    #[test]
    fn an_even_picture_is_shown_in_its_middle_and_one_pixel_is_enough() {
        assert_eq!(changed_at(240, 96, 2, None), [500, 500]);
        assert_eq!(changed_at(1, 1, 4, Some((0, 0))), [500, 500]);
    }
}
