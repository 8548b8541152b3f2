//! Draws the day and the rush as SVG, without a library: lines over time.

use std::fmt::Write;

use crate::{
    figures::{percentile, sorted, wait},
    queue::{Job, Standing},
    tally::STEP_SECONDS,
    world::{Scenario, World},
};

type Run<'a> = (&'a str, Scenario, World);

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 56.0;
const GAP: f64 = 62.0;
/// The rush is drawn in steps this long.
const RUSH_STEP_SECONDS: i64 = 15;
const COLOURS: [&str; 4] = ["#1f6f8b", "#c1440e", "#7a7a7a", "#4a7c2a"];

struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

struct Panel {
    title: &'static str,
    x_unit: &'static str,
    x_max: f64,
    x_ticks: u32,
    lines: Vec<Line>,
}

/// Four panels below each other: the day's load and waits, the rush's answers and times.
pub(crate) fn svg(day: &Run<'_>, rush: &Run<'_>) -> String {
    let panels = [
        day_load(day),
        day_waits(day),
        rush_answers(rush),
        rush_times(rush),
    ];
    let height = (HEIGHT + GAP) * panels.len() as f64 + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        WIDTH + LEFT + 30.0
    );
    for (index, panel) in panels.iter().enumerate() {
        draw(&mut svg, panel, 30.0 + index as f64 * (HEIGHT + GAP));
    }
    svg.push_str("</svg>\n");
    svg
}

fn day_load((_, scenario, world): &Run<'_>) -> Panel {
    let steps = (scenario.seconds / STEP_SECONDS) as usize;
    let hour = |step: usize| step as f64 * STEP_SECONDS as f64 / 3_600.0;
    let a_second = |count: f64| count / STEP_SECONDS as f64;
    let tally = &world.tally.steps;
    let mut ended = vec![0.0; steps];
    for job in &world.queue.jobs {
        if let (Standing::Succeeded, Some(at)) = (job.standing, job.ended_at)
            && let Some(step) = ended.get_mut(world.tally.step_of(at))
        {
            *step += 1.0;
        }
    }
    let of = |value: &dyn Fn(usize) -> f64| (0..steps).map(|n| (hour(n), value(n))).collect();
    let slots = scenario.plan.slots();
    Panel {
        title: "A day of a million tasks: tasks a second and tenths of the slots held; at 15:00 a rack of 25 dies",
        x_unit: "h",
        x_max: 24.0,
        x_ticks: 6,
        lines: vec![
            Line {
                name: "wanted/s",
                points: of(&|n| a_second(tally[n].wanted as f64)),
            },
            Line {
                name: "done/s",
                points: of(&|n| a_second(ended[n])),
            },
            Line {
                name: "slots held, tenths",
                points: of(&|n| 10.0 * a_second(tally[n].busy_seconds) / slots),
            },
        ],
    }
}

fn day_waits((_, scenario, world): &Run<'_>) -> Panel {
    let steps = (scenario.seconds / STEP_SECONDS) as usize;
    let waits = by_step(&world.queue.jobs, steps, STEP_SECONDS, wait);
    let hour = |step: usize| step as f64 * STEP_SECONDS as f64 / 3_600.0;
    let line = |name, share| Line {
        name,
        points: (0..steps)
            .map(|n| (hour(n), percentile(&waits[n], share)))
            .collect(),
    };
    Panel {
        title: "The same day: seconds from acceptance to the first claim",
        x_unit: "h",
        x_max: 24.0,
        x_ticks: 6,
        lines: vec![line("p50", 0.5), line("p99", 0.99)],
    }
}

