//! ICC profiles by code.

use moxcms::{ColorProfile, curve_from_gamma};

/// Display P3: wide primaries, sRGB's curve.
pub fn display_p3() -> Vec<u8> {
    encoded(&ColorProfile::new_display_p3())
}

/// Adobe RGB (1998): wide green, gamma 2.2.
pub fn adobe_rgb() -> Vec<u8> {
    encoded(&ColorProfile::new_adobe_rgb())
}

/// ProPhoto RGB: primaries that no eye sees, gamma 1.8.
pub fn pro_photo() -> Vec<u8> {
    encoded(&ColorProfile::new_pro_photo_rgb())
}

/// sRGB's primaries on any gamma.
pub fn srgb_with_gamma(gamma: f32) -> Vec<u8> {
    let mut profile = ColorProfile::new_srgb();
    let curve = curve_from_gamma(gamma);
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
    profile.cicp = None;
    encoded(&profile)
}

/// Gray on any gamma.
pub fn gray_with_gamma(gamma: f32) -> Vec<u8> {
    encoded(&ColorProfile::new_gray_with_gamma(gamma))
}

fn encoded(profile: &ColorProfile) -> Vec<u8> {
    profile.encode().expect("encodes")
}

/// A CMYK profile whose table has two points a side: each corner of the ink cube gets the Lab colour that the inks
/// would multiply to (`ICC.1:2001-04`, 6.5.8, `lut8Type`).
pub fn inks() -> Vec<u8> {
    let lut = ink_table();
    let white = [0_i32, 63_190, 65_536, 54_061]
        .iter()
        .flat_map(|v| v.to_be_bytes())
        .collect::<Vec<u8>>();
    let mut white_tag = b"XYZ ".to_vec();
    white_tag.extend(white);
    let tags: [(&[u8; 4], Vec<u8>); 2] = [(b"wtpt", white_tag), (b"A2B0", lut)];
    let mut offset = 128 + 4 + 12 * tags.len();
    let total = offset + tags.iter().map(|(_, data)| data.len()).sum::<usize>();
    let mut profile = vec![0; 128];
    profile[..4].copy_from_slice(&(total as u32).to_be_bytes());
    profile[8..12].copy_from_slice(&[2, 0x40, 0, 0]);
    profile[12..24].copy_from_slice(b"prtrCMYKLab ");
    profile[36..40].copy_from_slice(b"acsp");
    for (at, value) in [(68, 63_190_u32), (72, 65_536), (76, 54_061)] {
        profile[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    profile.extend((tags.len() as u32).to_be_bytes());
    for (name, data) in &tags {
        profile.extend(*name);
        profile.extend((offset as u32).to_be_bytes());
        profile.extend((data.len() as u32).to_be_bytes());
        offset += data.len();
    }
    tags.iter().for_each(|(_, data)| profile.extend(data));
    profile
}

fn ink_table() -> Vec<u8> {
    let mut table = b"mft1\0\0\0\0".to_vec();
    table.extend([4, 3, 2, 0]);
    for diagonal in 0..9 {
        let one = if diagonal % 4 == 0 { 65_536_i32 } else { 0 };
        table.extend(one.to_be_bytes());
    }
    (0..4).for_each(|_| table.extend(0..=255_u8));
    for corner in 0..16 {
        let ink = |bit: u8| if corner >> bit & 1 == 1 { 0.1_f32 } else { 1.0 };
        let black = ink(0);
        let rgb = [ink(3) * black, ink(2) * black, ink(1) * black];
        let [l, a, b] = upscale_image::lab(rgb);
        let level = |value: f32| value.round().clamp(0.0, 255.0) as u8;
        table.extend([level(l * 2.55), level(a + 128.0), level(b + 128.0)]);
    }
    (0..3).for_each(|_| table.extend(0..=255_u8));
    table
}
