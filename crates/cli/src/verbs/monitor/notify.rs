//! What a service tells systemd: that it is ready, that it lives, that it reads its settings again.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The way to systemd; silent where there is none.
pub(super) struct Notifier(Option<(UnixDatagram, SocketAddr)>);

impl Notifier {
    /// As NOTIFY_SOCKET says.
    pub(super) fn from_environment() -> Notifier {
        let place = std::env::var("NOTIFY_SOCKET").unwrap_or_default();
        Notifier::to(&place)
    }

    fn to(place: &str) -> Notifier {
        let address = match place.strip_prefix('@') {
            _ if place.is_empty() => None,
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(place).ok(),
        };
        let socket = UnixDatagram::unbound().ok();
        Notifier(socket.zip(address))
    }

    /// Says it; a systemd that does not listen is no failure of ours.
    pub(super) fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_hears_what_is_said_and_its_absence_is_silent() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&place).expect("it listens");
        Notifier::to(place.to_str().expect("a text")).say("READY=1");
        let mut bytes = [0; 32];
        let length = systemd.recv(&mut bytes).expect("a message");
        assert_eq!(&bytes[..length], b"READY=1");
        Notifier::to("").say("READY=1");
        Notifier::to("/nonexistent/socket").say("READY=1");
    }
}