fn rush_answers((_, scenario, world): &Run<'_>) -> Panel {
    let steps = (scenario.seconds / RUSH_STEP_SECONDS) as usize;
    let one = |_: &Job| Some(1.0);
    let accepted = by_step(&world.queue.jobs, steps, RUSH_STEP_SECONDS, one);
    let mut done = vec![0.0; (15 * 60 / RUSH_STEP_SECONDS) as usize];
    for job in &world.queue.jobs {
        if let Some(at) = job.ended_at
            && let Some(step) = done.get_mut((at.unix_seconds() / RUSH_STEP_SECONDS) as usize)
        {
            *step += 1.0;
        }
    }
    let minute = |step: usize| step as f64 * RUSH_STEP_SECONDS as f64 / 60.0;
    let a_second = |count: f64| count / RUSH_STEP_SECONDS as f64;
    Panel {
        title: "Ten minutes of three times what the fleet can do: tasks a second",
        x_unit: "min",
        x_max: 15.0,
        x_ticks: 5,
        lines: vec![
            Line {
                name: "accepted/s",
                points: (0..steps)
                    .map(|n| (minute(n), a_second(accepted[n].len() as f64)))
                    .collect(),
            },
            Line {
                name: "over/s",
                points: done
                    .iter()
                    .enumerate()
                    .map(|(n, done)| (minute(n), a_second(*done)))
                    .collect(),
            },
        ],
    }
}

fn rush_times((_, scenario, world): &Run<'_>) -> Panel {
    let steps = (scenario.seconds / RUSH_STEP_SECONDS) as usize;
    let took = |job: &Job| Some((job.ended_at?.micros() - job.created_at.micros()) as f64 / 1e6);
    let took = by_step(&world.queue.jobs, steps, RUSH_STEP_SECONDS, took);
    let minute = |step: usize| step as f64 * RUSH_STEP_SECONDS as f64 / 60.0;
    let line = |name, share| Line {
        name,
        points: (0..steps)
            .map(|n| (minute(n), percentile(&took[n], share)))
            .collect(),
    };
    let deadline = Line {
        name: "deadline",
        points: vec![(0.0, 270.0), (minute(steps), 270.0)],
    };
    Panel {
        title: "The same rush: seconds from acceptance to the end, by the minute of acceptance",
        x_unit: "min",
        x_max: 10.0,
        x_ticks: 5,
        lines: vec![line("p50", 0.5), line("longest", 1.0), deadline],
    }
}

/// A value of each job, sorted, by the step in which it was accepted.
fn by_step(
    jobs: &[Job],
    steps: usize,
    step_seconds: i64,
    value: impl Fn(&Job) -> Option<f64>,
) -> Vec<Vec<f64>> {
    let mut values = vec![Vec::new(); steps];
    for job in jobs {
        let step = (job.created_at.unix_seconds() / step_seconds) as usize;
        if let (Some(step), Some(value)) = (values.get_mut(step), value(job)) {
            step.push(value);
        }
    }
    values
        .into_iter()
        .map(|step| sorted(step.into_iter()))
        .collect()
}

fn draw(svg: &mut String, panel: &Panel, top: f64) {
    let points = panel.lines.iter().flat_map(|line| &line.points);
    let y_max = round_up(points.map(|point| point.1).fold(1e-9, f64::max));
    let x = |value: f64| LEFT + value / panel.x_max * WIDTH;
    let y = |value: f64| top + HEIGHT - value / y_max * HEIGHT;
    let title = panel.title;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 8.0);
    for part in 0..=4 {
        let value = y_max * f64::from(part) / 4.0;
        let at = y(value);
        let right = LEFT + WIDTH;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555555\">{value}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for part in 0..=panel.x_ticks {
        let value = panel.x_max * f64::from(part) / f64::from(panel.x_ticks);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555555\">{value} {}</text>",
            x(value),
            top + HEIGHT + 16.0,
            panel.x_unit
        );
    }
    for (index, (line, colour)) in panel.lines.iter().zip(COLOURS).enumerate() {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|point| format!("{:.1} {:.1}", x(point.0), y(point.1)))
            .collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            path.join("L"),
            LEFT + 10.0 + 130.0 * index as f64,
            top + 14.0,
            line.name
        );
    }
}

/// The next of 1, 2, 4, 6, 8 times a power of ten: four ticks that are short numbers.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| *step * power >= value);
    step.unwrap_or(&10.0) * power
}
