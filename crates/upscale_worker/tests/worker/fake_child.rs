//! Children played by the shell: each does one thing wrong, or just what it should.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use tempfile::TempDir;
use upscale_core::{Look, Scale};
use upscale_pipeline::{
    Answer, ChildOptions, DeviceUse, Facts, Format, Spent, sandbox::Parts, write_answer,
    write_progress,
};

/// A folder with what the scripts read and write.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file there that scripts call `$NAME` once they are made by [`Stage::child`].
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// A child that runs this script in the folder.
    pub(crate) fn child(&self, script: &str) -> ChildOptions {
        let script = format!("cd '{}'; {script}", self.folder.path().display());
        ChildOptions {
            program: PathBuf::from("/bin/sh"),
            arguments: vec![OsString::from("-c"), OsString::from(script)],
            environment: vec![("UPSCALE_CPU".into(), "scalar".into())],
            wall_clock: Duration::from_secs(60),
            threads: 2,
            memory_bytes_max: 1 << 30,
            cpu_seconds_max: 60,
            required: Parts::NONE,
            look: Look::Faithful,
            device: None,
        }
    }

    /// A child that takes its job and gives this answer.
    pub(crate) fn answering(&self, answer: &Answer) -> ChildOptions {
        self.put("answer", &frames(answer));
        self.child("cat > job; cat answer")
    }
}

/// Some progress and the answer, as a child writes them.
pub(crate) fn frames(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    for permille in [1, 500, 999] {
        write_progress(&mut bytes, permille).unwrap();
    }
    write_answer(&mut bytes, answer).unwrap();
    bytes
}

/// What a child says of a source of so many columns and rows.
pub(crate) fn facts(source_width: u32, source_height: u32, scale: Scale) -> Facts {
    Facts {
        source_width,
        source_height,
        width: source_width * scale.factor() as u32,
        height: source_height * scale.factor() as u32,
        source_format: Format::Png,
        by_brought_model: false,
        by_reference: false,
        device: DeviceUse::None,
        focus_permille: [250, 750],
        spent: Spent::default(),
        memory_bytes: 0,
    }
}

/// A good answer: a PNG as far as a parent can see, with so many bytes of image data.
pub(crate) fn done(scale: Scale, data_bytes: usize) -> Answer {
    let facts = facts(40, 30, scale);
    let png = png(facts.width, facts.height, data_bytes);
    Answer::Done {
        facts,
        png,
        thumbnail: self::png(20, 15, 60),
    }
}

/// The layout of an 8-bit RGB PNG; its data are zeros and its checksums too.
pub(crate) fn png(width: u32, height: u32, data_bytes: usize) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = [sides.as_slice(), &[8, 2, 0, 0, 0]].concat();
    let chunks = [
        chunk(b"IHDR", &header),
        chunk(b"IDAT", &vec![0; data_bytes]),
        chunk(b"IEND", b""),
    ];
    [b"\x89PNG\r\n\x1a\n".as_slice(), &chunks.concat()].concat()
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    [&length, kind.as_slice(), data, &[0; 4]].concat()
}
