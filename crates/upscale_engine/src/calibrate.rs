//! Where the scales of 16-bit integers come from: a small rendered picture that has what pictures have (smooth
//! ground, edges in all directions, strokes, noise), run through the network in single precision: once for a network that
//! ships, whose ranges are kept in a file beside its weights; for a network that someone brings once at the start of a
//! service ([`Network::find_ranges`]), and elsewhere in each process.

use std::ops::ControlFlow;

use upscale_core::{Pixels, Rows};
use upscale_simd::Kernels;

use crate::error::ModelError;
use crate::folding::Folded;
use crate::kernel_set::KernelSet;
use crate::network::Network;
use crate::plan::Plan;
use crate::ranges::{Observed, Ranges, Table};
use crate::shapes::Random;
use crate::upscale::upscale;

/// Ten by eight tiles: 7 ms for the largest network that ships.
const WIDTH: usize = 60;
const HEIGHT: usize = 48;
/// Mean difference (root of the mean square) from single precision that a network may show on the picture, which is
/// harder than pictures are: a quarter of an 8-bit level. Beyond, it stays in single precision.
const DIFFERENCE_MAX: f64 = 0.25 / 255.0;

/// The network's plan in 16-bit integers where that is safe and faster, else in single precision. What ships has its
/// ranges in a file, and its safety in this file's tests; another network shows both here, in two runs.
pub(crate) fn fast_plan(folded: &Folded<'_>, kernels: Kernels) -> Plan {
    if !kernels.has_words() {
        return Plan::new(folded, kernels);
    }
    match &folded.ranges {
        Some(ranges) => Plan::new(folded, kernels).with_words(ranges),
        None => calibrated(folded, kernels).0,
    }
}

/// The plan in 16-bit integers and the ranges that made it, or the one in single precision and [`Ranges::NONE`].
fn calibrated(folded: &Folded<'_>, kernels: Kernels) -> (Plan, Ranges) {
    let mut exact = Plan::new(folded, kernels);
    let (expected, table) = observe(&mut exact);
    let ranges = Ranges(vec![table]);
    let fast = Plan::new(folded, kernels).with_words(&ranges);
    if difference(&run(&fast, &picture()), &expected) <= DIFFERENCE_MAX {
        (fast, ranges)
    } else {
        (exact, Ranges::NONE)
    }
}

impl Network {
    /// How large its numbers get, found as [`Precision::Fast`] finds it on every start: bytes for
    /// [`Network::with_ranges`], 260 a layer, empty where integers do not suit the network. None where there is nothing to
    /// keep: kernels without integers, a network that has its ranges, and one whose numbers depend on the picture's
    /// condition.
    ///
    /// [`Precision::Fast`]: crate::Precision::Fast
    #[must_use]
    pub fn find_ranges(&self, kernels: Option<KernelSet>) -> Option<Vec<u8>> {
        let kernels = kernels.unwrap_or_else(KernelSet::best).kernels()?;
        let is_open = self.ranges.is_none() && self.conditioning.is_none();
        let can = is_open && self.has_kernels() && kernels.has_words();
        can.then(|| calibrated(&self.unfolded(), kernels).1.to_bytes())
    }

    /// The network with what [`Network::find_ranges`] gave for it, so that no start has to find it again. Wrong ranges cost
    /// exactness, never more.
    ///
    /// # Errors
    /// [`ModelError`] when they are those of a network with another number of layers.
    pub fn with_ranges(mut self, bytes: &[u8]) -> Result<Self, ModelError> {
        self.ranges = Some(match bytes {
            [] => Ranges::NONE,
            _ => Ranges::parse(bytes, self.layers.len())?,
        });
        Ok(self)
    }
}

/// What a plan in single precision makes of the picture, and how large its numbers get.
fn observe(plan: &mut Plan) -> (Vec<f32>, Table) {
    plan.observed = Some(Observed::new(plan.layers.len()));
    let made = run(plan, &picture());
    let table = plan.observed.take().map(|observed| observed.table());
    (made, table.unwrap_or_default())
}

