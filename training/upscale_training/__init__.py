"""How the weights that Upscale ships are made and judged. Inference lives in the Rust engine, not here."""
