//! Ends of sockets on their way from process to process, one at a time, each with a byte that carries it (SCM_RIGHTS).

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

const CARRIER: u8 = b'E';

/// Hands `end` on over `socket`, without waiting.
///
/// # Errors
/// When no one is there, or more were sent than were taken.
pub(crate) fn send_end(socket: impl AsFd, end: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let ends = [end.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&ends));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&[CARRIER])], &mut control, flags));
    sent.map(|_| ()).map_err(io::Error::from)
}

/// Waits for the next end; none when the other side is closed.
///
/// # Errors
/// Those of the socket, and `InvalidData` for whatever is no end.
pub(crate) fn receive_end(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = [0];
    let received = retry_on_intr(|| {
        let mut into = [IoSliceMut::new(&mut carrier)];
        recvmsg(&socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let ends = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(ends) => Some(ends),
        _ => None,
    });
    let end = ends.flatten().next().filter(|_| carrier == [CARRIER]);
    let none = || io::Error::new(io::ErrorKind::InvalidData, "no end of a socket came");
    end.ok_or_else(none).map(Some)
}
