//! The two requests to the editor, and what its answers mean.
//!
//! The invariant: no request outlives its caller's signal or the editor's patience limit; one that is given up is
//! withdrawn (`$/cancel_request`), and an answer that comes later finds nobody.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::FileFault;
use sluice_protocol::acp::RESOURCE_NOT_FOUND_CODE;
use sluice_protocol::acp::schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use sluice_protocol::{Peer, PeerError};

use super::named;

const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";
/// How much of an editor's error message is passed on, in characters.
const MOST_OF_MESSAGE: usize = 300;

/// The editor, as far as one session's files go.
pub(in crate::acp) struct Editor {
    peer: Peer,
    session: String,
    patience: Duration,
}

/// What the editor says of a file.
pub(super) enum Answer {
    /// Its text, unsaved changes included.
    Text(String),
    /// It knows no such file.
    Unknown,
    /// It will not say.
    Refused(FileFault),
}

/// Why there is no answer that could be used.
enum Silence {
    Rpc(i32, FileFault),
    Other(FileFault),
}

impl From<Silence> for FileFault {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Rpc(_, fault) | Silence::Other(fault) => fault,
        }
    }
}

impl Editor {
    /// The client at the other end of `peer`, asked about files of a session; no answer takes longer than `patience`.
    pub(in crate::acp) fn new(peer: Peer, session: String, patience: Duration) -> Self {
        Self { peer, session, patience }
    }

    /// The text that the editor has of a file.
    ///
    /// # Errors
    /// When it was cancelled, or the editor is mute, gone or incomprehensible.
    pub(super) async fn read(&self, path: &Path, cancel: &Cancel) -> Result<Answer, FileFault> {
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        match self.ask::<ReadTextFileResponse>(READ, &request, path, cancel).await {
            Ok(answer) => Ok(Answer::Text(answer.content)),
            Err(Silence::Rpc(RESOURCE_NOT_FOUND_CODE, _)) => Ok(Answer::Unknown),
            Err(Silence::Rpc(_, fault)) => Ok(Answer::Refused(fault)),
            Err(Silence::Other(fault)) => Err(fault),
        }
    }

    /// Makes this the text of a file.
    ///
    /// # Errors
    /// When it was cancelled, or the editor refuses, is mute, gone or incomprehensible.
    pub(super) async fn write(&self, path: &Path, text: &str, cancel: &Cancel) -> Result<(), FileFault> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        self.ask::<WriteTextFileResponse>(WRITE, &request, path, cancel).await?;
        Ok(())
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        path: &Path,
        cancel: &Cancel,
    ) -> Result<R, Silence> {
        let fault = |why: String| FileFault::Io { path: named(path), why };
        let answered = tokio::select! {
            biased;
            _ = cancel.cancelled() => return Err(Silence::Other(FileFault::Aborted { path: named(path) })),
            answered = tokio::time::timeout(self.patience, self.peer.request_as::<R>(method, params)) => answered,
        };
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(PeerError::Rpc(error))) => {
                let said = one_line(error.message());
                let why = format!("the editor answered `{method}` with error {}: {said}", error.code());
                Err(Silence::Rpc(error.code(), fault(why)))
            }
            Ok(Err(PeerError::Closed)) => Err(Silence::Other(fault("the editor is gone".to_owned()))),
            Ok(Err(error @ (PeerError::Encode { .. } | PeerError::Decode { .. }))) => {
                Err(Silence::Other(fault(error.to_string())))
            }
            Err(_) => {
                let why = format!("the editor did not answer `{method}` within {} s", self.patience.as_secs_f64());
                Err(Silence::Other(fault(why)))
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_OF_MESSAGE).collect()
}
