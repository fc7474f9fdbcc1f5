//! Which events of which processes to record, as it was asked for.

use std::path::{Path, PathBuf};

use event::Result;

use super::app_contexts::{self, AppContext};
use super::contexts::{self, Context};
use super::wanted::{self, EventRule};

/// Which events of which processes to record.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// As they were written.
    words: Vec<String>,
    pub(super) rules: Vec<EventRule>,
    pub(super) contexts: Vec<Context>,
    pub(super) app_contexts: Vec<AppContext>,
    pub(super) directory: Option<PathBuf>,
    pub(super) ring_bytes: Option<u64>,
    pub(super) user_bytes: Option<u64>,
}

impl UserConfig {
    /// From words such as `npt:*` or `npt:*:warning i > 5`: `GLOB[:LEVEL][ FILTER]`. A pattern
    /// without a colon names providers; patterns without a filter may stand in a list.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what can be none.
    pub fn new(words: &[String]) -> Result<Self> {
        let mut rules = Vec::new();
        for word in words {
            rules.extend(wanted::parse(word)?);
        }
        Ok(UserConfig {
            words: words.to_vec(),
            rules,
            contexts: Vec::new(),
            app_contexts: Vec::new(),
            directory: None,
            ring_bytes: None,
            user_bytes: None,
        })
    }

    /// Leaves out the events that match one of these patterns, whatever else they match.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what can be none.
    pub fn without(mut self, words: &[String]) -> Result<Self> {
        let left_out = wanted::left_out(words)?;
        for rule in &mut self.rules {
            rule.leave_out(&left_out);
        }
        Ok(self)
    }

    /// Programs that start during the recording make rings of so many bytes for each CPU.
    pub fn with_rings(mut self, bytes: Option<u64>) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// All programs of a user together have so much memory for their rings at most.
    pub fn with_rings_per_user(mut self, bytes: Option<u64>) -> Self {
        self.user_bytes = bytes;
        self
    }

    /// What [`UserConfig::with_rings_per_user`] was told.
    pub fn user_bytes(&self) -> Option<u64> {
        self.user_bytes
    }

    /// The bytes of rings that were asked for.
    pub fn ring_bytes(&self) -> Option<u64> {
        self.ring_bytes
    }

    /// Events carry these contexts too, by LTTng's names: `procname`, `prio`, `pid_ns`,
    /// `$app.PROVIDER:CONTEXT`…
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word that is none; what the kernel says of performance
    /// counters.
    pub fn with_contexts(mut self, words: &[String]) -> Result<Self> {
        let (app_contexts, words) = app_contexts::parted(words)?;
        self.app_contexts = app_contexts;
        self.contexts = contexts::parse(&words)?;
        Ok(self)
    }

    /// Whether events of applications can carry what is called so.
    pub fn has_context(word: &str) -> bool {
        let told = app_contexts::parted(&[word.to_owned()]);
        told.is_ok_and(|(_, words)| words.is_empty() || contexts::parse(&words).is_ok())
    }

    /// Looks for processes in `directory` alone, as `RTSCOPE_DIR` tells them.
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The directory that was asked for.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    pub(super) fn rules(&self) -> &[EventRule] {
        &self.rules
    }

    /// As it was written.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}
