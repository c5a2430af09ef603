//! Where a followed log goes: standard output, and a file where one was named.
//!
//! A thread writes, so that a reader that does not read cannot keep the job from hearing a stop signal.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::OutputError;

/// Pieces that may wait for a slow reader before the log itself is made to wait.
const WAITING: usize = 4;

/// The way to the reader of a log.
pub struct Shown {
    pieces: mpsc::Sender<Vec<u8>>,
    end: oneshot::Receiver<io::Result<()>>,
}

impl Shown {
    /// Opens `file` before anything is started, so that a wrong path costs no run.
    pub fn open(file: Option<&Path>) -> Result<Shown, OutputError> {
        let create = |path: &Path| {
            let failed = |source| OutputError {
                file: path.to_owned(),
                source,
            };
            // Opening one waits for its reader, and no signal would end that wait.
            if std::fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
                return Err(failed(io::Error::other("it is a named pipe; name a file")));
            }
            let file = File::create(path).map_err(failed)?;
            Ok((path.to_owned(), file))
        };
        let mut file = file.map(create).transpose()?;
        let (pieces, mut waiting) = mpsc::channel::<Vec<u8>>(WAITING);
        let (tell, end) = oneshot::channel();
        std::thread::spawn(move || {
            let mut written = Ok(());
            while let Some(piece) = waiting.blocking_recv() {
                written = write(&piece, &mut file);
                if written.is_err() {
                    break;
                }
            }
            // From here on every further piece is refused. Nobody may be left who asks why.
            drop(waiting);
            let _asked = tell.send(written);
        });
        Ok(Shown { pieces, end })
    }

    /// Waits until there is room for a piece and takes it out of `piece`; an error when nothing can be shown any more.
    /// Dropped before its end it has taken nothing.
    pub async fn take(&self, piece: &mut Vec<u8>) -> Result<(), NotShown> {
        let room = self.pieces.reserve().await.map_err(|_closed| NotShown)?;
        room.send(std::mem::take(piece));
        Ok(())
    }

    /// Waits until everything is written.
    pub async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        self.end
            .await
            .unwrap_or_else(|_gone| Err(io::Error::other("the writing thread is gone")))
    }
}

/// Nothing can be shown any more; [`Shown::finish`] says why.
#[derive(Debug)]
pub struct NotShown;

fn write(piece: &[u8], file: &mut Option<(PathBuf, File)>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(piece)?;
    out.flush()?;
    match file {
        None => Ok(()),
        Some((path, file)) => file
            .write_all(piece)
            .map_err(|e| io::Error::other(format!("{}: {e}", path.display()))),
    }
}
