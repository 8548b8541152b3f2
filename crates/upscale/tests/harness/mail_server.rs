//! A mail server on loopback: takes mail over TLS from who knows the password, and is busy or refuses when told to.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use data_encoding::BASE64;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::image_host::certificates;

pub const USER: &str = "console@upscale-tests.org";
pub const PASSWORD: &str = "a p@ssword: of the mail server";
/// A bound against hanging, not a promise of speed.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// One mail that was taken.
#[derive(Debug, Clone)]
pub struct Mail {
    pub from: String,
    pub to: String,
    /// Headers, an empty line, the body; lines end in `\n`.
    pub text: String,
}

/// A running server, until the process ends.
pub struct MailServer {
    port: u16,
    /// The root of its certificate, in PEM.
    pub root_file: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    taken: Mutex<Vec<Mail>>,
    /// Recipients that are answered 451 so many times more.
    busy: Mutex<u32>,
    /// Recipients that were answered 550.
    refused: Mutex<u32>,
}

impl MailServer {
    pub fn start(folder: &Path) -> Self {
        let (root, config) = certificates("localhost");
        let root_file = folder.join("mail-server-root.pem");
        std::fs::write(&root_file, root).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (config, shared) = (Arc::clone(&config), Arc::clone(&accepting));
                thread::spawn(move || drop(converse(socket, config, &shared)));
            }
        });
        Self {
            port,
            root_file,
            shared,
        }
    }

    /// Without the password.
    pub fn url(&self) -> String {
        format!(
            "smtps://{}@localhost:{}",
            USER.replace('@', "%40"),
            self.port
        )
    }

    /// The next recipient is answered 451.
    pub fn be_busy_once(&self) {
        *self.shared.busy.lock().unwrap() = 1;
    }

    pub fn wait_for(&self, count: usize) -> Vec<Mail> {
        self.wait_until(|shared| shared.taken.lock().unwrap().len() >= count);
        let taken = self.shared.taken.lock().unwrap().clone();
        assert_eq!(taken.len(), count, "{taken:?}");
        taken
    }

    /// Mails refused for good so far.
    pub fn refused(&self) -> u32 {
        *self.shared.refused.lock().unwrap()
    }

    fn wait_until(&self, is_there: impl Fn(&Shared) -> bool) {
        let begun = Instant::now();
        while !is_there(&self.shared) && begun.elapsed() < WAIT_MAX {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

type Stream = BufReader<StreamOwned<ServerConnection, TcpStream>>;

fn converse(socket: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    socket.set_read_timeout(Some(WAIT_MAX))?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(tls, socket));
    send_line(&mut stream, "220 mail.upscale-tests.org ESMTP")?;
    let (mut from, mut to, mut is_known) = (String::new(), String::new(), false);
    loop {
        let line = read_command(&mut stream)?;
        let (command, rest) = line.split_once([' ', ':']).unwrap_or((&line, ""));
        let answer = match command.to_ascii_uppercase().as_str() {
            "EHLO" => "250-mail.upscale-tests.org\r\n250-8BITMIME\r\n250 AUTH PLAIN".to_owned(),
            "AUTH" => {
                is_known = is_login(rest);
                if is_known { "235 welcome" } else { "535 no" }.to_owned()
            }
            "MAIL" if !is_known => "530 who are you?".to_owned(),
            "MAIL" => {
                from = path_of(rest);
                "250 yes".to_owned()
            }
            "RCPT" => {
                to = path_of(rest);
                judge(&to, shared)
            }
            "DATA" => {
                send_line(&mut stream, "354 go on")?;
                let text = read_data(&mut stream)?;
                let text = decoded(&text);
                let mail = Mail {
                    from: from.clone(),
                    to: to.clone(),
                    text,
                };
                shared.taken.lock().unwrap().push(mail);
                "250 taken".to_owned()
            }
            "QUIT" => return send_line(&mut stream, "221 bye"),
            _ => "502 what?".to_owned(),
        };
        send_line(&mut stream, &answer)?;
    }
}

fn is_login(rest: &str) -> bool {
    let sent = rest.trim().strip_prefix("PLAIN ").unwrap_or_default();
    let expected = format!("\0{USER}\0{PASSWORD}");
    BASE64.decode(sent.as_bytes()).ok() == Some(expected.into_bytes())
}

/// `FROM:<a@b>` and `TO:<a@b>`.
fn path_of(rest: &str) -> String {
    let inner = rest
        .split_once('<')
        .and_then(|(_, inner)| inner.split_once('>'));
    inner.map(|(path, _)| path.to_owned()).unwrap_or_default()
}

fn judge(to: &str, shared: &Shared) -> String {
    let mut busy = shared.busy.lock().unwrap();
    if *busy > 0 {
        *busy -= 1;
        return format!("451 <{to}> come again later");
    }
    if to.starts_with("unknown") {
        *shared.refused.lock().unwrap() += 1;
        return format!("550 <{to}> lives elsewhere");
    }
    "250 yes".to_owned()
}

fn read_command(stream: &mut Stream) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn read_data(stream: &mut Stream) -> io::Result<String> {
    let mut text = String::new();
    loop {
        let line = read_command(stream)?;
        if line == "." {
            return Ok(text);
        }
        text.push_str(
            line.strip_prefix("..")
                .map_or(line.as_str(), |_| &line[1..]),
        );
        text.push('\n');
    }
}

/// Quoted-printable, where the headers say so: `=` at a line's end joins it with the next, `=3D` is a byte.
fn decoded(text: &str) -> String {
    if !text.contains("Content-Transfer-Encoding: quoted-printable\n") {
        return text.to_owned();
    }
    let (headers, body) = text.split_once("\n\n").unwrap();
    let body = body.replace("=\n", "");
    let mut pieces = body.split('=');
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at(2);
        whole.push(char::from(u8::from_str_radix(code, 16).unwrap()));
        whole.push_str(rest);
    }
    format!("{headers}\n\n{whole}")
}

fn send_line(stream: &mut Stream, line: &str) -> io::Result<()> {
    write!(stream.get_mut(), "{line}\r\n")?;
    stream.get_mut().flush()
}
