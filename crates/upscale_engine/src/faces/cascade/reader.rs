//! Reads the model's file, number by number. It is part of this program; a wrong one is refused all the same, in words.

/// Numbers of any one kind in a model: the largest layer of the published one has 131,072.
const COUNT_MAX: usize = 1 << 20;

/// What is left of the file.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn of(file: &'a [u8]) -> Self {
        Self { rest: file }
    }

    fn word(&mut self) -> Result<[u8; 4], String> {
        let (word, rest) = self.rest.split_first_chunk().ok_or("the file is cut off")?;
        self.rest = rest;
        Ok(*word)
    }

    pub(super) fn number(&mut self) -> Result<i32, String> {
        self.word().map(i32::from_le_bytes)
    }

    /// A number of things.
    pub(super) fn count(&mut self) -> Result<usize, String> {
        let number = self.number()?;
        let count = usize::try_from(number).ok().filter(|&n| n <= COUNT_MAX);
        count.ok_or_else(|| format!("a count of {number}"))
    }

    pub(super) fn float(&mut self) -> Result<f32, String> {
        self.word().map(f32::from_le_bytes)
    }

    pub(super) fn floats(&mut self, count: usize) -> Result<Vec<f32>, String> {
        if count > COUNT_MAX {
            return Err(format!("{count} numbers in a row"));
        }
        (0..count).map(|_| self.float()).collect()
    }

    /// A number that is known beforehand.
    pub(super) fn expect(&mut self, what: &str, expected: i32) -> Result<(), String> {
        match self.number()? {
            found if found == expected => Ok(()),
            found => Err(format!("{what}: {found}, expected {expected}")),
        }
    }

    /// How many, and then each, all known beforehand.
    pub(super) fn expect_list(&mut self, what: &str, expected: &[i32]) -> Result<(), String> {
        self.expect(what, expected.len() as i32)?;
        expected
            .iter()
            .try_for_each(|&number| self.expect(what, number))
    }

    pub(super) fn end(&self) -> Result<(), String> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes after its end")),
        }
    }
}
