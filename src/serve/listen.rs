//! Connections: accepted here and not by `axum::serve`, which sets no timers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// How long a request's head may take to arrive, and how long a connection may idle.
const HEAD: Duration = Duration::from_secs(30);
/// How long a client may read nothing of what is sent.
const STALLED: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;
/// Fields of a request's head.
const HEAD_FIELDS: usize = 100;
/// Connections at once.
const CONNECTIONS: usize = 1024;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host and a port; port 0 is any that is free.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// Who is at the other end.
#[derive(Debug, Clone)]
pub(super) struct Client(pub(super) String);

/// A bound socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Removed),
}

/// A socket's file, which goes away with the listener.
pub(super) struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    pub(super) async fn bind(address: &Address) -> std::io::Result<Self> {
        match address {
            Address::Tcp(host, port) => Ok(Self::Tcp(TcpListener::bind((host.as_str(), *port)).await?)),
            Address::Unix(path) => {
                remove_stale(path).await?;
                Ok(Self::Unix(UnixListener::bind(path)?, Removed(path.clone())))
            }
        }
    }

    /// Where it listens, for people and for programs.
    pub(super) fn url(&self) -> std::io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(format!("http://{}", listener.local_addr()?)),
            Self::Unix(_, Removed(path)) => Ok(format!("unix:{}", path.display())),
        }
    }

    async fn accept(&self) -> std::io::Result<(Box<dyn Duplex>, Client)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Events are small and wanted at once.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Client(peer.ip().to_string())))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), Client("unix".to_owned())))
            }
        }
    }

    /// Takes connections until dropped.
    pub(super) async fn serve(&self, router: Router, graceful: &GracefulShutdown) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
            let (stream, client) = match self.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or a client that has gone again: neither is a reason to end.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(STALLED));
            let service = TowerToHyperService::new(router.clone().layer(Extension(client)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_headers(HEAD_FIELDS)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(Box::pin(stream)), service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection has ended");
                }
                drop(place);
            });
        }
    }
}

/// A socket that nobody listens on any more is in the way; any other file is not ours to remove.
async fn remove_stale(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && tokio::net::UnixStream::connect(path).await.is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// A stream of either kind.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
