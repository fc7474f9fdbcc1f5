//! An object store with S3's interface as the target. A file is there whole or not at all by
//! itself: an object is seen when all of it has come.

use std::time::Duration;

use event::{Error, ErrorKind, Result};
use rusty_s3::actions::{ListObjectsV2, S3Action};
use rusty_s3::{Bucket, Credentials, UrlStyle};

use crate::curl::{self, Answer};
use crate::push::Target;
use crate::tables::{MARK, mark};

/// How long a signed address holds: for one request, on clocks that differ a little.
const SIGNED: Duration = Duration::from_secs(15 * 60);
/// Pages of a folder's list that are read; a page has up to 1,000 names.
const PAGES_MAX: usize = 100;
/// Of those who say none; servers other than Amazon's take any.
const REGION: &str = "us-east-1";

/// Where a bucket is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Place {
    /// The bucket's name.
    pub bucket: String,
    /// What goes before every name, without `/` at its ends; empty for the whole bucket.
    pub prefix: String,
    /// The server's address; none for Amazon's of the region.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
}

impl S3Place {
    /// Reads `s3://BUCKET/PREFIX`; none where it is something else.
    pub fn read(text: &str) -> Option<S3Place> {
        let rest = text.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        (!bucket.is_empty()).then(|| S3Place {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            ..S3Place::default()
        })
    }
}

/// A bucket, or what lies in it below a prefix.
#[derive(Debug)]
pub struct ObjectStore {
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

impl ObjectStore {
    /// The bucket at this place, for who has these keys.
    ///
    /// # Errors
    /// When the server's address is none.
    pub fn new(place: &S3Place, credentials: Credentials) -> Result<ObjectStore> {
        let region = place.region.clone().unwrap_or_else(|| REGION.to_owned());
        let amazon = format!("https://s3.{region}.amazonaws.com");
        // Others than Amazon rarely have a name of its own for each bucket.
        let (endpoint, style) = match &place.endpoint {
            Some(endpoint) => (endpoint, UrlStyle::Path),
            None => (&amazon, UrlStyle::VirtualHost),
        };
        let fix = match endpoint.is_ascii() {
            true => "give http://HOST:PORT or https://HOST, and the bucket as s3://NAME/PREFIX",
            false => "give the host's name in ASCII, as in https://xn--bcher-kva.example",
        };
        let wrong = |cause: String| {
            let what = "this is not the address of an object store";
            Error::new(ErrorKind::InvalidInput, what)
                .found(format!("'{endpoint}', bucket '{}': {cause}", place.bucket))
                .fix(fix)
        };
        let url = endpoint
            .parse()
            .map_err(|cause| wrong(format!("{cause}")))?;
        let bucket = Bucket::new(url, style, place.bucket.clone(), region);
        Ok(ObjectStore {
            bucket: bucket.map_err(|cause| wrong(format!("{cause}")))?,
            credentials,
            prefix: match place.prefix.as_str() {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
        })
    }

    /// The keys that programs for S3 share: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, where
    /// there is one, `AWS_SESSION_TOKEN`.
    ///
    /// # Errors
    /// When they are not in the environment.
    pub fn credentials() -> Result<Credentials> {
        Credentials::from_env().ok_or_else(|| {
            let what = "nobody says with which keys the object store is opened";
            Error::new(ErrorKind::PermissionDenied, what)
                .found("no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
                .fix(
                    "export both; for the service: EnvironmentFile= in 'systemctl edit \
                     rtscope-monitor'",
                )
        })
    }

    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let key = format!("{}{name}", self.prefix);
        let action = self.bucket.put_object(Some(&self.credentials), &key);
        let answer = curl::put(action.sign(SIGNED).as_str(), bytes)?;
        match answer.status {
            200..300 => Ok(()),
            _ => Err(self.refused(&format!("write {key}"), &answer)),
        }
    }

    fn refused(&self, what: &str, answer: &Answer) -> Error {
        let code = between(&answer.body, "<Code>", "</Code>");
        let message = between(&answer.body, "<Message>", "</Message>");
        let said: Vec<&str> = [code, message].into_iter().flatten().collect();
        let kind = match answer.status {
            401 | 403 => ErrorKind::PermissionDenied,
            404 => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let found = format!("status {} {}", answer.status, said.join(": "));
        Error::new(kind, format!("cannot {what} in {}", self.name()))
            .found(found.trim_end().to_owned())
            .fix("mend the bucket, its rights or the clock; what is in the store waits for it")
    }
}

/// What a short answer has between two marks.
fn between<'t>(text: &'t str, from: &str, until: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(until).map(|(inner, _)| inner)
}

impl Target for ObjectStore {
    fn name(&self) -> String {
        format!("{}{}", self.bucket.base_url(), self.prefix)
    }

    fn meet(&mut self, known: bool) -> Result<()> {
        let key = format!("{}{MARK}", self.prefix);
        let action = self.bucket.get_object(Some(&self.credentials), &key);
        let answer = curl::get(action.sign(SIGNED).as_str())?;
        // Without the right to list, a server may say 403 of what is not there; it is not told
        // apart.
        match answer.status {
            200..300 => Ok(()),
            404 if between(&answer.body, "<Code>", "</Code>") == Some("NoSuchBucket") => {
                Err(self.refused("find the bucket", &answer))
            }
            404 if known => {
                let what = "the fleet's bucket is another one than before: it has no mark";
                let fix = "name the right one; if it was emptied on purpose: \
                           rtscope monitor push --to s3://… --again";
                let found = format!("no {MARK} in {}", self.name());
                Err(Error::new(ErrorKind::NotFound, what).found(found).fix(fix))
            }
            404 => self.put_object(MARK, mark().as_bytes()),
            _ => Err(self.refused("read the fleet's mark", &answer)),
        }
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_object(name, bytes)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>> {
        let prefix = format!("{}{folder}/", self.prefix);
        let mut names = Vec::new();
        let mut next = None;
        for _ in 0..PAGES_MAX {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_prefix(&prefix);
            if let Some(next) = next.take() {
                action.with_continuation_token(next);
            }
            let answer = curl::get(action.sign(SIGNED).as_str())?;
            if !(200..300).contains(&answer.status) {
                return Err(self.refused(&format!("list {prefix}"), &answer));
            }
            let page = ListObjectsV2::parse_response(&answer.body).map_err(|cause| {
                let what = format!("cannot read the list of {prefix} in {}", self.name());
                let error = Error::new(ErrorKind::Corrupt, what).found(format!("{cause}"));
                error.fix("name a server with S3's interface")
            })?;
            let keys = page.contents.into_iter();
            names.extend(keys.filter_map(|one| Some(one.key.strip_prefix(&prefix)?.to_owned())));
            next = page.next_continuation_token;
            if next.is_none() {
                return Ok(names);
            }
        }
        let what = format!("too many files in {prefix} of {}", self.name());
        Err(Error::new(ErrorKind::Unsupported, what)
            .found(format!("more than {PAGES_MAX} pages of names"))
            .fix("give the fleet a prefix of its own: s3://BUCKET/PREFIX"))
    }
}

#[cfg(test)]
#[path = "s3_tests.rs"]
mod tests;
