//! Counts over time as an inline SVG: a column a step, two counts on top of each other, an axis with values. Sizes are
//! attributes, for pages allow no inline style; every figure stands in its column's title and in a table beside. Drawn
//! once wide and once narrow, so that its letters are as large on a phone as elsewhere.

/// Of a drawing, in its own units: pixels where it is shown as wide as it was drawn.
const WIDE: i64 = 1_060;
const NARROW: i64 = 350;
const TOP: i64 = 22;
const BASE: i64 = 190;
const LEFT: i64 = 46;
/// Lines across the drawing above its base, at most.
const LINES_MAX: u64 = 4;
/// Room of a name below the base.
const NAME_WIDTH: i64 = 84;

/// What is drawn.
pub(crate) struct Series {
    /// What a reader who sees nothing hears.
    pub(crate) label: String,
    /// What the two counts are, as titles and the legend say it; also the names of their colours.
    pub(crate) kinds: [&'static str; 2],
    /// Name and counts of every step, oldest first.
    pub(crate) steps: Vec<(String, [u64; 2])>,
    /// What follows a value, such as ` s`.
    pub(crate) unit: &'static str,
}

/// Both drawings, and the table.
pub(crate) struct Chart {
    pub(crate) label: String,
    pub(crate) kinds: [&'static str; 2],
    pub(crate) unit: &'static str,
    pub(crate) drawings: [Drawing; 2],
    pub(crate) rows: Vec<(String, [u64; 2])>,
    /// Whether there is anything to see.
    pub(crate) is_empty: bool,
}

/// One drawing.
pub(crate) struct Drawing {
    /// Which of the two, for the stylesheet.
    pub(crate) class: &'static str,
    pub(crate) width: i64,
    pub(crate) base: i64,
    pub(crate) lines: Vec<Line>,
    pub(crate) columns: Vec<Column>,
    /// Where each name stands, and which part of it stands there.
    pub(crate) names: Vec<(i64, &'static str, String)>,
}

/// A line across, with its value.
pub(crate) struct Line {
    pub(crate) y: i64,
    pub(crate) value: String,
}

/// One step.
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) hit_x: i64,
    pub(crate) hit_width: i64,
    pub(crate) x: i64,
    pub(crate) width: i64,
    /// Colour, top and height of what there is.
    pub(crate) parts: Vec<(&'static str, i64, i64)>,
    /// Above it, where there is room for values.
    pub(crate) value: Option<(i64, i64, String)>,
}

impl Chart {
    pub(crate) fn of(series: Series) -> Self {
        let drawings = [("wide", WIDE), ("narrow", NARROW)];
        Self {
            drawings: drawings.map(|(class, width)| draw(&series, class, width)),
            is_empty: series.steps.iter().all(|(_, counts)| counts == &[0, 0]),
            label: series.label,
            kinds: series.kinds,
            unit: series.unit,
            rows: series.steps,
        }
    }
}

fn draw(series: &Series, class: &'static str, width: i64) -> Drawing {
    let most = series.steps.iter().map(|(_, [a, b])| a + b).max();
    let (step, count) = lines_of(most.unwrap_or(0));
    let top_value = (step * count).max(1);
    let height = |value: u64| {
        let scaled = i128::from(value) * i128::from(BASE - TOP) / i128::from(top_value);
        // One of thousands must be seen too.
        i64::try_from(scaled)
            .unwrap_or(0)
            .max(i64::from(value > 0) * 2)
    };
    let steps = i64::try_from(series.steps.len()).unwrap_or(1).max(1);
    let x_of = |number: i64| LEFT + (width - LEFT) * number / steps;
    let columns = series
        .steps
        .iter()
        .zip(0_i64..)
        .map(|((name, counts), number)| {
            let (x, next) = (x_of(number), x_of(number + 1));
            let gap = ((next - x) / 5).clamp(1, 14);
            column(
                series,
                name,
                *counts,
                (x, next - x, gap),
                counts.map(height),
            )
        });
    let every = (NAME_WIDTH * steps / (width - LEFT).max(1) + 1).max(1);
    let named = series.steps.iter().zip(0_i64..);
    let named = named.filter(|(_, number)| (steps - 1 - number) % every == 0);
    Drawing {
        class,
        width,
        base: BASE,
        lines: (0..=count)
            .map(|line| Line {
                y: BASE - height(line * step).min(BASE - TOP),
                value: format!("{}{}", line * step, series.unit),
            })
            .collect(),
        columns: columns.collect(),
        names: named
            .map(|((name, _), number)| {
                let middle = (x_of(number) + x_of(number + 1)) / 2;
                match middle > width - 22 {
                    true => (width, "end", name.clone()),
                    false => (middle, "middle", name.clone()),
                }
            })
            .filter(|(x, _, _)| *x >= LEFT + 10)
            .collect(),
    }
}

fn column(
    series: &Series,
    name: &str,
    counts: [u64; 2],
    (x, room, gap): (i64, i64, i64),
    [below, above]: [i64; 2],
) -> Column {
    let [first, second] = series.kinds;
    let unit = series.unit;
    let width = (room - 2 * gap).max(1);
    let top = BASE - below - above;
    let has_room = room >= 40 && counts != [0, 0] && unit.is_empty();
    Column {
        title: format!(
            "{name}: {}{unit} {first}, {}{unit} {second}",
            counts[0], counts[1]
        ),
        hit_x: x,
        hit_width: room,
        x: x + gap,
        width,
        parts: [(first, BASE - below, below), (second, top, above)]
            .into_iter()
            .filter(|(_, _, height)| *height > 0)
            .collect(),
        value: has_room.then(|| (x + room / 2, top - 6, (counts[0] + counts[1]).to_string())),
    }
}

/// Value between two lines (1, 2 or 5 times a power of ten) and how many lines above the base hold `most`.
fn lines_of(most: u64) -> (u64, u64) {
    let mut power = 1_u64;
    loop {
        for step in [power, 2 * power, 5 * power] {
            let count = most.max(1).div_ceil(step);
            if count <= LINES_MAX {
                return (step, count);
            }
        }
        let Some(next) = power.checked_mul(10).filter(|next| *next < u64::MAX / 100) else {
            return (most, 1);
        };
        power = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(counts: &[[u64; 2]]) -> Chart {
        let steps = counts.iter().enumerate();
        Chart::of(Series {
            label: "Tasks a day".to_owned(),
            kinds: ["succeeded", "failed"],
            steps: steps
                .map(|(day, counts)| (format!("{day} Jan"), *counts))
                .collect(),
            unit: "",
        })
    }

    #[test]
    fn columns_fill_the_drawing_without_leaving_it_and_the_smallest_is_seen() {
        let mut counts = vec![[0, 0]; 90];
        counts[0] = [2_500, 1];
        counts[89] = [3, 0];
        for drawing in chart(&counts).drawings {
            assert_eq!(drawing.columns.len(), 90);
            for column in &drawing.columns {
                assert!(column.x >= LEFT && column.x + column.width <= drawing.width);
                for (_, y, height) in &column.parts {
                    assert!(*y >= TOP - 2 && y + height <= BASE && *height >= 2);
                }
            }
            assert_eq!(drawing.columns[0].parts.len(), 2);
            assert_eq!(drawing.columns[1].parts.len(), 0);
            assert!(drawing.lines.iter().any(|line| line.value == "1000"));
        }
    }

    #[test]
    fn names_never_overlap_and_the_last_of_a_wide_one_is_named() {
        for days in [1, 7, 30, 90] {
            for drawing in chart(&vec![[1, 1]; days]).drawings {
                let places: Vec<i64> = drawing.names.iter().map(|(x, _, _)| *x).collect();
                assert!(
                    places.windows(2).all(|two| two[1] - two[0] > 60),
                    "{places:?}"
                );
                assert!(!places.is_empty(), "{days} days");
            }
        }
    }

    #[test]
    fn the_axis_has_round_values_that_hold_the_most() {
        assert_eq!(
            [0, 1, 4, 5, 7, 9, 23, 2_501].map(lines_of),
            [
                (1, 1),
                (1, 1),
                (1, 4),
                (2, 3),
                (2, 4),
                (5, 2),
                (10, 3),
                (1_000, 3)
            ]
        );
        assert!(chart(&[[0, 0]]).is_empty);
        let huge = lines_of(u64::MAX);
        assert_eq!(huge, (u64::MAX, 1));
    }
}
