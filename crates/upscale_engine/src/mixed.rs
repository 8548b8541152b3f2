//! Networks between two others of the same shape: what lies between weights that were trained one from the other does
//! some of what each does (Wortsman et al. 2022).

use crate::{error::ModelError, network::Network};

impl Network {
    /// This network with its weights moved towards those of `other` by `share`: at 0 it is this one, at 1 its layers are the
    /// other's. What a picture's condition changes stays this one's.
    ///
    /// # Errors
    /// [`ModelError`] when `other` has other layers.
    pub fn mixed(mut self, other: &Self, share: f32) -> Result<Self, ModelError> {
        let differs = |what: &str| {
            let (name, with) = (&self.name, &other.name);
            ModelError(format!("{name} and {with} cannot be mixed: {what}"))
        };
        let shapes = [&self, other].map(|network| (network.scale, network.layers.len()));
        if shapes[0] != shapes[1] {
            return Err(differs("they differ in scale or depth"));
        }
        let mut pairs = self.layers.iter().zip(&other.layers);
        if !pairs.all(|(one, other)| one.has_shape_of(other)) {
            return Err(differs("a layer of one is none of the other"));
        }
        for (mine, others) in self.layers.iter_mut().zip(&other.layers) {
            let numbers = mine.weights.iter_mut().zip(&others.weights);
            for (one, &other) in numbers.chain(mine.bias.iter_mut().zip(&others.bias)) {
                *one += share * (other - *one);
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::network::{Activation, Base, Network, PICTURE};

    fn network(weight: f32, channels: usize) -> Network {
        let mut network = Network::empty("a", 2, Base::Bicubic);
        let conv = (vec![weight; channels * 27], vec![2.0 * weight; channels]);
        network.push(&[PICTURE], conv, Activation::None, &[]);
        network
    }

    #[test]
    fn numbers_lie_between_by_their_share() {
        for (share, weight) in [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0)] {
            let mixed = network(1.0, 12).mixed(&network(3.0, 12), share).unwrap();
            assert!(mixed.layers[0].weights.iter().all(|one| *one == weight));
            assert!(mixed.layers[0].bias.iter().all(|one| *one == 2.0 * weight));
        }
    }

    #[test]
    fn other_layers_are_refused() {
        let error = network(1.0, 12).mixed(&network(3.0, 9), 0.5).unwrap_err();
        assert!(error.to_string().contains("cannot be mixed"), "{error}");
        let deeper = Network::empty("b", 2, Base::Bicubic);
        assert!(network(1.0, 12).mixed(&deeper, 0.5).is_err());
    }
}