/// Root of the mean square; infinite where one has nothing to compare, NaN where a number is.
fn difference(given: &[f32], expected: &[f32]) -> f64 {
    if given.is_empty() || given.len() != expected.len() {
        return f64::INFINITY;
    }
    let pairs = given.iter().zip(expected);
    let squares = pairs.map(|(a, b)| f64::from(a - b).powi(2));
    (squares.sum::<f64>() / given.len() as f64).sqrt()
}

fn run(plan: &Plan, picture: &Pixels) -> Vec<f32> {
    let mut output = Vec::new();
    let mut sink = |rows: Rows<'_>| {
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    match upscale(plan, picture, 1, &mut sink, &|| false) {
        Ok(()) => output,
        Err(_) => Vec::new(),
    }
}

fn picture() -> Pixels {
    let mut random = Random(11);
    let mut samples = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for (y, x) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
        let noise = random.unit() - 0.5;
        samples.extend(colour(x as f32, y as f32).map(|v| (v + 0.06 * noise).clamp(0.0, 1.0)));
    }
    Pixels::new(WIDTH, HEIGHT, 3, samples).unwrap_or_else(|_| unreachable!("three samples a pixel"))
}

/// Left: sky and a disc. Middle: black strokes of two pixels on white. Right: waves that get finer.
fn colour(x: f32, y: f32) -> [f32; 3] {
    let column = x as usize;
    if column < 24 {
        let inside = (x - 12.0).hypot(y - 24.0) < 9.0;
        return match inside {
            true => [0.9, 0.25, 0.1],
            false => [0.2 + 0.01 * y, 0.4 + 0.008 * x, 0.95 - 0.012 * y],
        };
    }
    if column < 42 {
        let stroke = ((x + 0.7 * y) as usize % 7) < 2 || (y as usize % 11) < 1;
        return [if stroke { 0.0 } else { 1.0 }; 3];
    }
    let wave = 0.5 + 0.45 * (0.02 * (x - 42.0) * y).sin();
    [wave, 1.0 - wave, 0.5 + 0.4 * (0.9 * x).cos()]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use upscale_core::{Compression, Condition, Estimate, Look, Scale, Subsampling};

    use super::*;
    use crate::faces::large_faces_share;
    use crate::plan::PlanLayer;
    use crate::ranges::{KEPT, NOISES, SOFTNESSES};
    use crate::shipped::{FACES, RESTORE_X2, RESTORE_X4, Shipped, X2, X4};
    use crate::trials::{SPOILT, SUITED};

    /// [`DIFFERENCE_MAX`] of restoring networks under the hardest of conditions, such as the heaviest JPEG whose noise is
    /// the strongest, whose output is a smear on any picture. The crisp look draws more there: 0.353, the faithful 0.320.
    const RESTORING_DIFFERENCE_MAX: f64 = 0.4 / 255.0;

    /// What ships, with its name and scale.
    fn shipped() -> Vec<(String, Scale, Shipped)> {
        let restoring = [RESTORE_X2, RESTORE_X4].map(Option::unwrap);
        let faces = FACES.unwrap();
        let kinds = [("s", [X2, X4]), ("restore", restoring), ("face", faces)];
        let named = |(kind, both): (&'static str, [Shipped; 2])| {
            let scaled = Scale::ALL.into_iter().zip(both);
            scaled.map(move |(scale, one)| (format!("{kind}-x{}", scale.factor()), scale, one))
        };
        kinds.into_iter().flat_map(named).collect()
    }

    /// Shares of the crisp weights in the looks.
    fn in_looks(scale: Scale) -> [f32; 3] {
        Look::ALL.map(|look| look.crisp_share(scale))
    }

    /// The network with each of these shares of the crisp weights that it has.
    fn networks(shipped: Shipped, crisp_shares: &[f32]) -> Vec<Network> {
        let shares = crisp_shares.iter().filter(|share| shipped.has(**share));
        shares.map(|share| shipped.read(*share).unwrap()).collect()
    }

    /// A table's mean of 0 is a file of which nothing is known, 1 one without loss.
    fn condition(table: f32, subsampling: Subsampling, estimate: Option<Estimate>) -> Condition {
        let compression = match table {
            0.0 => Compression::Unknown,
            1.0 => Compression::Lossless,
            _ => Compression::Quantised {
                luma_mean: table,
                chroma_mean: 1.5 * table,
                subsampling,
            },
        };
        Condition {
            compression,
            estimate,
        }
    }

    /// Every kind of file, with this of its noise and softness.
    fn files(estimate: Option<Estimate>) -> [Condition; 5] {
        [
            condition(0.0, Subsampling::None, estimate),
            condition(1.0, Subsampling::None, estimate),
            condition(8.0, Subsampling::None, estimate),
            condition(30.0, Subsampling::Quarter, estimate),
            condition(160.0, Subsampling::Quarter, estimate),
        ]
    }

    fn estimates() -> Vec<Estimate> {
        let pairs = NOISES.into_iter().flat_map(|noise| {
            SOFTNESSES.map(|softness| Estimate {
                noise,
                softness,
                ..Estimate::NONE
            })
        });
        pairs.collect()
    }

    /// The largest of all numbers of these networks under these conditions.
    fn table(networks: &[Network], conditions: &[Condition]) -> Table {
        let kernels = KernelSet::best().kernels().unwrap();
        let mut table = vec![[0.0; KEPT]; networks[0].layers.len()];
        for (network, condition) in networks
            .iter()
            .flat_map(|n| conditions.iter().map(move |c| (n, c)))
        {
            let found = observe(&mut Plan::new(&network.under(*condition), kernels)).1;
            for (mine, found) in table
                .as_flattened_mut()
                .iter_mut()
                .zip(found.as_flattened())
            {
                *mine = found.max(*mine);
            }
        }
        table
    }

    /// Restoring networks have a table for each pair; the others lose nothing by one.
    fn ranges(name: &str, networks: &[Network]) -> Ranges {
        if name.starts_with("restore") {
            let one = |estimate| table(networks, &files(Some(estimate)));
            return Ranges(estimates().into_iter().map(one).collect());
        }
        let hardest = Estimate {
            noise: Estimate::NOISE_MAX,
            ..Estimate::NONE
        };
        let estimates = [None, Some(Estimate::NONE), Some(hardest)];
        let conditions: Vec<_> = estimates.into_iter().flat_map(files).collect();
        Ranges(vec![table(networks, &conditions)])
    }

    /// `UPDATE_RANGES=1 cargo test -p upscale_engine what_ships` writes the files, which the next build has built in.
    #[test]
    fn what_ships_has_the_ranges_of_its_weights() {
        for (name, scale, shipped) in shipped() {
            let networks = networks(shipped, &in_looks(scale));
            let ranges = ranges(&name, &networks);
            let found = ranges.0.iter().flatten().flatten();
            if std::env::var_os("UPDATE_RANGES").is_some() {
                let bytes = ranges.to_bytes();
                let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("weights");
                fs::write(folder.join(format!("{name}.ranges")), bytes).unwrap();
                continue;
            }
            let kept = networks[0].ranges.as_ref().expect("ranges ship");
            let kept = kept.0.iter().flatten().flatten();
            // Another set of kernels rounds differently.
            let furthest = found.zip(kept).map(|(a, b)| (a - b).abs() / a.max(1e-6));
            let furthest = furthest.fold(0.0, f32::max);
            assert!(
                furthest < 0.01,
                "{name} is {furthest} off; UPDATE_RANGES=1 writes it anew"
            );
        }
    }

    /// Between the tables, too: what `fast_plan` asks other networks for in two runs, these keep without being asked. So do
    /// those of large faces, whose numbers are up to 1.15 times those of the looks, which the tables' headroom holds.
    #[test]
    fn what_ships_stands_integers_under_all_conditions() {
        let Some(kernels) = KernelSet::best().kernels().filter(|k| k.has_words()) else {
            eprintln!("left out: this CPU multiplies no 16-bit integers faster");
            return;
        };
        for (name, network) in shipped().into_iter().flat_map(|(name, scale, one)| {
            let shares = [&in_looks(scale)[..], &[large_faces_share(scale)]].concat();
            let all = networks(one, &shares).into_iter();
            all.map(move |network| (name.clone(), network))
        }) {
            let mut random = Random(3);
            let mut worst = 0.0_f64;
            for _ in 0..12 {
                let mut upto = |most: f32| most * random.unit();
                let subsampling = [Subsampling::None, Subsampling::Quarter][upto(1.999) as usize];
                let (noise, softness) = (upto(25.0), upto(2.2));
                let estimate = Some(Estimate {
                    noise,
                    softness,
                    ..Estimate::NONE
                });
                let network = network.folded(condition(upto(200.0), subsampling, estimate));
                let fast = fast_plan(&network.unfolded(), kernels);
                assert!(fast.layers.iter().any(PlanLayer::is_in_integers), "{name}");
                let exact = run(&Plan::new(&network.unfolded(), kernels), &picture());
                worst = worst.max(difference(&run(&fast, &picture()), &exact));
            }
            eprintln!("{name}: {:.3} levels", 255.0 * worst);
            // Those of faces are restoring networks, trained further.
            let is_restoring = ["restore", "face"]
                .iter()
                .any(|kind| name.starts_with(kind));
            let most = if is_restoring {
                RESTORING_DIFFERENCE_MAX
            } else {
                DIFFERENCE_MAX
            };
            assert!(worst <= most, "{name}: {worst}");
        }
    }

    #[test]
    fn ranges_found_once_make_the_plan_that_finds_them_itself() {
        let kernels = KernelSet::best().kernels().unwrap();
        for (network, suits) in [(SUITED.network(4, 1), true), (SPOILT.network(2, 1), false)] {
            let Some(found) = network.find_ranges(None) else {
                assert!(!kernels.has_words(), "{}", network.name());
                continue;
            };
            assert_eq!(found.is_empty(), !suits, "{}", network.name());
            let expected = run(&fast_plan(&network.unfolded(), kernels), &picture());
            let plan = fast_plan(&network.with_ranges(&found).unwrap().unfolded(), kernels);
            let in_integers = plan.layers.iter().any(PlanLayer::is_in_integers);
            assert_eq!(in_integers, suits);
            assert!(run(&plan, &picture()) == expected);
        }
    }

    #[test]
    fn ranges_are_found_where_there_are_some_to_keep_and_taken_by_their_network_alone() {
        let [compact, gated] = [SUITED.network(4, 1), SPOILT.network(2, 1)];
        assert!(compact.find_ranges(Some(KernelSet::Reference)).is_none());
        assert!(compact.find_ranges(Some(KernelSet::Portable)).is_none());
        let known = compact.clone().with_ranges(&[]).unwrap();
        assert!(known.find_ranges(None).is_none());
        let conditioned = X2.read(0.0).unwrap();
        assert!(conditioned.find_ranges(None).is_none());
        let layers = compact.layers.len();
        let bytes = Ranges(vec![vec![[1.0; KEPT]; layers]]).to_bytes();
        assert_eq!(bytes.len(), 260 * layers);
        assert!(compact.with_ranges(&bytes).is_ok());
        let error = gated.with_ranges(&bytes).unwrap_err().to_string();
        assert!(error.contains("layers have"), "{error}");
    }
}
