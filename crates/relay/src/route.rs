//! A trace's way into the spool: what its writers tell, and how it ends.

use std::path::Path;
use std::sync::Arc;

use ctf::writer::{Outlet, StagedDir};

use crate::book::{Book, End};

/// What the writers of one trace tell.
#[derive(Debug)]
struct Told {
    book: Arc<Book>,
    number: u32,
}

impl Outlet for Told {
    fn takes(&self, size_bytes: u64, events: u64) -> bool {
        self.book.takes(size_bytes, events)
    }

    fn wrote(&self, path: &Path, end_bytes: u64, events: u64) {
        self.book.wrote(self.number, path, end_bytes, events);
    }

    fn lost(&self, events: u64) {
        self.book.is_lost(events);
    }
}

/// A trace that is delivered while it is written.
#[derive(Debug)]
pub struct Route {
    told: Arc<Told>,
    is_over: bool,
}

impl Route {
    pub(crate) fn new(book: &Arc<Book>, root: &Path, name: &str) -> Route {
        let number = book.begin(root, name);
        let book = Arc::clone(book);
        Route {
            told: Arc::new(Told { book, number }),
            is_over: false,
        }
    }

    /// Where its writers tell of packets.
    pub fn outlet(&self) -> Arc<dyn Outlet> {
        Arc::clone(&self.told) as Arc<dyn Outlet>
    }

    /// The trace has ended: the rest is delivered, and its folder removed.
    pub fn end(mut self, end: End, folder: StagedDir) {
        self.is_over = true;
        self.told.book.end(self.told.number, end, Some(folder));
    }
}

/// Its recorder failed and takes its folder away: what was delivered stays over there.
impl Drop for Route {
    fn drop(&mut self) {
        if !self.is_over {
            self.told.book.end(self.told.number, End::Gone, None);
        }
    }
}
